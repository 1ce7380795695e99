"""Folders of results: a manifest that says of what, and Parquet files that only ever appear whole."""

import json
import os
import uuid
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from restp import _restp, frames, results
from restp.frames import Frame
from restp.results import Table
from restp.scenarios import Spec

_MANIFEST = "sweep.json"
_FORMAT = 1


class FolderError(ValueError):
    """A result folder that is none, or is another sweep's."""


@dataclass(frozen=True)
class Study:
    """What a sweep consists of: results of equal studies are equal."""

    spec: Spec
    seed: int | None
    runs: int | None

    def manifest(self) -> dict[str, Any]:
        return {
            "format": _FORMAT,
            "restp": _restp.__version__,
            "id": self.spec.read().id,
            "title": self.spec.read().title,
            "scenario": self.spec.text,
            "file": self.spec.file,
            "settings": [list(setting) for setting in self.spec.settings],
            "seed": self.seed,
            "runs": self.runs,
        }


class Folder:
    """Results of one study."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)

    def open(self, study: Study) -> None:
        """Makes the folder, or sees that it is of this study."""
        wanted = study.manifest()
        if (self.path / _MANIFEST).exists():
            known = self.manifest()
            # Where the file lies changes no result.
            differ = [key for key in wanted if key != "file" and known.get(key) != wanted[key]]
            if differ:
                what = "; ".join(_difference(key, known.get(key), wanted[key]) for key in differ)
                raise FolderError(
                    f"{self.path}: holds results of another sweep ({what}); name another folder, or remove this one"
                )
            return
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise FolderError(f"{self.path}: is not a folder of results, and not empty; name another folder")
        self.path.mkdir(parents=True, exist_ok=True)
        self._write(_MANIFEST, lambda path: path.write_text(json.dumps(wanted, indent=1), encoding="utf-8"))

    def manifest(self) -> dict[str, Any]:
        """What the folder holds results of."""
        path = self.path / _MANIFEST
        try:
            known = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise FolderError(
                f"{self.path}: there are no results here (no {_MANIFEST}); give the folder of a sweep"
            ) from None
        except ValueError as error:
            raise FolderError(f"{path}: is damaged ({error}); name another folder") from error
        if not isinstance(known, dict) or known.get("format") != _FORMAT:
            raise FolderError(f"{path}: is of another version of restp; name another folder")
        return known

    def add(self, rows: pa.Table) -> None:
        """Adds results; they are there as a whole, or not at all."""
        name = f"part-{uuid.uuid4().hex}.parquet"
        self._write(name, lambda path: pq.write_table(rows, path, compression="zstd"))

    def results(self) -> pa.Table | None:
        """Everything that was added, in the order of points and seeds; None when that is nothing."""
        parts = sorted(self.path.glob("part-*.parquet"))
        tables = []
        for part in parts:
            try:
                tables.append(pq.read_table(part))
            except (pa.ArrowInvalid, OSError) as error:
                raise FolderError(f"{part}: is damaged ({error}); remove it, and its runs are done again") from error
        return in_order(tables) if tables else None

    def _write(self, name: str, write: Any) -> None:
        target, unfinished = self.path / name, self.path / f".{name}.{os.getpid()}"
        try:
            write(unfinished)
            with unfinished.open("rb") as file:
                os.fsync(file.fileno())
            os.replace(unfinished, target)
        except OSError as error:
            unfinished.unlink(missing_ok=True)
            raise OSError(
                error.errno,
                f"{target}: could not be written ({error.strerror or error}); make room or name another folder, "
                "and call again: what is in the folder is kept",
            ) from error


def in_order(tables: list[pa.Table]) -> pa.Table:
    """Results in the order of points and seeds, each once: two who worked on one folder may have done one run twice."""
    rows = pa.concat_tables(tables).sort_by([("point", "ascending"), ("seed", "ascending")])
    keys = list(zip(rows["point"].to_pylist(), rows["seed"].to_pylist(), strict=True))
    first = [i for i, key in enumerate(keys) if i == 0 or key != keys[i - 1]]
    return rows if len(first) == len(rows) else rows.take(first)


def load(folder: str | PathLike[str], *, table: Table = "flows", frame: Frame = "pandas") -> Any:
    """The results in a folder that ``restp.sweep`` filled, also of one that is not complete."""
    frames.check(frame)
    found = Folder(folder)
    found.manifest()
    rows = found.results()
    if rows is None:
        raise FolderError(f"{folder}: no run is finished yet; call restp.sweep with this folder to go on")
    return frames.frame(results.flat(rows, table), frame)


def _difference(key: str, there: Any, here: Any) -> str:
    if key == "scenario":
        return "the text of the scenario"
    if key == "settings":
        known, wanted = dict(there or []), dict(here)
        differ = [name for name in known | wanted if known.get(name) != wanted.get(name)]
        if not differ:
            return "the order of the grid"
        return "; ".join(_difference(name, known.get(name), wanted.get(name)) for name in differ)
    return f"{key} = {_short(there)} there, {_short(here)} here"


def _short(value: Any) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= 60 else text[:57] + "..."
