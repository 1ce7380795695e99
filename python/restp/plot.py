"""Figures of frames, with matplotlib. Every function draws into ``ax`` (the current axes when absent) and returns it.

>>> import restp, restp.plot
>>> frame = restp.run("scenarios/restp/bulk-lossy.toml")
>>> ax = restp.plot.line(frame, x="link.bottleneck.loss.rate", y="goodput_bps", by="transport")
>>> ax.figure.savefig("goodput.svg")
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pandas as pd

from restp import _restp

__all__ = ["axis", "cdf", "fairness", "label", "line", "paths", "queue", "sequence", "value", "window"]

#: How units at the end of a name are shown: factor and unit.
_UNITS = {
    "_bps": (1e-6, "Mbit/s"),
    "_bytes": (1e-3, "kB"),
    "_ms": (1.0, "ms"),
    "_s": (1.0, "s"),
}


#: Lines differ by colour, shape and dashes: one of the three is enough to tell them apart (colours of Okabe and Ito).
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a6d3b", "#7f7f7f")
_SHAPES = ("o", "s", "^", "D", "v", "P", "X", "*")
_DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))
#: Values that differ by this much or more are drawn on a logarithmic axis.
_DECADES = 30.0


def line(
    frame: Any, x: str, y: str = "goodput_bps", by: str | Sequence[str] | None = "transport", ax: Any = None
) -> Any:
    """The mean of ``y`` against ``x`` with its 95 % interval as a band, a line for each value of ``by``.

    A point of ``x`` has all rows that share it: the runs, and axes that are neither ``x`` nor in ``by``. Values of
    ``x`` that are texts stand side by side, in the order of the frame. Axes are logarithmic where their values span
    decades.
    """
    data, ax = _pandas(frame, x, y), _axes(ax)
    scale, shown = _scale(y)
    means: list[float] = []
    for number, (name, group) in enumerate(_groups(data, by)):
        points = [
            (at, _restp.interval((rows[y].dropna() * scale).to_list()))
            for at, rows in group.groupby(x, sort=pd.api.types.is_numeric_dtype(group[x]), dropna=False)
        ]
        known = [(at, *interval) for at, interval in points if interval is not None]
        if known:
            at, mean, low, high = zip(*known, strict=True)
            means += mean
            style = _style(number)
            # The first line is the widest, so that one that hides it does not hide all of it.
            width = max(1.2, 3.2 - 0.5 * number)
            ax.plot(at, mean, markersize=5, linewidth=width, label=name, markerfacecolor="none", **style)
            ax.fill_between(at, low, high, alpha=0.15, color=style["color"], linewidth=0)
    is_wide = _spans_decades(means)
    _finish(ax, x, shown, zero=not is_wide)
    if is_wide:
        ax.set_yscale("log")
    if pd.api.types.is_numeric_dtype(data[x]):
        _stretch(ax, data[x].dropna())
    return ax


def _style(number: int) -> dict[str, Any]:
    dashes = _DASHES[number % len(_DASHES)]
    return {"color": _COLOURS[number % 8], "marker": _SHAPES[number % 8], "linestyle": dashes}


def _spans_decades(values: Sequence[float]) -> bool:
    known = [value for value in values if value == value]
    return bool(known) and min(known) > 0 and max(known) / min(known) >= _DECADES


def _stretch(ax: Any, values: Any) -> None:
    """A logarithmic axis where values span decades; zero, which has no logarithm, stands beside the smallest."""
    positive = values[values > 0]
    if len(positive) == 0 or (values < 0).any() or positive.max() / positive.min() < _DECADES:
        return
    if (values == 0).any():
        ax.set_xscale("symlog", linthresh=positive.min(), linscale=0.5)
        ax.set_xlim(left=-0.15 * positive.min())
    else:
        ax.set_xscale("log")


def cdf(frame: Any, value: str = "goodput_bps", by: str | Sequence[str] | None = "transport", ax: Any = None) -> Any:
    """The share of rows with at most this ``value``, a curve for each value of ``by``."""
    data, ax = _pandas(frame, value), _axes(ax)
    scale, shown = _scale(value)
    for number, (name, group) in enumerate(_groups(data, by)):
        values = (group[value].dropna() * scale).sort_values().to_list()
        if values:
            shares = [(i + 1) / len(values) for i in range(len(values))]
            style = _style(number)
            ax.step([values[0], *values], [0.0, *shares], where="post", label=name, markersize=4, **style)
    ax.set_ylim(0, 1)
    return _finish(ax, shown, "share of runs")


def fairness(frame: Any, x: str, by: str | Sequence[str] | None = None, ax: Any = None) -> Any:
    """Jain's index of the goodputs of the flows of each run, against ``x``, as mean with its 95 % band."""
    data = _pandas(frame, x, "goodput_bps", "flow", "point", "seed")
    keys = [key for key in dict.fromkeys(["point", "seed", x, *_names(by)])]
    shares = data.groupby(keys, sort=False, dropna=False)["goodput_bps"].agg(_jain).rename("Jain's index").reset_index()
    ax = line(shares, x, "Jain's index", by, ax)
    ax.set_ylim(0, 1.02)
    return ax


def window(traces: Any, flow: str | None = None, ax: Any = None) -> Any:
    """Congestion window of each sender, or of ``flow``, over time; a sender without one has no line."""
    data, ax = _of_flow(_pandas(traces.window, "at_s"), flow), _axes(ax)
    for name, rows in data.groupby("flow", observed=True):
        limited = rows[rows["congestion_window_bytes"] >= 0]
        ax.step(limited["at_s"], limited["congestion_window_bytes"] / 1e3, where="post", label=str(name))
    return _finish(ax, "time in s", "congestion window in kB", zero=True)


def queue(traces: Any, link: str | None = None, ax: Any = None) -> Any:
    """Packets that wait before each direction that ever had one waiting, or before ``link``, over time.

    ``link`` is the name of one (both directions) or of a direction, ``"bottleneck/forward"``.
    """
    data, ax = _pandas(traces.queue, "at_s"), _axes(ax)
    names = data["link"].astype(str)
    if link is not None:
        data = data[(names == link) | (names.str.rsplit("/", n=1).str[0] == link)]
        _known("link", link, data, names)
    for name, rows in data.groupby("link", observed=True):
        if link is not None or rows["packets"].max() > 0:
            ax.step(rows["at_s"], rows["packets"], where="post", label=str(name))
    return _finish(ax, "time in s", "packets waiting", zero=True)


def sequence(traces: Any, flow: str | None = None, path: int | None = None, ax: Any = None) -> Any:
    """Sequence numbers of the opener's data over time as sent, sent again and acknowledged.

    The first flow unless ``flow`` names one, and the first path unless ``path`` does.
    """
    data, ax = _pandas(traces.sequence, "at_s"), _axes(ax)
    if len(data) == 0:
        raise ValueError("there are no datagrams in these traces; leave sequence=False out of restp.trace")
    data = _of_flow(data, flow if flow is not None else str(data["flow"].iloc[0]))
    data = data[data["path"] == (path or 0)]
    opener = data["host"].astype(str) == "opener"
    step = data["step"].astype(str)
    sent = data[opener & (step == "sent") & (data["payload_bytes"] > 0) & (data["sequence"] >= 0)]
    # A number that is not above all before it was there before.
    again = sent["sequence"] <= sent["sequence"].cummax().shift(fill_value=-1)
    for rows, label, style in ((sent[~again], "sent", "."), (sent[again], "sent again", "x")):
        ax.plot(rows["at_s"], rows["sequence"], style, markersize=3, label=label)
    answers = data[opener & (step == "received") & (data["acknowledgement"] >= 0)]
    ax.step(answers["at_s"], answers["acknowledgement"], where="post", linewidth=0.8, label="acknowledged")
    return _finish(ax, "time in s", "sequence number")


def paths(traces: Any, flow: str | None = None, bin_s: float = 0.1, ax: Any = None) -> Any:
    """What each path of a flow carried over time, in bins of ``bin_s`` seconds; the first flow unless one is named."""
    data, ax = _pandas(traces.path, "at_s"), _axes(ax)
    data = _of_flow(data, flow if flow is not None else str(data["flow"].iloc[0]))
    for path, rows in data.groupby("path"):
        sent = rows.groupby((rows["at_s"] // bin_s).astype(int))["sent_bytes"].last()
        sent = sent.reindex(range(int(data["at_s"].max() // bin_s) + 1)).ffill().fillna(0)
        rate = sent.diff().fillna(sent) * 8e-6 / bin_s
        ax.step(rate.index * bin_s, rate, where="post", label=f"path {path}")
    return _finish(ax, "time in s", "sent in Mbit/s", zero=True)


def _pandas(frame: Any, *columns: str) -> pd.DataFrame:
    """Any frame as one of pandas, with these columns."""
    data: pd.DataFrame = frame if isinstance(frame, pd.DataFrame) else _from_other(frame)
    for column in columns:
        if column not in data.columns:
            raise KeyError(f"there is no column {column!r}; the frame has {', '.join(map(str, data.columns))}")
    return data


def _from_other(frame: Any) -> Any:
    return frame.to_pandas()


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("figures need matplotlib; install it with: pip install 'restp[plot]'") from error
    return pyplot.gca()


def _names(by: str | Sequence[str] | None) -> list[str]:
    if by is None:
        return []
    return [by] if isinstance(by, str) else list(by)


def _groups(data: pd.DataFrame, by: str | Sequence[str] | None) -> Iterator[tuple[str | None, pd.DataFrame]]:
    names = _names(by)
    _pandas(data, *names)
    if not names:
        yield None, data
        return
    for values, group in data.groupby(names, sort=False, dropna=False):
        yield ", ".join(_shown(value) for value in values), group


def _shown(value: Any) -> str:
    return "-" if pd.isna(value) else f"{value:g}" if isinstance(value, float) else str(value)


def axis(name: str) -> str:
    """What an axis is called in figures: ``link.bottleneck.loss.rate`` is the loss rate of bottleneck."""
    parts = name.split(".")
    if len(parts) < 3 or parts[0] not in ("flow", "host", "link", "medium", "station"):
        return name.replace("_", " ")
    what = " ".join(parts[2:]).removeprefix("set ").replace("_", " ").replace("-", " ")
    return f"{what} of {parts[1]}" if parts[1] != "*" else what


def value(name: str, given: Any) -> str:
    """A value of an axis as a person writes it: a share of losses of 0.01 is 1 %."""
    if name.endswith((".loss.rate", "share")) and isinstance(given, (int, float)) and not pd.isna(given):
        return f"{given * 100:g} %"
    return _shown(given)


def label(name: str) -> str:
    """What a column is called in figures: ``goodput_bps`` is goodput in Mbit/s."""
    return _scale(name)[1]


def _scale(name: str) -> tuple[float, str]:
    for end, (factor, unit) in _UNITS.items():
        if name.endswith(end):
            return factor, f"{name.removesuffix(end).replace('_', ' ')} in {unit}"
    return 1.0, name.replace("_", " ")


def _jain(shares: Iterable[float]) -> float:
    """Jain's index (Jain, Chiu, Hawe 1984): 1 where all are equal, 1/n where one has everything."""
    values = [share for share in shares if share == share]
    squares = sum(share * share for share in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else float("nan")


def _of_flow(data: pd.DataFrame, flow: str | None) -> pd.DataFrame:
    if flow is None:
        return data
    names = data["flow"].astype(str)
    found = data[names == flow]
    _known("flow", flow, found, names)
    return found


def _known(what: str, name: str, found: pd.DataFrame, names: Any) -> None:
    if len(found) == 0:
        raise ValueError(f"there is no {what} {name!r} in these traces; there are {', '.join(sorted(set(names)))}")


def _finish(ax: Any, x: str, y: str, zero: bool = False) -> Any:
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    if zero:
        ax.set_ylim(bottom=0)
    ax.grid(alpha=0.3)
    if any(ax.get_legend_handles_labels()[1]):
        ax.legend(fontsize="small")
    return ax
