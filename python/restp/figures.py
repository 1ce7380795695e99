"""Which figures answer what a sweep asks, drawn for a page in light and dark.

A sweep asks how each measure depends on what it varies. There is one figure for each measure: the axis with the most
numbers is drawn from left to right, transports (or labels, or flows) are lines, and one further axis gives panels.
"""

import base64
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from restp import plot

#: What may be drawn, in this order, where it differs between runs.
_MEASURES = ("goodput_bps", "completion_s", "latency_mean_ms", "on_time_share", "lost_messages", "plt_mean_s")
#: More lines than this in one figure cannot be told apart, and more panels not be read.
_MOST_LINES = 8
_MOST_PANELS = 4
_MOST_FIGURES = 8
#: Colours of text and lines on a dark page.
_DARK: dict[Any, Any] = {
    "text.color": "#e6e8eb",
    "axes.labelcolor": "#e6e8eb",
    "axes.edgecolor": "#8b949e",
    "xtick.color": "#c9d1d9",
    "ytick.color": "#c9d1d9",
    "grid.color": "#8b949e",
    "legend.facecolor": "#1f242b",
    "legend.edgecolor": "#3a424c",
}


@dataclass(frozen=True)
class Figure:
    """A drawing: SVG in base 64, for a light page and for a dark one, and the question that it answers."""

    svg: str
    dark: str
    caption: str


@dataclass(frozen=True)
class _Question:
    """One measure: against an axis, in lines, in panels; over the runs where there is no axis."""

    measure: str
    x: str | None
    by: list[str] | None
    panels: str | None

    def caption(self) -> str:
        what = "Fairness (Jain's index)" if self.measure == _FAIRNESS else plot.label(self.measure)
        what = what[:1].upper() + what[1:]
        how = f" against {plot.axis(self.x)}" if self.x else ", the share of runs with at most so much"
        lines = f", by {' and '.join(plot.axis(name) for name in self.by)}" if self.by else ""
        panels = f", for each {plot.axis(self.panels)}" if self.panels else ""
        return f"{what}{how}{lines}{panels}"


_FAIRNESS = "fairness"


def figures(flows: pd.DataFrame, axes: Sequence[str]) -> list[Figure]:
    """One figure for each question that these results answer."""
    varying = [axis for axis in axes if flows[axis].nunique(dropna=False) > 1]
    asked = list(_questions(flows, varying))[:_MOST_FIGURES]
    return [_answer(flows, one) for one in asked]


def _questions(flows: pd.DataFrame, varying: list[str]) -> Iterator[_Question]:
    measures = [name for name in _MEASURES if flows[name].nunique() > 1]
    x = _across(flows, varying)
    rest = [axis for axis in varying if axis != x]
    by = _lines(flows, rest)
    panels = next((axis for axis in rest if _may_be_panels(flows, axis, by or [])), None)
    if x is None and flows["seed"].nunique() < 5:
        return
    for name in measures:
        yield _Question(name, x, by, panels)
    if x is not None and flows["flow"].nunique() > 1:
        yield _Question(_FAIRNESS, x, [axis for axis in by or [] if axis != "flow"] or None, panels)


def _may_be_panels(flows: pd.DataFrame, axis: str, by: list[str]) -> bool:
    """Few enough values, and more than one of them for some line: what belongs to a line is no panel of its own."""
    if axis in by or flows[axis].nunique(dropna=False) > _MOST_PANELS:
        return False
    return not by or bool((flows.groupby(by, dropna=False)[axis].nunique(dropna=False) > 1).any())


def _across(flows: pd.DataFrame, varying: list[str]) -> str | None:
    """The axis from left to right: that of most numbers, or else the first that is no choice of who competes."""
    numeric = [axis for axis in varying if pd.api.types.is_numeric_dtype(flows[axis])]
    if numeric:
        return max(numeric, key=lambda axis: flows[axis].nunique(dropna=False))
    others = [axis for axis in varying if not axis.endswith((".transport", ".label"))]
    return next(iter(others or varying), None) if len(varying) > 1 or others else None


def _lines(flows: pd.DataFrame, axes: list[str]) -> list[str] | None:
    """The axes whose values lines can stand for, as long as these are few; labels say most, then transports, flows."""
    ranked = sorted(axes, key=lambda axis: (not axis.endswith(".label"), not axis.endswith(".transport")))
    wanted = [*ranked[:1], *(["flow"] if flows["flow"].nunique() > 1 else []), *ranked[1:]]
    chosen: list[str] = []
    for axis in wanted:
        lines = flows.groupby([*chosen, axis], dropna=False).ngroups
        # What says the same as the lines before it adds nothing to their names.
        is_new = lines > (flows.groupby(chosen, dropna=False).ngroups if chosen else 1)
        if is_new and lines <= _MOST_LINES:
            chosen.append(axis)
    return chosen or None


def figure(draw: Any, inches: tuple[float, float], caption: str) -> Figure:
    """What ``draw`` draws into the axes it is given."""

    def fill(sheet: Any) -> None:
        draw(ax=sheet.subplots())

    return Figure(_sheet(fill, inches, False), _sheet(fill, inches, True), caption)


def _sheet(fill: Any, inches: tuple[float, float], dark: bool) -> str:
    """What ``fill`` draws on a sheet, as SVG in base 64."""
    # Not pyplot: it keeps figures in a global list, and has a backend of its own.
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure as Sheet

    out = io.BytesIO()
    # One result, one page: nothing of the hour in it, and no names drawn at random.
    style: dict[Any, Any] = {"svg.hashsalt": "restp", **(_DARK if dark else {})}
    with matplotlib.rc_context(style):
        sheet = Sheet(figsize=inches, layout="constrained")
        FigureCanvasSVG(sheet)
        fill(sheet)
        sheet.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    return base64.b64encode(out.getvalue()).decode()


def _answer(flows: pd.DataFrame, asked: _Question) -> Figure:
    """One question in as many panels as its axis of panels has values."""
    values = list(dict.fromkeys(flows[asked.panels])) if asked.panels else [None]

    def fill(sheet: Any) -> None:
        panels = sheet.subplots(1, len(values), sharey=True, squeeze=False)[0]
        for ax, value in zip(panels, values, strict=True):
            rows = flows if asked.panels is None else flows[_is(flows[asked.panels], value)]
            _draw(rows, asked, ax)
            if asked.x is not None:
                ax.set_xlabel(plot.axis(asked.x))
                _read(ax, asked.x, rows)
            if asked.panels is not None:
                ax.set_title(f"{plot.axis(asked.panels)}: {plot.value(asked.panels, value)}", fontsize="medium")
            if ax is not panels[0]:
                ax.set_ylabel("")
                if ax.get_legend():
                    ax.get_legend().remove()

    inches = (6.4 if len(values) == 1 else 3.6 * len(values), 4.0)
    return Figure(_sheet(fill, inches, False), _sheet(fill, inches, True), asked.caption())


def _draw(rows: pd.DataFrame, asked: _Question, ax: Any) -> None:
    if asked.x is None:
        plot.cdf(rows, asked.measure, asked.by, ax=ax)
    elif asked.measure == _FAIRNESS:
        plot.fairness(rows, asked.x, asked.by, ax=ax)
    else:
        plot.line(rows, asked.x, asked.measure, asked.by, ax=ax)


def _read(ax: Any, x: str, rows: pd.DataFrame) -> None:
    """Numbers at the axes as a person writes them, no powers of ten."""
    if pd.api.types.is_numeric_dtype(rows[x]):
        ax.xaxis.set_major_formatter(lambda at, _: plot.value(x, round(at, 12)))
    if ax.get_yscale() == "log":
        ax.yaxis.set_major_formatter(lambda at, _: f"{at:g}")


def _is(column: Any, value: Any) -> Any:
    return column.isna() if pd.isna(value) else column == value
