# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""gate: asks the probe host, keeps pass or refusal as evidence."""

from __future__ import annotations

import json

from ansible.module_utils.parsing.convert_bool import boolean
from ansible_collections.quorumshift.kafka.plugins.module_utils.core import gates
from ansible_collections.quorumshift.kafka.plugins.plugin_utils.base import ProbeAction


class ActionModule(ProbeAction):
    """Opens a gate and journals it."""

    def act(self, args: dict) -> dict:
        topics = self.variable("quorumshift_fingerprint_topics") or ()
        asked = gates.jobs(args.get("gate"), boolean(self.variable("quorumshift_verify") or False), topics)
        accept = self.listed("quorumshift_accept_degraded")
        args = self.filled({"run": None, "verify": asked, "accept": accept, **args})
        result = self.in_slices(args)
        name, failed = args.get("gate"), bool(result.get("failed"))
        verified = {one["job"]: one for one in args.get("verified") or () if one}
        reported = {
            "verified": {job: verified.get(job, {}).get("digest") for job in args["verify"]} or "off",
            "reports": {job: one.get("report") for job, one in verified.items() if job in args["verify"]},
            "seconds": round(result.get("waited_s") or 0, 3),
            "result": "differ" if failed else "pass",
            **({"accepted": accept} if accept else {}),
        }
        if failed:
            self.artifacts().note("gate", name, reason=result.get("msg"), **reported)
            return result
        if "zookeeper" in result:
            self.artifacts().save("zookeeper-before-finalize.json", json.dumps(result.pop("zookeeper"), indent=1))
        self.artifacts().note("phase", result["phase"])
        self.say(f"open: phase {result['phase']}, all well for {args.get('stable_s', 10)} s")
        self.artifacts().note("gate", name, digest=result["gate_token"]["digest"], phase=result["phase"], **reported)
        return result
