// SPDX-FileCopyrightText: 2026 Quorumshift contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

import java.io.File;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsReporter;

/**
 * A metrics reporter that ends the broker's AlterPartition thread while the file `taken.metrics.when` exists: the thread's new network
 * client cannot register its metrics. Without it, that happens when two threads create a network client at the same moment.
 *
 * Kafka calls the reporter while it registers a metric, and does not catch the reporter's Error.
 */
public class TakenMetrics implements MetricsReporter {
    private boolean before = false;
    private File when;

    @Override
    public void metricChange(KafkaMetric metric) {
        String name = metric.metricName().name();
        if (metric.metricName().group().equals("alter-partition-metrics") && name.equals("io-time-ns-total")) {
            if (before && when.exists()) {
                throw new Error("A metric named '" + metric.metricName() + "' already exists, as by TakenMetrics");
            }
            before = true;
        }
    }

    @Override
    public void configure(Map<String, ?> configs) {
        when = new File((String) configs.get("taken.metrics.when"));
    }

    @Override
    public void init(List<KafkaMetric> metrics) {}

    @Override
    public void metricRemoval(KafkaMetric metric) {}

    @Override
    public void close() {}
}
