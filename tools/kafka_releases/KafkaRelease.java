// SPDX-FileCopyrightText: 2026 Quorumshift contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

import java.lang.reflect.AccessibleObject;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Prints what the classes of one release of Kafka, those on the class path, say of levels and settings, as lines of fields with tabs.
 *
 * `describe` prints the release's own tables:
 *   level TAB metadata.version TAB name TAB whether metadata changed with it
 *   range TAB controller or broker TAB feature TAB lowest TAB highest
 *   default TAB feature TAB level TAB metadata.version from which a new cluster has it
 *   depends TAB feature TAB level TAB other feature TAB its lowest level
 *   first TAB lowest metadata.version to which a controller goes down, where the release has one
 *   registers, unregisters TAB metadata.version from which controllers do
 *   moves TAB whether a controller with static voters changes kraft.version, and they become dynamic
 *   key TAB a setting of brokers and controllers
 *
 * `behave` has the release's FeatureControlManager decide, and prints yes or no:
 *   loads TAB feature TAB level: whether a controller replays the record of this level
 *   lowers TAB metadata.version TAB lower one: whether it accepts the safe downgrade
 *   forced TAB metadata.version TAB lower one: whether it accepts the unsafe downgrade
 *   raises TAB feature TAB level TAB metadata.version: whether it accepts the level there
 *   drops TAB feature TAB level: whether it accepts the safe downgrade to the level below
 *
 * Classes and methods are looked up by name, since they move between releases; one that is missing ends the program with an error.
 */
public class KafkaRelease {
    private static final String METADATA_VERSION = "metadata.version";
    private static final int TRIED = 48; // levels beyond those of every release

    private static Class<?> versions;

    public static void main(String[] arguments) throws Exception {
        versions = Class.forName("org.apache.kafka.server.common.MetadataVersion");
        if (arguments.length == 1 && arguments[0].equals("describe")) {
            describe();
        } else if (arguments.length == 1 && arguments[0].equals("behave")) {
            behave();
        } else {
            throw new IllegalArgumentException("usage: KafkaRelease describe|behave");
        }
    }

    private static void describe() throws Exception {
        Integer registers = null;
        Integer unregisters = null;
        for (Object version : versions.getEnumConstants()) {
            int level = number(call(version, "featureLevel"));
            if (level <= 0) {
                continue; // of ZooKeeper mode alone
            }
            print("level", level, call(version, "version"), call(version, "didMetadataChange"));
            if (registers == null && isTrue(version, "isControllerRegistrationSupported")) {
                registers = level;
            }
            if (unregisters == null && isTrue(version, "isControllerUnregistrationSupported")) {
                unregisters = level;
            }
        }
        for (Field field : versions.getFields()) {
            if (field.getName().equals("MINIMUM_BOOTSTRAP_VERSION")) {
                print("first", call(field.get(null), "featureLevel"));
            }
        }
        print("moves", optional("org.apache.kafka.controller.KRaftVersionAccessor") != null);
        printOnce("registers", registers);
        printOnce("unregisters", unregisters);
        ranges("controller", controllerRanges());
        ranges("broker", brokerRanges());
        for (Object feature : features()) {
            for (Object level : (Object[]) call(feature, "featureVersions")) {
                int number = number(call(level, "featureLevel"));
                Object name = call(feature, "featureName");
                print("default", name, number, call(call(level, "bootstrapMetadataVersion"), "featureLevel"));
                for (Map.Entry<?, ?> other : ((Map<?, ?>) call(level, "dependencies")).entrySet()) {
                    print("depends", name, number, other.getKey(), other.getValue());
                }
            }
        }
        Object keys = call(call(null, Class.forName("kafka.server.KafkaConfig"), "configNames"), "iterator");
        while ((boolean) call(keys, "hasNext")) {
            print("key", call(keys, "next"));
        }
    }

    /** Returns the features besides metadata.version that are no test's own; none before there was one. */
    private static List<Object> features() throws Exception {
        Class<?> all = optional("org.apache.kafka.server.common.Feature", "org.apache.kafka.server.common.Features");
        if (all == null || !all.isEnum()) {
            return List.of(); // before 3.8 it is the class of what is finalized
        }
        Object found = all.getField("PRODUCTION_FEATURES").get(null);
        return new ArrayList<>((Collection<?>) found);
    }

    /** Returns {feature: VersionRange} of a controller that does not use unstable levels. */
    private static Map<String, Object> controllerRanges() throws Exception {
        Class<?> quorum = Class.forName("org.apache.kafka.controller.QuorumFeatures");
        Method found = method(quorum, "defaultSupportedFeatureMap", "defaultFeatureMap");
        return copied((Map<?, ?>) (found.getParameterCount() == 0 ? found.invoke(null) : found.invoke(null, false)));
    }

    /** Returns {feature: SupportedVersionRange} of a broker that does not use unstable levels. */
    private static Map<String, Object> brokerRanges() throws Exception {
        Class<?> broker = optional("org.apache.kafka.server.BrokerFeatures", "kafka.server.BrokerFeatures");
        Method found = method(broker, "defaultSupportedFeatures");
        Object supported = found.getParameterCount() == 0 ? found.invoke(null) : found.invoke(null, false);
        return copied((Map<?, ?>) call(supported, "features"));
    }

    private static void ranges(String role, Map<String, Object> found) throws Exception {
        for (Map.Entry<String, Object> one : found.entrySet()) {
            print("range", role, one.getKey(), call(one.getValue(), "min"), call(one.getValue(), "max"));
        }
    }

    private static void behave() throws Exception {
        Map<String, Object> ranges = controllerRanges();
        int lowest = number(call(ranges.get(METADATA_VERSION), "min"));
        int highest = number(call(ranges.get(METADATA_VERSION), "max"));
        List<String> names = new ArrayList<>(List.of(METADATA_VERSION));
        for (Object feature : features()) {
            names.add((String) call(feature, "featureName"));
        }
        names.add("a.feature.of.no.release");
        for (String name : names) {
            for (int level = 0; level < TRIED; level++) {
                print("loads", name, level, yes(replays(manager(highest), name, level)));
            }
        }
        for (int from = lowest; from <= highest; from++) {
            for (int to = lowest; to < from; to++) {
                print("lowers", from, to, yes(accepts(manager(from), METADATA_VERSION, to, "SAFE_DOWNGRADE")));
                print("forced", from, to, yes(accepts(manager(from), METADATA_VERSION, to, "UNSAFE_DOWNGRADE")));
            }
        }
        for (String name : names.subList(1, names.size() - 1)) {
            if (name.equals("kraft.version")) {
                continue; // the quorum decides, by its own record
            }
            int last = ranges.containsKey(name) ? number(call(ranges.get(name), "max")) : 0;
            for (int level = 1; level <= last; level++) {
                for (int at = lowest; at <= highest; at++) {
                    print("raises", name, level, at, yes(accepts(manager(at), name, level, "UPGRADE")));
                }
                Object at = manager(highest);
                replays(at, name, level);
                print("drops", name, level, yes(accepts(at, name, level - 1, "SAFE_DOWNGRADE")));
            }
        }
    }

    /** Returns a FeatureControlManager of a quorum of this controller alone, with this metadata.version. */
    private static Object manager(int level) throws Exception {
        Class<?> quorum = Class.forName("org.apache.kafka.controller.QuorumFeatures");
        Constructor<?> made = quorum.getDeclaredConstructors()[0];
        made.setAccessible(true);
        Object[] given = new Object[made.getParameterCount()];
        for (int index = 0; index < given.length; index++) {
            Class<?> type = made.getParameterTypes()[index];
            if (type == int.class) {
                given[index] = 0;
            } else if (type == Map.class) {
                given[index] = controllerRanges();
            } else {
                given[index] = type == List.class ? List.of() : type.getConstructor().newInstance();
            }
        }
        Object builder = Class.forName("org.apache.kafka.controller.FeatureControlManager$Builder").getConstructor().newInstance();
        call(builder, "setQuorumFeatures", made.newInstance(given));
        Object manager = call(builder, "build");
        if (!replays(manager, METADATA_VERSION, level)) {
            throw new IllegalStateException("the controller does not replay its own metadata.version " + level);
        }
        return manager;
    }

    private static boolean replays(Object manager, String feature, int level) throws Exception {
        Class<?> type = Class.forName("org.apache.kafka.common.metadata.FeatureLevelRecord");
        Object record = type.getConstructor().newInstance();
        call(record, "setName", feature);
        call(record, "setFeatureLevel", (short) level);
        try {
            accessible(manager.getClass().getDeclaredMethod("replay", type)).invoke(manager, record);
            return true;
        } catch (InvocationTargetException e) {
            return false;
        }
    }

    private static boolean accepts(Object manager, String feature, int level, String how) throws Exception {
        Method update = method(manager.getClass(), "updateFeatures");
        Class<?> kinds = Class.forName("org.apache.kafka.clients.admin.FeatureUpdate$UpgradeType");
        Map<String, Object> kind = Map.of(feature, call(null, kinds, "valueOf", how));
        List<Object> given = new ArrayList<>(List.of(Map.of(feature, (short) level), kind));
        for (Class<?> type : List.of(update.getParameterTypes()).subList(2, update.getParameterCount())) {
            given.add(type == boolean.class ? (Object) true : type == int.class ? (Object) 0 : new HashMap<>());
        }
        Object response = call(update.invoke(manager, given.toArray()), "response");
        Object error = response instanceof Map ? ((Map<?, ?>) response).get(feature) : response;
        return call(error, "error").toString().equals("NONE");
    }

    // By name -------------------------------------------------------------------------------------------------------

    private static Class<?> optional(String... names) {
        for (String name : names) {
            try {
                return Class.forName(name);
            } catch (ClassNotFoundException e) {
                // the next name
            }
        }
        return null;
    }

    private static Method method(Class<?> of, String... names) throws NoSuchMethodException {
        for (Class<?> type = of; type != null; type = type.getSuperclass()) {
            for (String name : names) {
                for (Method one : type.getDeclaredMethods()) {
                    if (one.getName().equals(name) && !one.isBridge()) {
                        return accessible(one);
                    }
                }
            }
        }
        throw new NoSuchMethodException(of + " has none of " + String.join(", ", names));
    }

    private static <T extends AccessibleObject> T accessible(T one) {
        one.setAccessible(true);
        return one;
    }

    private static Object call(Object on, String name, Object... given) throws Exception {
        return call(on, on.getClass(), name, given);
    }

    private static Object call(Object on, Class<?> type, String name, Object... given) throws Exception {
        for (Class<?> one = type; one != null; one = one.getSuperclass()) {
            for (Method found : one.getDeclaredMethods()) {
                if (found.getName().equals(name) && found.getParameterCount() == given.length && !found.isBridge()) {
                    return accessible(found).invoke(on, given);
                }
            }
        }
        for (Class<?> one : type.getInterfaces()) {
            for (Method found : one.getMethods()) {
                if (found.getName().equals(name) && found.getParameterCount() == given.length) {
                    return found.invoke(on, given);
                }
            }
        }
        throw new NoSuchMethodException(type + "." + name);
    }

    /** Returns the answer of a method without parameters, false where there is no such method yet. */
    private static boolean isTrue(Object on, String name) throws Exception {
        for (Method found : on.getClass().getMethods()) {
            if (found.getName().equals(name)) {
                return (boolean) found.invoke(on);
            }
        }
        return false;
    }

    private static int number(Object value) {
        return ((Number) value).intValue();
    }

    private static String yes(boolean answer) {
        return answer ? "yes" : "no";
    }

    private static Map<String, Object> copied(Map<?, ?> found) {
        Map<String, Object> sorted = new TreeMap<>();
        found.forEach((name, value) -> sorted.put((String) name, value));
        return sorted;
    }

    private static void printOnce(String what, Object value) {
        if (value != null) {
            print(what, value);
        }
    }

    private static void print(Object... fields) {
        StringBuilder line = new StringBuilder();
        for (Object field : fields) {
            line.append(line.length() == 0 ? "" : "\t").append(field);
        }
        System.out.println(line);
    }
}
