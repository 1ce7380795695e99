"""One self-contained HTML page of results: tables, figures, verdicts, scenario and seeds."""

import html
import json
import os
import tempfile
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from restp import _restp, air, plot, results
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
:root { color-scheme: light dark; --page: #fff; --text: #1b1f24; --line: #d5d9de; --soft: #f5f6f8; --faint: #555;
  --good: #17692f; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --page: #14181d; --text: #e6e8eb; --line: #353c45; --soft: #1f242b;
  --faint: #a9b1ba; --good: #5fd38a; --bad: #ff8a80; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--page); max-width: 72rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; margin-bottom: 0; } h2 { font-size: 1.2rem; margin-top: 2rem; }
.asked { font-size: 1.05rem; margin: .3rem 0; } .asked li { margin: .1rem 0; } a { color: inherit; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: 13px; }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .7rem; text-align: left; white-space: nowrap; }
td.number { text-align: right; font-variant-numeric: tabular-nums; } td.claim { white-space: normal; min-width: 18rem; }
thead th { background: var(--soft); position: sticky; top: 0; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(30rem, 100%), 1fr)); gap: 1rem; }
figure { margin: 0; } figure img { width: 100%; height: auto; } figcaption { font-size: 14px; color: var(--faint); }
pre { background: var(--soft); padding: 1rem; overflow-x: auto; font-size: 13px; }
.holds { color: var(--good); } .fails { color: var(--bad); font-weight: 600; }
"""


#: Values of one axis that the beginning of a page names.
_MOST_VALUES = 12


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
        title=_title(scenario),
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
    """The point of the scenario that a run was of, with the settings that it has beyond the file, as after ``--set``; none
    where the file gives no such point."""
    if text is None:
        return None
    built, point = _restp.Scenario(text, file), run["point"]
    points = json.loads(built.coordinates())
    if point not in points:
        # What the file does not vary, or not so: axes of one value. JSON and TOML write numbers, words and lists alike.
        beyond = [(key, value) for key, value in point.items() if value not in [known.get(key) for known in points]]
        try:
            built = _restp.Scenario(text, file, [(key, json.dumps([value])) for key, value in beyond])
        except _restp.ScenarioError:
            return None
        points = json.loads(built.coordinates())
    return air.Point(built, points.index(point), run["seed"]) if point in points else None


def _title(scenario: str | PathLike[str] | None) -> str:
    """The title of a scenario file; a page about a text that is no scenario says what it is by its id."""
    if scenario is None:
        return ""
    try:
        return str(tomllib.loads(Path(scenario).read_text(encoding="utf-8")).get("title", ""))
    except tomllib.TOMLDecodeError:
        return ""


def _page(source: _Source) -> str:
    flows: pd.DataFrame = results.flat(source.rows, "flows").to_pandas()
    seeds = sorted(flows["seed"].unique())
    title = source.title or source.id
    parts = [
        f"<h1>{_text(title)}</h1>",
        "" if source.complete else '<p class="fails">Not complete: some runs are still to be done.</p>',
        _asked(source, flows, seeds),
        _figures(figures(flows, source.axes)),
        _section("Claims", _verdicts(source.verdicts)) if source.verdicts else "",
        _air(source),
        _section("Means with 95 % intervals", _means(flows, source.axes)),
        _section("Links", _links(results.flat(source.rows, "links").to_pandas(), source.axes)),
        _section("Scenario", _scenario(source)),
        _section("Where this comes from", _facts(source, flows, seeds)),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        # Nothing from outside, and no scripts: the page is all there is.
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; img-src data:; '
        "style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        # An icon of its own: browsers ask for one otherwise.
        '<link rel="icon" href="data:,">'
        f"<title>{_text(title)} ({_text(source.id)})</title><style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(filter(None, parts))
        + "\n</body></html>\n"
    )


def _asked(source: _Source, flows: pd.DataFrame, seeds: Sequence[int]) -> str:
    """What was varied, how often it was tried, and what became of the claims."""
    varied = []
    for axis in _varying(flows, source.axes):
        values = list(dict.fromkeys(flows[axis]))
        shown = [plot.value(axis, value) for value in values[:_MOST_VALUES]]
        more = f" and {len(values) - len(shown)} more" if len(values) > len(shown) else ""
        varied.append(f"<li>{_text(plot.axis(axis))}: {_text(', '.join(shown))}{more}</li>")
    names = sorted(flows["transport"].unique())
    carried = f"{', '.join(names[:_MOST_VALUES])}{' and others' if len(names) > _MOST_VALUES else ''}"
    runs = f"{len(seeds)} run{'s' if len(seeds) > 1 else ''}"
    how = f"How {'do' if len(names) > 1 else 'does'} {carried} do"
    asked = f"{how} as these vary? {runs} of each combination." if varied else f"{how} here? {runs}."
    judged = [verdict["held"] for verdict in source.verdicts if verdict["held"] is not None]
    claims = f'<p class="asked">{judged.count(True)} of {len(judged)} claims hold.</p>' if judged else ""
    return f'<p class="asked">{_text(asked)}</p><ul class="asked">{"".join(varied)}</ul>{claims}'


def _facts(source: _Source, flows: pd.DataFrame, seeds: Sequence[int]) -> str:
    facts = [
        ("scenario", source.id),
        ("results", source.origin),
        ("runs", f"{flows.groupby(['point', 'seed']).ngroups} ({flows['point'].nunique()} points)"),
        ("seeds", _ranges(seeds)),
        ("transports", ", ".join(sorted(flows["transport"].unique()))),
        ("restp", _restp.__version__),
    ]
    return _table([], [[_cell(name), _cell(value)] for name, value in facts])


def _verdicts(verdicts: list[dict[str, Any]]) -> str:
    rows = []
    # What is the same everywhere says nothing of a point.
    places = [verdict["point"] for verdict in verdicts]
    everywhere = {
        name for name in set().union(*places) if all(place.get(name) == places[0].get(name) for place in places)
    }
    for verdict in verdicts:
        held = verdict["held"]
        word, kind = ("no data", "") if held is None else ("holds", "holds") if held else ("FAILS", "fails")
        rows.append(
            [
                _cell(verdict["check"]),
                f'<td class="claim">{_text(verdict["text"])}</td>',
                _cell(_place((name, at) for name, at in verdict["point"].items() if name not in everywhere)),
                _quantity(verdict["expected"], verdict.get("claim", "")),
                _quantity(verdict["measured"], verdict.get("claim", "")),
                f'<td class="{kind}">{word}</td>',
            ]
        )
    return _table(["check", "claim", "point", "expected", "measured", "verdict"], rows)


def _figures(drawn: Iterable[Figure]) -> str:
    data = "data:image/svg+xml;base64,"
    shown = [
        f'<figure><picture><source media="(prefers-color-scheme: dark)" srcset="{data}{figure.dark}">'
        f'<img alt="{_text(figure.caption)}" src="{data}{figure.svg}"></picture>'
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
    # The transport has a column of its own.
    varying = [axis for axis in _varying(flows, axes) if not axis.endswith(".transport")]
    rows = []
    for _, group in flows.groupby(["point", "flow"], sort=False):
        first = group.iloc[0]
        cells = [_cell(plot.value(axis, first[axis])) for axis in varying]
        cells += [_cell(first["flow"]), _cell(first["transport"]), _cell(len(group), number=True)]
        rows.append(cells + [_interval(group[name], _SHOWN[name][2]) for name in columns])
    return _table([*map(_end, varying), "flow", "transport", "runs", *titles], rows)


def _links(links: pd.DataFrame, axes: Sequence[str]) -> str:
    shown = {
        "packets": ("packets", 1.0),
        "dropped_queue": ("dropped by the queue", 1.0),
        "dropped_error": ("by errors", 1.0),
        "dropped_outage": ("by outages", 1.0),
        "queue_mean_ms": ("mean wait, ms", 1.0),
        "utilisation": ("in use, %", 100.0),
    }
    given_up = {"dropped_collision": ("by collisions", 1.0), "dropped_contention": ("by contention", 1.0)}
    if links[list(given_up)].to_numpy().any():
        shown = dict(list(shown.items())[:2]) | given_up | dict(list(shown.items())[2:])
    varying = _varying(links, axes)
    rows = []
    for _, group in links.groupby(["point", "link"], sort=False):
        first = group.iloc[0]
        cells = [_cell(plot.value(axis, first[axis])) for axis in varying] + [_cell(first["link"])]
        rows.append(cells + [_interval(group[name], scale) for name, (_, scale) in shown.items()])
    return _table([*map(_end, varying), "link", *(title for title, _ in shown.values())], rows)


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


def _quantity(value: float | None, claim: str) -> str:
    """A number of a claim in the unit a person reads; the claim begins with the name of what was measured."""
    if value is None:
        return "<td>-</td>"
    name = claim.split(" ", 1)[0].rstrip(":")
    for end, units in _UNITS.items():
        if name.endswith(end):
            factor, unit = next(((f, u) for f, u in units if abs(value) >= f), units[-1])
            return f'<td class="number">{_digits(value / factor, 4)} {unit}</td>'
    return f'<td class="number">{_digits(value, 5)}</td>'


#: Units of what names end in, the largest first.
_UNITS = {
    "_bps": ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")),
    "_bytes": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")),
    "_ms": ((1e3, "s"), (1.0, "ms")),
    "_s": ((1.0, "s"), (1e-3, "ms")),
}


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
    return " ".join(f"{_end(axis)}={plot.value(axis, value)}" for axis, value in items)


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
