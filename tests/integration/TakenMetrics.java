// Copyright: (c) 2026, Quorumshift contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

import java.io.File;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsReporter;

/**
 * A metric.reporters that brings about, while the file `taken.metrics.when` exists, what two threads do by chance that make a network
 * client each at the same moment: the new client for AlterPartition cannot register its metrics, and its thread ends.
 *
 * Kafka tells a reporter of a metric while it registers it, and lets an Error of it through.
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
