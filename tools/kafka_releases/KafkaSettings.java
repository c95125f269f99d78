// SPDX-FileCopyrightText: 2026 Quorumshift contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

import java.io.File;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.jar.JarFile;

/**
 * Prints what the classes of one release of Kafka, those on the class path, accept, as lines of fields with tabs:
 *
 *   rule TAB broker or topic TAB setting TAB least TAB most TAB allowed values, comma-separated TAB empty TAB repeated
 *   request TAB name TAB its oldest version
 *   class TAB a class that a setting may name
 *   urls TAB whether an OAUTHBEARER URL needs the system property org.apache.kafka.sasl.oauthbearer.allowed.urls
 *
 * `least` and `most` are those of ConfigDef.Range, "" without one. `empty` and `repeated` say whether the release's own ConfigDef
 * accepts a list without items, and one that has an item twice; "" for a setting that is no list. A class is one of Kafka's own jars.
 */
public class KafkaSettings {
    private static final String URL = "https://idp.example/jwks";
    private static final List<String> PLUGINS = List.of(
        "org.apache.kafka.common.Configurable",
        "org.apache.kafka.common.security.auth.AuthenticateCallbackHandler",
        "org.apache.kafka.common.security.auth.Login",
        "org.apache.kafka.common.security.auth.SecurityProviderCreator",
        "javax.security.auth.spi.LoginModule",
        "kafka.metrics.KafkaMetricsReporter",
        "kafka.security.auth.Authorizer"
    );
    private static final List<String> OTHERS = List.of(
        "org.apache.kafka.clients.", "org.apache.kafka.connect.", "org.apache.kafka.streams.", "kafka.tools."
    );

    public static void main(String[] arguments) throws Exception {
        rules("broker", call(Class.forName("kafka.server.KafkaConfig"), "configDef"));
        rules("topic", call(first("org.apache.kafka.storage.internals.log.LogConfig", "kafka.log.LogConfig"), "configDefCopy"));
        Class<?> requests = Class.forName("org.apache.kafka.common.protocol.ApiKeys");
        for (Object request : requests.getEnumConstants()) {
            print("request", request, requests.getMethod("oldestVersion").invoke(request));
        }
        for (String name : plugins()) {
            print("class", name);
        }
        print("urls", needsAllowedUrls());
    }

    private static void rules(String of, Object definition) throws Exception {
        Map<?, ?> keys = (Map<?, ?>) field(definition, "configKeys");
        for (Object key : new TreeMap<>(keys).values()) {
            Object validator = field(key, "validator");
            boolean isList = field(key, "type").toString().equals("LIST");
            String allowed = validator == null ? "" : allowed(validator);
            String item = allowed.isEmpty() ? "x" : allowed.split(",")[0];
            print("rule", of, field(key, "name"), bound(validator, "min"), bound(validator, "max"), allowed,
                isList ? accepts(definition, key, "") : "", isList ? accepts(definition, key, item + "," + item) : "");
        }
    }

    private static String bound(Object validator, String name) throws Exception {
        if (validator == null || !validator.getClass().getSimpleName().equals("Range")) {
            return "";
        }
        Object found = field(validator, name);
        return found == null ? "" : found.toString();
    }

    /** Returns the values that a validator lists; "" where it lists none. */
    private static String allowed(Object validator) throws Exception {
        String kind = validator.getClass().getSimpleName();
        Object from = kind.equals("ValidList") ? field(validator, "validString") : validator;
        if (!from.getClass().getSimpleName().equals("ValidString")) {
            return "";
        }
        List<String> values = new ArrayList<>();
        for (Object value : (List<?>) field(from, "validStrings")) {
            values.add(value.toString());
        }
        Collections.sort(values);
        return String.join(",", values);
    }

    /** Returns whether the release takes this text from a file: it may change the value before it is validated. */
    private static String accepts(Object definition, Object key, String value) throws Exception {
        for (Method parse : definition.getClass().getSuperclass() == Object.class ? definition.getClass().getDeclaredMethods()
                : definition.getClass().getSuperclass().getDeclaredMethods()) {
            if (parse.getName().equals("parseValue")) {
                parse.setAccessible(true);
                try {
                    parse.invoke(definition, key, value, true);
                    return "yes";
                } catch (InvocationTargetException e) {
                    return "no";
                }
            }
        }
        throw new NoSuchMethodException("ConfigDef.parseValue");
    }

    /** Returns the concrete classes of Kafka's own jars that a setting of brokers and controllers may name. */
    private static TreeSet<String> plugins() throws Exception {
        List<Class<?>> kinds = new ArrayList<>();
        for (String name : PLUGINS) {
            Class<?> kind = first(name);
            if (kind != null) {
                kinds.add(kind);
            }
        }
        TreeSet<String> found = new TreeSet<>();
        for (String path : System.getProperty("java.class.path").split(File.pathSeparator)) {
            if (!new File(path).getName().matches("kafka[-_].*\\.jar")) {
                continue;
            }
            try (JarFile jar = new JarFile(path)) {
                jar.stream().map(entry -> entry.getName()).filter(name -> name.endsWith(".class") && !name.contains("$")).forEach(name -> {
                    String type = name.substring(0, name.length() - ".class".length()).replace('/', '.');
                    if (OTHERS.stream().noneMatch(type::startsWith) && isPlugin(type, kinds)) {
                        found.add(type);
                    }
                });
            }
        }
        return found;
    }

    private static boolean isPlugin(String name, List<Class<?>> kinds) {
        try {
            Class<?> type = Class.forName(name, false, KafkaSettings.class.getClassLoader());
            return !type.isInterface() && !Modifier.isAbstract(type.getModifiers()) && kinds.stream().anyMatch(kind -> kind.isAssignableFrom(type));
        } catch (ClassNotFoundException | LinkageError e) {
            return false; // it needs a library that the release leaves to its users
        }
    }

    private static boolean needsAllowedUrls() throws Exception {
        Class<?> utils = first("org.apache.kafka.common.security.oauthbearer.internals.secured.ConfigurationUtils");
        if (utils == null) {
            return false; // 3.3 has it in another package, and no such property
        }
        Object configs = utils.getConstructor(Map.class).newInstance(Map.of("sasl.oauthbearer.jwks.endpoint.url", URL));
        try {
            utils.getMethod("validateUrl", String.class).invoke(configs, "sasl.oauthbearer.jwks.endpoint.url");
            return false;
        } catch (InvocationTargetException e) {
            return e.getCause().getMessage().contains("allowed.urls");
        }
    }

    // By name -------------------------------------------------------------------------------------------------------

    private static Class<?> first(String... names) {
        for (String name : names) {
            try {
                return Class.forName(name);
            } catch (ClassNotFoundException e) {
                // the next name
            }
        }
        return null;
    }

    /** Calls a method without parameters: a static one, or that of the object that Scala makes in its place. */
    private static Object call(Class<?> type, String name) throws Exception {
        try {
            Method found = type.getDeclaredMethod(name);
            found.setAccessible(true);
            return found.invoke(null);
        } catch (NoSuchMethodException e) {
            Class<?> module = Class.forName(type.getName() + "$");
            Method found = module.getDeclaredMethod(name);
            found.setAccessible(true);
            return found.invoke(module.getField("MODULE$").get(null));
        }
    }

    private static Object field(Object of, String name) throws Exception {
        for (Class<?> type = of.getClass(); type != null; type = type.getSuperclass()) {
            for (Field found : type.getDeclaredFields()) {
                if (found.getName().equals(name)) {
                    found.setAccessible(true);
                    return found.get(of);
                }
            }
        }
        throw new NoSuchFieldException(of.getClass() + "." + name);
    }

    private static void print(Object... fields) {
        StringBuilder line = new StringBuilder();
        for (Object field : fields) {
            line.append(line.length() == 0 ? "" : "\t").append(field);
        }
        System.out.println(line);
    }
}
