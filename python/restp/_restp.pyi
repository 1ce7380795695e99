"""The part of the package that is Rust: conversions over the lab and the endpoint."""

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Literal, final

__all__ = ["RunError", "Scenario", "ScenarioError", "__version__", "interval"]

__version__: str

class ScenarioError(ValueError):
    """A scenario, a change or a grid was refused; the message says what may stand there."""

    key: str
    line: int | None
    file: Path | None

class RunError(RuntimeError):
    """A simulation could not go on; the message says which one, and why."""

_Column = tuple[Literal["integer", "float", "word"], bytes, list[str]]

@final
class Scenario:
    """A scenario of which every point has been validated."""

    def __new__(
        cls, text: str, file: str | PathLike[str] | None = None, settings: Sequence[tuple[str, str]] | None = None
    ) -> Scenario: ...
    @property
    def id(self) -> str: ...
    @property
    def title(self) -> str: ...
    def coordinates(self) -> str: ...
    def flows(self, point: int) -> list[tuple[str, str]]: ...
    def jobs(self, seed: int | None = None, runs: int | None = None) -> list[tuple[int, int]]: ...
    def run(self, jobs: Sequence[tuple[int, int]], threads: int | None, each: Callable[[bytes], object]) -> None: ...
    def trace(
        self, point: int, seed: int, every_ns: int, rows: int, sequence: bool
    ) -> tuple[bytes, dict[str, dict[str, _Column]]]: ...

def interval(values: Sequence[float]) -> tuple[float, float, float] | None: ...
