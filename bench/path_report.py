"""The page docs/results/paths.md: conditions, a table per case, and a verdict per target."""

import argparse

import sections
from path_cases import CALLERS, CONTENDERS, COUPLES, FAIR_S, FAIR_SKIP_S, LOSSY_S, RESTP, VISITORS, VOICE_S
from report import locked, spread, table
from sections import Target, failures, grid, targets, values

COLUMNS = [("mbps", 2), ("other_mbps", 2), ("share", 3), ("jain", 3)]
OPPORTUNISTIC = "restp resilient, opportunistic"
TARGETS = [
    Target("loss 1 % both", RESTP, "mbps", lambda v: v >= 18.5, "1 % loss: at least 18.5 Mbit/s"),
    Target("loss 5 % both", RESTP, "mbps", lambda v: v >= 17.5, "5 % loss: at least 17.5 Mbit/s"),
    Target("outage 10 s", RESTP, "resumed_s", lambda v: v <= 0.35, "outage of 10 s: data again within 0.35 s"),
    Target("outage 60 s", RESTP, "resumed_s", lambda v: v <= 0.35, "outage of 60 s: data again within 0.35 s"),
    Target(
        "share", f"{RESTP} beside tcp cubic", "share", lambda v: v <= 0.55, "beside CUBIC: at most 55 % of the link"
    ),
    Target("share", f"{RESTP} beside {RESTP}", "jain", lambda v: v >= 0.95, "two flows: Jain's index at least 0.95"),
    Target("first byte", OPPORTUNISTIC, "ms", lambda v: v <= 101, "first byte with a cookie: at most 101 ms"),
    Target("first byte, SYN lost", OPPORTUNISTIC, "ms", lambda v: v <= 101, "the same with the SYN lost"),
    Target("voice", "restp par-arq", "on_time", lambda v: v >= 0.994, "frames in time: at least 99.4 %"),
]


def page(samples: list[dict], arguments: argparse.Namespace) -> str:
    parts = [
        "# One path, real sockets\n\nWritten by `make bench-path`; not edited by hand. Ranges are minimum – **median** – "
        "maximum over the rounds; within a round all contenders of a case run at the same time, each on a link of its own.",
        conditions(samples, arguments),
        targets(samples, TARGETS),
        lossy(samples),
        outages(samples),
        shares(samples),
        first_bytes(samples),
        voice(samples),
        failures(samples),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def conditions(samples: list[dict], arguments: argparse.Namespace) -> str:
    text = (
        "`restp emulate --tun` joins two network namespaces; TCP, QUIC and ResTP (over UDP) cross the same queue, with "
        "their IP headers, and meet the same losses by packet number (one seed per round). The emulator runs at "
        "`chrt -f 10`, the ends at `chrt -f 5`: a busy machine would otherwise slow what runs in user space and not the kernel. "
        "Bytes and moments are those of the receiving application. quinn has TLS 1.3, an idle timeout of 180 s and windows of 16 MiB."
    )
    peers = f"kernel TCP; quinn {locked('quinn')}, quinn-proto {locked('quinn-proto')}"
    return sections.conditions(samples, arguments, text, peers)


def lossy(samples: list[dict]) -> str:
    columns = {
        f"{percent} % {label}": (f"loss {percent} % {way}", "mbps")
        for percent in (1, 5)
        for way, label in (("both", "both ways"), ("forward", "of data only"))
    }
    text = (
        f"20 Mbit/s, round trip 50 ms, queue of one bandwidth-delay product, random loss. Goodput in Mbit/s over {LOSSY_S} s "
        "from the first byte, start included. What fits: 0.965 of the rate, less the losses: 19.1 and 18.3 Mbit/s."
    )
    return f"## Random loss\n\n{text}\n\n{grid(samples, list(CONTENDERS), columns)}"


def outages(samples: list[dict]) -> str:
    columns = {f"{seconds} s": (f"outage {seconds} s", "resumed_s") for seconds in (10, 60)}
    contenders = [name for name in CONTENDERS if name != "quinn bbr"]
    text = (
        "The same link without random loss; a black hole in both directions 5 s into a transfer. Seconds from its end until "
        "the receiving application gets data again."
    )
    return f"## Outage\n\n{text}\n\n{grid(samples, contenders, columns)}"


def shares(samples: list[dict]) -> str:
    rows = [
        (
            f"{one} beside {other}",
            *(spread(values(samples, "share", f"{one} beside {other}", name), places) for name, places in COLUMNS),
        )
        for one, other in COUPLES
    ]
    text = (
        f"Two flows that start together over the same link without random loss, {FAIR_S} s, of which the first {FAIR_SKIP_S} "
        "are left out. The share is that of the flow named first."
    )
    return f"## Fair share\n\n{text}\n\n{table(['', 'Mbit/s', 'of the other', 'share', 'Jain'], rows)}"


def first_bytes(samples: list[dict]) -> str:
    columns = {
        "nothing lost": ("first byte", "ms"),
        "first packet of the client lost": ("first byte, SYN lost", "ms"),
    }
    text = (
        "Round trip 100 ms, no rate limit. The second visit of a client, which has a cookie or a ticket from the first: "
        "milliseconds from opening the connection to the first byte of the response."
    )
    return f"## First byte\n\n{text}\n\n{grid(samples, list(VISITORS), columns)}"


def voice(samples: list[dict]) -> str:
    columns = {
        "in time, share": ("voice", "on_time"),
        "median, ms": ("voice", "median_ms"),
        "99th percentile, ms": ("voice", "p99_ms"),
    }
    text = (
        f"160 bytes every 20 ms for {VOICE_S} s, round trip 60 ms, 2 % loss both ways. A frame is in time within 160 ms of "
        "when it was due at the sender. TCP has TCP_NODELAY and carries the length before each frame; latencies are "
        "those of frames that came."
    )
    return f"## Voice\n\n{text}\n\n{grid(samples, list(CALLERS), columns)}"
