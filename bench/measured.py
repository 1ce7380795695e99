"""What a piece of work costs: seconds that pass, and seconds of processors, of this process and its children."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psutil


@dataclass
class Cost:
    """Of one piece of work, and what it gave."""

    wall: float
    cpu: float
    frame: Any


def measured(work: Callable[[], Any]) -> Cost:
    """Children that end meanwhile are counted by what they had used before the end of it was seen."""
    started, before = time.perf_counter(), processors()
    frame = work()
    return Cost(time.perf_counter() - started, processors() - before, frame)


def processors() -> float:
    this = psutil.Process()
    times = [process.cpu_times() for process in [this, *this.children(recursive=True)]]
    return sum(one.user + one.system for one in times)
