#!/usr/bin/env python3
"""How long a folder of many files takes over a lossy path: `restp send`, beside rsync and scp over ssh, and croc.

    bench/folder.py [--files 10000] [--mib 2048] [--peers-mib 64] [--croc PROGRAM] [--restp target/release/restp]
                    [--output docs/results/folder.md]

The path is that of `restp emulate --tun`: 50 Mbit/s, 60 ms of round trip, 2 % of packets lost in each direction; the kernel
runs CUBIC. The commands are the plain ones: `restp recv` there, `restp send FOLDER TICKET` here. Kernel TCP is slow on such
a path, so the others get a part of the folder. Sizes are drawn from a log-normal distribution, contents are random.
croc (`go install github.com/schollz/croc/v10@v10.7.0`) is measured where its program is named; its relay stands at the
receiver. Needs root, rsync, ssh with sshd, and `ip`. Exit code 1 when the target is missed, 2 when nothing can be measured.
"""

import argparse
import json
import os
import platform
import random
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import network
import ssh
from report import ROOT, cpu_model, output, table

RATE_MBPS = 50
LINK = f"""rate = "{RATE_MBPS} Mbit/s"
delay = "30 ms"
queue = {{ drop_tail = "bdp" }}
loss = {{ rate = 0.02, direction = "both" }}
"""
FILES_PER_FOLDER = 100
HOLE = "hole.bin"
LIMIT_S = 3600
# Of the rate of the link, headers included.
TARGET = 0.9


def make(folder: Path, files: int, size: int):
    """`files` files of `size` bytes together, with links, modes, times and a hole among them."""
    draw = random.Random(1)
    weights = [draw.lognormvariate(0, 2) for _ in range(files)]
    scale = size / sum(weights)
    for number, weight in enumerate(weights):
        inside = folder / f"part {number // FILES_PER_FOLDER}"
        inside.mkdir(parents=True, exist_ok=True)
        file = inside / f"file {number}.bin"
        file.write_bytes(draw.randbytes(int(weight * scale)))
        if number % 50 == 0:
            file.chmod(0o750)
            os.utime(file, (number, number))
            (inside / f"link {number}").symlink_to(file.name)
    with open(folder / HOLE, "wb") as hole:
        hole.seek(10 << 20)
        hole.write(b"end")


def bytes_in(folder: Path) -> int:
    """Without links, and without the hole, which nobody has to send."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return sum(path.stat().st_size for path in files if path.name != HOLE)


def differences(here: Path, there: Path) -> list[str]:
    """What rsync would change there, by the contents."""
    compare = ["rsync", "-avn", "--checksum", "--delete", "--itemize-changes", f"{here}/", f"{there}/"]
    lines = subprocess.run(compare, capture_output=True, text=True, check=True).stdout.splitlines()
    return [line for line in lines if line and line[0] in "<>c*."]


def restp(net: network.Network, program: str, here: Path, there: Path) -> float:
    there.mkdir()
    receiving = net.inside(1, [program, "recv", "--json", "--once", "--dir", str(there)])
    ticket = network.next_line(receiving, network.START_LIMIT_S)["ticket"]
    threading.Thread(target=receiving.stderr.read, daemon=True).start()
    began = time.monotonic()
    sending = net.inside(0, [program, "send", "--json", str(here), ticket])
    complain = sending.communicate(timeout=LIMIT_S)[1]
    took = time.monotonic() - began
    if sending.returncode != 0:
        raise RuntimeError(f"restp send: {complain}")
    return took


def rsync(server: ssh.Server, here: Path, there: Path):
    subprocess.run(
        [*server.inside, "rsync", "-a", "-e", shlex.join(server.command()), f"{here}/", f"{server.user}:{there}/"],
        check=True,
        timeout=LIMIT_S,
    )


def scp(server: ssh.Server, here: Path, there: Path):
    # Its -p keeps times and modes; the port is -P.
    options = ["-P" if option == "-p" else option for option in server.options]
    command = [*server.inside, "scp", "-q", "-r", "-p", *options, str(here), f"{server.user}:{there}"]
    subprocess.run(command, check=True, timeout=LIMIT_S)


def croc(net: network.Network, program: str, here: Path, there: Path) -> float:
    """Its data crosses the path once, to a relay of its own beside the receiver."""
    there.mkdir()
    relay = ["--relay", f"{network.address(1)}:9009"]
    net.inside(1, [program, "relay", "--host", network.address(1)])
    time.sleep(1)
    own = ["env", "CROC_SECRET=a-folder-of-many-files", program, "--ignore-stdin", "--yes", *relay]
    sending = net.inside(0, [*own, "send", "--no-local", str(here)])
    time.sleep(1)
    began = time.monotonic()
    receiving = net.inside(1, [*own, "--out", str(there)])
    for process in (sending, receiving):
        threading.Thread(target=process.stdout.read, daemon=True).start()
        threading.Thread(target=process.stderr.read, daemon=True).start()
    if receiving.wait(LIMIT_S) or sending.wait(LIMIT_S):
        raise RuntimeError("croc ended with an error")
    return time.monotonic() - began


def timed(action, *words) -> float:
    began = time.monotonic()
    action(*words)
    return time.monotonic() - began


def measure(options: argparse.Namespace) -> list[tuple[str, int, int, float, int]]:
    """Way, files, bytes, seconds and differences."""
    rows = []
    program = os.path.abspath(options.restp)
    with tempfile.TemporaryDirectory(prefix="restp-folder-") as place:
        place = Path(place)
        share = options.peers_mib / options.mib
        whole, part = place / "whole", place / "part"
        make(whole, options.files, options.mib << 20)
        make(part, max(1, int(options.files * share)), options.peers_mib << 20)
        ways = [("`restp send`", whole), ("`restp send`", part), ("rsync over ssh", part), ("scp", part)]
        if options.croc:
            ways.append(("croc", part))
        for number, (way, here) in enumerate(ways):
            there = place / f"there {number}"
            with network.Network(program, "folder", {"A": LINK}, number + 1) as net:
                with tempfile.TemporaryDirectory() as state:
                    os.environ.update(XDG_DATA_HOME=state, XDG_CONFIG_HOME=state)
                    if way in ("`restp send`", "croc"):
                        took = restp(net, program, here, there) if way != "croc" else croc(net, options.croc, here, there)
                        there /= here.name
                    else:
                        server = ssh.Server(net, Path(state))
                        took = timed(rsync if "rsync" in way else scp, server, here, there)
            files = sum(1 for path in here.rglob("*") if path.is_file())
            rows.append((way, files, bytes_in(here), took, len(differences(here, there))))
            print(f"{way}: {rows[-1]}", file=sys.stderr)
    return rows


def mbps(size: int, took: float) -> float:
    return size * 8 / took / 1e6


def page(rows, options: argparse.Namespace, loads: tuple[float, float]) -> str:
    shown = [
        (way, str(files), f"{size / 2**20:.0f}", f"{took:.0f}", f"**{mbps(size, took):.1f}**", str(changes))
        for way, files, size, took, changes in rows
    ]
    share = mbps(rows[0][2], rows[0][3]) / RATE_MBPS
    verdict = "met" if share >= TARGET else "**missed**"
    conditions = [
        ("revision", output("git", "-C", str(ROOT), "describe", "--always", "--dirty")),
        ("machine", f"{cpu_model()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}"),
        ("load average at start and end", f"{loads[0]:.1f}, {loads[1]:.1f}"),
        ("path", f"{RATE_MBPS} Mbit/s, 60 ms of round trip, 2 % lost each way, queue of a bandwidth-delay product"),
        ("rsync", output("rsync", "--version").splitlines()[0]),
        ("ssh", ssh.version()),
    ]
    if options.croc:
        conditions.append(("croc", output(options.croc, "--version")))
    return f"""# A folder of many files

A folder crosses a lossy path: by the plain commands `restp recv` and `restp send FOLDER TICKET`, and by rsync and scp over
ssh, and croc. Their kernel TCP runs CUBIC (croc: four connections at once), and they get a part of the folder because it is
slow here.
Command: `{shlex.join(["python3", "bench/folder.py", *sys.argv[1:]])}`.

{table(["way", "files", "MiB", "seconds", "Mbit/s", "differences"], shown)}

Differences are what `rsync -avn --checksum --delete` finds afterwards: contents, names, modes, times, links. The folder has
symbolic links, other modes, old times, and a file with a hole of 10 MiB, which is not counted: `restp send` does not send
it. scp follows symbolic links; croc leaves the times of folders and links, and its relay stands beside its receiver.

| target | measured | verdict |
| --- | --- | --- |
| ≥ {TARGET:.0%} of the link, headers and losses included | {share:.1%} | {verdict} |

{table(["", ""], conditions)}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--restp", default="target/release/restp")
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--mib", type=int, default=2048)
    parser.add_argument("--peers-mib", type=int, default=64)
    parser.add_argument("--croc", help="its program; without, it is left out")
    parser.add_argument("--output", type=Path, default=ROOT / "docs/results/folder.md")
    options = parser.parse_args()
    why = network.missing_beside_cubic("rsync", "ssh", "sshd", "scp")
    if why:
        print(why, file=sys.stderr)
        return 2
    load = os.getloadavg()[0]
    rows = measure(options)
    options.output.write_text(page(rows, options, (load, os.getloadavg()[0])))
    print(options.output)
    return int(mbps(rows[0][2], rows[0][3]) < TARGET * RATE_MBPS or any(row[4] for row in rows[:2]))


if __name__ == "__main__":
    sys.exit(main())
