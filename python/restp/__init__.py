"""ResTP from Python: experiments in virtual time, sweeps over cores and clusters, frames, figures, reports; and
the endpoint for asyncio.

>>> import restp
>>> frame = restp.run("scenarios/restp/bulk-lossy.toml", link__bottleneck__loss__rate=0.02)
>>> frame.groupby("transport")["goodput_bps"].mean()
"""

from restp._restp import ConnectionLost, RunError, ScenarioError, __version__
from restp.aio import Connection, Endpoint, FirstMeetingWarning, PlainWarning, Stream, connect, listen
from restp.lab import run
from restp.reports import ReportError, report
from restp.results import Table
from restp.store import FolderError, load
from restp.sweeps import SweepError, sweep
from restp.traces import Traces, trace

__all__ = [
    "Connection",
    "ConnectionLost",
    "Endpoint",
    "FirstMeetingWarning",
    "FolderError",
    "PlainWarning",
    "ReportError",
    "RunError",
    "ScenarioError",
    "Stream",
    "SweepError",
    "Table",
    "Traces",
    "__version__",
    "connect",
    "listen",
    "load",
    "report",
    "run",
    "sweep",
    "trace",
]
