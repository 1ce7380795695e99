"""What is measured over two emulated paths: every case is a function of a network's ends that returns plain numbers.

Two jobs run at the same time, which two cores carry; contenders of a case follow each other, so that the load of the
machine meets them alike.
"""

import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from job import Job, Programs, arrivals, sample
from network import PORT, Network, address, next_line, repeated

LANES, TRIES = 2, 3
BULK_S = 10
BEFORE_FAILURE_S, AFTER_FAILURE_S = 5, 5
# A receiver that has no log by then has lost its connection: after the failure, and in general.
GIVEN_UP_S, WAIT_S = 10, 20
# Silences that begin this long after a failure or earlier belong to it; later ones are the repair of ordinary losses.
REACTION_S = 1
# Packets that a path must have carried, or the run was one of a single path.
SEEN_PACKETS = 50
# What the receiver's log resolves.
GAP_S = 0.01

GOOD = 'rate = "50 Mbit/s"\ndelay = "10 ms"\nqueue = { drop_tail = "bdp" }'
FAR = 'rate = "50 Mbit/s"\ndelay = "20 ms"\nqueue = { drop_tail = "bdp" }'
SLOW = 'rate = "5 Mbit/s"\ndelay = "100 ms"\nqueue = { drop_tail = "bdp" }'
LOSS = 'loss = { rate = 0.01, direction = "both" }'
LINKS = {
    "equal": {"A": GOOD, "B": FAR},
    "unequal": {"A": GOOD, "B": SLOW},
    "lossy": {"A": f"{GOOD}\n{LOSS}", "B": FAR},
}
A, B = 0, 1

RESTP = "restp multipath"
MESH = "restp multipath, mesh"
# Transport and options of both ends, by the name in the tables.
CONTENDERS = {
    RESTP: ["restp", "--set", "preset=multipath", "--pairs"],
    MESH: ["restp", "--set", "preset=multipath"],
    "mptcp cubic": ["mptcp"],
    "mptcp bbr": ["mptcp", "--congestion", "bbr"],
    "noq cubic": ["noq"],
    "noq bbr3": ["noq", "--congestion", "bbr3"],
}
# The same over path A alone; MPTCP's own best single path is TCP, and one path has no mesh.
ALONE = CONTENDERS | {"mptcp cubic": ["tcp"], "mptcp bbr": ["tcp", "--congestion", "bbr"]}
del ALONE[MESH]
# Per namespace, client first: what makes the kernel use both paths.
LIMITS = ["mptcp", "limits", "set", "subflow", "2", "add_addr_accepted", "2"]
SIGNAL = ["mptcp", "endpoint", "add", address(1, B), "dev", "tB", "signal"]


def jobs(programs: Programs, cases: set[str]) -> list[Job]:
    """All jobs of a round, those of `cases`."""
    every = []
    for case, links in LINKS.items():
        every += [Job(case, name, links, goodput(programs, ends, [A, B])) for name, ends in CONTENDERS.items()]
    unequal = LINKS["unequal"]
    every += [Job("unequal alone", name, unequal, goodput(programs, ends, [A])) for name, ends in ALONE.items()]
    for name, ends in CONTENDERS.items():
        equal = LINKS["equal"]
        every.append(Job("cut", name, equal, failure(programs, ends, cut)))
        every.append(Job("unplugged", name, equal, failure(programs, ends, unplug), unplugs=True))
        every.append(Job("start", name, equal, start(programs, ends)))
    return [job for job in every if job.case.split()[0] in cases]


def measure(programs: Programs, cases: set[str], round_: int) -> list[dict]:
    """A round of `cases`; a sample for each job."""
    chosen = jobs(programs, cases)

    def numbered(number: int) -> dict:
        return sample(programs, str(number), chosen[number], round_, TRIES)

    with ThreadPoolExecutor(LANES) as threads:
        return list(threads.map(numbered, range(len(chosen))))


class Ends:
    """A server, and clients that find it over some of the paths."""

    def __init__(self, network: Network, programs: Programs, task: str, contender: list[str], *options: str):
        self.network = network
        self.transport = contender[0]
        self.program, self.options = programs.at(task, contender)
        # ResTP listens where it is told; the others everywhere: to one address MPTCP's listener refuses every join.
        listen = self.servers([A, B]) if self.transport == "restp" else [f"0.0.0.0:{PORT}"]
        self.server, self.found = network.listen(self.program, listen, *options, *self.options)

    def servers(self, paths: list[int]) -> list[str]:
        return [f"{address(1, path)}:{PORT}" for path in paths]

    def client(self, paths: list[int]) -> subprocess.Popen:
        to = self.servers(paths)
        # The kernel is told of the second path by the server; the others are told by their users.
        where = repeated("--to", to[:1] if self.transport == "mptcp" else to)
        if self.transport == "restp":
            where += repeated("--bind", ["t" + "AB"[path] for path in paths])
        if self.transport == "mptcp" and len(paths) > 1:
            self.network.ip(0, *LIMITS)
            self.network.ip(1, *LIMITS)
            self.network.ip(1, *SIGNAL)
        return self.network.client(self.program, *where, *self.found, *self.options)


def goodput(programs: Programs, contender: list[str], paths: list[int]):
    """Bytes that the receiving application got within BULK_S from the first one, in all and in the worst second."""

    def run(network: Network) -> dict:
        ends = Ends(network, programs, "bulk", contender, "--seconds", str(BULK_S))
        ends.client(paths)
        tenths = arrivals(ends.server, BULK_S + WAIT_S)["tenths"]
        seconds = [round(sum(tenths[at : at + 10]) * 8 / 1e6, 2) for at in range(0, BULK_S * 10, 10)]
        return {
            "mbps": round(sum(tenths) * 8 / BULK_S / 1e6, 3),
            "worst_mbps": min(seconds[1:]),
            "seconds": seconds,
            "packets": used(network, paths),
        }

    return run


def failure(programs: Programs, contender: list[str], fail: Callable[[Network], float]):
    """Path A fails in mid-transfer: how long the receiving application gets nothing, and its rate afterwards."""

    def run(network: Network) -> dict:
        length = BEFORE_FAILURE_S + AFTER_FAILURE_S
        ends = Ends(network, programs, "bulk", contender, "--seconds", str(length))
        ends.client([A, B])
        time.sleep(BEFORE_FAILURE_S)
        used(network, [A, B])
        failed = fail(network)
        try:
            log = arrivals(ends.server, GIVEN_UP_S)
        except RuntimeError:
            return {"gap_s": GIVEN_UP_S, "after_mbps": 0.0}
        gaps = [(round(since - failed, 3), round(until - failed, 3)) for since, until in log["silences"]]
        near = [until - since for since, until in gaps if until > 0 and since < REACTION_S]
        after = log["tenths"][int((failed + REACTION_S - log["first"] / 1e9) * 10) :]
        return {
            "gap_s": round(max(near, default=GAP_S), 3),
            "gaps": [gap for gap in gaps if gap[1] > 0],
            "after_mbps": round(sum(after) * 8 / (len(after) / 10) / 1e6, 2),
        }

    return run


def cut(network: Network) -> float:
    """Nobody is told."""
    return network.tell("down A")


def unplug(network: Network) -> float:
    """The client's system knows at once."""
    at = time.monotonic()
    network.ip(0, "link", "set", "tA", "down")
    return at


def start(programs: Programs, contender: list[str]):
    """How long until the first byte of a response over path B alone, and over both while A is dead."""

    def run(network: Network) -> dict:
        ends = Ends(network, programs, "answer", contender)
        alone = next_line(ends.client([B]), WAIT_S)["first_visit_ms"]
        network.tell("down A")
        try:
            both = next_line(ends.client([A, B]), GIVEN_UP_S)["first_visit_ms"]
        except RuntimeError:
            both = GIVEN_UP_S * 1000
        return {"alone_ms": alone, "ms": both, "extra_ms": round(both - alone, 3)}

    return run


def used(network: Network, paths: list[int]) -> list[int]:
    """Data packets that each path has carried."""
    packets = [path["forward"]["offered_packets"] for path in network.counters()]
    if min(packets[path] for path in paths) < SEEN_PACKETS:
        raise RuntimeError(f"refused: only {packets} packets went over paths A and B, so not every path was used")
    return packets
