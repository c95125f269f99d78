// SPDX-FileCopyrightText: 2026 Quorumshift contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

import java.io.File;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
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
 * Loads metadata logs as a node does at its start, a segment in one read, and prints a line for each directory: the SCRAM users of the
 * image, as MECHANISM/USER in base64.
 */
public class LoadedCredentials {
    private static MetadataImage image;

    public static void main(String[] directories) throws Exception {
        for (String directory : directories) {
            load(new File(directory));
            StringBuilder line = new StringBuilder("users");
            image.scram().mechanisms().forEach((mechanism, users) -> users.keySet().forEach(user -> line.append(" ")
                .append(mechanism.mechanismName()).append("/")
                .append(Base64.getEncoder().encodeToString(user.getBytes(StandardCharsets.UTF_8)))));
            System.out.println(line);
        }
    }

    private static void load(File directory) throws Exception {
        image = MetadataImage.EMPTY;
        long from = 0;
        for (File checkpoint : directory.listFiles((parent, name) -> name.endsWith(".checkpoint"))) {
            from = Long.parseLong(checkpoint.getName().substring(0, 20));
            MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
            try (FileRecords file = FileRecords.open(checkpoint, false); RecordsIterator<ApiMessageAndVersion> batches = iterator(file)) {
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
        File[] segments = directory.listFiles((parent, name) -> name.endsWith(".log"));
        Arrays.sort(segments);
        for (File segment : segments) {
            try (FileRecords file = FileRecords.open(segment, false); RecordsIterator<ApiMessageAndVersion> batches = iterator(file)) {
                while (batches.hasNext()) {
                    Batch<ApiMessageAndVersion> batch = batches.next();
                    if (batch.lastOffset() >= from) {
                        loader.loadBatch(batch, LeaderAndEpoch.UNKNOWN);
                    }
                }
            }
            loader.maybeFlushBatches(LeaderAndEpoch.UNKNOWN);
        }
    }

    private static RecordsIterator<ApiMessageAndVersion> iterator(FileRecords file) {
        return new RecordsIterator<>(file, MetadataRecordSerde.INSTANCE, BufferSupplier.NO_CACHING, 8 * 1024 * 1024, true);
    }
}
