# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The drills of the two scenarios, in order."""

from __future__ import annotations

from tests.system.drill import faults
from tests.system.drill.scenario import Stage
from tests.system.drill.trials import AFTER_RERUN, STOPPED, Drill
from tests.system.testbed.faults import UNREACHED

TAKEN_OVER = r"takes over the run lock of run \S+"
HYBRID_ROLL, KRAFT_ROLL = r"Plan restarts of kind zk_migration\].*", r"Plan restarts of kind kraft\].*"
NEW_FILE, UP, STOPS = r"    (b\d) gets its new properties file\n", r"    (b\d) is up \(", r"    (b\d) stops\n"
# after a quick reboot, a run may not notice that the host was down
BACK_SOON = rf"does not answer: [^\n]*|{UNREACHED}|is not in the cluster's metadata|under-replicated|    b\d is up \("
NO_FLAG = r"does not answer as a controller in migration mode|without the migration flag"
NO_ZOOKEEPER = r"ZooKeeper could not be read[^\n]*|no ZooKeeper session[^\n]*|its ensemble has no quorum"


def killed(role: str, phase: str, at: str) -> Drill:
    """Return a drill that kills the control process with SIGKILL while it runs a role."""
    return Drill(f"control process killed: {role}", phase, faults.none, TAKEN_OVER, AFTER_RERUN, at, kills_run=True)


_IN_ZK = (
    Drill(
        "a broker of another inter.broker.protocol.version joins",
        "zk",
        faults.protocol_version,
        r"runs with inter\.broker\.protocol\.version 3\.8, its release is",
        STOPPED,
    ),
    Drill("a broker of another release joins", "zk", faults.other_release, r"versions are mixed: [^\n]*", STOPPED),
    Drill(
        "a topic deletion waits for a broker that is down",
        "zk",
        faults.pending_deletion,
        rf"the deletion of {faults.DELETED} does not complete",
        STOPPED,
    ),
    killed("prepare", "zk", r"Read the second copy and compare it with ZooKeeper\]"),
    Drill(
        "a second control node begins a run",
        "zk",
        faults.second_control_node,
        r"locked by run [^\n]*(That run is at work|This host cannot see whether)",
        AFTER_RERUN,
        r"Open gate before_controllers\]",
    ),
)
_IN_CONTROLLERS = (
    killed("controllers", "controllers_starting", r"    c\d starts\n.*    c\d starts\n"),
    Drill(
        "a controller started without the flag",
        "controllers_ready",
        faults.flagless_controller,
        NO_FLAG,
        STOPPED,
        r"Open the gate before restarts of kind zk_migration\]",
    ),
)
_IN_HYBRID_ROLL = (
    Drill(
        "a broker killed while another restarts",
        "brokers_joining",
        faults.another_broker_killed,
        r"broker \S+ does not answer: [^\n]*|broker \d+ is not in the cluster's metadata",
        AFTER_RERUN,
        HYBRID_ROLL + NEW_FILE,
    ),
    killed("broker_roll zk_migration", "brokers_joining", HYBRID_ROLL + NEW_FILE),
    Drill(
        "the active controller killed during the initial copy",
        "copying",
        faults.active_controller_killed_in_copy,
        r"copied: TOPIC_RECORD \d+",
        AFTER_RERUN,
        r"Open the gate before restarts of kind zk_migration\]",
    ),
)
_IN_HYBRID = (
    Drill(
        "a controller started without the flag",
        "hybrid",
        faults.flagless_controller,
        NO_FLAG,
        STOPPED,
        r"    copied: TOPIC_RECORD",
    ),
    Drill(
        "ZooKeeper without a quorum, before a broker restarts",
        "hybrid",
        faults.zookeeper_lost,
        NO_ZOOKEEPER,
        STOPPED,
        r"Plan restarts of kind kraft\]",
    ),
    # The fault of a drill ends where the next drill's begins: the second one ends its run.
    Drill(
        "the control node sleeps before a restart",
        "hybrid",
        faults.control_node_sleeps,
        r"the gate token is \d+ s old by this host's clock[^\n]*",
        AFTER_RERUN,
        KRAFT_ROLL + r"Wait until the batch may be stopped\]",
    ),
    Drill(
        "a broker does not answer while another one is down",
        "hybrid",
        faults.unresponsive_while_another_is_down,
        r"is not in the cluster's metadata|does not answer: [^\n]*",
        AFTER_RERUN,
        KRAFT_ROLL + NEW_FILE,
    ),
    killed("broker_roll kraft", "hybrid", KRAFT_ROLL + NEW_FILE),
)
_IN_DUAL_WRITE = (
    Drill(
        "the active controller killed",
        "dual_write",
        faults.active_controller_killed,
        r"    c\d is down, or an earlier run left its restart half done\n.*    c\d is up",
        AFTER_RERUN,
    ),
    Drill(
        "ZooKeeper without a quorum",
        "dual_write",
        faults.zookeeper_lost,
        NO_ZOOKEEPER,
        STOPPED,
    ),
    Drill(
        "a broker has a -stray directory",
        "dual_write",
        faults.stray_directory,
        r"-stray[^\n]*",
        STOPPED,
    ),
    Drill(
        "the disk of a controller full",
        "dual_write",
        faults.controller_disk_full,
        r"controllers down: c\d|has not caught up with the quorum's leader|c\d does not answer|did not come up in",
        STOPPED,
    ),
    Drill(
        "a controller started without the flag",
        "dual_write",
        faults.flagless_controller,
        r"the phase is finalizing|runs in mode controller_final[^\n]*",
        STOPPED,
    ),
)
MIGRATION = (
    Stage("migrate", "dual_write", (*_IN_ZK, *_IN_CONTROLLERS, *_IN_HYBRID_ROLL, *_IN_HYBRID, *_IN_DUAL_WRITE)),
    Stage(
        "migrate",
        "finalized",
        (killed("finalize", "finalizing", r"    c\d gets its new properties file\n"),),
        token=True,
    ),
    Stage(
        "migrate",
        "finalized",
        (
            Drill(
                "the flag left on after finalization",
                "finalized",
                faults.flag_left_on,
                r"phase finalizing; next: finish finalizing the controllers",
                AFTER_RERUN,
            ),
        ),
        token=True,
    ),
)
ROLLBACK = (
    Stage(
        "migrate",
        "dual_write",
        (
            Drill(
                "a broker's host rebooted before its restart",
                "brokers_joining",
                faults.last_host_rebooted,
                BACK_SOON,
                AFTER_RERUN,
                HYBRID_ROLL + UP,
            ),
            Drill(
                "a broker's host rebooted just after its restart",
                "brokers_joining",
                faults.rebooted,
                BACK_SOON,
                AFTER_RERUN,
                HYBRID_ROLL + UP,
            ),
            Drill(
                "the leading controller cut off from the brokers",
                "hybrid",
                faults.leader_cut_off,
                r"    b\d is up \(",
                AFTER_RERUN,
                KRAFT_ROLL + NEW_FILE,
            ),
            Drill(
                "SSH lost in the middle of a restart",
                "hybrid",
                faults.ssh_lost,
                UNREACHED,
                AFTER_RERUN,
                KRAFT_ROLL + STOPS,
            ),
            Drill(
                "a broker recovers its logs slowly",
                "hybrid",
                faults.slow_recovery,
                r"recovering log directory [^\n]*",
                AFTER_RERUN,
                KRAFT_ROLL + STOPS,
            ),
        ),
    ),
    Stage(
        "rollback",
        "zk",
        (
            Drill(
                "a controller's host rebooted, brokers back in migration mode",
                "hybrid",
                faults.controller_rebooted,
                rf"controllers down: c1|c1 does not answer[^\n]*|{UNREACHED}",
                STOPPED,
                r"Wait until the brokers in migration mode are healthy\]",
            ),
            killed("rollback", "reverting", r"Stop and mask the controller\]"),
            Drill(
                "control process killed; the next run has another cluster's ZooKeeper",
                "reverting",
                faults.foreign_zookeeper,
                r"the cluster ids differ: [^\n]*",
                AFTER_RERUN,
                r"Stop and mask the controller\]",
                kills_run=True,
            ),
            Drill(
                "a controller's host rebooted, the controllers masked",
                "reverting",
                faults.masked_controller_rebooted,
                rf": Restore ZooKeeper's controller\]|{UNREACHED}",
                AFTER_RERUN,
                r"Read partition epochs from the longest metadata log\]",
            ),
            Drill(
                "a controller's host rebooted, ZooKeeper's controller restored",
                "reverting",
                faults.masked_controller_rebooted,
                rf"    b\d is up \(|{UNREACHED}",
                AFTER_RERUN,
                STOPS,
            ),
            Drill(
                "a controller's host rebooted, brokers in plain mode",
                "reverting",
                faults.masked_controller_rebooted,
                rf"Remove every trace of the migration from the controller\]|{UNREACHED}",
                AFTER_RERUN,
                r"Wait until every broker runs in plain ZooKeeper mode\]",
            ),
        ),
        extra={"quorumshift_rollback_to": "zk"},
    ),
)
SCENARIOS = {"migration": MIGRATION, "migration and rollback": ROLLBACK}
