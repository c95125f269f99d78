# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""gate: open a gate from the probe host; keep its token, or why it stays closed."""

from __future__ import annotations

import json
import os

from ansible.module_utils.parsing.convert_bool import boolean
from ansible_collections.quorumshift.kafka.plugins.module_utils.core.gates import gates
from ansible_collections.quorumshift.kafka.plugins.plugin_utils import baseline, spark_jobs
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import QuorumshiftAction


class ActionModule(QuorumshiftAction):
    """Opens a gate and journals it. Its token goes into the play's facts under the gate's name."""

    def act(self, args):
        name, topics = args["gate"], self.variable("quorumshift_fingerprint_topics") or ()
        asked = gates.required_jobs(name, boolean(self.variable("quorumshift_verify") or False), topics)
        args = self.fill({"verify": asked, **args})
        accept = args.get("accept")
        result = self.run_in_slices(args)
        verified = {verification["job"]: verification for verification in args.get("verified") or () if verification}
        failed = bool(result.get("failed"))
        journalled = {
            "verified": {job: verified.get(job, {}).get("digest") for job in args["verify"]} or "off",
            "reports": {
                job: verification.get("report") for job, verification in verified.items() if job in args["verify"]
            },
            "seconds": round(result.get("waited_s") or 0, 3),
            "result": "differ" if failed else "pass",
            **({"accepted": accept} if accept else {}),
        }
        if failed:
            self.artifacts().note("gate", name, reason=result.get("msg"), **journalled)
            return result
        if "zookeeper" in result:
            self.artifacts().save("zookeeper-before-finalize.json", json.dumps(result.pop("zookeeper"), indent=1))
        self.artifacts().note("phase", result["phase"])
        self.say(f"open: phase {result['phase']}, healthy for {args.get('stable_s', 10)} s")
        if name == gates.DATA_GATES[-1] and args["verify"] and gates.DATA_FINGERPRINT not in args["verify"]:
            self._remind_of_records()
        token = result["gate_token"]
        self.artifacts().note("gate", name, digest=token["digest"], phase=result["phase"], **journalled)
        tokens = self.facts_of(self.vars["inventory_hostname"]).get("quorumshift_gate_tokens") or {}
        result["ansible_facts"] = {"quorumshift_gate_tokens": {**tokens, name: token}}
        return result

    def _remind_of_records(self):
        """Say that records which were read before the migration were not compared: that a later command lacks the
        variable is no decision."""
        kept = os.path.join(baseline.directory(self.artifacts().cluster), *spark_jobs.DataFingerprint.BASELINE)
        if os.path.exists(kept):
            self.say(
                f"the records were read at {gates.DATA_GATES[0]}, and were not compared now: "
                "quorumshift_fingerprint_topics is empty. To compare them, run quorumshift.kafka.verify with the "
                "topics of then (QS-VERIFY-001)"
            )
