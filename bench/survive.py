#!/usr/bin/env python3
"""What survives what: a folder whose ends are killed, and programs over `restp pipe` while the link is away.

    bench/survive.py [--mib 256] [--only folder|programs] [--restp target/release/restp] [--output docs/results/survive.md]

The path is that of `restp emulate --tun`: 20 Mbit/s, 60 ms of round trip. During the transfer of a folder either end is
killed (`kill -9`) six times at random, the link goes down twice for 30 s, and the address of the sender is replaced once; a
killed end is started again by the same command. What was sent again is what the line carried more than for the same folder
left in peace. ssh, git and rsync run over `restp pipe` while the link is down for 60 s and the address changes. Needs root,
rsync, ssh with sshd, git and `ip`. Exit code 1 when a target is missed, 2 when nothing can be measured.
"""

import argparse
import os
import platform
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import network
import ssh
from folder import bytes_in, differences, make
from report import ROOT, cpu_model, output, table

LINK = 'rate = "20 Mbit/s"\ndelay = "30 ms"\nqueue = { drop_tail = "bdp" }\n'
PATH = "A"
FILES = 1000
KILLS, OUTAGE_S, PROGRAM_OUTAGE_S = 6, 30, 60
ATTEMPT_LIMIT, LIMIT_S = 20, 1800
# Of the bytes of an undisturbed transfer.
TARGET = 0.03


def carried(net: network.Network) -> int:
    """Bytes that the line took from the sender."""
    return net.counters()[0]["forward"]["offered_bytes"]


class Transfer:
    """A receiver and a sender that are started again when they end early."""

    def __init__(self, net: network.Network, restp: str, here: Path, there: Path):
        self.net, self.restp, self.here = net, restp, here
        # One port, so that a receiver that is started again is found at it.
        self.receive = [restp, "recv", "--json", "--dir", str(there), "--listen", f"{network.address(1)}:7070"]
        self.ticket = self.start_receiver()
        self.attempts = 0
        self.start_sender()

    def start_receiver(self) -> str:
        self.receiver = self.net.inside(1, self.receive)
        ticket = network.next_line(self.receiver, network.START_LIMIT_S)["ticket"]
        drain(self.receiver)
        return ticket

    def start_sender(self):
        self.attempts += 1
        if self.attempts > ATTEMPT_LIMIT:
            raise RuntimeError("the sender was started too often")
        self.sender = self.net.inside(0, [self.restp, "send", "--json", str(self.here), self.ticket])
        drain(self.sender)

    def kill(self, end: str):
        if end == "receiver":
            kill(self.receiver)
            self.start_receiver()
        else:
            kill(self.sender)
            self.start_sender()

    def is_done(self) -> bool:
        """Whoever ended before the transfer was complete is started again, by the same command."""
        code = self.sender.poll()
        if code not in (None, 0):
            self.start_sender()
        return code == 0

    def wait(self, seconds: float) -> bool:
        """For so long, or until it is done."""
        until = time.monotonic() + seconds
        while not self.is_done() and time.monotonic() < until:
            time.sleep(0.1)
        return self.is_done()


def drain(process: subprocess.Popen):
    for pipe in (process.stdout, process.stderr):
        threading.Thread(target=pipe.read, daemon=True).start()


def kill(process: subprocess.Popen):
    """The command itself, which `ip netns exec` and `chrt` have become."""
    process.kill()
    process.wait()


def replace_address(net: network.Network):
    device = f"t{PATH}"
    net.ip(0, "addr", "del", f"{network.address(0)}/24", "dev", device)
    net.ip(0, "addr", "add", "10.77.0.77/24", "dev", device)


def peaceful(restp: str, here: Path, there: Path) -> tuple[int, float]:
    """Bytes on the line and seconds of a transfer that nobody disturbs."""
    with network.Network(restp, "peace", {PATH: LINK}, 1) as net:
        began = time.monotonic()
        if not Transfer(net, restp, here, there).wait(LIMIT_S):
            raise RuntimeError("the undisturbed transfer does not end")
        return carried(net), time.monotonic() - began


def disturbed(restp: str, here: Path, there: Path, span: float) -> dict:
    """The same with kills, outages and another address, at random moments while it would run."""
    draw = random.Random(7)
    events = [("kill", draw.choice(("sender", "receiver"))) for _ in range(KILLS)]
    events += [("outage", None), ("outage", None), ("address", None)]
    draw.shuffle(events)
    with network.Network(restp, "kills", {PATH: LINK}, 2) as net:
        transfer = Transfer(net, restp, here, there)
        story = []
        for what, end in events:
            # All of them, before the bytes are through: an outage stops the clock.
            transfer.wait(draw.uniform(0.5, 1.5) * 0.8 * span / len(events))
            story.append(f"{what} {end}" if end else what)
            if what == "kill":
                transfer.kill(end)
            elif what == "outage":
                net.tell(f"down {PATH}")
                transfer.wait(OUTAGE_S)
                net.tell(f"up {PATH}")
            else:
                replace_address(net)
            if transfer.is_done():
                raise RuntimeError(f"over before {what}; take a larger folder")
        is_done = transfer.wait(LIMIT_S)
        return {"done": is_done, "bytes": carried(net), "attempts": transfer.attempts, "story": story}


def programs(restp: str, place: Path) -> list[tuple[str, str, bool]]:
    """What ran over `restp pipe` through an outage and a change of address, what came of it, and whether it is whole."""
    rows = []
    repository, tree = place / "repository", place / "tree"
    make(tree, 300, 64 << 20)
    subprocess.run(["git", "init", "-q", str(tree)], check=True)
    git = ["git", "-C", str(tree), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "all"], check=True)
    subprocess.run(["git", "clone", "-q", "--bare", str(tree), str(repository)], check=True)
    # Every number once and in order.
    count = "for i in $(seq 900); do echo $i; sleep 0.1; done"
    numbers = "".join(f"{number}\n" for number in range(1, 901)).encode()
    jobs = {
        "ssh, a line each 0.1 s for 90 s": lambda server, via, _: run(server, [*server.command(*via), server.user, count]),
        "git clone, 64 MiB": lambda server, via, there: run(
            server,
            ["git", "-c", f"core.sshCommand={shlex.join(server.command(*via))}", "clone", "-q"]
            + [f"ssh://{server.user}{repository}", str(there)],
        ),
        "rsync, 64 MiB": lambda server, via, there: run(
            server, ["rsync", "-a", "-e", shlex.join(server.command(*via)), f"{server.user}:{tree}/", f"{there}/"]
        ),
    }
    for name, job in jobs.items():
        there = place / name.split(",")[0].replace(" ", "-")
        with network.Network(restp, "pipe", {PATH: LINK}, 3) as net, tempfile.TemporaryDirectory() as folder:
            os.environ.update(XDG_DATA_HOME=folder, XDG_CONFIG_HOME=folder)
            server = ssh.Server(net, Path(folder))
            listen = f"{network.address(1)}:7070"
            target = f"tcp:{network.address(1)}:{ssh.PORT}"
            serving = net.inside(1, [restp, "serve", "--json", "--listen", listen, "--allow", target])
            ticket = network.next_line(serving, network.START_LIMIT_S)["ticket"]
            drain(serving)
            via = ["-o", f"ProxyCommand={restp} pipe {ticket}"]
            disturbing = threading.Thread(target=disturb, args=(net,))
            disturbing.start()
            began = time.monotonic()
            done = job(server, via, there)
            took = time.monotonic() - began
            disturbing.join()
        if name.startswith("ssh"):
            is_whole = done.stdout == numbers
        elif name.startswith("git"):
            is_whole = not differences_of_git(tree, there)
        else:
            is_whole = not differences(tree, there)
        rows.append((name, f"{took:.0f} s, exit code {done.returncode}", is_whole and done.returncode == 0))
        print(rows[-1], done.stderr.decode(errors="replace")[:300], file=sys.stderr)
    return rows


def run(server: ssh.Server, command: list[str]) -> subprocess.CompletedProcess:
    return subprocess.run([*server.inside, *command], capture_output=True, check=False, timeout=LIMIT_S)


def differences_of_git(tree: Path, clone: Path) -> list[str]:
    def git(at: Path, *words: str) -> subprocess.CompletedProcess:
        return subprocess.run(["git", "-C", str(at), *words], capture_output=True, check=False)

    here, there = (git(at, "rev-parse", "HEAD") for at in (tree, clone))
    is_other = there.returncode != 0 or here.stdout != there.stdout
    is_broken = git(clone, "fsck", "--full").returncode != 0
    return ["heads"] * is_other + ["fsck"] * is_broken


def disturb(net: network.Network):
    time.sleep(5)
    net.tell(f"down {PATH}")
    time.sleep(PROGRAM_OUTAGE_S)
    replace_address(net)
    net.tell(f"up {PATH}")


def folder(restp: str, place: Path, mib: int) -> list[tuple[str, str, bool]]:
    here = place / "folder"
    make(here, FILES, mib << 20)
    theirs = [place / "in peace", place / "disturbed"]
    for there in theirs:
        there.mkdir()
    with tempfile.TemporaryDirectory() as state:
        os.environ.update(XDG_DATA_HOME=state, XDG_CONFIG_HOME=state)
        plain, span = peaceful(restp, here, theirs[0])
        result = disturbed(restp, here, theirs[1], span)
    again = result["bytes"] / plain - 1
    changes = differences(here, theirs[1] / here.name)
    story = ", ".join(result["story"])
    print(f"{bytes_in(here)} bytes, {plain} on the line in peace, then {result}; differences: {changes[:5]}", file=sys.stderr)
    return [
        (f"{story}: ends by itself or by the same command", f"sender started {result['attempts']} times", result["done"]),
        (f"sent again in all < {TARGET:.0%}", f"{again:.1%}", again < TARGET),
        ("`rsync -avn --checksum --delete` finds nothing", f"{len(changes)} differences", not changes),
    ]


def page(rows, programs_, options: argparse.Namespace, loads: tuple[float, float]) -> str:
    verdicts = {True: "met", False: "**missed**"}
    conditions = [
        ("revision", output("git", "-C", str(ROOT), "describe", "--always", "--dirty")),
        ("machine", f"{cpu_model()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}"),
        ("load average at start and end", f"{loads[0]:.1f}, {loads[1]:.1f}"),
        ("path", "20 Mbit/s, 60 ms of round trip, queue of a bandwidth-delay product"),
        ("folder", f"{FILES} files, {options.mib} MiB, with links, modes, times and a hole"),
        ("ssh, git", f"{ssh.version()}, {output('git', '--version')}"),
    ]
    return f"""# What survives what

A folder is sent by the plain commands while its ends are killed (`kill -9`), the link is away twice for {OUTAGE_S} s, and the
sender's address is replaced. Programs run over `restp pipe` while the link is away for {PROGRAM_OUTAGE_S} s and comes back with
another address. Command: `python3 bench/survive.py`.

{table(["folder", "measured", "verdict"], [(what, got, verdicts[is_met]) for what, got, is_met in rows])}

{table(["over `restp pipe`", "measured", "nothing lost"], [(what, got, verdicts[is_met]) for what, got, is_met in programs_])}

Sent again is what the line took from the sender beyond what it took for the same folder in peace.

{table(["", ""], conditions)}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--restp", default="target/release/restp")
    parser.add_argument("--mib", type=int, default=256)
    parser.add_argument("--only", choices=("folder", "programs"), help="no page is written")
    parser.add_argument("--output", type=Path, default=ROOT / "docs/results/survive.md")
    options = parser.parse_args()
    absent = [tool for tool in ("rsync", "ssh", "sshd", "git") if not shutil.which(tool)]
    why = network.missing() or (f"not installed: {', '.join(absent)}" if absent else None)
    if why:
        print(why, file=sys.stderr)
        return 2
    load = os.getloadavg()[0]
    restp = os.path.abspath(options.restp)
    with tempfile.TemporaryDirectory(prefix="restp-survive-") as place:
        rows = folder(restp, Path(place), options.mib) if options.only != "programs" else []
        over_pipe = programs(restp, Path(place)) if options.only != "folder" else []
    if not options.only:
        options.output.write_text(page(rows, over_pipe, options, (load, os.getloadavg()[0])))
        print(options.output)
    return int(not all(row[-1] for row in rows + over_pipe))


if __name__ == "__main__":
    sys.exit(main())
