"""The part of the package that is Rust: conversions over the lab and the endpoint."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Literal, final

__all__ = [
    "Connection",
    "ConnectionLost",
    "Endpoint",
    "RunError",
    "Scenario",
    "ScenarioError",
    "__version__",
    "command",
    "interval",
]

__version__: str

class ConnectionLost(ConnectionError):
    """A connection was not opened, or ended otherwise than in good order; the message says why."""

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
    def media(self, point: int) -> str: ...
    def measured(self, point: int) -> tuple[float, float]: ...
    def jobs(self, seed: int | None = None, runs: int | None = None) -> list[tuple[int, int]]: ...
    def run(self, jobs: Sequence[tuple[int, int]], threads: int | None, each: Callable[[bytes], object]) -> None: ...
    def trace(
        self, point: int, seed: int, every_ns: int, rows: int, noted: tuple[bool, tuple[int, int]]
    ) -> tuple[bytes, dict[str, dict[str, _Column]]]: ...

@final
class Connection:
    """One connection; one task may send while another receives."""

    def send(self, data: bytes) -> Awaitable[None]: ...
    def send_on(self, data: bytes, local: str, remote: str) -> Awaitable[None]: ...
    def paths(self) -> list[tuple[str, str]]: ...
    def recv(self) -> Awaitable[bytes | None]: ...
    def reconfigure(self, set: Sequence[tuple[str, str]]) -> Literal["nothing", "local", "agreed"]: ...
    def changes(self) -> list[tuple[str, str, str, str]]: ...
    def finish(self) -> None: ...
    def abort(self) -> None: ...
    def close(self) -> Awaitable[None]: ...
    def path_event(self) -> Awaitable[tuple[str, str, str] | None]: ...
    @property
    def peer_key(self) -> str | None: ...
    def stats(self) -> dict[str, float | int | None]: ...

@final
class Endpoint:
    """A host's transport on real sockets."""

    def __new__(
        cls,
        local: Sequence[str],
        profile: str,
        set: Sequence[tuple[str, str]],
        serve: int | None = None,
        secret: str | None = None,
        plain: bool = False,
        reaches: Mapping[str, object] | None = None,
    ) -> Endpoint: ...
    @property
    def addresses(self) -> list[str]: ...
    @property
    def key(self) -> str | None: ...
    def connect(self, remote: Sequence[str], port: int) -> Awaitable[Connection]: ...
    def met(self) -> list[tuple[str, str, Path]]: ...
    def accept(self) -> Awaitable[Connection | None]: ...
    def close(self) -> Awaitable[None]: ...

def interval(values: Sequence[float]) -> tuple[float, float, float] | None: ...

def command(words: Sequence[str]) -> int:
    """Runs the command ``restp`` with these words, its name first, and returns its exit code."""
