#!/usr/bin/env python3
"""iperf3 through `restp tunnel` over two links, beside kernel TCP over each of them, kernel MPTCP and glorytun over both.

    bench/tunnel.py [--seconds 20] [--rounds 3] [--only WORDS] [--glorytun PROGRAM] [--restp target/release/restp]
                    [--output docs/results/tunnel.md]

The links are those of `restp emulate --tun`: A has 50 Mbit/s and 20 ms of round trip, B 20 Mbit/s and 60 ms. Goodput is
what arrived at the receiver; how long a packet waits is asked by `ping` beside it, ten times a second. MPTCP's bytes come
from a small program instead of iperf3, whose Debian version knows none. glorytun (https://github.com/angt/glorytun, built
with Debian's libsodium-dev) is measured where its program is named; it is told the rates of the links. Needs root, iperf3,
ping and `ip`. Exit code 1 when a target is missed, 2 when nothing can be measured.
"""

import argparse
import json
import os
import platform
import re
import shlex
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import network
from report import ROOT, cpu_model, output, spread, table

QUEUE = 'queue = { drop_tail = "bdp" }\n'
RATES_MBPS = {"A": 50, "B": 20}
A = f'rate = "{RATES_MBPS["A"]} Mbit/s"\ndelay = "10 ms"\n{QUEUE}'
B = f'rate = "{RATES_MBPS["B"]} Mbit/s"\ndelay = "30 ms"\n{QUEUE}'
LOSS = 'loss = { rate = 0.01, direction = "both" }\n'
SUM_MBPS = sum(RATES_MBPS.values())
TUNNEL, TCP, MPTCP, GLORYTUN = "tunnel", "TCP", "MPTCP", "glorytun"
# Links, and which of them dies half-way, for all that uses both.
OVER_BOTH = {
    "": ({"A": A, "B": B}, None),
    ", 1 % lost on B": ({"A": A, "B": B + LOSS}, None),
    ", 1 % lost on A": ({"A": A + LOSS, "B": B}, None),
    ", A dies": ({"A": A, "B": B}, "A"),
    ", B dies": ({"A": A, "B": B}, "B"),
}
# What carries the bytes, the links, and which of them dies half-way.
CASES = {
    "kernel TCP over A": (TCP, {"A": A}, None),
    "kernel TCP over B": (TCP, {"B": B}, None),
    "kernel TCP over A, 1 % lost": (TCP, {"A": A + LOSS}, None),
}
for carrier, way in ((MPTCP, "kernel MPTCP"), (GLORYTUN, "glorytun"), (TUNNEL, "tunnel")):
    CASES |= {way + what: (carrier, *case) for what, case in OVER_BOTH.items()}
INNER, INNER_LEFT = "10.9.0.1", "10.9.0.2"
TENTHS_OF_START = 20
# Linux: a socket of MPTCP.
IPPROTO_MPTCP = 262


class Run:
    """One transfer of so many seconds from the left to the right."""

    def __init__(self, net: network.Network, folder: Path, options: argparse.Namespace):
        self.net, self.folder, self.seconds = net, folder, options.seconds
        self.restp, self.program = os.path.abspath(options.restp), options.glorytun
        self.to = network.address(1)

    def measure(self, carrier: str, dies: str | None) -> dict:
        if carrier in (TUNNEL, GLORYTUN):
            {TUNNEL: self.tunnel, GLORYTUN: self.glorytun}[carrier]()
            self.to = INNER
        begin = self.mptcp if carrier == MPTCP else self.iperf
        results = begin()
        pinging = self.net.inside(0, ["ping", "-q", "-i", "0.1", "-w", str(self.seconds), self.to])
        if dies:
            time.sleep(self.seconds / 2)
            self.net.ip(0, "link", "set", f"t{dies}", "down")
        rates = results()
        waits = re.search(r"= [\d.]+/([\d.]+)/([\d.]+)/", pinging.communicate(timeout=30)[0])
        silent = longest_run(rate < 1e5 for rate in rates[TENTHS_OF_START:]) / 10
        return {
            "mbps": statistics.mean(rates) / 1e6,
            "gap_s": silent,
            "ping_ms": [float(part) for part in waits.groups()] if waits and not dies else None,
        }

    def tunnel(self):
        listen = network.repeated("--listen", [f"{network.address(1, path)}:7070" for path in (0, 1)])
        serve = [self.restp, "serve", "--json", *listen, "--allow", f"tunnel:{INNER}/30"]
        serving = self.net.inside(1, serve)
        ticket = network.next_line(serving, network.START_LIMIT_S)["ticket"]
        tunnel = [self.restp, "tunnel", "--json", ticket, "--bind", "tA", "--bind", "tB"]
        carrying = self.net.inside(0, tunnel)
        network.next_line(carrying, network.START_LIMIT_S)
        for process in (serving, carrying):
            threading.Thread(target=process.stderr.read, daemon=True).start()

    def glorytun(self):
        """Its program asks for the links' rates, and leaves the addresses of its devices to others."""
        key = self.folder / "key"
        key.write_text(output(self.program, "keygen"))
        bind = [self.program, "bind", "keyfile", str(key), "dev"]
        self.net.inside(1, [*bind, "gtright"])
        self.net.inside(0, [*bind, "gtleft", "to", "addr", self.to, "port", "5000"])
        time.sleep(1)
        for side, own in ((0, INNER_LEFT), (1, INNER)):
            device = ("gtleft", "gtright")[side]
            self.net.ip(side, "addr", "add", f"{own}/30", "dev", device)
            self.net.ip(side, "link", "set", device, "up")
        for path, mbps in enumerate(RATES_MBPS.values()):
            ends = ["addr", network.address(0, path), "to", "addr", network.address(1, path), "port", "5000"]
            rate = ["rate", "fixed", "tx", f"{mbps}mbit", "rx", f"{mbps}mbit"]
            self.net.run(self.net.namespaces[0], self.program, "path", "dev", "gtleft", *ends, "set", "up", *rate)
        time.sleep(2)

    def iperf(self):
        """Begins; a function that waits for the rates, a tenth of a second each."""
        receiving = self.net.inside(1, ["iperf3", "--server", "--one-off", "--interval", "0.1", "--json"])
        time.sleep(0.5)
        sending = self.net.inside(0, ["iperf3", "--client", self.to, "--time", str(self.seconds), "--json"])

        def rates():
            sent = json.loads(sending.communicate(timeout=self.seconds * 3 + 30)[0])
            if "error" in sent:
                raise RuntimeError(f"iperf3: {sent['error']}")
            arrived = json.loads(receiving.communicate(timeout=30)[0])
            steps = [step["sum"]["bits_per_second"] for step in arrived["intervals"]]
            return steps[: self.seconds * 10]

        return rates

    def mptcp(self):
        limits = ["mptcp", "limits", "set", "subflow", "2", "add_addr_accepted", "2"]
        for side in (0, 1):
            self.net.ip(side, *limits)
        self.net.ip(1, "mptcp", "endpoint", "add", network.address(1, 1), "dev", "tB", "signal")
        own = [sys.executable, __file__, "--mptcp"]
        receiving = self.net.inside(1, [*own, "receive", str(self.seconds)])
        network.next_line(receiving, network.START_LIMIT_S)
        self.net.inside(0, [*own, "send", str(self.seconds), self.to])
        return lambda: network.next_line(receiving, self.seconds * 3 + 30)["rates"]


def mptcp(role: str, seconds: int, to: str | None):
    """One end of a transfer over MPTCP."""
    end = socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP)
    if role == "send":
        end.connect((to, network.PORT))
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            end.sendall(bytes(65536))
        return
    end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    end.bind(("0.0.0.0", network.PORT))
    end.listen()
    print(json.dumps({"listening": network.PORT}), flush=True)
    connection, _ = end.accept()
    began, tenths = time.monotonic(), [0] * (seconds * 10)
    connection.settimeout(seconds)
    while (at := int((time.monotonic() - began) * 10)) < len(tenths):
        try:
            data = connection.recv(1 << 20)
        except TimeoutError:
            break
        if not data:
            break
        tenths[at] += len(data)
    print(json.dumps({"rates": [bytes_ * 80 for bytes_ in tenths]}), flush=True)


def longest_run(steps) -> int:
    """The most steps in a row that are true."""
    longest = run = 0
    for step in steps:
        run = run + 1 if step else 0
        longest = max(longest, run)
    return longest


def measure(options: argparse.Namespace) -> dict[str, list[dict]]:
    wanted = (case for case, (carrier, *_) in CASES.items() if carrier != GLORYTUN or options.glorytun)
    taken: dict[str, list[dict]] = {case: [] for case in wanted if options.only in case}
    for number in range(options.rounds):
        for case, samples in taken.items():
            carrier, links, dies = CASES[case]
            restp = os.path.abspath(options.restp)
            with network.Network(restp, "tunnel", links, number + 1) as net, tempfile.TemporaryDirectory() as folder:
                os.environ.update(XDG_DATA_HOME=folder, XDG_CONFIG_HOME=folder)
                samples.append(Run(net, Path(folder), options).measure(carrier, dies))
            print(f"round {number + 1} of {options.rounds}, {case}: {samples[-1]}", file=sys.stderr)
    return taken


def median(samples: list[dict], what: str) -> float:
    return statistics.median(sample[what] for sample in samples)


def targets(taken: dict[str, list[dict]]) -> list[tuple[str, str, bool]]:
    """What the tunnel is to do, what it does, and whether that is enough."""
    rate = {case: median(samples, "mbps") for case, samples in taken.items()}
    alone = rate["kernel TCP over A"]
    together = alone + rate["kernel TCP over B"]
    share = rate["tunnel"] / together
    rows = [(f"≥ 90 % of what kernel TCP gets over A and over B, {together:.1f} Mbit/s", f"{share:.1%}", share >= 0.9)]
    share = rate["tunnel"] / SUM_MBPS
    rows.append((f"≥ 90 % of the rates of both lines, {SUM_MBPS} Mbit/s, headers included", f"{share:.1%}", share >= 0.9))
    for case, better in (("1 % lost on B", "kernel TCP over A"), ("1 % lost on A", "kernel TCP over A, 1 % lost")):
        here = rate[f"tunnel, {case}"]
        rows.append((f"{case}: no less than {better}, {rate[better]:.1f} Mbit/s", f"{here:.1f}", here >= rate[better]))
    for link in RATES_MBPS:
        gap = median(taken[f"tunnel, {link} dies"], "gap_s")
        rows.append((f"{link} dies: nothing arrives for 0.3 s at most", f"{gap:.1f} s", gap <= 0.3))
    return rows


def page(taken: dict[str, list[dict]], seconds: int, glorytun: str | None, loads: tuple[float, float]) -> str:
    """Of the results."""
    rows = []
    for case, samples in taken.items():
        pings = [sample["ping_ms"] for sample in samples if sample["ping_ms"]]
        waits = [f"{statistics.median(ping[at] for ping in pings):.0f}" if pings else "–" for at in (0, 1)]
        gap = f"{median(samples, 'gap_s'):.1f}"
        rows.append((case, spread([sample["mbps"] for sample in samples], 1), gap, *waits))
    verdicts = {True: "met", False: "**missed**"}
    met = [(target, measured, verdicts[is_met]) for target, measured, is_met in targets(taken)]
    conditions = [
        ("revision", output("git", "-C", str(ROOT), "describe", "--always", "--dirty")),
        ("machine", f"{cpu_model()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}"),
        ("load average at start and end", f"{loads[0]:.1f}, {loads[1]:.1f}"),
        ("transfers", f"{len(next(iter(taken.values())))} of each, in turns, {seconds} s, from the first byte on"),
        ("links", "A 50 Mbit/s, 20 ms of round trip; B 20 Mbit/s, 60 ms; queues of a bandwidth-delay product"),
        ("sender", f"{output('iperf3', '--version').splitlines()[0]}, one connection, kernel CUBIC"),
    ]
    if glorytun:
        conditions.append(("glorytun", output(glorytun, "version")))
    head = ["over", "goodput, Mbit/s: least – median – most", "longest gap, s", "ping, mean, ms", "ping, most, ms"]
    return f"""# Two links as one

One TCP connection through `restp tunnel` over two links, beside kernel TCP over each, and kernel MPTCP and glorytun over
both. Command: `{shlex.join(["python3", "bench/tunnel.py", *sys.argv[1:]])}`.

{table(head, rows)}

The gap is the longest time after the first two seconds in which nothing arrived. A link dies half-way; the other
one is left. glorytun is told the rates of the links, `restp tunnel` and MPTCP are not. `ping` goes beside the transfer, the same way; a mean of several runs is their median.

{table(["target", "measured", "verdict"], met)}

About a tenth of what the lines carry is headers: 52 bytes in each packet of the connection inside, and those of UDP,
ResTP and the seal around it.

{table(["", ""], conditions)}
"""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--restp", default="target/release/restp")
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="cases with these words; no page is written")
    parser.add_argument("--glorytun", help="its program; without, it is left out")
    parser.add_argument("--output", type=Path, default=ROOT / "docs/results/tunnel.md")
    parser.add_argument("--mptcp", nargs="+", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> int:
    options = arguments()
    if options.mptcp:
        role, seconds, *to = options.mptcp
        mptcp(role, int(seconds), *to or [None])
        return 0
    why = network.missing_beside_cubic("iperf3", "ping")
    if why:
        print(why, file=sys.stderr)
        return 2
    load = os.getloadavg()[0]
    taken = measure(options)
    if options.only:
        return 0
    options.output.write_text(page(taken, options.seconds, options.glorytun, (load, os.getloadavg()[0])))
    print(options.output)
    return int(not all(is_met for _, _, is_met in targets(taken)))


if __name__ == "__main__":
    sys.exit(main())
