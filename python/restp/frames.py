"""Arrow tables as the frames people work with."""

from typing import Any, Literal

import pyarrow as pa

Frame = Literal["pandas", "polars", "arrow"]


def frame(table: pa.Table, kind: str) -> Any:
    """As a frame of pandas or polars, or as it is."""
    check(kind)
    if kind == "arrow":
        return table
    if kind == "pandas":
        return table.to_pandas()
    try:
        import polars
    except ImportError as error:
        raise ImportError("frame='polars' needs polars; install it with: pip install 'restp[polars]'") from error
    return polars.from_arrow(table)


def check(kind: str) -> None:
    """Refuses a name that no kind has, before anything is computed."""
    if kind not in ("pandas", "polars", "arrow"):
        raise ValueError(f"there is no frame {kind!r}; write 'pandas', 'polars' or 'arrow'")
