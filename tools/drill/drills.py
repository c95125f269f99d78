# Copyright: (c) 2026, Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which drills there are, in the order in which the two stretches come to them."""

from __future__ import annotations

from tools.drill import faults
from tools.drill.stretch import Leg
from tools.drill.trials import AFTER_RERUN, STOPPED, Drill
from tools.e2e.faults import UNREACHED

TAKEN_OVER = r"takes over the run lock of run \S+"
HYBRID_ROLL, KRAFT_ROLL = r"Plan the roll to zk_migration\].*", r"Plan the roll to kraft\].*"
NEW_FILE, UP, STOPS = r"    (b\d) gets its new properties file\n", r"    (b\d) is up \(", r"    (b\d) stops\n"
# a host that is back within seconds may be missed by nobody
BACK_SOON = rf"does not answer: [^\n]*|{UNREACHED}|is not in the cluster's metadata|under-replicated|    b\d is up \("
NO_FLAG = r"does not answer as a controller in migration mode|without the migration flag"
NO_ZOOKEEPER = r"ZooKeeper could not be read[^\n]*|no ZooKeeper session[^\n]*|its ensemble has no quorum"


def killed(role: str, phase: str, at: str) -> Drill:
    """The control process gets SIGKILL while it is in a role."""
    return Drill(f"control process killed: {role}", phase, faults.none, TAKEN_OVER, AFTER_RERUN, at, crash_tests=True)


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
        "a topic's deletion pends on a dead broker",
        "zk",
        faults.pending_deletion,
        rf"the deletion of {faults.DELETED} does not end",
        STOPPED,
    ),
    Drill(
        "a second control node begins a run",
        "zk",
        faults.second_control_node,
        r"locked by run [^\n]*(That run is at work|This host cannot see whether)",
        AFTER_RERUN,
        r"Gate before_controllers\]",
    ),
    killed("prepare", "zk", r"Read it back and compare"),
)
_IN_CONTROLLERS = (
    killed("controllers", "controllers_starting", r"    c\d starts\n.*    c\d starts\n"),
    Drill(
        "a controller started without the flag",
        "controllers_ready",
        faults.flagless_controller,
        NO_FLAG,
        STOPPED,
        r"Open the way to zk_migration\]",
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
        "the active controller killed while it copies",
        "copying",
        faults.active_controller_killed_in_copy,
        r"copied: TOPIC_RECORD \d+",
        AFTER_RERUN,
        r"Open the way to zk_migration\]",
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
        r"Plan the roll to kraft\]",
    ),
    killed("broker_roll kraft", "hybrid", KRAFT_ROLL + NEW_FILE),
)
_IN_DUAL_WRITE = (
    Drill(
        "the active controller killed",
        "dual_write",
        faults.active_controller_killed,
        r"controllers down: c\d",
        STOPPED,
    ),
    Drill(
        "ZooKeeper without a quorum",
        "dual_write",
        faults.zookeeper_lost,
        NO_ZOOKEEPER,
        STOPPED,
    ),
    Drill(
        "the disk of a controller full",
        "dual_write",
        faults.controller_disk_full,
        r"controllers down: c\d|has not caught up with the quorum's leader|controller c\d does not answer[^\n]*",
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
FORWARD = (
    Leg("migrate", "dual_write", (*_IN_ZK, *_IN_CONTROLLERS, *_IN_HYBRID_ROLL, *_IN_HYBRID, *_IN_DUAL_WRITE)),
    Leg(
        "migrate",
        "finalized",
        (killed("finalize", "finalizing", r"    c\d gets its new properties file\n"),),
        token=True,
    ),
    Leg(
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
BACK = (
    Leg(
        "migrate",
        "dual_write",
        (
            Drill(
                "a broker's host rebooted before its turn",
                "brokers_joining",
                faults.last_one_rebooted,
                BACK_SOON,
                AFTER_RERUN,
                HYBRID_ROLL + UP,
            ),
            Drill(
                "a broker's host rebooted just after its turn",
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
        ),
    ),
    Leg(
        "rollback",
        "zk",
        (
            Drill(
                "a controller's host rebooted, brokers back in migration mode",
                "hybrid",
                faults.controller_rebooted,
                rf"controllers down: c1|c1 does not answer[^\n]*|{UNREACHED}",
                STOPPED,
                r"See the roll settled\]",
            ),
            killed("rollback", "reverting", r"Stop the controller and keep it down\]"),
            Drill(
                "a controller's host rebooted, the controllers masked",
                "reverting",
                faults.masked_controller_rebooted,
                rf"Hand the cluster back to ZooKeeper's controller\]|{UNREACHED}",
                AFTER_RERUN,
                r"Read how often partitions have changed",
            ),
            Drill(
                "a controller's host rebooted, handed back to ZooKeeper",
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
                rf"Leave nothing of the migration on the controller\]|{UNREACHED}",
                AFTER_RERUN,
                r"See every broker in plain ZooKeeper mode\]",
            ),
        ),
        extra={"quorumshift_rollback_to": "zk"},
    ),
)
STRETCHES = {"forward": FORWARD, "there and back": BACK}
