# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one table of what is compared with what, at which gate, how, and why a field may differ.

Data only: `compare` reads it entity by entity, the Spark job makes its fast path of it, the docs page is rendered from
it (`markdown`). Two views stand to each other in one of four relations:

- ZOOKEEPER_LOG: ZooKeeper's tree with the KRaft metadata log (dual write: KIP-866);
- SERVED: what decides (ZooKeeper before the copy, the log after it) with what one broker serves;
- LOGS: the log of one controller with another's, both cut at the same offset;
- SINCE: a view with the same view at the last passed gate, the baseline.
"""

from __future__ import annotations

import functools
from typing import Dict, List, Mapping, NamedTuple, Sequence, Tuple

from ansible_collections.quorumshift.kafka.plugins.module_utils.core import gates

from quorumshift_spark.normal_form import FIELDS, KINDS
from quorumshift_spark.views import family

ZOOKEEPER_LOG, SERVED, LOGS, SINCE = RELATIONS = ("zookeeper_log", "served", "logs", "since")

# How a field is compared in a relation.
EQUAL = "equal"  # the same canonical value
SHOWN = "shown"  # equal, but a secret that the broker withholds equals any secret
BLOCK = "block"  # producer ids: KRaft's next id is where ZooKeeper's block begins or where it ends
NOT = "-"  # not compared; the rule's `why` says why


class Rule(NamedTuple):
    """How one field of one kind is compared; `field` "" is whether the entity is there at all.

    `hows`: EQUAL, SHOWN, BLOCK or NOT for each of RELATIONS, in their order.
    `why`: for the operator, why the two may differ for a while, or why they are not compared.
    `do`: what to do about a difference that stays.
    """

    kind: str
    field: str
    hows: Tuple[str, str, str, str]
    why: str
    do: str

    def how(self, relation: str) -> str:
        """EQUAL, SHOWN, BLOCK or NOT."""
        return self.hows[RELATIONS.index(relation)]


_RECREATE = "see which side is what the cluster should have, repair the other with Kafka's own tools, run again"
_STALE = "a broker that serves stale metadata is cured by restarting it in the mode that the phase asks for"

_EVERYWHERE = (EQUAL, EQUAL, EQUAL, EQUAL)
_NOT_SERVED = (EQUAL, NOT, EQUAL, EQUAL)
_NOT_IN_ZOOKEEPER = (NOT, EQUAL, EQUAL, EQUAL)

TABLE: Tuple[Rule, ...] = (
    Rule(
        "topic",
        "",
        _EVERYWHERE,
        "internal topics (__consumer_offsets, __transaction_state) are included; a topic under deletion goes from "
        "ZooKeeper last",
        "do not delete or create it again before you know which side is right: with the wrong id its data is lost",
    ),
    Rule(
        "topic",
        "id",
        _EVERYWHERE,
        "an id changes only when a topic is deleted and made again",
        "stop: a broker drops the data of a topic whose id is another one; restore the id from the backup",
    ),
    Rule("partition", "", _EVERYWHERE, "appears with its topic or when partitions are added", _RECREATE),
    Rule(
        "partition",
        "replicas",
        _EVERYWHERE,
        "in order: the first is the preferred leader; moves in a reassignment",
        "cancel or finish reassignments (kafka-reassign-partitions --list), then run again",
    ),
    Rule(
        "partition",
        "adding",
        _NOT_SERVED,
        "as a set; brokers answer with what the controller says (ListPartitionReassignments is forwarded)",
        "cancel or finish reassignments, then run again",
    ),
    Rule(
        "partition",
        "removing",
        _NOT_SERVED,
        "as a set; brokers answer with what the controller says (ListPartitionReassignments is forwarded)",
        "cancel or finish reassignments, then run again",
    ),
    Rule(
        "partition",
        "leader",
        _EVERYWHERE,
        "moves with every election: settled by reading again",
        _STALE + "; check the controller's log for elections that do not end",
    ),
    Rule(
        "partition",
        "leader_epoch",
        _EVERYWHERE,
        "rises with every election; the copy takes ZooKeeper's, dual write carries KRaft's back: always one number",
        "do not go on: a leader epoch that goes back makes followers truncate",
    ),
    Rule(
        "partition",
        "isr",
        _EVERYWHERE,
        "as a set; moves when a replica falls behind or catches up: settled by reading again",
        "check the brokers that one side names (is one dead?) and wait until no partition is under-replicated",
    ),
    Rule(
        "partition",
        "recovery_state",
        _NOT_SERVED,
        "of an unclean election; no request that a client may send asks a broker for it",
        _RECREATE,
    ),
    Rule(
        "partition",
        "partition_epoch",
        (NOT, NOT, EQUAL, EQUAL),
        "in ZooKeeper the data version of the state znode: dual write adds one a write, KRaft one a change, and "
        "several changes may be one write",
        _RECREATE,
    ),
    Rule(
        "partition",
        "controller_epoch",
        (NOT, NOT, NOT, NOT),
        "in ZooKeeper's state znodes only, where dual write puts the KRaft epoch (KAFKA-20488)",
        "the gate before_revert looks at it",
    ),
    Rule(
        "config",
        "",
        _EVERYWHERE,
        "topic and broker configs that somebody set, the cluster-wide default of brokers (key null) included; client "
        "metrics and group configs exist in KRaft alone",
        "set or delete it with kafka-configs on the side that is wrong",
    ),
    Rule(
        "config",
        "value",
        (EQUAL, SHOWN, EQUAL, EQUAL),
        "passwords are encrypted in ZooKeeper and clear in KRaft: decrypted, then compared by keyed hash; brokers "
        "withhold sensitive values",
        "set it again with kafka-configs; for a password check password.encoder.secret on the controllers",
    ),
    Rule(
        "quota",
        "",
        _EVERYWHERE,
        "per user, client id, both, or ip; null is the default entity; names as clients give them, not as znodes",
        "set or delete it with kafka-configs",
    ),
    Rule("quota", "value", _EVERYWHERE, "as a number: 10 and 10.0 are equal", "set it with kafka-configs"),
    Rule("scram", "", _EVERYWHERE, "one per user and mechanism", "set the credential again: kafka-configs"),
    Rule("scram", "iterations", _EVERYWHERE, "", "set the credential again: kafka-configs"),
    Rule(
        "scram",
        "digest",
        _NOT_SERVED,
        "keyed hash of salt, stored key, server key and iterations; brokers show mechanism and iterations only",
        "set the credential again: kafka-configs",
    ),
    Rule(
        "acl",
        "",
        _EVERYWHERE,
        "by content: KRaft gives each a random id in the copy; literal and prefixed",
        "add or remove it with kafka-acls; an ACL too few denies, one too many lets in",
    ),
    Rule(
        "delegation_token",
        "",
        _EVERYWHERE,
        "expired tokens are removed by themselves; a broker shows those that the asking principal may describe",
        "renew or expire it with kafka-delegation-tokens",
    ),
    *(
        Rule("delegation_token", field, _EVERYWHERE, why, "expire the token and make a new one")
        for field, why in (
            ("owner", ""),
            ("requester", "the owner, where ZooKeeper's value is older than 3.3"),
            ("renewers", "as a set"),
            ("issue", ""),
            ("expiry", "moves with every renewal: settled by reading again"),
            ("max", ""),
        )
    ),
    Rule(
        "producer_ids",
        "",
        _NOT_SERVED,
        "absent until the first idempotent producer starts; no request asks for it without taking a block",
        "do not go on: producer ids that are given out twice break exactly-once",
    ),
    Rule(
        "producer_ids",
        "next",
        (BLOCK, NOT, EQUAL, EQUAL),
        "the copy takes the end of ZooKeeper's block as KRaft's next id; dual write then puts a block into ZooKeeper "
        "that begins at the next id",
        "do not go on: producer ids that are given out twice break exactly-once",
    ),
    Rule("producer_ids", "start", (NOT, NOT, NOT, EQUAL), "ZooKeeper's alone: see next", _RECREATE),
    Rule(
        "feature",
        "",
        _NOT_IN_ZOOKEEPER,
        "not migrated: KRaft's come from the format of the controllers, ZooKeeper's /feature stays as it is; brokers "
        "in ZooKeeper mode do not serve KRaft's",
        "describe with kafka-features; " + _STALE,
    ),
    Rule("feature", "level", _NOT_IN_ZOOKEEPER, "see above", "describe with kafka-features; " + _STALE),
    Rule(
        "broker",
        "",
        (NOT, EQUAL, EQUAL, NOT),
        "/brokers/ids holds the brokers in ZooKeeper mode only; brokers list those that are not fenced; restarts and "
        "replacements are what the rolls do",
        "a registration without a process, or the other way round: restart or unregister that broker",
    ),
    Rule("broker", "fenced", (NOT, EQUAL, EQUAL, NOT), "a broker that restarts is fenced for a while", "restart it"),
    Rule("broker", "epoch", (NOT, NOT, EQUAL, NOT), "new with every start", "restart it"),
)

_RULES: Dict[Tuple[str, str], Rule] = {(rule.kind, rule.field): rule for rule in TABLE}
_MIGRATED_CONFIGS = ("topic", "broker")


def rule(kind: str, field: str = "") -> Rule:
    """The rule of a field; "" for the presence of the entity. Raises KeyError."""
    return _RULES[(kind, field)]


@functools.lru_cache(maxsize=None)
def compared_fields(kind: str, relation: str) -> Tuple[Tuple[str, str], ...]:
    """(field, how) of each field of the normal form that is compared in a relation."""
    found = [(field, _RULES[(kind, field)].how(relation)) for field in FIELDS[kind]]
    return tuple((field, how) for field, how in found if how != NOT)


def compared_kinds(relation: str) -> Tuple[str, ...]:
    """The kinds that are compared in a relation."""
    return tuple(kind for kind in KINDS if _RULES[(kind, "")].how(relation) != NOT)


# --- gates ---------------------------------------------------------------------------------------------

ZOOKEEPER, LOG, BROKER, BASELINE = gates.ZOOKEEPER, gates.METADATA_LOG, gates.BROKER, gates.BASELINE


class Gate(NamedTuple):
    """A gate of the migration: the views that it needs, those that it takes when they are given, and which decides
    what a broker has to serve."""

    needs: Tuple[str, ...]
    takes: Tuple[str, ...]
    decides: str


GATES: Dict[str, Gate] = {
    name: Gate(gate.needs, gate.takes, LOG if LOG in gate.needs else ZOOKEEPER) for name, gate in gates.GATES.items()
}

_FROM_ZOOKEEPER = ("config", "quota", "scram", "acl", "delegation_token")
"""What a broker in ZooKeeper mode reads in ZooKeeper even when KRaft leads (hybrid)."""
_NO_CLIENTS = (
    "{} runs in ZooKeeper mode: its configs, quotas, credentials, ACLs and tokens come from ZooKeeper; they are "
    "compared with ZooKeeper and are no independent witness of KRaft"
)


class Comparison(NamedTuple):
    """Two views that are compared: names, relation, kinds, and what the report has to say about it ("" for nothing)."""

    left: str
    right: str
    relation: str
    kinds: Tuple[str, ...]
    note: str = ""


def may_be_alone(comparison: Comparison, kind: str, key: Sequence[object], fields: Mapping[str, str]) -> str | None:
    """Why an entity may stand on one side only; None where it must not."""
    relation = comparison.relation
    if kind == "config" and key[0] not in _MIGRATED_CONFIGS:
        if relation == ZOOKEEPER_LOG:
            return f"{key[0]} configs exist in KRaft alone"
        if relation == SERVED:
            return f"{key[0]} configs are not asked of brokers"
    if relation != SERVED:
        return None
    if kind == "config" and key[0] == "broker" and key[1] not in (None, comparison.right.partition(":")[2]):
        return "a broker tells its own dynamic configs and the default ones only"
    if kind == "broker" and fields.get("fenced") == "true":
        return "brokers do not list a fenced broker"
    if kind == "feature" and key[0] == "kraft.version":
        return "kraft.version is the quorum's own"
    return None


class PlanError(ValueError):
    """A job whose views do not make its gate; the message says which and what to do."""


def plan(gate: str, kinds: Mapping[str, Sequence[str]], zookeeper_mode: Sequence[str] = ()) -> List[Comparison]:
    """The comparisons of a gate.

    :arg kinds: {view name: kinds that it can tell about}.
    :arg zookeeper_mode: names of the broker views whose broker runs in ZooKeeper mode; matters once KRaft leads.
    :raises PlanError: an unknown gate, or a view that the gate needs and that is not there.
    """
    if gate not in GATES:
        raise PlanError(f"gate {gate!r} is none of {', '.join(GATES)}")
    needs, takes, decides = GATES[gate]
    families = {family(name) for name in kinds}
    missing = [name for name in needs if name not in families]
    if missing:
        raise PlanError(f"gate {gate} needs the view {missing[0]}, which the job does not give")
    if LOG in families and LOG not in needs and LOG in takes:
        decides = LOG
    comparisons = []

    def add(left, right, relation, only=None, note=""):
        shared = [
            kind
            for kind in compared_kinds(relation)
            if kind in kinds[left] and kind in kinds[right] and (only is None or kind in only)
        ]
        if shared:
            comparisons.append(Comparison(left, right, relation, tuple(shared), note))

    if {ZOOKEEPER, LOG} <= families:
        add(ZOOKEEPER, LOG, ZOOKEEPER_LOG)
    for name in kinds:
        if family(name) == LOG and name != LOG:
            add(LOG, name, LOGS)
        elif family(name) == BROKER and decides == LOG and name in zookeeper_mode:
            note = _NO_CLIENTS.format(name)
            if ZOOKEEPER in families:
                add(ZOOKEEPER, name, SERVED, _FROM_ZOOKEEPER, note)
            add(LOG, name, SERVED, [kind for kind in KINDS if kind not in (*_FROM_ZOOKEEPER, "feature")], note)
        elif family(name) == BROKER:
            # ZooKeeper's /feature is no finalized feature of KRaft
            add(decides, name, SERVED, None if decides == LOG else [kind for kind in KINDS if kind != "feature"])
        elif family(name) == BASELINE and name.partition(":")[2] in kinds:
            add(name, name.partition(":")[2], SINCE)
    return comparisons


# --- docs ----------------------------------------------------------------------------------------------

_HEADINGS = {
    ZOOKEEPER_LOG: "ZooKeeper : log",
    SERVED: "served by a broker",
    LOGS: "log : log",
    SINCE: "baseline",
}
_WORDS = {EQUAL: "equal", SHOWN: "equal, secrets by presence", BLOCK: "begin or end of the block", NOT: "not compared"}


def markdown() -> str:
    """The table of gates and the table of rules, as Markdown for the docs."""
    lines = ["| gate | views needed | taken if given | a broker must serve what stands in |", "|---|---|---|---|"]
    for name, gate in GATES.items():
        lines.append(f"| `{name}` | {', '.join(gate.needs)} | {', '.join(gate.takes) or '-'} | {gate.decides} |")
    lines += ["", "| kind | field | " + " | ".join(_HEADINGS[name] for name in RELATIONS) + " | why it may differ |"]
    lines.append("|---" * (3 + len(RELATIONS)) + "|")
    for row in TABLE:
        hows = " | ".join(_WORDS[row.how(relation)] for relation in RELATIONS)
        lines.append(f"| {row.kind} | {row.field or '(is there)'} | {hows} | {row.why or '-'} |")
    return "\n".join(lines) + "\n"
