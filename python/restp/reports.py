"""One self-contained HTML page of results: tables, figures, verdicts, scenario and seeds."""

import html
import json
import os
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from restp import _restp, air, results
from restp.figures import Figure, figures
from restp.store import Folder

#: What the table of means shows of each flow, where there is anything to show.
_SHOWN = {
    "goodput_bps": ("goodput", "Mbit/s", 1e-6),
    "completion_s": ("completion", "s", 1.0),
    "latency_mean_ms": ("latency", "ms", 1.0),
    "latency_p99_ms": ("99 % latency", "ms", 1.0),
    "lost_messages": ("lost", "messages", 1.0),
    "late_messages": ("late", "messages", 1.0),
    "plt_mean_s": ("page load", "s", 1.0),
    "retransmitted_packets": ("repeated", "packets", 1.0),
    "timeouts": ("timeouts", "", 1.0),
}
_STYLE = """
:root { color-scheme: light; --line: #d5d9de; --soft: #f5f6f8; --good: #17692f; --bad: #b3261e; }
body { font: 15px/1.5 system-ui, sans-serif; color: #1b1f24; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; margin-bottom: 0; } h2 { font-size: 1.2rem; margin-top: 2rem; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: 13px; }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .7rem; text-align: left; white-space: nowrap; }
td.number { text-align: right; font-variant-numeric: tabular-nums; } td.claim { white-space: normal; min-width: 18rem; }
thead th { background: var(--soft); position: sticky; top: 0; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(30rem, 100%), 1fr)); gap: 1rem; }
figure { margin: 0; } figure img { width: 100%; height: auto; } figcaption { font-size: 13px; color: #555; }
pre { background: var(--soft); padding: 1rem; overflow-x: auto; font-size: 13px; }
.holds { color: var(--good); } .fails { color: var(--bad); font-weight: 600; }
"""


class ReportError(ValueError):
    """There is nothing to report on, or it cannot be read."""


@dataclass(frozen=True)
class _Source:
    """What a report is about."""

    id: str
    title: str
    origin: str
    #: Nested rows, as :mod:`restp.results` has them.
    rows: pa.Table
    axes: tuple[str, ...]
    verdicts: list[dict[str, Any]]
    scenario: str | None
    settings: list[tuple[str, str]]
    complete: bool
    #: What a drawing of the air is of, where the scenario is known.
    drawn: air.Point | None


def report(
    given: str | PathLike[str],
    output: str | PathLike[str] | None = None,
    *,
    scenario: str | PathLike[str] | None = None,
) -> Path:
    """Write a page about ``given``: the folder of a sweep, or a file of what ``restp sim --json`` printed.

    ``output`` is the page's file; beside ``given``, with ``.html`` at the end, when absent. A file of JSON lines does
    not hold the text of its ``scenario``: name the file to have it on the page. Returns where the page is.

    Raises ``ReportError`` when there is nothing to report on.
    """
    source_path = Path(given)
    source = _folder(source_path) if source_path.is_dir() else _lines(source_path, scenario)
    target = Path(output) if output is not None else source_path.with_name(source_path.name + ".html")
    page = _page(source)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=target.parent, delete=False) as file:
        file.write(page)
    os.chmod(file.name, 0o644)
    os.replace(file.name, target)
    return target


def _folder(path: Path) -> _Source:
    folder = Folder(path)
    known = folder.manifest()
    rows = folder.results()
    if rows is None:
        raise ReportError(f"{path}: no run is finished yet; call restp.sweep with this folder to go on")
    settings = [(str(key), str(value)) for key, value in known["settings"]]
    built = _restp.Scenario(known["scenario"], known["file"], settings)
    return _Source(
        id=built.id,
        title=built.title,
        origin=str(path),
        rows=rows,
        axes=tuple(results.axes(json.loads(built.coordinates()))),
        verdicts=[],
        scenario=known["scenario"],
        settings=settings,
        complete=len(rows) == len(built.jobs(known["seed"], known["runs"])),
        drawn=air.Point(built, *built.jobs(known["seed"], 1)[0]),
    )


def _lines(path: Path, scenario: str | PathLike[str] | None) -> _Source:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise ReportError(
            f"{path}: there is no such file or folder; give the folder of a sweep, or what restp sim --json printed"
        ) from None
    except UnicodeDecodeError as error:
        raise ReportError(f"{path}: not a text ({error}); give what restp sim --json printed") from error
    runs, verdicts = [], []
    for number, line in enumerate(lines, 1):
        try:
            record = json.loads(line)
            if "flows" in record:
                runs.append(record)
            elif "check" in record:
                verdicts.append(record)
            elif "summary" not in record:
                raise ValueError("neither a run nor a summary nor a verdict")
        except (ValueError, TypeError) as error:
            raise ReportError(f"{path}: line {number}: {error}; give what restp sim --json printed") from error
    if not runs:
        raise ReportError(f"{path}: there is no run in it; give what restp sim --json printed")
    points = list({json.dumps(run["point"]): run["point"] for run in runs}.values())
    places = results.axes(points)
    numbers = {json.dumps(point): number for number, point in enumerate(points)}
    texts = []
    for run in runs:
        known = {name: run.get(name) for name in results.SCHEMA.names}
        texts.append(json.dumps(known | {"point": numbers[json.dumps(run["point"])]}))
    try:
        nested = results.parse([text.encode() + b"\n" for text in texts])
    except pa.ArrowInvalid as error:
        raise ReportError(f"{path}: {error}; is it of another version of restp?") from error
    text = Path(scenario).read_text(encoding="utf-8") if scenario is not None else None
    return _Source(
        id=runs[0]["scenario"],
        title="",
        origin=str(path),
        rows=results.located(nested, runs[0]["scenario"], places),
        axes=tuple(places),
        verdicts=verdicts,
        scenario=text,
        settings=[],
        complete=True,
        drawn=_drawn(text, scenario, runs[0]),
    )


def _drawn(text: str | None, file: str | PathLike[str] | None, run: dict[str, Any]) -> air.Point | None:
    """The point of the scenario that a run was of; none where it is not one of its points, as after ``--set``."""
    if text is None:
        return None
    built = _restp.Scenario(text, file)
    points = json.loads(built.coordinates())
    return air.Point(built, points.index(run["point"]), run["seed"]) if run["point"] in points else None


def _page(source: _Source) -> str:
    flows: pd.DataFrame = results.flat(source.rows, "flows").to_pandas()
    seeds = sorted(flows["seed"].unique())
    parts = [
        f"<h1>{_text(source.id)}</h1><p>{_text(source.title)}</p>",
        "" if source.complete else '<p class="fails">Not complete: some runs are still to be done.</p>',
        _facts(source, flows, seeds),
        _section("Claims", _verdicts(source.verdicts)) if source.verdicts else "",
        _section("Figures", _figures(figures(flows, source.axes))),
        _air(source),
        _section("Means with 95 % intervals", _means(flows, source.axes)),
        _section("Links", _links(results.flat(source.rows, "links").to_pandas(), source.axes)),
        _section("Scenario", _scenario(source)),
        _section("Seeds", f"<p>{_text(_ranges(seeds))}</p>"),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        # Nothing from outside, and no scripts: the page is all there is.
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; img-src data:; '
        "style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        # An icon of its own: browsers ask for one otherwise.
        '<link rel="icon" href="data:,">'
        f"<title>{_text(source.id)}</title><style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(filter(None, parts))
        + "\n</body></html>\n"
    )


def _facts(source: _Source, flows: pd.DataFrame, seeds: Sequence[int]) -> str:
    facts = [
        ("results", source.origin),
        ("runs", f"{flows.groupby(['point', 'seed']).ngroups} ({flows['point'].nunique()} points)"),
        ("seeds", _ranges(seeds)),
        ("transports", ", ".join(sorted(flows["transport"].unique()))),
        ("restp", _restp.__version__),
    ]
    return _table([], [[_cell(name), _cell(value)] for name, value in facts])


def _verdicts(verdicts: list[dict[str, Any]]) -> str:
    rows = []
    for verdict in verdicts:
        held = verdict["held"]
        word, kind = ("no data", "") if held is None else ("holds", "holds") if held else ("FAILS", "fails")
        rows.append(
            [
                _cell(verdict["check"]),
                f'<td class="claim">{_text(verdict["text"])}</td>',
                _cell(_place(verdict["point"].items())),
                _number(verdict["expected"]),
                _number(verdict["measured"]),
                f'<td class="{kind}">{word}</td>',
            ]
        )
    return _table(["check", "claim", "point", "expected", "measured", "verdict"], rows)


def _figures(drawn: Iterable[Figure]) -> str:
    shown = [
        f'<figure><img alt="{_text(figure.caption)}" src="data:image/svg+xml;base64,{figure.svg}">'
        f"<figcaption>{_text(figure.caption)}</figcaption></figure>"
        for figure in drawn
    ]
    return f'<div class="figures">{"".join(shown)}</div>' if shown else "<p>There is nothing to draw.</p>"


def _air(source: _Source) -> str:
    drawn = air.drawings(source.drawn) if source.drawn is not None else []
    return _section("The air", _figures(drawn)) if drawn else ""


def _means(flows: pd.DataFrame, axes: Sequence[str]) -> str:
    columns = [name for name in _SHOWN if flows[name].notna().any()]
    titles = [f"{title}{f', {unit}' if unit else ''}" for title, unit, _ in (_SHOWN[name] for name in columns)]
    varying = _varying(flows, axes)
    rows = []
    for _, group in flows.groupby(["point", "flow"], sort=False):
        first = group.iloc[0]
        cells = [_cell(first[axis]) for axis in varying]
        cells += [_cell(first["flow"]), _cell(first["transport"]), _cell(len(group), number=True)]
        rows.append(cells + [_interval(group[name], _SHOWN[name][2]) for name in columns])
    return _table([*map(_end, varying), "flow", "transport", "runs", *titles], rows)


def _links(links: pd.DataFrame, axes: Sequence[str]) -> str:
    shown = ["packets", "dropped_queue", "dropped_error", "dropped_outage", "queue_mean_ms", "utilisation"]
    given_up = ["dropped_collision", "dropped_contention"]
    if links[given_up].to_numpy().any():
        shown[2:2] = given_up
    varying = _varying(links, axes)
    rows = []
    for _, group in links.groupby(["point", "link"], sort=False):
        cells = [_cell(group.iloc[0][axis]) for axis in varying] + [_cell(group.iloc[0]["link"])]
        rows.append(cells + [_interval(group[name], 1.0) for name in shown])
    return _table([*map(_end, varying), "link", *(name.replace("_", " ") for name in shown)], rows)


def _scenario(source: _Source) -> str:
    text = source.scenario
    shown = f"<pre>{_text(text)}</pre>" if text is not None else "<p>Its text is not in these results.</p>"
    settings = "\n".join(f"{key} = {value}" for key, value in source.settings)
    return shown + (f"<p>Changed by:</p><pre>{_text(settings)}</pre>" if settings else "")


def _varying(frame: pd.DataFrame, axes: Sequence[str]) -> list[str]:
    return [axis for axis in axes if axis in frame and frame[axis].nunique(dropna=False) > 1]


def _interval(values: Any, scale: float) -> str:
    known = (values.dropna() * scale).to_list()
    found = _restp.interval(known)
    if found is None:
        return "<td>-</td>"
    mean, _, high = found
    # A difference that rounding made is none.
    half = high - mean if high - mean > 1e-9 * abs(mean) else 0.0
    spread = f" ± {_digits(half, 3)}" if len(known) > 1 else ""
    return f'<td class="number">{_digits(mean, 4)}{spread}</td>'


def _number(value: float | None) -> str:
    return "<td>-</td>" if value is None else f'<td class="number">{_digits(value, 5)}</td>'


def _digits(number: float, digits: int) -> str:
    """So many digits, and whole numbers as they are."""
    return f"{number:.0f}" if abs(number) >= 10 ** (digits - 1) else f"{number:.{digits}g}"


def _cell(value: Any, number: bool = False) -> str:
    shown = "-" if pd.isna(value) else f"{value:g}" if isinstance(value, float) else str(value)
    return f'<td class="number">{_text(shown)}</td>' if number else f"<td>{_text(shown)}</td>"


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "<thead><tr>" + "".join(f"<th>{_text(one)}</th>" for one in headings) + "</tr></thead>" if headings else ""
    body = "".join("<tr>" + "".join(row) + "</tr>" for row in rows)
    return f'<div class="scroll"><table>{head}<tbody>{body}</tbody></table></div>'


def _section(title: str, body: str) -> str:
    return f"<h2>{_text(title)}</h2>\n{body}"


def _end(axis: str) -> str:
    """What an axis says beside the name of its link or flow."""
    return axis.split(".", 2)[-1]


def _place(items: Iterable[tuple[str, Any]]) -> str:
    return " ".join(f"{_end(axis)}={value}" for axis, value in items)


def _ranges(numbers: Sequence[int]) -> str:
    """``1 to 20, 40``."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ", ".join(str(low) if low == high else f"{low} to {high}" for low, high in spans)


def _text(text: str) -> str:
    return html.escape(text)
