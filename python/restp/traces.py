"""What one run did over time, as frames."""

import json
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from restp import _restp, frames, results
from restp.frames import Frame
from restp.scenarios import ScenarioLike, with_changes

_UNITS_NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}


@dataclass(frozen=True)
class Traces:
    """One run. Times are ``at_s``, in seconds; every frame is in their order."""

    #: Of each sender: congestion_window_bytes, in_flight_segments, srtt_s, rto_s, sent_payload_bytes. A window of -1
    #: bytes: none limits the flow.
    window: Any
    #: Of each path of each sender: sent_bytes, received_bytes, lost_packets, srtt_s.
    path: Any
    #: Of each direction of each link: packets and bytes that wait.
    queue: Any
    #: Of each datagram at each end: step (sent, received), sequence, acknowledgement, payload_bytes. Numbers are
    #: counted from the first of their path and direction, in segments with ResTP and bytes with TCP; -1: none.
    sequence: Any
    #: Of each frame on the air: at_s, until_s, medium, station, to, kind (rts, cts, data, ack), and its outcome:
    #: received, or why not (collision, error, outage); contention: received, and not answered.
    air: Any
    #: The run's result, a row per flow, as ``restp.run`` gives it.
    flows: Any


def trace(
    scenario: ScenarioLike,
    *,
    frame: Frame = "pandas",
    point: int = 0,
    seed: int | None = None,
    every: str = "0 s",
    rows: int = 10_000_000,
    sequence: bool = True,
    air: tuple[str, str] | None = None,
    **changes: Any,
) -> Traces:
    """Run one point of a scenario with one seed, and note what happens. The result is the same as without.

    ``every`` is the least time between two looks at windows, paths and queues (``"10 ms"``; ``"0 s"``: every change).
    ``sequence=False`` leaves out what is noted of every datagram. ``air=("60 s", "61 s")`` notes every frame that
    stations of a medium have on the air between these times. A trace of more than ``rows`` rows, which memory
    might not hold, ends with ``RunError``: shorten ``duration``, look less often, or allow more.
    """
    frames.check(frame)
    spec = with_changes(scenario, changes)
    built = spec.read()
    first = next((own for place, own in built.jobs(seed, 1) if place == point), None)
    return of(built, point, first or 0, frame=frame, every=every, rows=rows, sequence=sequence, air=air)


def of(
    built: _restp.Scenario,
    point: int,
    seed: int,
    *,
    frame: Frame = "pandas",
    every: str = "0 s",
    rows: int = 10_000_000,
    sequence: bool = True,
    air: tuple[str, str] | None = None,
) -> Traces:
    """The same of a scenario that has been read."""
    window = (0, 0) if air is None else (_nanoseconds(air[0]), _nanoseconds(air[1]))
    line, tables = built.trace(point, seed, _nanoseconds(every), rows, (sequence, window))
    axes = results.axes(json.loads(built.coordinates()))
    nested = results.located(results.parse([line]), built.id, axes)
    noted = {name: frames.frame(_table(columns), frame) for name, columns in tables.items()}
    return Traces(flows=frames.frame(results.flat(nested, "flows"), frame), **noted)


def _table(columns: dict[str, Any]) -> pa.Table:
    return pa.table({name: _column(*column) for name, column in columns.items()})


def _column(kind: str, values: bytes, words: list[str]) -> pa.Array:
    width = {"integer": pa.int64(), "float": pa.float64(), "word": pa.int32()}[kind]
    count = len(values) * 8 // width.bit_width
    column = pa.Array.from_buffers(width, count, [None, pa.py_buffer(values)])
    return pa.DictionaryArray.from_arrays(column, pa.array(words, pa.string())) if kind == "word" else column


def _nanoseconds(every: str) -> int:
    number, _, unit = every.strip().partition(" ")
    try:
        return round(float(number) * _UNITS_NS[unit])
    except (KeyError, ValueError, OverflowError):
        raise ValueError(f"{every!r} is not a time; write a number and one of {', '.join(_UNITS_NS)}") from None
