# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Generate the documentation's tables from the code, and collect every message with which the collection can stop.

Usage: ``python -m tools.reference`` writes the generated regions of the documents and lists the gaps of the runbook.
Exit code 1 if a message has no entry, or if an entry quotes a message that the code no longer has. A region is the text
between ``<!-- generated: NAME -->`` and ``<!-- end -->``. tests/unit/test_docs.py checks regions and gaps.

A message is a string of the code, with ``…`` for each inserted value: the argument of a ``raise`` or ``fail_json``, the
``msg`` of a failed result, the text of a ``Finding``, ``Problem`` or ``Block``, the reason of phase ``UNKNOWN``, what a
wait waits for, the ``fail_msg`` of a task and the ``msg`` of ``fail``, the text of an error that ends a job of Spark,
and each sentence in a function whose docstring begins with "Return why" or that ``RETURNS_REASONS`` names. A text that
is inserted into another message is no message.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import gates, invariants
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import kraft_config, phase, transitions
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.preflight import preflight
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import kafka_releases, releases
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases.features import METADATA_VERSION

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "spark"))
from quorumshift_spark import excuses, rules

DOCS = ROOT / "docs"
RUNBOOK = DOCS / "runbook.md"
INSERTED = "…"

# functions that return reasons, although their docstring begins otherwise
RETURNS_REASONS = (
    "core/migration/initial_copy.py:detect",
    "core/gates/admission.py:remedy",
    "core/restart/batches.py:evaluate",
    "core/gates/gates.py:_controllers_differ",
    "core/gates/gates.py:trailing",
    "core/migration/phase.py:_modeless_text",
    "core/migration/phase.py:not_ready",
    "core/restart/plain_restart.py:unaccepted",
    "core/gates/cluster_health.py:acceptable",
    "modules/initial_copy.py:awaited",
    "modules/rolling_restart.py:waited_for",
    "module_utils/worker/auto_revert.py:after",
    "module_utils/worker/restart_worker.py:_died",
    "probes/cluster/cluster.py:_zookeeper",
    "probes/cluster/cluster.py:quorum",
    "wire/socket_wire.py:_timeout",
    "wire/socket_wire.py:_unreachable",
    "wire/zk_wire.py:__init__",
    "probes/zookeeper/zookeeper.py:_probed",
    "probes/zookeeper/zookeeper.py:_unreachable",
)
# their text is inserted into another message, after the name of the file or znode
_INSIDE_OTHERS = ("doc_fragments", "formats", "properties.py", "znodes.ZnodeError")
# raised and caught within a *_wire.py, which raises a listed message for them
_CAUGHT = {"ValueError", "IndexError", "struct.error", "OSError"}

# of Spark's jobs: what ends one, or leaves a view unread. Other exceptions are inserted into the texts of these.
_OF_SPARK = ("JobError", "SessionError", "PlanError", "ViewError", "ClusterError", "StoreError", "ProgressError")
# says why something is no difference
_EXPLAINS_A_PASS = ("spark/quorumshift_spark/rules.py:allowed_on_one_side",)


class Message(NamedTuple):
    """`text` as the operator reads it, `origin` as `file:function`."""

    text: str
    origin: str


def messages() -> list[Message]:
    """Return every message with which the collection can stop, by file."""
    found: list[Message] = []
    for path in sorted((ROOT / "plugins").rglob("*.py")):
        if not set(path.parts).intersection(_INSIDE_OTHERS):
            found += _Collector(path).found
    for path in sorted((ROOT / "spark" / "quorumshift_spark").rglob("*.py")):
        found += _Collector(path, _OF_SPARK).found
    for path in sorted([*(ROOT / "playbooks").rglob("*.yml"), *(ROOT / "roles").glob("*/tasks/*.yml")]):
        for text in task_messages(yaml.safe_load(path.read_text(encoding="utf-8"))):
            text = " ".join(re.sub(r"\{\{.*?\}\}", INSERTED, text, flags=re.DOTALL).split())
            if re.search(r"[a-z]{2}", text):
                found.append(Message(text, str(path.relative_to(ROOT))))
    return list(dict.fromkeys(found))


def task_messages(node: Any) -> Iterator[str]:
    """Yield the messages with which the tasks of a YAML file can fail, those in blocks included."""
    if isinstance(node, list):
        for entry in node:
            yield from task_messages(entry)
    elif isinstance(node, dict):
        for key, value in node.items():
            if key == "fail_msg":
                yield value
            elif key == "ansible.builtin.fail":
                yield value["msg"]
            else:
                yield from task_messages(value)


class _Collector(ast.NodeVisitor):
    """`raised`: the exceptions whose texts are messages, all of them by default."""

    def __init__(self, path: Path, raised: tuple[str, ...] = ()):
        self.raised = raised
        self.file = str(path.relative_to(ROOT))
        self.wire = path.name.endswith("_wire.py")
        self.functions: list[str] = []
        self.why = 0
        self.found: list[Message] = []
        self.visit(ast.parse(path.read_text(encoding="utf-8"), str(path)))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.functions.append(node.name)
        doc = ast.get_docstring(node) or ""
        named = any(self._origin().endswith(place) for place in RETURNS_REASONS)
        why = (doc.startswith("Return why") or named) and self._origin() not in _EXPLAINS_A_PASS
        self.why += why
        body = node.body[1:] if doc else node.body
        for statement in body:
            if self.why and not isinstance(statement, ast.FunctionDef):
                self._take(statement)
            self.visit(statement)
        self.why -= why
        self.functions.pop()

    def visit_Raise(self, node: ast.Raise) -> None:
        if isinstance(node.exc, ast.Call):
            name = ast.unparse(node.exc.func)
            listed = name in self.raised or not self.raised
            if listed and name not in _INSIDE_OTHERS and not (name in _CAUGHT and self.wire):
                for argument in node.exc.args:
                    self._take(argument)
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if isinstance(node.value, ast.Tuple) and node.value.elts and ast.unparse(node.value.elts[0]) == "UNKNOWN":
            self._take(node.value)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = ast.unparse(node.func).rpartition(".")[2]
        if name in ("Finding", "Problem") and node.args:
            self._take(node.args[0])
        elif name == "Block" and len(node.args) > 1:
            self._take(node.args[1])
        elif name in ("_wait", "wait") and node.args:
            self._take(node.args[-1])
        elif name == "fail_json":
            for keyword in node.keywords:
                if keyword.arg == "msg":
                    self._take(keyword.value)
        self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> None:
        keys = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
        if "failed" in keys and "msg" in keys:
            self._take(node.values[keys.index("msg")])
        self.generic_visit(node)

    def _take(self, node: ast.AST) -> None:
        for text in _templates(node):
            if re.search(r"[A-Za-z/_]{2,}.* |^[^ ]+ .*[a-z]{2}", text) and " " in text.strip():
                self.found.append(Message(" ".join(text.split()), self._origin()))

    def _origin(self) -> str:
        return f"{self.file}:{self.functions[0] if self.functions else ''}"


def _templates(node: ast.AST) -> Iterator[str]:
    """Yield the outermost strings within an expression or statement, inserted values as INSERTED."""
    if isinstance(node, (ast.Constant, ast.JoinedStr, ast.BinOp)):
        text = _text(node)
        if text is not None:
            yield text
            return
    if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in ("Finding", "Problem", "Block"):
        return  # visit_Call takes the text alone
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef):
            yield from _templates(child)


def _text(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) or INSERTED for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _text(node.left), _text(node.right)
        if left is not None or right is not None:
            return (left or INSERTED) + (right or INSERTED)
    return None


# The runbook ----------------------------------------------------------------------------------------------------


def runbook() -> dict[str, list[str]]:
    """Return the messages that each entry of the runbook quotes, {heading: [message]}."""
    entries: dict[str, list[str]] = {}
    heading = None
    for line in RUNBOOK.read_text(encoding="utf-8").splitlines():
        if line.startswith("### "):
            heading = line[4:].strip()
            entries[heading] = []
        elif line.startswith("#"):
            heading = None
        elif heading:
            quoted = re.fullmatch(r"> - (`+) ?(.*?) ?\1", line)
            if quoted:
                entries[heading].append(quoted.group(2))
    return entries


def quoted(text: str) -> str:
    """Return a message as the runbook quotes it."""
    fence = "``" if "`" in text else "`"
    space = " " if "`" in text else ""
    return f"> - {fence}{space}{text}{space}{fence}"


def slug(heading: str) -> str:
    """Return the anchor of a heading, as GitHub and most renderers make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


# Generated regions ----------------------------------------------------------------------------------------------


def gates_table() -> str:
    """The gates, from core/gates/gates.py."""
    node_restarts = {kind.gate: name for name, kind in transitions.KINDS.items()}
    rows = ["| gate | moment | opens in phase | restart that needs its token |", "|---|---|---|---|"]
    for name, gate in gates.GATES.items():
        opens = ", ".join(f"`{phase_name}`" for phase_name in gate.phases)
        node_restart = f"`{node_restarts[name]}`" if name in node_restarts else "none"
        rows.append(f"| `{name}` | {gate.moment} | {opens} | {node_restart} |")
    return "\n".join(rows)


def controller_keys_table() -> str:
    """The keys that controllers take from the brokers, from core/migration/kraft_config.py."""
    rows = ["| key | class that reads it on a controller |", "|---|---|"]
    rows += [f"| `{key}` | {why} |" for key, why in kraft_config.CONTROLLER_EVALUATES.items()]
    return "\n".join(rows)


def checks_table() -> str:
    """The checks of kraft_preflight, from core/preflight/preflight.py."""
    rows = ["| id | check | severity | relies on | found on |", "|---|---|---|---|---|"]
    provoked_in = provoked()
    for check in preflight.CHECKS:
        where = ", ".join(f"`{name}`" for name in provoked_in.get(check.id, ())) or "recorded facts"
        title = f"[`{check.id}`](#{slug(f'Check {check.id}')}) | {check.title}"
        rows.append(f"| {title} | {check.severity} | {check.source} | {where} |")
    return "\n".join(rows)


def provoked() -> dict[str, list[str]]:
    """Return {check id: where tests provoke its finding}.

    Files of tests/system/e2e, by the mark `provokes`, and molecule scenarios that assert the finding, `[id] ...`.
    """
    places: dict[str, set[str]] = {}
    for path in (ROOT / "extensions" / "molecule").glob("*/converge.yml"):
        for check in re.findall(r"'\[(\w+)\] ", path.read_text(encoding="utf-8")):
            places.setdefault(check, set()).add(f"scenario {path.parent.name}")
    for path in sorted((ROOT / "tests" / "system" / "e2e").glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "provokes":
                for argument in node.args:
                    places.setdefault(ast.literal_eval(argument), set()).add(path.name)
    return {check: sorted(names) for check, names in places.items()}


def index() -> str:
    """The index of the runbook: each message with the entry that explains it."""
    entries: dict[str, list[str]] = {}
    for heading, texts in runbook().items():
        for text in texts:
            entries.setdefault(text, []).append(f"[{heading}](#{slug(heading)})")
    order = sorted(entries, key=lambda text: re.sub(r"^\W+", "", text).lower())
    return "\n".join(f"{quoted(text)[2:]} → {', '.join(entries[text])}" for text in order)


def specs(role: str) -> dict[str, dict]:
    """Return a role's argument specs by entry point."""
    path = ROOT / "roles" / role / "meta" / "argument_specs.yml"
    return yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"]


def variables_table(entry_point: str) -> str:
    """The public variables of one entry point of the role quorumshift, from its argument specs."""
    rows = ["| variable | type | default | what it is |", "|---|---|---|---|"]
    for name, spec in specs("quorumshift")[entry_point]["options"].items():
        text = spec["description"] if isinstance(spec["description"], str) else " ".join(spec["description"])
        default = "required" if spec.get("required") else f"`{spec['default']!r}`" if "default" in spec else "none"
        rows.append(f"| `{name}` | {spec['type']} | {default} | {_markdown(text)} |")
        for option, sub in spec.get("options", {}).items():
            text = sub["description"] if isinstance(sub["description"], str) else " ".join(sub["description"])
            default = f"`{sub['default']!r}`" if "default" in sub else "none"
            rows.append(f"| &emsp;`.{option}` | {sub['type']} | {default} | {_markdown(text)} |")
    return "\n".join(rows)


def _markdown(text: str) -> str:
    """Return Ansible's markup as Markdown."""
    return re.sub(r"\b[COV]\((.*?)\)", r"`\1`", text).replace("|", "\\|")


def verification_rules() -> str:
    """The comparison rules of the Spark job, from spark/quorumshift_spark/rules.py."""
    return rules.markdown().rstrip()


def verification_excuses() -> str:
    """Return the table of what excuses a difference."""
    return "\n".join(excuses.markdown())


def invariants_table() -> str:
    """The conditions of every gate and admission, from core/gates/invariants.py."""
    rows = ["| id | condition | what holds | read from | required |", "|---|---|---|---|---|"]
    for condition in invariants.CONDITIONS:
        where = ["gates and admissions forward"]
        where += (
            ["in a rollback, unless accepted" if condition.id in ("I4", "I5") else "in a rollback"]
            if condition.rollback
            else []
        )
        where += ["for the start of a node that is down"] if condition.start else []
        rows.append(
            f"| {condition.id} | {condition.title} | {condition.holds} | {condition.read} | {', '.join(where)} |"
        )
    return "\n".join(rows)


def levels_table() -> str:
    """The levels that each release supports, from core/releases/kafka_releases.py."""
    rows = [
        "| Kafka | Java | `metadata.version` | goes down to | other features, highest level |",
        "|---|---|---|---|---|",
    ]
    names = kafka_releases.LEVELS
    for release, entry in kafka_releases.RELEASES.items():
        features = dict(entry["features"])
        lowest, highest, _new = features.pop(METADATA_VERSION)
        one_way = max(level for level in kafka_releases.ONE_WAY if level <= highest)
        others = ", ".join(f"`{name}` {high}" for name, (_low, high, _new) in features.items()) or "none"
        rows.append(
            f"| {releases.written(release)} | {entry['java']} | {names[lowest]} to {names[highest]} "
            f"({lowest} to {highest}) | {names[one_way]} ({one_way}) | {others} |"
        )
    return "\n".join(rows)


def modules_table(internal: bool) -> str:
    """The modules that a playbook may call, or the internal ones, from their documentation."""
    rows = ["| module | what it does |" if internal else "| module | what it does | needs |"]
    rows.append("|---|---|" if internal else "|---|---|---|")
    for path in sorted((ROOT / "plugins" / "modules").glob("*.py")):
        docs = module_docs(path)
        if docs["description"][0].startswith("B(Internal.)") == internal:
            needs = "" if internal else f" {_needs(docs)} |"
            rows.append(f"| `{path.stem}` | {_markdown(docs['short_description'])} |{needs}")
    return "\n".join(rows)


def module_docs(path: Path) -> dict[str, Any]:
    """Return the documentation of a module or of a documentation fragment."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "DOCUMENTATION":
            return yaml.safe_load(ast.literal_eval(node.value))
    raise ValueError(f"{path} has no DOCUMENTATION")


def _needs(docs: dict[str, Any]) -> str:
    """Return the Python packages that a module needs, those of its documentation fragments included."""
    names = [name.split(".")[2] for name in docs["extends_documentation_fragment"]]
    fragments = [module_docs(ROOT / "plugins" / "doc_fragments" / f"{name}.py") for name in dict.fromkeys(names)]
    found = [text for part in (docs, *fragments) for text in part.get("requirements", [])]
    return ", ".join(text.partition(" (")[0] for text in found) or "Python's standard library"


REGIONS = {
    "modules": lambda: modules_table(internal=False),
    "internal modules": lambda: modules_table(internal=True),
    "levels": levels_table,
    "invariants": invariants_table,
    "verification rules": verification_rules,
    "verification excuses": verification_excuses,
    "gates": gates_table,
    "controller keys": controller_keys_table,
    "checks": checks_table,
    "index": index,
    "cluster variables": lambda: variables_table("detect_phase"),
    "host variables": lambda: variables_table("gather"),
}
_REGION = re.compile(r"(<!-- generated: ([\w ]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def documents() -> list[Path]:
    """Return the files that an operator reads."""
    return sorted([*DOCS.glob("*.md"), *ROOT.glob("roles/*/README.md")])


def regenerated(text: str) -> str:
    """Return a document with its regions generated again."""
    return _REGION.sub(lambda match: f"{match.group(1)}\n{REGIONS[match.group(2)]()}\n\n{match.group(3)}", text)


def gaps() -> list[str]:
    """Return the messages and headings that the runbook lacks, and those that it quotes but the code no longer has."""
    entries = runbook()
    documented = {text for texts in entries.values() for text in texts}
    collected = messages()
    current = {message.text for message in collected}
    missing = [
        f"{quoted(message.text)}   ({message.origin})" for message in collected if message.text not in documented
    ]
    stale = [f"no longer in the code: {text}" for text in sorted(documented - current)]
    wanted = [f"Check {check.id}" for check in preflight.CHECKS] + [f"Block {block_id}" for block_id in block_ids()]
    wanted += [f"Gate {name}" for name in gates.GATES] + [f"Phase {name}" for name in STOPPING_PHASES]
    return missing + stale + [f"no entry: {heading}" for heading in wanted if heading not in entries]


STOPPING_PHASES = (phase.UNKNOWN, phase.REVERTING, phase.KRAFT_NATIVE)


def block_ids() -> list[str]:
    """Return the ids of all blocks, from the calls in core/migration/phase.py."""
    tree = ast.parse(Path(phase.__file__).read_text(encoding="utf-8"))
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "Block")
    return sorted({call.args[0].value for call in calls if call.args and isinstance(call.args[0], ast.Constant)})


def main() -> int:
    """Write the generated regions, list the gaps."""
    for path in documents():
        old = path.read_text(encoding="utf-8")
        new = regenerated(old)
        if new != old:
            path.write_text(new, encoding="utf-8")
            print(f"{path.relative_to(ROOT)}: written")
    found = gaps()
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
