// SPDX-FileCopyrightText: 2026 Quorumshift contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

import java.io.File;
import java.util.Arrays;
import org.apache.kafka.common.record.FileRecords;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.loader.MetadataBatchLoader;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.raft.Batch;
import org.apache.kafka.raft.LeaderAndEpoch;
import org.apache.kafka.raft.internals.RecordsIterator;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/**
 * Loads metadata logs with Kafka's own classes: records by RecordsIterator, checksums included, and MetadataBatchLoader. Prints a line
 * for each directory: what the image holds, or why Kafka rejects the log.
 */
public class LoadedMetadata {
    private static MetadataImage image;

    public static void main(String[] directories) {
        for (String directory : directories) {
            try {
                System.out.println("loaded " + load(new File(directory)));
            } catch (Throwable error) {
                System.out.println("rejected " + root(error));
            }
        }
    }

    private static String load(File directory) throws Exception {
        File[] checkpoints = directory.listFiles((parent, name) -> name.endsWith(".checkpoint"));
        File[] segments = directory.listFiles((parent, name) -> name.endsWith(".log"));
        Arrays.sort(checkpoints);
        Arrays.sort(segments);
        image = MetadataImage.EMPTY;
        long from = 0;
        if (checkpoints.length > 0) {
            File newest = checkpoints[checkpoints.length - 1];
            from = Long.parseLong(newest.getName().substring(0, 20));
            MetadataDelta delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
            try (FileRecords file = FileRecords.open(newest, false); RecordsIterator<ApiMessageAndVersion> batches = iterator(file)) {
                while (batches.hasNext()) {
                    batches.next().records().forEach(record -> delta.replay(record.message()));
                }
            }
            delta.finishSnapshot();
            image = delta.apply(new MetadataProvenance(from, 0, 0));
        }
        MetadataBatchLoader loader = new MetadataBatchLoader(new LogContext(), Time.SYSTEM, (reason, error) -> {
            throw new IllegalStateException(reason, error);
        }, (delta, loaded, manifest) -> image = loaded);
        loader.resetToImage(image);
        for (File segment : segments) {
            try (FileRecords file = FileRecords.open(segment, false); RecordsIterator<ApiMessageAndVersion> batches = iterator(file)) {
                while (batches.hasNext()) {
                    Batch<ApiMessageAndVersion> batch = batches.next();
                    if (batch.lastOffset() >= from) {
                        loader.loadBatch(batch, LeaderAndEpoch.UNKNOWN);
                        loader.maybeFlushBatches(LeaderAndEpoch.UNKNOWN);
                    }
                }
            }
        }
        return image.topics().topicsById().size() + " topics, " + image.acls().acls().size() + " acls";
    }

    private static RecordsIterator<ApiMessageAndVersion> iterator(FileRecords file) {
        return new RecordsIterator<>(file, MetadataRecordSerde.INSTANCE, BufferSupplier.NO_CACHING, 8 * 1024 * 1024, true);
    }

    private static String root(Throwable error) {
        while (error.getCause() != null) {
            error = error.getCause();
        }
        return error.toString().lines().findFirst().orElse("");
    }
}
