// Copyright: (c) 2026, Quorumshift contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

import java.io.FileReader;
import java.util.Properties;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.config.ConfigDef;

/**
 * Prints for each properties file whether Kafka accepts it: `ok TAB path TAB mode`, or `no TAB path TAB reason`. With `--secrets` it
 * prints the names of all settings of type PASSWORD instead.
 */
public class AcceptedConfigs {
    public static void main(String[] arguments) throws Exception {
        if (arguments.length == 1 && arguments[0].equals("--secrets")) {
            for (ConfigDef.ConfigKey key : KafkaConfig.configDef().configKeys().values()) {
                if (key.type == ConfigDef.Type.PASSWORD) {
                    System.out.println(key.name);
                }
            }
            return;
        }
        for (String path : arguments) {
            Properties properties = new Properties();
            try (FileReader reader = new FileReader(path)) {
                properties.load(reader);
            }
            try {
                KafkaConfig config = KafkaConfig.fromProps(properties, false);
                String mode = config.processRoles().isEmpty() ? "zookeeper" : config.processRoles().mkString(",").toLowerCase();
                System.out.println("ok\t" + path + "\t" + mode + (config.migrationEnabled() ? "+migration" : ""));
            } catch (Exception e) {
                System.out.println("no\t" + path + "\t" + e.getMessage());
            }
        }
    }
}
