"""One emulated path between two network namespaces of its own, and the processes at its ends.

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
CLIENT, SERVER = "10.77.0.1", "10.77.0.2"
# The emulator stands above its ends, and both above everything else on the machine: kernel TCP does not wait for a
# processor, so without this a busy machine would decide between protocols in the kernel and those in user space.
EMULATOR, END = ["chrt", "-f", "10"], ["chrt", "-f", "5"]


def missing() -> str | None:
    """Why no path can be built here."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return "there is no /dev/net/tun"
    absent = [tool for tool in ("ip", "chrt", "sysctl") if not shutil.which(tool)]
    return f"not installed: {', '.join(absent)}" if absent else None


class Network:
    """`link` is the TOML of one [[path]] without name and addresses: rate, delay, queue, loss."""

    def __init__(self, restp: str, label: str, link: str, seed: int):
        self.namespaces = [f"restp-{os.getpid()}-{label}-{side}" for side in ("client", "server")]
        self.processes: list[subprocess.Popen] = []
        self.folder = tempfile.TemporaryDirectory(prefix="restp-path-")
        self.command = [*EMULATOR, restp, "emulate", "--tun", "--control", "--json"]
        self.description = (
            f"seed = {seed}\n[tun]\nnamespaces = {json.dumps(self.namespaces)}\n[[path]]\nname = \"p\"\n"
            f'addresses = ["{CLIENT}/24", "{SERVER}/24"]\n{link}\n'
        )
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

    def counters(self) -> dict:
        """Counters of both directions."""
        self.tell("stats")
        return next_line(self.emulator, START_LIMIT_S)["paths"][0]

    def server(self, program: list[str], *options: str, port: int = PORT) -> tuple[subprocess.Popen, list[str]]:
        """Starts a server; returns it with what its client has to be told."""
        listen = ["server", "--listen", f"{SERVER}:{port}"]
        process = self.inside(1, [*program, *listen, *options])
        ready = next_line(process, START_LIMIT_S)
        return process, ["--to", f"{SERVER}:{port}", *ready["client_args"]]

    def client(self, program: list[str], *options: str) -> subprocess.Popen:
        return self.inside(0, [*program, "client", *options])

    def inside(self, side: int, command: list[str]) -> subprocess.Popen:
        process = start(["ip", "netns", "exec", self.namespaces[side], *END, *command])
        self.processes.append(process)
        return process

    def run(self, namespace: str, *command: str) -> None:
        ip("netns", "exec", namespace, *command)


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
