"""Changes to a scenario as Python writes them, in the words of scenario files (TOML)."""

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any


def key(name: str) -> str:
    """The key as a scenario knows it: ``link__bottleneck__rate`` is ``link.bottleneck.rate``."""
    return name.replace("__", ".")


def value(given: Any) -> str:
    """A value in TOML. Lists, arrays and ranges are axes."""
    if hasattr(given, "tolist"):  # numbers and arrays of numpy, which may be floats as well, and series of pandas
        return value(given.tolist())
    if isinstance(given, bool):
        return "true" if given else "false"
    if isinstance(given, str):
        return _text(given)
    if isinstance(given, int):
        return str(given)
    if isinstance(given, float):
        return repr(given) if math.isfinite(given) else str(given)
    if isinstance(given, Mapping):
        fields = (f"{_text(str(name))} = {value(field)}" for name, field in given.items())
        return "{ " + ", ".join(fields) + " }"
    if isinstance(given, Iterable):
        return "[" + ", ".join(value(element) for element in given) + "]"
    raise TypeError(
        f"{given!r} ({type(given).__name__}) cannot stand in a scenario; "
        "write a number, a text with its unit, a list or a mapping"
    )


def axes(grid: Mapping[str, Iterable[Any]]) -> list[tuple[str, str]]:
    """A grid as settings, each a list of values."""
    if not isinstance(grid, Mapping):
        raise TypeError(f"a grid maps keys to lists of values, such as {{'flow.a.transport': ['udp']}}, not {grid!r}")
    settings = []
    for name, values in grid.items():
        if isinstance(values, (str, Mapping)) or not (isinstance(values, Iterable) or hasattr(values, "tolist")):
            raise TypeError(f"grid[{name!r}] is {values!r}; write a list of values, even for one")
        settings.append((key(name), value(list(values))))
    return settings


def _text(text: str) -> str:
    # The escapes of JSON are those of TOML, but for DEL, which TOML wants escaped as well.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
