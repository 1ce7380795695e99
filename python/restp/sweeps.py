"""A scenario over a grid, on all cores here or on the workers of a cluster, with the same results."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from os import PathLike
from typing import Any

import pyarrow as pa
from tqdm import tqdm

from restp import _restp, changes, frames, results
from restp.frames import Frame
from restp.results import Table
from restp.scenarios import ScenarioLike, Spec
from restp.store import Folder, Study, in_order

_Jobs = list[tuple[int, int]]

#: Finished runs are written to the folder this often.
_SAVE_EVERY_S = 2.0
#: Batches of a cluster: enough for every worker to get several, so that none waits long for the last.
_BATCHES_PER_WORKER = 16
_LARGEST_BATCH = 256


class SweepError(RuntimeError):
    """A sweep could not go on; what was finished is in its folder."""


def sweep(
    scenario: ScenarioLike,
    grid: Mapping[str, Iterable[Any]],
    client: Any = None,
    *,
    folder: str | PathLike[str] | None = None,
    table: Table = "flows",
    frame: Frame = "pandas",
    seed: int | None = None,
    runs: int | None = None,
    threads: int | None = None,
    progress: bool = True,
) -> Any:
    """Run a scenario at every point of a grid with every seed, and return a frame as ``restp.run`` does.

    ``grid`` maps keys of the scenario to lists of values. All cores of this machine work, or, with a ``client`` of
    ``dask.distributed``, the workers of its cluster; the frame is the same. A ``folder`` keeps what is finished, as
    Parquet: the same call goes on where the last one ended, whatever ended it.

    Raises ``ScenarioError`` for a key or value that does not exist, ``FolderError`` for a folder of another sweep,
    ``SweepError`` when the cluster fails, ``OSError`` when the folder cannot be written, and ``RunError``.
    """
    frames.check(frame)
    spec = Spec.of(scenario, changes.axes(grid))
    built = spec.read()
    jobs = built.jobs(seed, runs)
    places = results.axes(spec.coordinates())
    saved = _Saved(folder, Study(spec, seed, runs), lambda rows: results.located(rows, built.id, places))
    left = [job for job in jobs if job not in saved.done]
    with tqdm(total=len(jobs), initial=len(jobs) - len(left), desc=built.id, unit="run", disable=not progress) as bar:

        def take(lines: list[bytes]) -> None:
            saved.take(lines)
            bar.update(len(lines))

        try:
            if client is None:
                built.run(left, threads, lambda line: take([line]))
            else:
                for lines in _on_cluster(client, spec, left):
                    take(lines)
        finally:
            # Also of a sweep that was stopped.
            saved.save()
    return frames.frame(results.flat(saved.results(), table), frame)


class _Saved:
    """Results so far: in the folder, and since the last writing."""

    def __init__(self, path: str | PathLike[str] | None, study: Study, locate: Callable[[pa.Table], pa.Table]) -> None:
        self._locate = locate
        self._fresh: list[bytes] = []
        self._tables = [locate(results.parse([]))]
        self._folder = None if path is None else Folder(path)
        self._saved_at = time.monotonic()
        self.done: set[tuple[int, int]] = set()
        if self._folder is not None:
            self._folder.open(study)
            if (known := self._folder.results()) is not None:
                self._tables.append(known)
                self.done = set(zip(known["point"].to_pylist(), known["seed"].to_pylist(), strict=True))

    def take(self, lines: list[bytes]) -> None:
        self._fresh += lines
        if self._folder is not None and time.monotonic() - self._saved_at >= _SAVE_EVERY_S:
            self.save()

    def save(self) -> None:
        if self._fresh:
            rows = self._locate(results.parse(self._fresh))
            self._tables.append(rows)
            self._fresh = []
            if self._folder is not None:
                self._folder.add(rows)
        self._saved_at = time.monotonic()

    def results(self) -> pa.Table:
        return in_order(self._tables)


def _on_cluster(client: Any, spec: Spec, jobs: _Jobs) -> Iterator[list[bytes]]:
    """The results of batches as workers finish them."""
    from distributed import KilledWorker, as_completed
    from distributed.client import FutureCancelledError

    workers = sum(client.nthreads().values()) or 1
    size = min(_LARGEST_BATCH, max(1, len(jobs) // (workers * _BATCHES_PER_WORKER)))
    batches = [jobs[start : start + size] for start in range(0, len(jobs), size)]
    # The scenario goes with each batch: what is scattered dies with the workers that hold it.
    futures = client.map(_work, [(spec, _restp.__version__, batch) for batch in batches], pure=False)
    try:
        for _, lines in as_completed(futures, with_results=True):  # type: ignore[no-untyped-call]
            yield lines
    except (KilledWorker, FutureCancelledError, OSError) as error:
        raise SweepError(
            f"the cluster failed ({error}); give workers more memory or start new ones, and call again: "
            "with folder=... finished runs are kept"
        ) from error
    finally:
        client.cancel(futures)


def _work(task: tuple[Spec, str, _Jobs]) -> list[bytes]:
    """Does one batch, on a worker."""
    spec, version, jobs = task
    if version != _restp.__version__:
        raise SweepError(
            f"a worker has restp {_restp.__version__} and this sweep is of {version} (process {os.getpid()}); "
            "install the same on all"
        )
    lines: list[bytes] = []
    spec.read().run(jobs, 1, lines.append)
    return lines
