#!/usr/bin/env python3
"""How long headless Chromium takes for a page of 50 objects: through `restp forward --socks`, and over kernel TCP.

    bench/browse.py [--loads 30] [--restp target/release/restp] [--output docs/results/browse.md]

Each load is a fresh browser with an empty cache; the two ways take turns, so that a change of the machine's load meets
both. The path is that of `restp emulate --tun`: 20 Mbit/s, 100 ms of round trip, 2 % of packets lost in each direction;
the kernel runs CUBIC. When everything is there the page says how long that took since its navigation began. Needs root,
chromium and `ip`. Exit code 1 when the target is missed, 2 when nothing can be measured.
"""

import argparse
import json
import os
import platform
import random
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import network
from report import ROOT, cpu_model, output, spread, table

LINK = """rate = "20 Mbit/s"
delay = "50 ms"
queue = { drop_tail = "bdp" }
loss = { rate = 0.02, direction = "both" }
"""
OBJECTS, PAGE_BYTES = 50, 1_500_000
PORT, PROXY = 8000, 1080
LOAD_LIMIT_S, START_MS = 90, 3000
FORWARD = "`restp forward --socks`"
NAMES = {"TCP": "kernel TCP, CUBIC", "ResTP": FORWARD, "HARQ": f"{FORWARD} with `--set reliability=harq`"}
# Of forward, in the order of their ports.
OPTIONS = {"ResTP": [], "HARQ": ["--set", "reliability=harq"]}
# Of the median through ResTP to that over TCP.
TARGET = 0.6
REPORT = """
addEventListener("load", () => {
  const { loadEventStart, navigationStart } = performance.timing;
  fetch("/done?" + (loadEventStart - navigationStart));
});
"""
BROWSER = "chromium --headless=new --no-sandbox --disable-gpu --no-first-run --disable-background-networking"
BROWSER += " --disable-extensions --disable-sync --disable-component-update --remote-debugging-port=0"


def sizes() -> list[int]:
    """Of the objects: a few large, most small, as on pages of the web; the same in every run."""
    chance = random.Random(50)
    weights = [chance.lognormvariate(0, 1.2) for _ in range(OBJECTS)]
    return [max(200, round(PAGE_BYTES * weight / sum(weights))) for weight in weights]


def image(size: int) -> bytes:
    """A PNG of one pixel with a private chunk that makes it as large: what is no image is not read to its end."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
    pixel = chunk(b"IDAT", zlib.compress(b"\0\0"))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"resT", os.urandom(size)) + pixel + chunk(b"IEND", b"")


class Page(BaseHTTPRequestHandler):
    """Serves the page, its objects, and takes the word of who has loaded it."""

    protocol_version = "HTTP/1.1"
    bodies = [image(size) for size in sizes()]

    def do_GET(self):  # noqa: N802: the library's name
        kind = "image/png"
        if self.path.startswith("/done?"):
            print(json.dumps({"load_ms": float(self.path.partition("?")[2])}), flush=True)
            kind, body = "text/plain", b""
        elif self.path == "/":
            images = "".join(f'<img src="/{at}" width=1 height=1>' for at in range(OBJECTS))
            kind, body = "text/html", f"<!doctype html><script>{REPORT}</script>{images}".encode()
        else:
            name = self.path[1:]
            body = self.bodies[int(name)] if name.isdigit() and int(name) < OBJECTS else b""
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Nothing: standard output is for results."""


def serve():
    server = ThreadingHTTPServer((network.address(1), PORT), Page)
    server.daemon_threads = True
    print(json.dumps({"listening": PORT}), flush=True)
    server.serve_forever()


def load(net: network.Network, site: subprocess.Popen, proxy: int | None) -> float:
    """One load through the proxy of this port, in milliseconds."""
    with tempfile.TemporaryDirectory(prefix="restp-browser-") as profile:
        words = [*BROWSER.split(), f"--user-data-dir={profile}"]
        if proxy:
            words += [f"--proxy-server=socks5://127.0.0.1:{proxy}", "--proxy-bypass-list=<-loopback>"]
        # What the browser does when it starts is over by then.
        start = Path(profile) / "start.html"
        page = f"http://{network.address(1)}:{PORT}/"
        start.write_text(f"<script>setTimeout(() => location.href = '{page}', {START_MS})</script>")
        inside = ["ip", "netns", "exec", net.namespaces[0], *words, start.as_uri()]
        nowhere = subprocess.DEVNULL
        browser = subprocess.Popen(inside, stdout=nowhere, stderr=nowhere, start_new_session=True)
        try:
            return network.next_line(site, LOAD_LIMIT_S)["load_ms"]
        finally:
            os.killpg(browser.pid, 9)
            browser.wait()
            time.sleep(0.5)  # its connections end


def measure(restp: str, loads: int) -> dict[str, list[float]]:
    taken: dict[str, list[float]] = {way: [] for way in NAMES}
    with network.Network(restp, "browse", {"A": LINK}, 1) as net, tempfile.TemporaryDirectory() as folder:
        os.environ.update(XDG_DATA_HOME=folder, XDG_CONFIG_HOME=folder)
        site = net.inside(1, [sys.executable, __file__, "--serve"])
        network.next_line(site, network.START_LIMIT_S)
        allow = ["--allow", f"tcp:{network.address(1)}:{PORT}"]
        serving = net.inside(1, [restp, "serve", "--json", "--listen", f"{network.address(1)}:7070", *allow])
        ticket = network.next_line(serving, network.START_LIMIT_S)["ticket"]
        ports = {way: PROXY + at for at, way in enumerate(OPTIONS)}
        for way, port in ports.items():
            forward = [restp, "forward", "--json", ticket, "--socks", str(port), *OPTIONS[way]]
            network.next_line(net.inside(0, forward), network.START_LIMIT_S)
        for process in net.processes:
            if process not in (net.emulator, site):
                threading.Thread(target=process.stderr.read, daemon=True).start()
        for number in range(loads):
            for way, times in taken.items():
                times.append(load(net, site, ports.get(way)))
            last = ", ".join(f"{way} {times[-1]:.0f} ms" for way, times in taken.items())
            print(f"load {number + 1} of {loads}: {last}", file=sys.stderr)
    return taken


def page(taken: dict[str, list[float]], loads: tuple[float, float]) -> str:
    """Of the results."""
    tcp = statistics.median(taken["TCP"])
    ratios = {way: statistics.median(taken[way]) / tcp for way in OPTIONS}
    rows = [(name, spread(taken[way], 0)) for way, name in NAMES.items()]
    verdicts = {True: "met", False: "**missed**"}
    met = [
        (f"median of {NAMES[way]} ≤ {TARGET} of that of TCP", f"{ratio:.2f}", verdicts[ratio <= TARGET])
        for way, ratio in ratios.items()
    ]
    conditions = [
        ("revision", output("git", "-C", str(ROOT), "describe", "--always", "--dirty")),
        ("machine", f"{cpu_model()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}"),
        ("load average at start and end", f"{loads[0]:.1f}, {loads[1]:.1f}"),
        ("browser", output("chromium", "--version")),
        ("loads", f"{len(taken['TCP'])} of each, in turns"),
        ("path", "20 Mbit/s, 100 ms of round trip, 2 % lost each way, queue of a bandwidth-delay product"),
        ("page", f"{OBJECTS} objects, {PAGE_BYTES / 1e6} MB together, HTTP/1.1"),
    ]
    return f"""# A page of {OBJECTS} objects in a browser

Headless Chromium with an empty cache loads a page from beyond a lossy path. Command: `python3 bench/browse.py`.

{table(["way", "time to load, ms: least – median – most"], rows)}

{table(["target", "measured", "verdict"], met)}

Redundancy spares the round trip of a retransmission; without losses it costs a bulk
transfer 8 % of its rate (`restp sim scenarios/adapt/redundancy.toml`).

{table(["", ""], conditions)}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--restp", default="target/release/restp")
    parser.add_argument("--loads", type=int, default=30)
    parser.add_argument("--output", type=Path, default=ROOT / "docs/results/browse.md")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
    why = network.missing_beside_cubic("chromium")
    if why:
        print(why, file=sys.stderr)
        return 2
    load = os.getloadavg()[0]
    taken = measure(os.path.abspath(options.restp), options.loads)
    options.output.write_text(page(taken, (load, os.getloadavg()[0])))
    ratio = statistics.median(taken["ResTP"]) / statistics.median(taken["TCP"])
    print(f"{ratio:.2f} of the time over TCP; {options.output}")
    return int(ratio > TARGET)


if __name__ == "__main__":
    sys.exit(main())
