"""Emulated paths between two network namespaces of their own, and the processes at their ends.

Everything is gone when the `with` block ends. Needs root, /dev/net/tun and the `ip` tool; `missing()` says what lacks.
"""

import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path

START_LIMIT_S = 10
PORT = 9001
# The emulator stands above its ends, and both above everything else on the machine: kernel TCP does not wait for a
# processor, so without this a busy machine would decide between protocols in the kernel and those in user space.
EMULATOR, END = ["chrt", "-f", "10"], ["chrt", "-f", "5"]


def missing(*tools: str) -> str | None:
    """Why no path can be built here, or which of `tools` lack."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return "there is no /dev/net/tun"
    absent = [tool for tool in ("ip", "chrt", "sysctl", *tools) if not shutil.which(tool)]
    return f"not installed: {', '.join(absent)}" if absent else None


def missing_beside_cubic(*tools: str) -> str | None:
    """The same where kernel TCP is measured as it is: with CUBIC, as pages say."""
    control = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
    return missing(*tools) or (None if control == "cubic" else f"the kernel's TCP runs {control}, not cubic")


def address(side: int, path: int = 0) -> str:
    """Of the client's (0) or server's (1) end of a path."""
    return f"10.77.{path}.{side + 1}"


class Network:
    """`links`: the TOML of each [[path]], by its name, without that and addresses: rate, delay, queue, loss.

    The devices of a path are called "t" and its name; a namespace has no routes but those to its devices' other ends.
    """

    def __init__(self, restp: str, label: str, links: dict[str, str], seed: int):
        self.namespaces = [f"restp-{os.getpid()}-{label}-{side}" for side in ("client", "server")]
        self.processes: list[subprocess.Popen] = []
        self.folder = tempfile.TemporaryDirectory(prefix="restp-path-")
        self.command = [*EMULATOR, restp, "emulate", "--tun", "--control", "--json"]
        paths = "".join(
            f'[[path]]\nname = "{name}"\naddresses = ["{address(0, path)}/24", "{address(1, path)}/24"]\n{link}\n'
            for path, (name, link) in enumerate(links.items())
        )
        self.description = f"seed = {seed}\n[tun]\nnamespaces = {json.dumps(self.namespaces)}\n{paths}"
        self.emulator: subprocess.Popen | None = None

    def __enter__(self) -> "Network":
        try:
            for namespace in self.namespaces:
                ip("netns", "add", namespace)
                ip("-n", namespace, "link", "set", "lo", "up")
                # Fast Open at both ends, for every listener; no memory of earlier connections but its cookies.
                self.run(namespace, "sysctl", "-qw", "net.ipv4.tcp_fastopen=1027", "net.ipv4.tcp_no_metrics_save=1")
            description = Path(self.folder.name) / "net.toml"
            description.write_text(self.description)
            self.emulator = start([*self.command, str(description)])
            self.processes.append(self.emulator)
            next_line(self.emulator, START_LIMIT_S)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_) -> None:
        for process in reversed(self.processes):
            if process.poll() is None:
                process.kill()
            process.wait()
            for pipe in filter(None, (process.stdin, process.stdout, process.stderr)):
                try:
                    pipe.close()
                except OSError:
                    pass  # what could not be flushed to it any more
        for namespace in self.namespaces:
            subprocess.run(["ip", "netns", "delete", namespace], check=False, capture_output=True)
        self.folder.cleanup()

    def tell(self, command: str) -> float:
        """Gives the emulator a command; returns the moment, in seconds of CLOCK_MONOTONIC."""
        at = time.monotonic()
        self.emulator.stdin.write(command + "\n")
        self.emulator.stdin.flush()
        return at

    def counters(self) -> list[dict]:
        """Of every path those of both directions."""
        self.tell("stats")
        return next_line(self.emulator, START_LIMIT_S)["paths"]

    def server(self, program: list[str], *options: str, port: int = PORT) -> tuple[subprocess.Popen, list[str]]:
        """Starts a server on the first path; returns it with what its client has to be told."""
        at = f"{address(1)}:{port}"
        process, found = self.listen(program, [at], *options)
        return process, ["--to", at, *found]

    def listen(self, program: list[str], at: list[str], *options: str) -> tuple[subprocess.Popen, list[str]]:
        """Starts a server at some addresses; returns it with what its client has to be told besides them."""
        process = self.inside(1, [*program, "server", *repeated("--listen", at), *options])
        return process, next_line(process, START_LIMIT_S)["client_args"]

    def client(self, program: list[str], *options: str) -> subprocess.Popen:
        return self.inside(0, [*program, "client", *options])

    def inside(self, side: int, command: list[str]) -> subprocess.Popen:
        process = start(["ip", "netns", "exec", self.namespaces[side], *END, *command])
        self.processes.append(process)
        return process

    def ip(self, side: int, *arguments: str) -> None:
        """The `ip` tool in the client's (0) or server's (1) namespace."""
        ip("-n", self.namespaces[side], *arguments)

    def run(self, namespace: str, *command: str) -> None:
        ip("netns", "exec", namespace, *command)


def repeated(option: str, values: list[str]) -> list[str]:
    return [word for value in values for word in (option, value)]


def ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")


def start(command: list[str]) -> subprocess.Popen:
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def next_line(process: subprocess.Popen, limit_s: float) -> dict:
    """The next JSON line; RuntimeError when none comes in time, with what the process said. It is then ended."""
    alarm = threading.Timer(limit_s, process.kill)
    alarm.start()
    line = process.stdout.readline()
    alarm.cancel()
    if not line:
        process.kill()
        said = process.stderr.read().strip()
        raise RuntimeError(said.splitlines()[0] if said else f"no line within {limit_s:g} s")
    return json.loads(line)
