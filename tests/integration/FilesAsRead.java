// SPDX-FileCopyrightText: 2026 Quorumshift contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import kafka.cluster.EndPoint;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.server.config.ZkConfigs;
import org.apache.kafka.tools.reassign.ReassignPartitionsCommand;
import org.apache.zookeeper.client.ConnectStringParser;
import org.apache.zookeeper.server.quorum.QuorumPeer;
import org.apache.zookeeper.server.quorum.QuorumPeerConfig;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Reads files as Kafka and ZooKeeper do. A request is a line on standard input, `verb TAB hex of the bytes`; its answer is a line on
 * standard output: `ok` and `key=value` of each entry, both as hex of UTF-16BE, or `no` and the reason. All are separated by TAB.
 */
public class FilesAsRead {
    private static final HexFormat HEX = HexFormat.of();
    private static Path home;

    public static void main(String[] arguments) throws Exception {
        home = Path.of(arguments[0]);
        PrintStream answers = System.out;
        System.setOut(System.err); // for what Kafka and ZooKeeper log
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            String[] fields = line.split("\t", -1);
            answers.print(answer(fields[0], HEX.parseHex(fields[1])) + "\n");
            answers.flush();
        }
    }

    private static String answer(String verb, byte[] bytes) {
        Map<String, String> read = new TreeMap<>();
        try {
            switch (verb) {
                case "properties" -> properties(bytes).forEach((key, value) -> read.put((String) key, (String) value));
                case "kafka" -> kafka(properties(bytes), read);
                case "values" -> values(properties(bytes), read);
                case "defaults" -> defaults(read);
                case "variables" -> variables(properties(bytes), read);
                case "zookeeper" -> zookeeper(bytes, read);
                case "reassignment" -> reassignment(new String(bytes, StandardCharsets.UTF_8), read);
                case "connect" -> connect(new String(bytes, StandardCharsets.UTF_8), read);
                default -> throw new IllegalArgumentException(verb);
            }
        } catch (Exception | AssertionError e) {
            return "no\t" + hex(e.getClass().getSimpleName() + ": " + e.getMessage());
        }
        StringBuilder answer = new StringBuilder("ok");
        read.forEach((key, value) -> answer.append('\t').append(hex(key)).append('=').append(hex(value)));
        return answer.toString();
    }

    private static Properties properties(byte[] bytes) throws Exception {
        Properties properties = new Properties();
        properties.load(new ByteArrayInputStream(bytes)); // as org.apache.kafka.common.utils.Utils.loadProps
        return properties;
    }

    /** What a node makes of its file. */
    private static void kafka(Properties properties, Map<String, String> read) {
        KafkaConfig config = KafkaConfig.fromProps(properties, false);
        read.put("process.roles", config.processRoles().isEmpty() ? "" : config.processRoles().mkString(",").toLowerCase());
        read.put("migration", String.valueOf(config.migrationEnabled()));
        read.put("zookeeper.connect", String.valueOf(config.zkConnect()));
        read.put("broker.id", String.valueOf(config.brokerId()));
        read.put("node.id", String.valueOf(config.nodeId()));
        read.put("generation", String.valueOf(config.brokerIdGenerationEnable()));
        read.put("reserved", String.valueOf(config.maxReservedBrokerId()));
        read.put("log.dirs", config.logDirs().mkString("\n"));
        read.put("metadata.log.dir", config.metadataLogDir());
        read.put("listeners", endPoints(config.listeners()));
        read.put("advertised", endPoints(config.effectiveAdvertisedBrokerListeners()));
        read.put("inter.broker.listener.name", config.interBrokerListenerName().value());
        read.put("inter.broker.protocol", config.interBrokerSecurityProtocol().name);
        read.put("authorizer", String.valueOf(config.getString("authorizer.class.name")));
        read.put("zookeeper.ssl", String.valueOf(config.zkSslClientEnable()));
    }

    private static String endPoints(scala.collection.Seq<EndPoint> listeners) {
        StringBuilder text = new StringBuilder();
        for (EndPoint one : CollectionConverters.asJava(listeners)) {
            String host = one.host() == null ? "" : one.host();
            text.append(one.listenerName().value() + " " + host + " " + one.port() + " " + one.securityProtocol() + "\n");
        }
        return text.toString();
    }

    /** Each setting that Kafka defines, as text of its type. */
    private static void values(Properties properties, Map<String, String> read) {
        Map<String, ConfigDef.ConfigKey> defined = KafkaConfig.configDef().configKeys();
        properties.forEach((name, value) -> {
            ConfigDef.Type type = defined.get(name).type;
            Object parsed = ConfigDef.parseType((String) name, value, type);
            if (parsed instanceof org.apache.kafka.common.config.types.Password secret) {
                parsed = secret.value();
                type = ConfigDef.Type.STRING;
            }
            read.put((String) name, ConfigDef.convertToString(parsed, type));
        });
    }

    /** Kafka's defaults, and the system properties in which it looks for ZooKeeper's TLS. */
    private static void defaults(Map<String, String> read) {
        KafkaConfig.configDef().configKeys().forEach((name, key) -> {
            if (key.hasDefault() && key.defaultValue != null) {
                read.put(name, ConfigDef.convertToString(key.defaultValue, key.type));
            }
        });
        ZkConfigs.ZK_SSL_CONFIG_TO_SYSTEM_PROPERTY_MAP.forEach((name, option) -> read.put("-D " + name, option));
    }

    /** The values after its config providers have resolved their variables. */
    private static void variables(Properties properties, Map<String, String> read) {
        AbstractConfig config = new AbstractConfig(new ConfigDef(), properties, false);
        config.originals().forEach((name, value) -> read.put(name, (String) value));
    }

    /** Each partition of a reassignment's JSON with its replicas. */
    private static void reassignment(String json, Map<String, String> read) throws Exception {
        Method parse = ReassignPartitionsCommand.class.getDeclaredMethod("parseExecuteAssignmentArgs", String.class);
        parse.setAccessible(true);
        try {
            Map<?, ?> assigned = (Map<?, ?>) ((Map.Entry<?, ?>) parse.invoke(null, json)).getKey();
            assigned.forEach((partition, replicas) -> read.put(partition.toString(), replicas.toString()));
        } catch (InvocationTargetException e) {
            throw e.getCause() instanceof Exception cause ? cause : e;
        }
    }

    private static void zookeeper(byte[] bytes, Map<String, String> read) throws Exception {
        Path file = home.resolve("zoo.cfg");
        Files.write(file, bytes);
        QuorumPeerConfig config = new QuorumPeerConfig();
        config.parse(file.toString());
        read.put("clientPort", address(config.getClientPortAddress()));
        read.put("secureClientPort", address(config.getSecureClientPortAddress()));
        read.put("dataDir", config.getDataDir().getPath());
        read.put("dataLogDir", config.getDataLogDir().getPath());
        read.put("peerType", config.getPeerType().name());
        read.put("syncEnabled", String.valueOf(config.getSyncEnabled()));
        read.put("localSessionsEnabled", String.valueOf(config.areLocalSessionsEnabled()));
        read.put("tickTime", String.valueOf(config.getTickTime()));
        read.put("minSessionTimeout", String.valueOf(config.getMinSessionTimeout()));
        read.put("maxSessionTimeout", String.valueOf(config.getMaxSessionTimeout()));
        if (config.getQuorumVerifier() != null) {
            for (QuorumPeer.QuorumServer one : config.getQuorumVerifier().getAllMembers().values()) {
                read.put("server." + one.id, one.addr.getOne().getHostString() + " " + one.addr.getOne().getPort() + " " + one.type);
            }
        }
    }

    private static String address(InetSocketAddress address) {
        if (address == null) {
            return "";
        }
        String host = address.getAddress().isAnyLocalAddress() ? "any" : address.getAddress().getHostAddress();
        return host + " " + address.getPort();
    }

    private static void connect(String text, Map<String, String> read) {
        ConnectStringParser parser = new ConnectStringParser(text);
        StringBuilder servers = new StringBuilder();
        for (InetSocketAddress one : parser.getServerAddresses()) {
            servers.append(one.getHostString() + " " + one.getPort() + "\n");
        }
        read.put("servers", servers.toString());
        read.put("chroot", parser.getChrootPath() == null ? "" : parser.getChrootPath());
    }

    /** Not by a charset, which would replace a lone surrogate. */
    private static String hex(String text) {
        StringBuilder digits = new StringBuilder();
        text.chars().forEach(unit -> digits.append(HEX.toHexDigits((char) unit)));
        return digits.toString();
    }
}
