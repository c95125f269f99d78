// SPDX-FileCopyrightText: 2026 Quorumshift contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Modifier;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.record.MemoryRecords;

/**
 * Reads and writes messages with the classes that Kafka generates of its definitions. A request is a line on standard input, its fields
 * separated by TAB; its answer is a line on standard output, `ok` and fields, or `no` and the reason.
 *
 *   new NAME: all fields of a new message, as JSON
 *   write NAME VERSION OTHER JSON: Kafka's JSON of this version, as bytes of the other version (hex)
 *   read NAME VERSION HEX: all fields of the message, those that the version does not have included, as JSON; the message's bytes anew
 */
public class MessagesAsKafka {
    private static final HexFormat HEX = HexFormat.of();
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Map<String, Class<?>> CLASSES = new HashMap<>();
    private static final String[] PACKAGES = {
        "org.apache.kafka.common.message.",
        "org.apache.kafka.common.metadata.",
        "org.apache.kafka.coordinator.group.generated.",
        "org.apache.kafka.coordinator.transaction.generated.",
    };

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            answers.print(answer(line.split("\t", -1)) + "\n");
            answers.flush();
        }
    }

    private static String answer(String[] fields) {
        try {
            Class<?> kind = CLASSES.computeIfAbsent(fields[1], MessagesAsKafka::named);
            switch (fields[0]) {
                case "new":
                    return "ok\t" + JSON.writeValueAsString(shown(kind.getDeclaredConstructor().newInstance()));
                case "write":
                    return "ok\t" + HEX.formatHex(bytes(ofJson(kind, fields[4], fields[2]), Short.parseShort(fields[3])));
                case "read":
                    Message read = (Message) kind.getDeclaredConstructor().newInstance();
                    short version = Short.parseShort(fields[2]);
                    ByteBuffer buffer = ByteBuffer.wrap(HEX.parseHex(fields[3]));
                    read.read(new ByteBufferAccessor(buffer), version);
                    if (buffer.hasRemaining()) throw new IllegalArgumentException(buffer.remaining() + " bytes are left");
                    String found = JSON.writeValueAsString(shown(read));
                    return "ok\t" + found + "\t" + HEX.formatHex(bytes(read, version));
                default:
                    throw new IllegalArgumentException(fields[0]);
            }
        } catch (InvocationTargetException e) {
            return no(e.getCause());
        } catch (Exception e) {
            return no(e);
        }
    }

    private static String no(Throwable reason) {
        return "no\t" + reason.toString().replaceAll("\\s+", " ");
    }

    private static Class<?> named(String name) {
        for (String place : PACKAGES) {
            for (String suffix : new String[] {"Data", ""}) { // requests, answers and headers have it
                try {
                    return Class.forName(place + name + suffix);
                } catch (ClassNotFoundException elsewhere) {
                    continue;
                }
            }
        }
        throw new IllegalArgumentException("no class of " + name);
    }

    private static Message ofJson(Class<?> kind, String json, String version) throws Exception {
        return (Message) Class.forName(kind.getName() + "JsonConverter").getMethod("read", JsonNode.class, short.class)
            .invoke(null, JSON.readTree(json), Short.parseShort(version));
    }

    private static byte[] bytes(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        if (buffer.hasRemaining()) throw new IllegalStateException("Kafka's size is wrong");
        return buffer.array();
    }

    private static Object shown(Object value) throws IllegalAccessException {
        if (value instanceof Message) {
            Map<String, Object> fields = new TreeMap<>();
            for (Field field : value.getClass().getDeclaredFields()) {
                // the links of a hash collection's elements, and tagged fields that Kafka does not know, are no fields
                boolean isLink = field.getName().equals("next") || field.getName().equals("prev");
                if (Modifier.isStatic(field.getModifiers()) || field.getName().startsWith("_") || isLink) continue;
                field.setAccessible(true);
                fields.put(field.getName(), shown(field.get(value)));
            }
            return fields;
        }
        if (value instanceof Collection) {
            List<Object> elements = new ArrayList<>();
            for (Object element : (Collection<?>) value) elements.add(shown(element));
            return elements;
        }
        if (value instanceof MemoryRecords) return shown(((MemoryRecords) value).buffer());
        if (value instanceof ByteBuffer) {
            byte[] copied = new byte[((ByteBuffer) value).remaining()];
            ((ByteBuffer) value).duplicate().get(copied);
            return shown(copied);
        }
        if (value instanceof byte[]) return Base64.getEncoder().encodeToString((byte[]) value);
        return value instanceof Uuid ? value.toString() : value;
    }
}
