"""A scenario with its changes as a value that can be sent to another process."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from restp import _restp, changes

ScenarioLike = str | PathLike[str]


@dataclass(frozen=True)
class Spec:
    """What a scenario was written as."""

    text: str
    #: Where it was read from: profiles are looked for beside it.
    file: str | None
    #: Changes, as key and TOML value.
    settings: tuple[tuple[str, str], ...]

    @staticmethod
    def of(scenario: ScenarioLike, settings: Iterable[tuple[str, str]]) -> "Spec":
        """From the path of a file, or a text of more than one line."""
        if isinstance(scenario, str) and "\n" in scenario:
            return Spec(scenario, None, tuple(settings))
        path = Path(fspath(scenario))
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError as error:
            raise FileNotFoundError(
                f"{path}: there is no such file; give the path of a scenario file, or its text (several lines of TOML)"
            ) from error
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: not a text ({error}); give the path of a scenario file (TOML)") from error
        return Spec(text, str(path), tuple(settings))

    def read(self) -> _restp.Scenario:
        """The scenario, validated."""
        return _read(self)

    def coordinates(self) -> list[dict[str, Any]]:
        """Where each point lies."""
        points: list[dict[str, Any]] = json.loads(self.read().coordinates())
        return points


def with_changes(scenario: ScenarioLike, named: Mapping[str, Any]) -> Spec:
    """The scenario with keyword arguments of a function as its changes."""
    return Spec.of(scenario, [(changes.key(name), changes.value(given)) for name, given in named.items()])


# A worker gets many jobs of one scenario, and thousands of points take a while to validate.
@lru_cache(maxsize=4)
def _read(spec: Spec) -> _restp.Scenario:
    return _restp.Scenario(spec.text, spec.file, list(spec.settings))
