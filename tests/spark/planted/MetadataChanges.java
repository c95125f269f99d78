// SPDX-FileCopyrightText: 2026 Quorumshift contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UserScramCredentialDeletion;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;

/**
 * Changes metadata until standard input ends: topics, partitions, configs, ACLs, quotas, users, replicas' order and leaders, each made,
 * altered and removed. Prints how many of each. Arguments: bootstrap servers, pause between two changes in ms.
 */
public class MetadataChanges {
    interface Change {
        void make() throws Exception;
    }

    private static final Map<String, Integer> COUNTS = new LinkedHashMap<>();
    private static long pause;

    public static void main(String[] given) throws Exception {
        pause = Long.parseLong(given[1]);
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", given[0]))) {
            admin.createTopics(List.of(new NewTopic("moving", Map.of(0, Arrays.asList(1, 2), 1, Arrays.asList(2, 1))))).all().get();
            System.out.println("started");
            for (int number = 0; System.in.available() == 0; number++) {
                round(admin, number);
            }
        }
        System.out.println(COUNTS);
    }

    private static void round(Admin admin, int number) throws Exception {
        String name = "changes." + number;
        String old = "changes." + (number - 2);
        count("topics created", () -> admin.createTopics(List.of(new NewTopic(name, 2, (short) 1).configs(
            Map.of("retention.ms", "" + (1000 + number))))).all().get());
        count("topic configs", () -> config(admin, new ConfigResource(ConfigResource.Type.TOPIC, name), "max.message.bytes", "" + (90000 + number)));
        count("broker configs", () -> config(admin, new ConfigResource(ConfigResource.Type.BROKER, ""), "log.cleaner.backoff.ms", "" + (15000 + number)));
        count("quotas", () -> quota(admin, name, 1000.0 + number));
        count("ACLs created", () -> admin.createAcls(List.of(acl(name))).all().get());
        UserScramCredentialUpsertion user = new UserScramCredentialUpsertion(name, new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), "x" + number);
        count("users", () -> admin.alterUserScramCredentials(List.of(user)).all().get());
        count("partitions", () -> admin.createPartitions(Map.of(name, NewPartitions.increaseTo(3))).all().get());
        TopicPartition moving = new TopicPartition("moving", number % 2);
        List<Integer> order = number / 2 % 2 == 0 ? List.of(2, 1) : List.of(1, 2);
        count("reassignments", () -> admin.alterPartitionReassignments(
            Map.of(moving, Optional.of(new NewPartitionReassignment(order)))).all().get());
        count("elections", () -> admin.electLeaders(ElectionType.PREFERRED, Set.of(moving)).all().get());
        if (number >= 2) {
            count("topics deleted", () -> admin.deleteTopics(List.of(old)).all().get());
            count("ACLs deleted", () -> admin.deleteAcls(List.of(acl(old).toFilter())).all().get());
            count("quotas removed", () -> quota(admin, old, null));
            count("users removed", () -> admin.alterUserScramCredentials(
                List.of(new UserScramCredentialDeletion(old, ScramMechanism.SCRAM_SHA_256))).all().get());
        }
    }

    private static void count(String what, Change change) throws Exception {
        try {
            change.make();
            COUNTS.merge(what, 1, Integer::sum);
        } catch (java.util.concurrent.ExecutionException error) {
            // An election that is not needed; a topic that the leader does not know yet
            COUNTS.merge(what + " refused", 1, Integer::sum);
        }
        Thread.sleep(pause);
    }

    private static void config(Admin admin, ConfigResource resource, String name, String value) throws Exception {
        AlterConfigOp set = new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET);
        admin.incrementalAlterConfigs(Map.of(resource, Collections.singletonList(set))).all().get();
    }

    private static void quota(Admin admin, String user, Double value) throws Exception {
        ClientQuotaEntity entity = new ClientQuotaEntity(Map.of(ClientQuotaEntity.USER, user));
        ClientQuotaAlteration.Op op = new ClientQuotaAlteration.Op("producer_byte_rate", value);
        admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity, List.of(op)))).all().get();
    }

    private static AclBinding acl(String topic) {
        return new AclBinding(new ResourcePattern(ResourceType.TOPIC, topic, PatternType.LITERAL),
            new AccessControlEntry("User:alice", "*", AclOperation.READ, AclPermissionType.ALLOW));
    }
}
