// SPDX-FileCopyrightText: 2026 Quorumshift contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

import java.util.OptionalInt;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.loader.LogDeltaManifest;
import org.apache.kafka.image.loader.MetadataBatchLoader;
import org.apache.kafka.metadata.util.BatchFileReader;
import org.apache.kafka.raft.LeaderAndEpoch;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.fault.FaultHandler;

/** Replays a checkpoint and a segment as a broker does, and prints the image: a line each topic, partition and entity. */
public class LoadMetadataLog {
    private static MetadataImage image = MetadataImage.EMPTY;

    public static void main(String[] paths) throws Exception {
        FaultHandler rethrow = (what, cause) -> new RuntimeException(what, cause);
        MetadataDelta snapshot = new MetadataDelta(image);
        replay(paths[0], batch -> {
            for (ApiMessageAndVersion record : batch.records()) {
                snapshot.replay(record.message());
            }
        });
        snapshot.finishSnapshot();
        image = snapshot.apply(new MetadataProvenance(Long.parseLong(paths[2]) - 1, 7, 0));
        MetadataBatchLoader loader = new MetadataBatchLoader(new LogContext(), Time.SYSTEM, rethrow,
            (MetadataDelta delta, MetadataImage changed, LogDeltaManifest manifest) -> image = changed);
        loader.resetToImage(image);
        LeaderAndEpoch leader = new LeaderAndEpoch(OptionalInt.of(101), 7);
        replay(paths[1], batch -> {
            loader.loadBatch(batch, leader);
            loader.maybeFlushBatches(leader);
        });
        print();
    }

    private interface Replay {
        void apply(org.apache.kafka.raft.Batch<ApiMessageAndVersion> batch) throws Exception;
    }

    private static void replay(String path, Replay replay) throws Exception {
        try (BatchFileReader reader = new BatchFileReader.Builder().setPath(path).build()) {
            while (reader.hasNext()) {
                BatchFileReader.BatchAndType next = reader.next();
                if (!next.isControl()) {
                    replay.apply(next.batch());
                }
            }
        }
    }

    private static void print() {
        image.topics().topicsById().values().forEach(topic -> {
            System.out.println("topic " + topic.name() + " " + topic.id());
            topic.partitions().forEach((number, partition) -> System.out.println("partition " + topic.name() + " "
                + number + " " + java.util.Arrays.toString(partition.replicas) + " "
                + java.util.Arrays.toString(partition.isr) + " " + partition.leader + " " + partition.leaderEpoch
                + " " + partition.partitionEpoch));
        });
        image.configs().resourceData().forEach((resource, configs) -> configs.toProperties().forEach(
            (name, value) -> System.out.println("config " + resource.type() + " " + resource.name() + " " + name
                + " " + value)));
        image.acls().acls().values().forEach(acl -> System.out.println("acl " + acl.resourceType() + " "
            + acl.patternType() + " " + acl.resourceName() + " " + acl.principal() + " " + acl.operation()));
        image.scram().mechanisms().forEach((mechanism, users) -> users.keySet().forEach(
            user -> System.out.println("scram " + user + " " + mechanism.mechanismName())));
        image.clientQuotas().entities().forEach((entity, quotas) -> quotas.quotaMap().forEach(
            (name, value) -> System.out.println("quota " + new java.util.TreeMap<>(entity.entries()) + " " + name + " "
                + new java.math.BigDecimal(value).toPlainString())));
        image.delegationTokens().tokens().keySet().forEach(token -> System.out.println("token " + token));
        image.cluster().brokers().values().forEach(broker -> System.out.println("broker " + broker.id() + " "
            + broker.fenced()));
        System.out.println("producer_ids " + image.producerIds().nextProducerId());
        System.out.println("offset " + image.highestOffsetAndEpoch().offset());
    }
}
