// SPDX-FileCopyrightText: 2026 Quorumshift contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
//
// Prints every metadata and control record type of the Kafka on the class path, at each of its versions and with
// fields filled in several ways: one JSON object a line with Kafka's own bytes (hex) and Kafka's own JSON.
//   java -cp 'KAFKA_LIBS/*' RecordMetadata.java | gzip -9n > metadata_records.jsonl.gz

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.apache.kafka.common.message.KRaftVersionRecord;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.message.SnapshotFooterRecord;
import org.apache.kafka.common.message.SnapshotHeaderRecord;
import org.apache.kafka.common.message.VotersRecord;
import org.apache.kafka.common.metadata.MetadataRecordType;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;

public class RecordMetadata {
    enum Filling { DEFAULTS, SHORT, LONG, NULLS, UNKNOWN_TAGS }

    static final ObjectMapper JSON = new ObjectMapper();
    static final Map<Integer, Class<? extends Message>> CONTROL = new LinkedHashMap<>();
    static {
        CONTROL.put(2, LeaderChangeMessage.class);
        CONTROL.put(3, SnapshotHeaderRecord.class);
        CONTROL.put(4, SnapshotFooterRecord.class);
        CONTROL.put(5, KRaftVersionRecord.class);
        CONTROL.put(6, VotersRecord.class);
    }
    static int counter;

    public static void main(String[] args) throws Exception {
        for (MetadataRecordType type : MetadataRecordType.values()) {
            Class<? extends Message> kind = type.newMetadataRecord().getClass();
            Message empty = type.newMetadataRecord();
            for (short version = 0; version <= empty.highestSupportedVersion(); version++) {
                for (Filling filling : Filling.values()) {
                    print(type.name(), "metadata", type.id(), kind, version, filling);
                }
            }
        }
        for (Map.Entry<Integer, Class<? extends Message>> entry : CONTROL.entrySet()) {
            Message empty = entry.getValue().getDeclaredConstructor().newInstance();
            for (short version = 0; version <= empty.highestSupportedVersion(); version++) {
                for (Filling filling : List.of(Filling.SHORT, Filling.LONG)) {
                    print(entry.getValue().getSimpleName(), "control", entry.getKey(), entry.getValue(), version, filling);
                }
            }
        }
    }

    static void print(String name, String family, int id, Class<? extends Message> kind, short version, Filling filling)
            throws Exception {
        Message message = filled(kind, version, filling, family);
        Method converter = Class.forName(kind.getName() + "JsonConverter").getMethod("write", kind, short.class);
        ObjectNode line = JSON.createObjectNode();
        line.put("family", family).put("type", name).put("id", id).put("version", version).put("filling", filling.name());
        line.put("bytes", HexFormat.of().formatHex(serialized(message, version, family)));
        line.set("json", (JsonNode) converter.invoke(null, message, version));
        if (filling == Filling.DEFAULTS) {
            line.set("defaults", JSON.valueToTree(values(message)));
        }
        System.out.println(JSON.writeValueAsString(line));
    }

    static byte[] serialized(Message message, short version, String family) {
        if (family.equals("control")) {
            return bytes(MessageUtil.toByteBuffer(message, version));
        }
        ApiMessageAndVersion record = new ApiMessageAndVersion((ApiMessage) message, version);
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBufferAccessor out = new ByteBufferAccessor(ByteBuffer.allocate(MetadataRecordSerde.INSTANCE.recordSize(record, cache)));
        MetadataRecordSerde.INSTANCE.write(record, cache, out);
        out.flip();
        return bytes(out.buffer());
    }

    static byte[] bytes(ByteBuffer buffer) {
        byte[] all = new byte[buffer.remaining()];
        buffer.get(all);
        return all;
    }

    /** A message with each field set that this version can carry. */
    static Message filled(Class<? extends Message> kind, short version, Filling filling, String family) throws Exception {
        Message message = kind.getDeclaredConstructor().newInstance();
        if (filling != Filling.DEFAULTS) {
            List<Method> fit = new ArrayList<>();
            for (Method setter : setters(kind)) {
                fit.add(setter);
                if (!fits(kind, fit, version, filling, family)) {
                    fit.remove(setter);
                }
            }
            message = set(kind, fit, version, filling);
        }
        if (filling == Filling.UNKNOWN_TAGS) {
            message.unknownTaggedFields().add(new RawTaggedField(150, new byte[] {1, 2, 3}));
            message.unknownTaggedFields().add(new RawTaggedField(151, new byte[200]));
        }
        return message;
    }

    static boolean fits(Class<? extends Message> kind, List<Method> setters, short version, Filling filling, String family)
            throws Exception {
        try {
            serialized(set(kind, setters, version, filling), version, family);
            return true;
        } catch (UnsupportedVersionException | NullPointerException notInThisVersionOrNotNullable) {
            return false;
        }
    }

    static <T> T set(Class<T> kind, List<Method> setters, short version, Filling filling) throws Exception {
        counter = 0; // the same setters in the same order get the same values
        T target = kind.getDeclaredConstructor().newInstance();
        for (Method setter : setters) {
            boolean isVersion = setter.getName().equals("setVersion");
            Object value = isVersion ? version : value(setter.getGenericParameterTypes()[0], version, filling);
            try {
                setter.invoke(target, value);
            } catch (InvocationTargetException wrapped) {
                throw (Exception) wrapped.getCause();
            }
        }
        return target;
    }

    static List<Method> setters(Class<?> kind) {
        return Arrays.stream(kind.getDeclaredMethods())
            .filter(m -> m.getName().startsWith("set") && m.getParameterCount() == 1 && Modifier.isPublic(m.getModifiers()))
            .sorted(Comparator.comparing(Method::getName))
            .collect(Collectors.toList());
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    static Object value(Type type, short version, Filling filling) throws Exception {
        int n = ++counter;
        boolean isLong = filling == Filling.LONG;
        if (type == boolean.class) return n % 2 == 0 ^ isLong;
        if (type == byte.class) return (byte) (isLong ? -n % 128 : n % 128);
        if (type == short.class) return (short) (isLong ? -n * 300 : n);
        if (type == int.class) return setterTakesUnsignedShort ? 65535 - n % 1000 : isLong ? Integer.MIN_VALUE + n : n;
        if (type == Integer.class) return isLong ? Integer.MAX_VALUE - n : n;
        if (type == long.class) return isLong ? Long.MIN_VALUE + n : (1L << 40) + n;
        if (type == double.class) return isLong ? -1.0e300 / n : n + 0.25;
        if (type == Uuid.class) return new Uuid(0x1122334455667788L * n, 0xfedcba9876543210L + n);
        if (filling == Filling.NULLS) return null;
        if (type == String.class) return isLong ? "länger-日本-" + "x".repeat(150) + n : "s" + n;
        if (type == byte[].class) return isLong ? new byte[200] : new byte[] {(byte) n, -1, 0};
        int count = isLong ? 130 : 2;
        if (type instanceof ParameterizedType) {
            List<Object> list = new ArrayList<>();
            Type element = ((ParameterizedType) type).getActualTypeArguments()[0];
            for (int i = 0; i < count; i++) list.add(value(element, version, filling));
            return list;
        }
        Class<?> kind = (Class<?>) type;
        if (Collection.class.isAssignableFrom(kind)) {
            Collection all = (Collection) kind.getDeclaredConstructor().newInstance();
            Type element = ((ParameterizedType) kind.getGenericSuperclass()).getActualTypeArguments()[0];
            for (int i = 0; i < Math.min(count, 3); i++) all.add(value(element, version, filling));
            return all;
        }
        return nested(kind, version, filling);
    }

    /** A struct; the generator gives uint16 the Java type int, and only ports are uint16 here. */
    static Object nested(Class<?> kind, short version, Filling filling) throws Exception {
        Object target = kind.getDeclaredConstructor().newInstance();
        for (Method setter : setters(kind)) {
            if (setter.getName().equals("setNext") || setter.getName().equals("setPrev")) continue;
            if (setter.getName().equals("setVoterDirectoryId") && version == 0 && kind.getName().contains("LeaderChange")) continue;
            setterTakesUnsignedShort = setter.getName().equals("setPort");
            try {
                setter.invoke(target, value(setter.getGenericParameterTypes()[0], version, filling));
            } finally {
                setterTakesUnsignedShort = false;
            }
        }
        return target;
    }

    static boolean setterTakesUnsignedShort;

    /** What the fields of a message hold, by field name. */
    static Map<String, Object> values(Message message) throws Exception {
        Map<String, Object> values = new LinkedHashMap<>();
        for (Field field : message.getClass().getDeclaredFields()) {
            if (Modifier.isStatic(field.getModifiers()) || field.getName().startsWith("_")) continue;
            field.setAccessible(true);
            Object value = field.get(message);
            values.put(field.getName(), value instanceof Uuid ? value.toString() : value);
        }
        return values;
    }
}
