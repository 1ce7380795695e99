"""Drawings of stations that share a channel: where they stand, and who transmits when."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from restp import _restp, traces
from restp.figures import Figure, figure

#: More stations than this have no names in a drawing of places, and no line each in one of time.
_MOST_NAMES = 40
#: Seconds that a drawing of time shows: some ten exchanges of 802.11b at 2 Mbit/s, so that single frames are seen.
_SHOWN = 0.08
#: How frames are drawn: what they are for, and what came of them.
_KINDS = {"rts": "#7a9cc6", "cts": "#4f7d4f", "data": "#1f4e8c", "ack": "#8fbc8f"}
_FAILED = {"collision": "#c0392b", "contention": "#d68910", "error": "#8e44ad", "outage": "#7f8c8d"}


@dataclass(frozen=True)
class Point:
    """One run of one point of a scenario."""

    scenario: _restp.Scenario
    point: int
    seed: int


def drawings(at: Point) -> list[Figure]:
    """Where the stations of each medium stand and whom they reach, and some of what they send."""
    media = json.loads(at.scenario.media(at.point))
    if not media:
        return []
    figures = [
        figure(partial(topology, medium), (9.0, 3.6), _places_caption(medium)) for medium in media
    ]
    begin = _begin(at)
    frames = _frames(at, begin)
    for medium in media:
        own = frames[frames["medium"] == medium["name"]]
        if len(own):
            shown = partial(timeline, medium, own, begin)
            figures.append(figure(shown, (9.0, _height(medium)), _time_caption(medium, at, own)))
    return figures


def topology(medium: dict[str, Any], ax: Any) -> Any:
    """Stations where they stand at the beginning, lines between those who can receive each other, ways of those who
    move; and around one of them how far it is received, sensed, and spoils other frames."""
    places = {station["node"]: station["at_m"] for station in medium["stations"]}
    for one, other in medium["links"]:
        (x, y), (u, v) = places[one], places[other]
        ax.plot([x, u], [y, v], color="#9aa5b1", linewidth=1, zorder=1)
    for station in medium["stations"]:
        way = [station["at_m"], *([x, y] for _, x, y in station["waypoints"])]
        if len(way) > 1:
            ax.plot(*zip(*way, strict=True), color="#b9770e", linestyle=":", marker=">", markersize=3, zorder=1)
    names, spots = list(places), list(places.values())
    ax.scatter(*zip(*spots, strict=True), s=18, color="#1f4e8c", zorder=3)
    if len(names) <= _MOST_NAMES:
        for name, (x, y) in places.items():
            ax.annotate(name, (x, y), textcoords="offset points", xytext=(0, 6), ha="center", fontsize=7)
    _rings(medium, _middle(spots), ax)
    ax.set_aspect("equal", adjustable="datalim")
    ax.set_xlabel("metres to the east")
    ax.set_ylabel("to the north")
    return ax


def timeline(medium: dict[str, Any], frames: Any, begin: float, ax: Any) -> Any:
    """A line for each station, and on it the frames that it sends; those that led to nothing have the colour of the
    reason."""
    nodes = [station["node"] for station in medium["stations"]]
    line = {node: index for index, node in enumerate(nodes)}
    shown: set[str] = set()
    for kind, outcome, rows in _groups(frames):
        failed = outcome != "received"
        colour = _FAILED[outcome] if failed else _KINDS[kind]
        label = outcome if failed else kind
        spans = [((row.at_s - begin) * 1e3, (row.until_s - row.at_s) * 1e3, line[row.station]) for row in rows]
        ax.barh(
            [y for _, _, y in spans],
            [width for _, width, _ in spans],
            left=[x for x, _, _ in spans],
            height=0.8 if kind == "data" else 0.5,
            color=colour,
            hatch="////" if failed else None,
            edgecolor="white" if failed else "none",
            linewidth=0,
            label=None if label in shown else label,
        )
        shown.add(label)
    ax.set_yticks(range(len(nodes)), nodes if len(nodes) <= _MOST_NAMES else [""] * len(nodes), fontsize=7)
    ax.set_ylim(len(nodes) - 0.4, -0.6)
    ax.set_xlim(0, _SHOWN * 1e3)
    ax.set_xlabel(f"ms after {begin:g} s")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=len(shown), fontsize=8, frameon=False)
    return ax


def _rings(medium: dict[str, Any], around: list[float], ax: Any) -> None:
    from matplotlib.patches import Circle

    rings = [("received", medium["decode_m"], "-"), ("sensed", medium["sense_m"], "--")]
    if medium["capture"] is None:
        rings.append(("spoils others", medium["interfere_m"], ":"))
    for name, metres, style in rings:
        x, y = around
        ring = Circle((x, y), metres, fill=False, linestyle=style, color="#c0392b", linewidth=0.8, zorder=2)
        ax.add_patch(ring)
        ax.annotate(
            f"{name}, {metres:g} m", (x, y - metres), ha="center", va="top", fontsize=7, color="#c0392b", zorder=4
        )
    # A circle does not widen the view by itself.
    reach = max(metres for _, metres, _ in rings)
    x, y = around
    ax.plot([x - reach, x + reach, x, x], [y, y, y - reach, y + reach], alpha=0)


def _middle(spots: list[list[float]]) -> list[float]:
    """The station nearest to the middle of all."""
    x, y = (sum(values) / len(spots) for values in zip(*spots, strict=True))
    return min(spots, key=lambda spot: (spot[0] - x) ** 2 + (spot[1] - y) ** 2)


def _groups(frames: Any) -> Iterator[tuple[str, str, list[Any]]]:
    for outcome in ("received", *_FAILED):
        for kind in _KINDS:
            rows = frames[(frames["kind"] == kind) & (frames["outcome"] == outcome)]
            if len(rows):
                yield kind, outcome, list(rows.itertuples())


def _begin(at: Point) -> float:
    """Where the measurement begins, when flows have settled; in a run that measures all, after a tenth of it."""
    begin, end = at.scenario.measured(at.point)
    return begin if begin > 0 else end / 10


def _frames(at: Point, begin: float) -> Any:
    window = (f"{begin} s", f"{begin + _SHOWN} s")
    return traces.of(at.scenario, at.point, at.seed, every="1 h", sequence=False, air=window).air


def _height(medium: dict[str, Any]) -> float:
    return min(1.4 + 0.22 * len(medium["stations"]), 9.0)


def _places_caption(medium: dict[str, Any]) -> str:
    return f"medium {medium['name']}: stations, links, and how far one of them reaches"


def _time_caption(medium: dict[str, Any], at: Point, frames: Any) -> str:
    failed = int((frames["outcome"] != "received").sum())
    return (
        f"medium {medium['name']}: who transmits when (point {at.point}, seed {at.seed}); "
        f"{failed} of {len(frames)} frames led to nothing"
    )
