"""One measurement across emulated paths: what is measured, where, and when the network cannot be believed."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from network import Network, next_line

# Mean lateness of the emulator above which a measurement is of the machine (docs/emulator.md, Accuracy).
LATE_US = 1000


@dataclass
class Job:
    """One case for one contender; `measure` gets the network and returns numbers by name."""

    case: str
    contender: str
    links: dict[str, str]
    measure: Callable[[Network], dict]
    delay_s: float = 0
    # It takes a device away, so the emulator's system refuses packets for it.
    unplugs: bool = False


@dataclass
class Programs:
    restp: str
    end: str

    def at(self, task: str, contender: list[str]) -> tuple[list[str], list[str]]:
        """Program and options of both ends."""
        transport, *options = contender
        return [self.end, transport, task], options


def sample(programs: Programs, label: str, job: Job, round_: int, tries: int = 1) -> dict:
    """Does a job on a network of its own, and again where the network was not the one described.

    With `failure` where the job failed or no try counts.
    """
    common = {"case": job.case, "contender": job.contender, "round": round_}
    for _ in range(tries):
        try:
            with Network(programs.restp, label, job.links, round_) as network:
                values = job.measure(network)
                directions = [path[way] for path in network.counters() for way in ("forward", "reverse")]
        except (RuntimeError, OSError, ValueError, KeyError, ZeroDivisionError) as error:
            return {**common, "failure": f"{type(error).__name__}: {error}"}
        lateness = max(direction["mean_lateness_us"] for direction in directions)
        dropped = sum(direction["dropped_system"] for direction in directions)
        if lateness <= LATE_US and (dropped == 0 or job.unplugs):
            return {**common, **values, "lateness_us": round(lateness, 1)}
    return {
        **common,
        "failure": f"refused: the emulator was {lateness:.0f} µs late and its system dropped {dropped} packets",
    }


def arrivals(server, seconds: float) -> dict:
    """The log of a bulk receiver, with every silence before it."""
    deadline = time.monotonic() + seconds
    silences = []
    while True:
        line = next_line(server, max(deadline - time.monotonic(), 0.1))
        if "tenths" in line:
            return {**line, "silences": silences}
        silences.append([moment / 1e9 for moment in line["silence"]])
