"""Which figures say most about a frame of results, drawn for a page."""

import base64
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd

from restp import plot

#: What may be drawn, in this order, where it differs between runs.
_MEASURES = ("goodput_bps", "completion_s", "latency_mean_ms", "on_time_share", "lost_messages", "plt_mean_s")
#: More lines than this in one figure cannot be told apart.
_MOST_LINES = 8
_MOST_FIGURES = 12


@dataclass(frozen=True)
class Figure:
    """A drawing: SVG in base 64, and what it shows."""

    svg: str
    caption: str


def figures(flows: pd.DataFrame, axes: Sequence[str]) -> list[Figure]:
    """Measures against each axis, distributions over the runs, fairness: what there is to see in these results."""
    varying = [axis for axis in axes if flows[axis].nunique(dropna=False) > 1]
    found: list[Figure] = []
    for draw, caption in _ideas(flows, varying):
        if len(found) == _MOST_FIGURES:
            break
        found.append(Figure(drawn(draw), caption))
    return found


def _ideas(flows: pd.DataFrame, varying: list[str]) -> Iterator[tuple[Any, str]]:
    """What to draw, into axes that are given, with its caption."""
    measures = [name for name in _MEASURES if flows[name].nunique() > 1]
    numeric = [axis for axis in varying if pd.api.types.is_numeric_dtype(flows[axis])]
    for x in numeric or varying[:1]:
        by = _lines(flows, [axis for axis in varying if axis != x])
        for name in measures:
            yield partial(plot.line, flows, x, name, by), _caption(name, f"against {x}", by)
        if flows["flow"].nunique() > 1:
            own = [axis for axis in by or [] if axis != "flow"]
            yield partial(plot.fairness, flows, x, own), _caption("fairness (Jain)", f"against {x}", own)
    if flows["seed"].nunique() >= 5:
        by = _lines(flows, varying)
        for name in measures:
            yield partial(plot.cdf, flows, name, by), _caption(name, "over the runs", by)


def _lines(flows: pd.DataFrame, axes: list[str]) -> list[str] | None:
    """The axes whose values lines can stand for, as long as these are few; transports say most, then flows."""
    ranked = sorted(axes, key=lambda axis: (not axis.endswith(".transport"), not axis.endswith(".label")))
    wanted = [*ranked[:1], *(["flow"] if flows["flow"].nunique() > 1 else []), *ranked[1:]]
    chosen: list[str] = []
    for axis in wanted:
        if flows.groupby([*chosen, axis], dropna=False).ngroups <= _MOST_LINES:
            chosen.append(axis)
    return chosen or None


def _caption(what: str, how: str, by: list[str] | None) -> str:
    return f"{plot.label(what)} {how}" + (f", by {', '.join(by)}" if by else "")


def drawn(draw: Any, inches: tuple[float, float] = (6.4, 4)) -> str:
    """What ``draw`` draws into the axes it is given, as SVG in base 64."""
    # Not pyplot: it keeps figures in a global list, and has a backend of its own.
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure as Sheet

    sheet = Sheet(figsize=inches, layout="constrained")
    FigureCanvasSVG(sheet)
    draw(ax=sheet.subplots())
    out = io.BytesIO()
    # One result, one page: nothing of the hour in it.
    sheet.savefig(out, format="svg", metadata={"Date": None})
    return base64.b64encode(out.getvalue()).decode()
