"""The command ``restp`` of an installed package."""

import os
import signal
import sys
from pathlib import Path

from restp import _restp

#: The experiments of the project, as they are installed beside it.
SCENARIOS = Path(sys.prefix) / "share/restp/scenarios"


def main() -> int:
    """Exit codes are those of the command: 0 done, 1 failed in operation, 2 bad usage or bad input."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the command minds it, not the interpreter
    os.environ.setdefault("RESTP_PYTHON", sys.executable)
    if not Path("scenarios").is_dir():
        os.environ.setdefault("RESTP_SCENARIOS", str(SCENARIOS))
    return _restp.command(["restp", *sys.argv[1:]])
