"""Results of runs: from lines of JSON to one nested Arrow table, and from that to flat ones.

The nested table has a row per run: ``scenario``, ``point``, one column per axis, ``seed``, ``sim_seconds``, ``events``,
``packets``, and the lists ``flows``, ``groups``, ``hosts`` and ``links``. It is what result folders hold.
"""

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

Table = Literal["flows", "groups", "hosts", "links", "paths", "bins", "outages", "timeouts", "runs"]

#: Where each table's rows are below a run, what tells them apart there, and what its own name is.
_PLACES: dict[str, tuple[str, ...]] = {
    "flows": ("flows",),
    "groups": ("groups",),
    "hosts": ("hosts",),
    "links": ("links",),
    "paths": ("flows", "paths"),
    "bins": ("flows", "bins_bps"),
    "outages": ("flows", "outages"),
    "timeouts": ("flows", "rto_events"),
    "runs": (),
}
_NAMES = {
    "flows": "flow",
    "groups": "group",
    "hosts": "host",
    "links": "link",
    "paths": "path",
    "bins_bps": "bin",
    "outages": "outage",
    "rto_events": None,
}

_TYPES = {
    "integer": pa.int64(),
    "seed": pa.uint64(),
    "number": pa.float64(),
    "text": pa.string(),
    "flag": pa.bool_(),
}


def _type(written: Any) -> pa.DataType:
    if isinstance(written, str):
        return _TYPES[written]
    if isinstance(written, list):
        return pa.list_(_type(written[0]))
    return pa.struct([(name, _type(field)) for name, field in written.items()])


#: Of one result; a test of the lab holds schema.json to what results are.
SCHEMA = pa.schema(list(_type(json.loads(files("restp").joinpath("schema.json").read_text()))))


def parse(lines: Sequence[bytes]) -> pa.Table:
    """Results as the lab wrote them."""
    if not lines:
        return SCHEMA.empty_table()
    longest = max(map(len, lines))
    return pyarrow.json.read_json(
        io.BytesIO(b"".join(lines)),
        # A line must fit into a block.
        read_options=pyarrow.json.ReadOptions(block_size=max(1 << 20, 2 * longest)),
        parse_options=pyarrow.json.ParseOptions(explicit_schema=SCHEMA, unexpected_field_behavior="error"),
    ).select(SCHEMA.names)


def located(results: pa.Table, scenario: str, places: Mapping[str, pa.Array]) -> pa.Table:
    """With the scenario's name, and where each run's point lies."""
    point = results["point"]
    columns = {"scenario": pa.array([scenario] * len(results), pa.string()), "point": point}
    for axis, values in places.items():
        columns[axis] = values.take(point.combine_chunks())
    # An axis may be the seed: it says the same as the column of that name.
    columns |= {name: results[name] for name in SCHEMA.names if name != "point"}
    return pa.table(columns)


def axes(coordinates: Iterable[Mapping[str, Any]]) -> dict[str, pa.Array]:
    """One column per axis, from where each point lies. Values that are neither numbers nor texts are told in JSON."""
    points = list(coordinates)
    names = list(dict.fromkeys(name for point in points for name in point))
    return {name: _axis([point.get(name) for point in points]) for name in names}


def _axis(values: list[Any]) -> pa.Array:
    def all_are(*kinds: type) -> bool:
        return all(value is None or type(value) in kinds for value in values)

    if all_are(int):
        return pa.array(values, pa.int64())
    if all_are(int, float):
        return pa.array(values, pa.float64())
    if all_are(bool):
        return pa.array(values, pa.bool_())
    texts = [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
    return pa.array(texts, pa.string())


def flat(results: pa.Table, table: str) -> pa.Table:
    """One of the flat tables of nested results."""
    if table not in _PLACES:
        raise ValueError(f"there is no table {table!r}; write one of: {', '.join(_PLACES)}")
    for place in _PLACES[table]:
        results = _below(results, place)
    while any(pa.types.is_struct(field.type) for field in results.schema):
        results = results.flatten()
    nested = [field.name for field in results.schema if pa.types.is_nested(field.type)]
    return results.drop_columns(nested)


def _below(rows: pa.Table, column: str) -> pa.Table:
    """A row for each element of a column of lists, with what is not a list or a measure of its row."""
    lists = rows[column].combine_chunks()
    parents = pc.list_parent_indices(lists)
    elements = pc.list_flatten(lists)
    outer = [name for name in rows.column_names if name not in _MEASURES.get(column, ())]
    above = rows.select([name for name in outer if not pa.types.is_nested(rows.schema.field(name).type)]).take(parents)
    columns = {name: above[name] for name in above.column_names}
    own = _NAMES[column]
    if pa.types.is_struct(elements.type):
        fields = {field.name: elements.field(i) for i, field in enumerate(elements.type)}
        if column in ("flows", "groups", "hosts", "links"):
            columns[str(own)] = fields.pop("name")
        elif own is not None:
            columns[own] = _ordinals(parents)
        if column == "paths":
            fields["links"] = pc.binary_join(fields["links"], " ")
        return pa.table(columns | fields)
    columns[str(own)] = _ordinals(parents)
    return pa.table(columns | {column.removeprefix("bins_"): elements})


def _ordinals(parents: pa.Array) -> pa.Array:
    """Of each element its place in its list, from 0."""
    owners = parents.to_numpy(zero_copy_only=False)
    place = np.arange(len(owners))
    return pa.array(place - place[np.searchsorted(owners, owners)] if len(owners) else place, pa.int64())


def _scalars(struct: pa.DataType) -> tuple[str, ...]:
    return tuple(field.name for field in struct if field.name not in ("name", "transport"))


_RUN = ("sim_seconds", "events", "packets")
_FLOW = _scalars(SCHEMA.field("flows").type.value_type)
#: What is measured of a run does not belong to its flows, and what is measured of a flow not to its paths.
_MEASURES: dict[str, tuple[str, ...]] = {
    "flows": _RUN,
    "groups": _RUN,
    "hosts": _RUN,
    "links": _RUN,
    "paths": _FLOW,
    "bins_bps": _FLOW,
    "outages": _FLOW,
    "rto_events": _FLOW,
}
