// SPDX-FileCopyrightText: 2026 Quorumshift contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

import java.io.FileReader;
import java.util.Properties;
import kafka.server.KafkaConfig;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.server.config.QuotaConfigs;
import org.apache.kafka.server.metrics.ClientMetricsConfigs;
import org.apache.kafka.storage.internals.log.LogConfig;

/**
 * Prints for each properties file whether Kafka accepts it: `ok TAB path TAB mode`, or `no TAB path TAB reason`. With `--types` it
 * prints `name TAB type` for each setting that Kafka defines for brokers, controllers, topics, clients and quotas instead.
 */
public class AcceptedConfigs {
    public static void main(String[] arguments) throws Exception {
        if (arguments.length == 1 && arguments[0].equals("--types")) {
            ConfigDef[] defined = {
                KafkaConfig.configDef(),
                LogConfig.configDefCopy(),
                AdminClientConfig.configDef(),
                ClientMetricsConfigs.configDef(),
                QuotaConfigs.brokerQuotaConfigs(),
                QuotaConfigs.userAndClientQuotaConfigs(),
                QuotaConfigs.ipConfigs(),
            };
            for (ConfigDef one : defined) {
                for (ConfigDef.ConfigKey key : one.configKeys().values()) {
                    System.out.println(key.name + "\t" + key.type);
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
