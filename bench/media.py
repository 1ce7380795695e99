#!/usr/bin/env python3
"""Live media of real programs: ffmpeg through `restp forward --udp --deadline` over two links, beside SRT over one.

    bench/media.py [--seconds 12] [--rounds 3] [--only WORDS] [--restp target/release/restp] [--output PAGE]

ffmpeg encodes a test picture to MPEG-TS over UDP at a constant rate. What it sends passes a tap, a sender and a
receiver, and ends in a second tap; both note when which datagram came, so the delay is that between them, by one clock.
The links are those of `restp emulate --tun`. Needs root, ffmpeg, srt-live-transmit and `ip`. Exit code 1 when a target
is missed, 2 when nothing can be measured.
"""

import argparse
import collections
import hashlib
import json
import os
import platform
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import network
from report import ROOT, cpu_model, output, spread, table

LINK_MBPS, LOSS, DEADLINE_MS = 5, 0.01, 300
DELAYS_MS = {"A": 20, "B": 35}
# Of a whole run, from when to when link A is dead.
DEATH = (0.4, 0.7)
BYTES, UDP_IP_BYTES = 1316, 28
# What a link carries of datagrams, were there no header but those of UDP and IP, and only what was lost sent again.
CARRIES_MBPS = LINK_MBPS * BYTES / (BYTES + UDP_IP_BYTES) * (1 - LOSS)
# SRT hands on a packet so long after it comes at the earliest: with the 20 ms of link A that is 20 ms before the
# deadline, which are for queues and timers. With 10 ms an eighth of its packets came up to 2 ms late.
SRT_LATENCY_MS = DEADLINE_MS - DELAYS_MS["A"] - 20
RESTP, SRT = "ResTP", "SRT"
LINKS = {RESTP: "AB", SRT: "A"}
# Who carries how many Mbit/s, and does A die for a time?
CASES = {
    "ResTP over A and B, 6 Mbit/s": (RESTP, 6, False),
    "ResTP over A and B, 6 Mbit/s, A dies": (RESTP, 6, True),
    "ResTP over A and B, 4 Mbit/s, A dies": (RESTP, 4, True),
    "SRT over A, 6 Mbit/s": (SRT, 6, False),
    "SRT over A, 4 Mbit/s": (SRT, 4, False),
    "SRT over A, 4 Mbit/s, A dies": (SRT, 4, True),
}
TARGET = 0.999
IN, TAPPED, OUT = 5002, 5003, 5004


class Run:
    """Media of so many seconds from the left to the right."""

    def __init__(self, net: network.Network, restp: str, seconds: float):
        self.net, self.restp, self.seconds = net, restp, seconds

    def measure(self, carrier: str, mbps: float, dies: bool) -> dict:
        sink = self.tap(1, OUT)
        (self.forward if carrier == RESTP else self.srt)()
        tap = self.tap(0, IN, TAPPED)
        encoder = self.net.inside(0, encode(mbps, self.seconds))
        if dies:
            begin, end = (share * self.seconds for share in DEATH)
            time.sleep(begin)
            self.net.tell("set A loss=1 reverse_loss=1")
            time.sleep(end - begin)
            self.net.tell(f"set A loss={LOSS} reverse_loss={LOSS}")
        said = encoder.communicate(timeout=self.seconds * 3 + 30)[1]
        if encoder.returncode != 0:
            raise RuntimeError(f"ffmpeg: {said.strip()}")
        time.sleep(3 * DEADLINE_MS / 1e3)
        return judge(*(seen(process) for process in (tap, sink)))

    def tap(self, side: int, *ports: int) -> subprocess.Popen:
        process = self.net.inside(side, [sys.executable, __file__, "--tap", *map(str, ports)])
        network.next_line(process, network.START_LIMIT_S)
        return process

    def forward(self):
        listen = network.repeated("--listen", [f"{network.address(1, path)}:7070" for path in (0, 1)])
        serving = self.net.inside(1, [self.restp, "serve", "--json", *listen, "--allow", f"udp:127.0.0.1:{OUT}"])
        ticket = network.next_line(serving, network.START_LIMIT_S)["ticket"]
        rule = ["--udp", f"{TAPPED}:127.0.0.1:{OUT}", "--deadline", f"{DEADLINE_MS}ms", "--bind", "tA", "--bind", "tB"]
        forwarding = self.net.inside(0, [self.restp, "forward", "--json", ticket, *rule])
        network.next_line(forwarding, network.START_LIMIT_S)

    def srt(self):
        at = f"srt://{network.address(1)}:{network.PORT}"
        options = f"latency={SRT_LATENCY_MS}"
        transmit = ["srt-live-transmit", "-quiet", f"-chunk:{BYTES}"]
        self.net.inside(1, [*transmit, f"{at}?mode=listener&{options}", f"udp://127.0.0.1:{OUT}"])
        time.sleep(0.5)
        self.net.inside(0, [*transmit, f"udp://127.0.0.1:{TAPPED}", f"{at}?mode=caller&{options}"])
        time.sleep(1)


def encode(mbps: float, seconds: float) -> list[str]:
    """Noise in the picture fills the rate, so that next to no datagram is nothing but padding."""
    source = "testsrc2=size=640x360:rate=25,noise=alls=40:allf=t"
    video = f"{mbps * 0.95:g}M"
    return [
        *["ffmpeg", "-nostdin", "-loglevel", "error", "-re", "-f", "lavfi", "-i", source, "-t", f"{seconds:g}"],
        *["-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-g", "25", "-x264-params", "nal-hrd=cbr"],
        *["-b:v", video, "-minrate", video, "-maxrate", video, "-bufsize", "0.6M"],
        *["-muxrate", f"{mbps:g}M", "-f", "mpegts"],
        f"udp://127.0.0.1:{IN}?pkt_size={BYTES}&bitrate={mbps * 1e6:.0f}",
    ]


def tap(listen: int, to: int | None = None):
    """Passes on unchanged what comes, and at SIGINT says when which came."""
    came = []
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    end.bind(("127.0.0.1", listen))
    print(json.dumps({"listening": listen}), flush=True)
    try:
        while True:
            datagram = end.recv(2000)
            came.append((time.monotonic(), datagram))
            if to:
                end.sendto(datagram, ("127.0.0.1", to))
    except KeyboardInterrupt:
        print(json.dumps([(at, hashlib.blake2b(datagram, digest_size=8).hexdigest()) for at, datagram in came]))


def seen(tap: subprocess.Popen) -> list[tuple[float, str]]:
    tap.send_signal(signal.SIGINT)
    return json.loads(tap.communicate(timeout=30)[0])


def judge(sent: list[tuple[float, str]], arrived: list[tuple[float, str]]) -> dict:
    """Datagrams that equal another one, of padding alone, cannot be told apart and are not counted."""
    alike = collections.Counter(name for _, name in sent)
    left = {name: at for at, name in sent if alike[name] == 1}
    first = {name: at for at, name in reversed(arrived) if name in left}
    waits = sorted((at - left[name]) * 1e3 for name, at in first.items()) or [float("nan")]
    return {
        "counted": len(left),
        "alike": 1 - len(left) / len(sent),
        "arrived": len(first) / len(left),
        "in_time": sum(wait <= DEADLINE_MS for wait in waits) / len(left),
        "median_ms": statistics.median(waits),
        "p99_ms": waits[int(len(waits) * 0.99)],
    }


def measure(restp: str, seconds: float, rounds: int, only: str) -> dict[str, list[dict]]:
    taken: dict[str, list[dict]] = {case: [] for case in CASES if only in case}
    queue = 'queue = { drop_tail = "bdp" }'
    link = f'rate = "{LINK_MBPS} Mbit/s"\n{queue}\nloss = {{ rate = {LOSS}, direction = "both" }}\n'
    links = {name: f'delay = "{delay} ms"\n{link}' for name, delay in DELAYS_MS.items()}
    for number in range(rounds):
        for case, samples in taken.items():
            with network.Network(restp, "media", links, number + 1) as net, tempfile.TemporaryDirectory() as folder:
                os.environ.update(XDG_DATA_HOME=folder, XDG_CONFIG_HOME=folder)
                samples.append(Run(net, restp, seconds).measure(*CASES[case]))
            print(case, json.dumps(samples[-1]), file=sys.stderr)
    return taken


def possible(carrier: str, mbps: float, dies: bool, seconds: float) -> float:
    """The share that may come in time, whoever sends: what the links cannot carry is lost, but for what waits."""
    dead_s = (DEATH[1] - DEATH[0]) * seconds if dies else 0
    links = len(LINKS[carrier])
    spans = ((links, seconds - dead_s), (links - 1, dead_s))
    too_much = sum(max(mbps - living * CARRIES_MBPS, 0) * span for living, span in spans)
    may_wait = mbps * (DEADLINE_MS - min(DELAYS_MS.values())) / 1e3
    return 1 - max(too_much - may_wait, 0) / (mbps * seconds)


def targets(taken: dict[str, list[dict]], seconds: float) -> list[tuple[str, float, bool]]:
    """Of ResTP, where everything can come in time."""
    shares = {case: statistics.median(sample["in_time"] for sample in samples) for case, samples in taken.items()}
    whole = [case for case, what in CASES.items() if what[0] == RESTP and possible(*what, seconds) == 1]
    return [(case, shares[case], shares[case] >= TARGET) for case in whole]


def page(taken: dict[str, list[dict]], seconds: float, loads: tuple[float, float]) -> str:
    rows = []
    for case, samples in taken.items():
        of = {key: [sample[key] for sample in samples] for key in samples[0]}
        in_time = spread([share * 100 for share in of["in_time"]])
        most = f"{possible(*CASES[case], seconds):.1%}"
        waits = [f"{statistics.median(of[key]):.0f}" for key in ("median_ms", "p99_ms")]
        rows.append((case, in_time, most, f"{statistics.median(of['arrived']):.2%}", *waits))
    verdicts = {True: "met", False: "**missed**"}
    found = targets(taken, seconds)
    met = [(f"{case}: ≥ {TARGET:.1%} in time", f"{share:.2%}", verdicts[is_met]) for case, share, is_met in found]
    alike = max(sample["alike"] for samples in taken.values() for sample in samples)
    begin, end = (share * seconds for share in DEATH)
    delays = ", ".join(f"{name} {delay} ms one way" for name, delay in DELAYS_MS.items())
    conditions = [
        ("revision", output("git", "-C", str(ROOT), "describe", "--always", "--dirty")),
        ("machine", f"{cpu_model()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}"),
        ("load average at start and end", f"{loads[0]:.1f}, {loads[1]:.1f}"),
        ("runs", f"{len(next(iter(taken.values())))} of each, in turns, {seconds:g} s, from the first datagram on"),
        ("links", f"{LINK_MBPS} Mbit/s, {LOSS:.0%} lost each way, queue of a bandwidth-delay product; {delays}"),
        ("A dies", f"it carries nothing from {begin:.1f} s to {end:.1f} s; no end is told"),
        ("media", f"{output('ffmpeg', '-version').split(' Copyright')[0]}, H.264 in MPEG-TS, {BYTES} bytes a datagram"),
        ("ResTP", f"`restp forward --udp … --deadline {DEADLINE_MS}ms --bind tA --bind tB`, `restp serve`"),
        ("SRT", f"srt-live-transmit {srt_version()}, caller and listener, latency {SRT_LATENCY_MS} ms"),
    ]
    head = [
        "who, what",
        "in time, %: least – median – most",
        "possible",
        "arrived",
        "median delay, ms",
        "99 of 100, ms",
    ]
    may_wait_ms = DEADLINE_MS - min(DELAYS_MS.values())
    fixed_ms = SRT_LATENCY_MS + DELAYS_MS["A"]
    return f"""# Live media of real programs

ffmpeg sends MPEG-TS at a constant rate through `restp forward --udp --deadline` over two links, beside SRT over the
better one of them. In time is what arrives within {DEADLINE_MS} ms after ffmpeg has sent it. Command:
`make bench-media`.

{table(head, rows)}

{table(["target", "measured", "verdict"], met)}

What is possible follows from the links. One of {LINK_MBPS} Mbit/s carries {CARRIES_MBPS:.2f} Mbit/s of datagrams:
headers of UDP and IP take {UDP_IP_BYTES} bytes of {BYTES + UDP_IP_BYTES}, and what is lost has to be sent again. So
6 Mbit/s need both links; while A is dead at least {6 - CARRIES_MBPS:.2f} Mbit/s are lost, whoever sends, but for
the last datagrams before A is back, which may wait {may_wait_ms} ms for it. Headers of ResTP and SRT are not reckoned.

SRT hands on each packet a fixed time after it was sent, repaired or not: the delay of A, and its latency. Both make
{fixed_ms} ms; the {DEADLINE_MS - fixed_ms} ms up to the deadline are for queues and timers.

Datagrams that equal another one, of padding alone, cannot be told apart and are not counted: {alike:.1%} at most.

{table(["", ""], conditions)}
"""


def srt_version() -> str:
    said = subprocess.run(["srt-live-transmit", "-version"], capture_output=True, text=True, check=False)
    return re.search(r"version: ([\d.]+)", said.stdout + said.stderr)[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--restp", default="target/release/restp")
    parser.add_argument("--seconds", type=float, default=12)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="cases with these words; no page is written")
    parser.add_argument("--output", type=Path, default=ROOT / "docs/results/media.md")
    parser.add_argument("--tap", type=int, nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.tap:
        tap(*options.tap)
        return 0
    why = network.missing("ffmpeg", "srt-live-transmit")
    if why:
        print(why, file=sys.stderr)
        return 2
    load = os.getloadavg()[0]
    taken = measure(os.path.abspath(options.restp), options.seconds, options.rounds, options.only)
    if options.only:
        return 0
    options.output.write_text(page(taken, options.seconds, (load, os.getloadavg()[0])))
    print(options.output)
    return int(not all(is_met for _, _, is_met in targets(taken, options.seconds)))


if __name__ == "__main__":
    sys.exit(main())
