"""One scenario, run here."""

from typing import Any

from restp import frames, results
from restp.frames import Frame
from restp.results import Table
from restp.scenarios import ScenarioLike, with_changes
from restp.store import in_order


def run(
    scenario: ScenarioLike,
    *,
    table: Table = "flows",
    frame: Frame = "pandas",
    seed: int | None = None,
    runs: int | None = None,
    threads: int | None = None,
    **changes: Any,
) -> Any:
    """Run every point of a scenario with every seed, on all cores, and return a frame with a row per run and flow.

    ``scenario`` is the path of a scenario file, or its text. ``changes`` are keys of it with ``__`` or, in a mapping,
    dots between their parts: ``link__bottleneck__loss__rate=0.02`` or ``**{"link.bottleneck.loss.rate": 0.02}``. A list
    of values is an axis. ``seed`` is that of the first run and ``runs`` their number per point, in the place of the
    scenario's. ``table`` chooses what rows are: flows, groups, hosts, links, paths, bins, outages, timeouts or runs.

    Raises ``ScenarioError`` for what does not exist or cannot be, and ``RunError`` when a simulation cannot go on.
    """
    frames.check(frame)
    spec = with_changes(scenario, changes)
    built = spec.read()
    lines: list[bytes] = []
    built.run(built.jobs(seed, runs), threads, lines.append)
    nested = results.located(results.parse(lines), built.id, results.axes(spec.coordinates()))
    return frames.frame(results.flat(in_order([nested]), table), frame)
