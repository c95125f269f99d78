# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Generate the documentation's tables from the code.

Usage: ``python -m tools.reference`` writes the generated regions of the documents. A region is the text between
``<!-- generated: NAME -->`` and ``<!-- end -->``. tests/unit/test_docs.py checks them. tools/messages.py writes the
pages of messages.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import Any

from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import gates, invariants
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.migration import kraft_config, transitions
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases import kafka_releases, releases
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.releases.features import METADATA_VERSION

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "spark"))
from quorumshift_spark import excuses, result, rules

from tools import papers
from tools.yaml_files import parse_yaml, read_yaml

DOCS = ROOT / "docs"


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


def specs(role: str) -> dict[str, dict]:
    """Return a role's argument specs by entry point."""
    path = ROOT / "roles" / role / "meta" / "argument_specs.yml"
    return read_yaml(path)["argument_specs"]


def shared_variables() -> dict[str, dict]:
    """Return every public variable of the role quorumshift with its spec, those of the cluster first."""
    entries = specs("quorumshift")
    return {**entries["detect_phase"]["options"], **entries["gather"]["options"]}


def variables_table(entry_point: str) -> str:
    """The public variables of one entry point of the role quorumshift, from its argument specs."""
    rows = ["| variable | type | default | what it is |", "|---|---|---|---|"]
    options = specs("quorumshift")[entry_point]["options"]
    for name, spec in options.items():
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


def verification_differences() -> str:
    """Return the table of the columns of differences.csv and differences.parquet."""
    return "\n".join(result.markdown())


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
            f"| {releases.format_release(release)} | {entry['java']} | {names[lowest]} to {names[highest]} "
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
            return parse_yaml(ast.literal_eval(node.value))
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
    "papers": papers.rows_tables,
    "papers in numbers": papers.counts_table,
    "papers not shown": papers.open_rows_table,
    "invariants": invariants_table,
    "verification rules": verification_rules,
    "verification excuses": verification_excuses,
    "verification differences": verification_differences,
    "gates": gates_table,
    "controller keys": controller_keys_table,
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


def main() -> None:
    """Write the generated regions."""
    for path in documents():
        old = path.read_text(encoding="utf-8")
        new = regenerated(old)
        if new != old:
            path.write_text(new, encoding="utf-8")
            print(f"{path.relative_to(ROOT)}: written")


if __name__ == "__main__":
    main()
