# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of rules: which views each gate compares, how each field is compared, and why it may differ.

`compare` applies it to an entity, the Spark job derives its aggregation from it, and `markdown` renders it for the
docs. A comparison has one of four relations:

- ZOOKEEPER_LOG: ZooKeeper's tree with the KRaft metadata log (dual-write: KIP-866);
- SERVED: the authoritative view (ZooKeeper before the initial copy, the log after it) with what one broker serves; for
  what each node has of its own file, one node with each other;
- LOGS: the logs of two controllers, both up to the same offset;
- SINCE: a view with the baseline: the same view at the last passed gate.
"""

from __future__ import annotations

import functools
import re
from typing import Dict, Iterable, List, Mapping, NamedTuple, Sequence, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import gates

from quorumshift_spark.normal_form import FIELDS, KINDS, STORED
from quorumshift_spark.views import family

ZOOKEEPER_LOG, SERVED, LOGS, SINCE = RELATIONS = ("zookeeper_log", "served", "logs", "since")

# How a field is compared in a relation
EQUAL = "equal"  # the same canonical value
SHOWN = "shown"  # equal; a secret that the broker withholds equals any secret
BLOCK = "block"  # producer ids: KRaft's next id follows ZooKeeper's block, or begins the one that dual-write wrote
RISES = "rises"  # equal, or greater and changed since the baseline: a smaller value is never excused
ADDRESSES = "addresses"  # the right side's endpoints are among the left's; all of them where both views show names
NOT = "-"  # not compared, for the reason in `why`


class Rule(NamedTuple):
    """How one field of one kind is compared; `field` "" is the presence of the entity.

    `hows`: EQUAL, SHOWN, BLOCK, RISES, ADDRESSES or NOT for each of RELATIONS, in their order.
    `why`: for the operator, why the field may differ temporarily or is not compared.
    `do`: what to do about a difference that remains.
    """

    kind: str
    field: str
    hows: Tuple[str, str, str, str]
    why: str
    do: str

    def how(self, relation: str) -> str:
        """Return EQUAL, SHOWN, BLOCK, RISES, ADDRESSES or NOT."""
        return self.hows[RELATIONS.index(relation)]


_REPAIR = "find out which side is right, correct the other with Kafka's own tools and run the playbook again"
_STALE = "restart a broker that serves stale metadata, in the mode that the phase requires"
_SET_CREDENTIAL = "set the credential again with kafka-configs.sh"

_SAME_FILES = (
    "make it equal in the files of all brokers and controllers, as it was before, and restart those that differ; or, "
    "if it is to change, set the controllers' value in quorumshift_controller_config"
)

_EVERYWHERE = (EQUAL, EQUAL, EQUAL, EQUAL)
_NOT_SERVED = (EQUAL, NOT, EQUAL, EQUAL)
_NOT_IN_ZOOKEEPER = (NOT, EQUAL, EQUAL, EQUAL)

TABLE: Tuple[Rule, ...] = (
    Rule(
        "topic",
        "",
        _EVERYWHERE,
        "internal topics (__consumer_offsets, __transaction_state) are included; a topic being deleted disappears from "
        "ZooKeeper last",
        "do not delete or recreate the topic before you know which side is right: with a wrong id its data is lost",
    ),
    Rule(
        "topic",
        "id",
        _EVERYWHERE,
        "changes only when the topic is deleted and recreated",
        "stop: a broker deletes the data of a topic whose id has changed; restore the id from the backup",
    ),
    Rule(
        "partition",
        "",
        _EVERYWHERE,
        "appears with its topic or when partitions are added; disappears with its topic alone",
        _REPAIR,
    ),
    Rule(
        "partition",
        "topic_id",
        (NOT, NOT, NOT, NOT),
        "as the topic's id; the epochs of a topic that was deleted and recreated begin anew",
        _REPAIR,
    ),
    Rule(
        "partition",
        "replicas",
        _EVERYWHERE,
        "in order: the first is the preferred leader; changes during a reassignment",
        "cancel or finish reassignments (kafka-reassign-partitions.sh --list) and run the playbook again",
    ),
    Rule(
        "partition",
        "adding",
        _NOT_SERVED,
        "as a set; brokers forward ListPartitionReassignments to the controller",
        "cancel or finish reassignments (kafka-reassign-partitions.sh --list) and run the playbook again",
    ),
    Rule(
        "partition",
        "removing",
        _NOT_SERVED,
        "as a set; brokers forward ListPartitionReassignments to the controller",
        "cancel or finish reassignments (kafka-reassign-partitions.sh --list) and run the playbook again",
    ),
    Rule(
        "partition",
        "leader",
        _EVERYWHERE,
        "changes with every election; re-checked",
        _STALE + "; check the controller's log for repeated elections",
    ),
    Rule(
        "partition",
        "leader_epoch",
        (EQUAL, EQUAL, EQUAL, RISES),
        "rises with every election; the initial copy keeps ZooKeeper's value, dual-write stores KRaft's value there",
        "stop: if a leader epoch decreases, followers truncate their logs",
    ),
    Rule(
        "partition",
        "isr",
        _EVERYWHERE,
        "as a set; changes when a replica falls behind or catches up; re-checked",
        "check that all brokers in either list are up, and wait until no partition is under-replicated",
    ),
    Rule(
        "partition",
        "recovery_state",
        _NOT_SERVED,
        "set by an unclean election; no client request reads it from a broker",
        _REPAIR,
    ),
    Rule(
        "partition",
        "partition_epoch",
        (NOT, NOT, EQUAL, RISES),
        "in ZooKeeper the data version of the state znode: dual-write raises it once a write, KRaft once a change, and "
        "one write may cover several changes",
        _REPAIR,
    ),
    *(
        Rule("partition", field, (NOT, NOT, EQUAL, EQUAL), why, _REPAIR)
        for field, why in (
            ("elr", "eligible leader replicas (KIP-966), as a set; only KRaft stores them"),
            ("last_known_elr", "as elr"),
        )
    ),
    Rule(
        "partition",
        "directories",
        (NOT, NOT, EQUAL, NOT),
        "ids of the directories of its replicas (KIP-858), in the replicas' order; only KRaft stores them",
        _REPAIR,
    ),
    Rule(
        "partition",
        "controller_epoch",
        (NOT, NOT, NOT, NOT),
        "only in ZooKeeper's state znodes, where dual-write stores the KRaft epoch (KAFKA-20488)",
        "the gate before_revert checks it",
    ),
    Rule(
        "config",
        "",
        _EVERYWHERE,
        "dynamic topic and broker configs, including the cluster-wide broker defaults (key null); client metrics and "
        "group configs exist only in KRaft",
        "set or delete the config with kafka-configs.sh on the side that is wrong",
    ),
    Rule(
        "config",
        "value",
        (EQUAL, SHOWN, EQUAL, EQUAL),
        "passwords are encrypted in ZooKeeper and clear in KRaft: decrypted, then compared by keyed hash; brokers "
        "withhold sensitive values",
        "set the config again with kafka-configs.sh; for a password, check password.encoder.secret on the controllers",
    ),
    Rule(
        "quota",
        "",
        _EVERYWHERE,
        "per user, client id, both, or ip; null is the default entity; names are not sanitized as in znodes",
        "set or delete the quota with kafka-configs.sh",
    ),
    Rule("quota", "value", _EVERYWHERE, "as a number: 10 and 10.0 are equal", "set the quota with kafka-configs.sh"),
    Rule("scram", "", _EVERYWHERE, "one per user and mechanism", _SET_CREDENTIAL),
    Rule("scram", "iterations", _EVERYWHERE, "", _SET_CREDENTIAL),
    Rule(
        "scram",
        "digest",
        _NOT_SERVED,
        "keyed hash of salt, stored key, server key and iterations; brokers show mechanism and iterations only",
        _SET_CREDENTIAL,
    ),
    Rule(
        "acl",
        "",
        _EVERYWHERE,
        "literal and prefixed; by content, since KRaft assigns a random id in the initial copy",
        "add or remove it with kafka-acls.sh: a missing ACL denies access, an extra one may allow it",
    ),
    Rule(
        "delegation_token",
        "",
        _EVERYWHERE,
        "expired tokens are removed automatically; a broker shows those that the requesting principal may describe",
        "renew or expire it with kafka-delegation-tokens.sh",
    ),
    *(
        Rule("delegation_token", field, _EVERYWHERE, why, "expire the token and create a new one")
        for field, why in (
            ("owner", ""),
            ("requester", "the owner, where a Kafka before 3.3 wrote ZooKeeper's value"),
            ("renewers", "as a set"),
            ("issue", ""),
            ("expiry", "changes with every renewal; re-checked"),
            ("max", ""),
        )
    ),
    Rule(
        "producer_ids",
        "",
        _NOT_SERVED,
        "absent until the first idempotent producer starts; the only request for it allocates a block",
        "stop: producer ids that are assigned twice break exactly-once semantics",
    ),
    Rule(
        "producer_ids",
        "next",
        (BLOCK, NOT, EQUAL, RISES),
        "a block that a broker in ZooKeeper mode got ends right before KRaft's next id, which the initial copy takes "
        "from it; the block of broker -1, which dual-write writes, begins at the next id",
        "stop: producer ids that are assigned twice break exactly-once semantics",
    ),
    *(
        Rule("producer_ids", field, (NOT, NOT, NOT, EQUAL), "only in ZooKeeper: see next", _REPAIR)
        for field in ("start", "broker")
    ),
    Rule(
        "feature",
        "",
        _NOT_IN_ZOOKEEPER,
        "not migrated: formatting the controllers sets KRaft's features, ZooKeeper's /feature stays unchanged; brokers "
        "in ZooKeeper mode do not serve KRaft's features",
        "check with kafka-features.sh describe; " + _STALE,
    ),
    Rule("feature", "level", _NOT_IN_ZOOKEEPER, "see above", "check with kafka-features.sh describe; " + _STALE),
    *(
        Rule(
            "migration", field, (NOT, NOT, EQUAL, NOT), "only in the log; the phase is detected from its value", _REPAIR
        )
        for field in ("", "state")
    ),
    Rule(
        "broker",
        "",
        _EVERYWHERE,
        "/brokers/ids holds only the brokers in ZooKeeper mode, the log only those that joined it; brokers list only "
        "brokers that are not fenced; rolling restarts and replacements change it. Only the log keeps it meanwhile",
        "a registration without a process, or a process without a registration: restart or unregister that broker",
    ),
    Rule("broker", "fenced", (NOT, EQUAL, EQUAL, NOT), "a restarting broker is fenced for a while", "restart it"),
    Rule("broker", "epoch", (NOT, NOT, EQUAL, NOT), "new with every start", "restart it"),
    Rule(
        "broker",
        "endpoints",
        (ADDRESSES, ADDRESSES, EQUAL, NOT),
        "of all listeners; a broker shows the address of one. A dynamic change of listeners reaches ZooKeeper at once, "
        "and the log with the next start",
        "restart that broker",
    ),
    Rule("broker", "rack", (EQUAL, EQUAL, EQUAL, NOT), "from its file, with every start", "restart that broker"),
    Rule(
        "broker",
        "log_dirs",
        (NOT, NOT, EQUAL, NOT),
        "ids of its directories, in the log, and in meta.properties on its host where Kafka keeps them (3.7 and later)",
        "mount the directories that it had at its last start, or restart that broker so that it registers its own",
    ),
    *(
        Rule("setting", field, (NOT, EQUAL, NOT, since), why, _SAME_FILES)
        for field, since, why in (
            ("", NOT, "one node with all others; a release of Kafka that lacks it does not serve it"),
            (
                "value",
                EQUAL,
                "what a node's file says, or Kafka's default, of settings that controllers apply in KRaft mode, on "
                "each node as at the baseline; not compared where quorumshift_controller_config sets it",
            ),
        )
    ),
    *(
        Rule("token_hmac", field, (NOT, EQUAL, NOT, NOT), why, "give all nodes the same delegation.token.secret.key")
        for field, why in (
            ("", "one broker with all others, by token; see delegation_token"),
            ("digest", "keyed hash; nodes compute it with their delegation.token.secret.key, no store has it"),
        )
    ),
)

_RULES: Dict[Tuple[str, str], Rule] = {(rule.kind, rule.field): rule for rule in TABLE}
_MIGRATED_CONFIGS = ("topic", "broker")


def rule(kind: str, field: str = "") -> Rule:
    """Return the rule of a field; "" for the presence of the entity. Raises KeyError."""
    return _RULES[(kind, field)]


@functools.lru_cache(maxsize=None)
def compared_fields(kind: str, relation: str) -> Tuple[Tuple[str, str], ...]:
    """Return (field, how) for each field of the normal form that is compared in a relation."""
    fields = [(field, _RULES[(kind, field)].how(relation)) for field in FIELDS[kind]]
    return tuple((field, how) for field, how in fields if how != NOT)


def compared_kinds(relation: str) -> Tuple[str, ...]:
    """Return the kinds that are compared in a relation."""
    return tuple(kind for kind in KINDS if _RULES[(kind, "")].how(relation) != NOT)


# --- gates ---------------------------------------------------------------------------------------------

CONTROLLER = "controller"
ZOOKEEPER, LOG, BROKER, BASELINE = gates.ZOOKEEPER, gates.METADATA_LOG, gates.BROKER, gates.BASELINE


class Gate(NamedTuple):
    """The views of a gate: those that it `needs`, those that it `takes` if given, and the one that `decides` what a
    broker must serve."""

    needs: Tuple[str, ...]
    takes: Tuple[str, ...]
    decides: str


GATES: Dict[str, Gate] = {
    name: Gate(gate.needs, gate.takes, LOG if LOG in gate.needs else ZOOKEEPER) for name, gate in gates.GATES.items()
}

_FROM_ZOOKEEPER = ("config", "quota", "scram", "acl", "delegation_token")
"""Kinds that a broker in ZooKeeper mode reads from ZooKeeper even under a KRaft controller (hybrid)."""
_ZOOKEEPER_MODE_NOTE = (
    "{} runs in ZooKeeper mode and reads configs, quotas, credentials, ACLs and tokens from ZooKeeper. They are "
    "compared with ZooKeeper and do not show what KRaft holds."
)


_ASKS_ZOOKEEPER = ("config", "quota", "scram")
"""Kinds for which a broker in ZooKeeper mode reads ZooKeeper when it is asked (ZkConfigRepository, ZkAdminManager); of
configs those of topics. ACLs, tokens and its own configs it serves from its memory."""


class Comparison(NamedTuple):
    """Two views to compare: names, relation, kinds, a note for the report ("" for none), and `same_source`: the kinds
    that both views take from one store. That these agree shows nothing, so they are not counted as agreement."""

    left: str
    right: str
    relation: str
    kinds: Tuple[str, ...]
    note: str = ""
    same_source: Tuple[str, ...] = ()


def allowed_on_one_side(
    comparison: Comparison, kind: str, key: Sequence[object], fields: Mapping[str, str]
) -> str | None:
    """Return why only one side may have an entity; None where both must have it."""
    relation = comparison.relation
    if kind == "config" and key[0] not in _MIGRATED_CONFIGS and relation == ZOOKEEPER_LOG:
        return f"{key[0]} configs exist only in KRaft"
    if kind == "broker" and relation == ZOOKEEPER_LOG:
        return "each store holds the brokers of its mode"
    if kind == "broker" and relation == SINCE and comparison.right == ZOOKEEPER:
        return "registrations in ZooKeeper are ephemeral"
    if relation != SERVED:
        return None
    if kind == "token_hmac":
        return "see delegation_token"
    if kind == "config" and key[0] == "broker" and key[1] not in (None, comparison.right.partition(":")[2]):
        return "a broker serves only its own dynamic configs and the default ones"
    if kind == "broker" and fields.get("fenced") == "true":
        return "brokers do not list a fenced broker"
    if kind == "feature" and key[0] == "kraft.version":
        return "brokers do not serve kraft.version, a feature of the quorum"
    return None


def deciding(gate: str, views: Iterable[str]) -> str:
    """Return the view that decides what a broker must serve: the log where the gate takes it and it is given."""
    return LOG if LOG in GATES[gate].takes and LOG in views else GATES[gate].decides


class PlanError(ValueError):
    """The gate of a job is unknown, or a view that it needs is missing."""


def plan(gate: str, kinds: Mapping[str, Sequence[str]], zookeeper_mode: Sequence[str] = ()) -> List[Comparison]:
    """Return the comparisons of a gate. Raises PlanError.

    :arg kinds: {view name: kinds that it serves}.
    :arg zookeeper_mode: names of the broker views whose broker runs in ZooKeeper mode.
    """
    if gate not in GATES:
        raise PlanError(f"unknown gate {gate!r}; the gates are {', '.join(GATES)} (QS-VERIFY-004)")
    needs = GATES[gate].needs
    families = {family(name) for name in kinds}
    missing = [name for name in needs if name not in families]
    if missing:
        raise PlanError(f"gate {gate} needs the view {missing[0]}, which is missing in job.json (QS-VERIFY-004)")
    decides = deciding(gate, kinds)
    comparisons = []

    def add(left, right, relation, only=STORED, note=""):
        shared = [
            kind for kind in compared_kinds(relation) if kind in kinds[left] and kind in kinds[right] and kind in only
        ]
        asks_zookeeper = left == ZOOKEEPER and right in zookeeper_mode
        same_source = [kind for kind in shared if asks_zookeeper and kind in _ASKS_ZOOKEEPER]
        if shared:
            comparisons.append(Comparison(left, right, relation, tuple(shared), note, tuple(same_source)))

    if {ZOOKEEPER, LOG} <= families:
        add(ZOOKEEPER, LOG, ZOOKEEPER_LOG)
    for name in kinds:
        if family(name) == LOG and name != LOG:
            add(LOG, name, LOGS)
        elif family(name) == BROKER and decides == LOG and name in zookeeper_mode:
            note = _ZOOKEEPER_MODE_NOTE.format(name)
            if ZOOKEEPER in families:
                add(ZOOKEEPER, name, SERVED, _FROM_ZOOKEEPER, note)
            add(LOG, name, SERVED, [kind for kind in STORED if kind not in (*_FROM_ZOOKEEPER, "feature")], note)
        elif family(name) == BROKER:
            # ZooKeeper's /feature does not hold KRaft's features
            add(decides, name, SERVED, STORED if decides == LOG else [kind for kind in STORED if kind != "feature"])
        elif family(name) == BASELINE and name.partition(":")[2] in kinds:
            add(name, name.partition(":")[2], SINCE)
    for kind in ("token_hmac",):  # settings are few: quorumshift_spark.nodes compares them
        nodes = [name for name in kinds if family(name) in (CONTROLLER, BROKER) and kind in kinds[name]]
        for name in nodes[1:]:
            add(nodes[0], name, SERVED, [kind])
    return comparisons


def relations(name: str) -> Tuple[str, ...]:
    """Return the relations in which a view can be compared."""
    if family(name) == LOG:
        return RELATIONS if name == LOG else (LOGS,)
    return {ZOOKEEPER: (ZOOKEEPER_LOG, SERVED, SINCE), BASELINE: (SINCE,)}.get(family(name), (SERVED,))


def baselines_compared(comparisons: Iterable[Comparison]) -> List[str]:
    """Return the names of the baselines that are compared with a view."""
    return [comparison.left for comparison in comparisons if comparison.relation == SINCE]


# --- coverage -------------------------------------------------------------------------------------------

COVERAGE: Tuple[Tuple[str, str], ...] = (
    ("brokers", "each broker that is registered and up has a view, also one that is not in the inventory"),
    (
        "kinds",
        "each kind in the store with which brokers are compared is served by every broker, or is off on every broker, "
        "as at the baseline",
    ),
    ("offsets", "each broker in KRaft mode serves metadata up to the end of the log that was compared"),
    ("logs", "the log of each voter, up to the end of the leader's, at a gate that needs the metadata log"),
    ("settings", "those of each controller, at a gate that needs the metadata log"),
    ("baseline", "a baseline of the log at after_finalize: nothing else is left to compare the cluster with"),
)
"""What must have been compared for a pass, whatever the values are. Otherwise the result is incomplete."""
_AT_THE_END = "after_finalize"
_NOT_COMPARED = {
    LOG: "the log of controller {} was not compared with the leader's: {}",
    CONTROLLER: "the settings of controller {} were not compared: {}",
}
# By the broker's configuration, for each client; the last one is said by views.brokers
_OFF = re.compile("SECURITY_DISABLED|DELEGATION_TOKEN_AUTH_DISABLED|does not list ACLs")


NOT_COMPARED: Tuple[Tuple[str, str], ...] = (
    (
        "RegisterBrokerRecord and BrokerRegistrationChangeRecord, but for what kind broker has: incarnation id, "
        "supported features, controlled shutdown, migrating ZooKeeper broker",
        "new with every start; the phase and each admission read them from the quorum",
    ),
    ("UnregisterBrokerRecord: epoch", "the broker is gone, whatever its epoch was"),
    (
        "RegisterControllerRecord and UnregisterControllerRecord",
        "new with every start; whether each voter is ready decides the phase",
    ),
    ("AccessControlEntryRecord: id", "random; ACLs are compared by content"),
    (
        "ProducerIdsRecord: broker id and epoch",
        "which broker got the last block, and nothing reads it again; the next id is compared",
    ),
    (
        "KRaftVersionRecord and VotersRecord",
        "control records of the quorum's own, not metadata; two logs with the same end have the same ones",
    ),
    ("NoOpRecord and the markers of transactions", "they set nothing; records of aborted transactions are dropped"),
    (
        "a config of a group that only a broker has",
        "no broker lists them: it is asked for those in the log. A broker with an old image is found by its offset",
    ),
    ("settings with a listener's prefix, such as listener.name.x.principal.builder.class", "each node has its own"),
)
"""What no comparison sees, and why."""


def off_everywhere(not_served: Mapping[str, Mapping[str, str]]) -> List[str]:
    """Return the kinds that are off on every broker. `not_served`: {broker view: {kind: why}}."""
    return [kind for kind in KINDS if not_served and all(_OFF.search(off.get(kind, "")) for off in not_served.values())]


def uncovered(
    gate: str,
    decides: str,
    held: Mapping[str, int],
    up: Iterable[int],
    not_served: Mapping[str, Mapping[str, str]],
    baselines: Iterable[str],
    behind: Mapping[str, int],
    end_offset: int,
    apart: Mapping[str, str],
    off_before: Iterable[str] | None = None,
) -> List[str]:
    """Return a sentence for each of COVERAGE that does not hold.

    :arg decides: the store with which brokers are compared; `held`: {kind: number of its entities}; `up`: ids of the
        brokers that are registered and up, in any store.
    :arg not_served: {broker view: {kind: why}}; `baselines`: names of those that were compared with a view.
    :arg behind: {broker view: end of the log that it serves} of the brokers that did not reach `end_offset`.
    :arg apart: {view: why} of the voters whose log could not be compared with the leader's, and of the controllers
        whose settings could not be read.
    :arg off_before: kinds that were off on every broker at the baseline; None without one.
    """
    said = []
    unseen = sorted(set(up) - {int(name.partition(":")[2]) for name in not_served})
    if unseen:
        more = f" and {len(unseen) - 3} more" if unseen[3:] else ""
        said.append(
            f"nothing compared what registered brokers serve: {', '.join(map(str, unseen[:3]))}{more}. Add them to the "
            "inventory, or stop and unregister them"
        )
    for kind in KINDS:
        without = {name: off[kind] for name, off in not_served.items() if kind in off}
        is_off = not unseen and kind in off_everywhere(not_served)
        if is_off and off_before is not None and kind not in set(off_before):
            name, why = min(without.items())
            said.append(
                f"brokers served {kind} at the baseline, and none does now ({name}: {why}). Turn it on again as it "
                "was, and restart the brokers"
            )
        if not held.get(kind) or not without or is_off:
            continue
        (name, why), others = min(without.items()), f" and {len(without) - 1} more" if len(without) > 1 else ""
        said.append(
            f"{decides} has {held[kind]} entities of kind {kind}, which {name}{others} did not serve ({why}). Give the "
            "tool a listener and principal that may read them, or configure all brokers alike"
        )
    for name, offset in sorted(behind.items()):
        said.append(
            f"{name} serves metadata up to offset {offset}, the log that was compared ends at {end_offset}. Check "
            "its log and its connection to the controllers, and restart it if it stays behind"
        )
    if LOG in GATES[gate].needs:  # elsewhere a rollback may be due because a controller is lost
        said += [_NOT_COMPARED[family(name)].format(name.partition(":")[2], why) for name, why in sorted(apart.items())]
    if gate == _AT_THE_END and f"{BASELINE}:{LOG}" not in baselines:
        said.append(
            f"gate {gate} has no baseline of the metadata log, so nothing shows what the cluster had before. Run it "
            "where the run artifacts of the earlier gates are. Without them, quorumshift_verify: false ends the run "
            "uncompared"
        )
    return said


# --- docs ----------------------------------------------------------------------------------------------

_HEADINGS = {
    ZOOKEEPER_LOG: "ZooKeeper and log",
    SERVED: "served by a broker",
    LOGS: "two logs",
    SINCE: "baseline",
}
_LABELS = {
    EQUAL: "equal",
    SHOWN: "equal; secrets by presence",
    BLOCK: "by the block's owner",
    ADDRESSES: "the same addresses",
    RISES: "never falls",
    NOT: "not compared",
}


def markdown() -> str:
    """Return the tables of gates and rules as Markdown for the docs."""
    lines = ["| gate | required views | optional views | brokers are compared with |", "|---|---|---|---|"]
    for name, gate in GATES.items():
        lines.append(f"| `{name}` | {', '.join(gate.needs)} | {', '.join(gate.takes) or '-'} | {gate.decides} |")
    lines += ["", "| kind | field | " + " | ".join(_HEADINGS[name] for name in RELATIONS) + " | why it may differ |"]
    lines.append("|---" * (3 + len(RELATIONS)) + "|")
    for row in TABLE:
        hows = " | ".join(_LABELS[row.how(relation)] for relation in RELATIONS)
        lines.append(f"| {row.kind} | {row.field or '(exists)'} | {hows} | {row.why or '-'} |")
    lines += ["", "| coverage | what must have been compared for a pass |", "|---|---|"]
    lines += [f"| {name} | {what} |" for name, what in COVERAGE]
    lines += ["", "| not compared | why |", "|---|---|", *(f"| {what} | {why} |" for what, why in NOT_COMPARED)]
    return "\n".join(lines) + "\n"
