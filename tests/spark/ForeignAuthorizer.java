/*
 * SPDX-FileCopyrightText: 2026 Quorumshift contributors
 * GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 */

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.stream.Collectors;
import org.apache.kafka.common.Endpoint;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.server.authorizer.AclCreateResult;
import org.apache.kafka.server.authorizer.AclDeleteResult;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.kafka.server.authorizer.AuthorizerServerInfo;

/**
 * An authorizer that is not Kafka's. It allows everything. The file that foreign.authorizer.does names says what
 * DescribeAcls gets: "fails" (it does not list ACLs), "none", "lists" (one), or "denies" (the client may not ask).
 */
public class ForeignAuthorizer implements Authorizer {
    private Path does;

    @Override
    public void configure(Map<String, ?> configs) {
        does = Path.of(configs.get("foreign.authorizer.does").toString());
    }

    private boolean is(String what) {
        try {
            return Files.readString(does).trim().equals(what);
        } catch (java.io.IOException error) {
            throw new java.io.UncheckedIOException(error);
        }
    }

    @Override
    public Map<Endpoint, ? extends CompletionStage<Void>> start(AuthorizerServerInfo info) {
        return info.endpoints().stream()
            .collect(Collectors.toMap(one -> one, one -> CompletableFuture.completedFuture(null)));
    }

    @Override
    public List<AuthorizationResult> authorize(AuthorizableRequestContext context, List<Action> actions) {
        return actions.stream().map(this::authorize).collect(Collectors.toList());
    }

    private AuthorizationResult authorize(Action action) {
        boolean asks = action.operation() == AclOperation.DESCRIBE
            && action.resourcePattern().resourceType() == ResourceType.CLUSTER;
        return asks && is("denies") ? AuthorizationResult.DENIED : AuthorizationResult.ALLOWED;
    }

    @Override
    public Iterable<AclBinding> acls(AclBindingFilter filter) {
        if (is("fails")) {
            throw new UnsupportedOperationException("acls are kept elsewhere");
        }
        if (!is("lists")) {
            return Collections.emptyList();
        }
        AccessControlEntry entry =
            new AccessControlEntry("User:alice", "*", AclOperation.READ, AclPermissionType.ALLOW);
        return List.of(new AclBinding(new ResourcePattern(ResourceType.TOPIC, "t", PatternType.LITERAL), entry));
    }

    @Override
    public List<? extends CompletionStage<AclCreateResult>> createAcls(
        AuthorizableRequestContext context, List<AclBinding> bindings) {
        throw new UnsupportedOperationException();
    }

    @Override
    public List<? extends CompletionStage<AclDeleteResult>> deleteAcls(
        AuthorizableRequestContext context, List<AclBindingFilter> filters) {
        throw new UnsupportedOperationException();
    }

    @Override
    public void close() {}
}
