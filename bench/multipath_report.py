"""The page docs/results/multipath.md: conditions, targets, a table per question, and what fits through two paths."""

import argparse
from statistics import median

import sections
from multipath_cases import (
    AFTER_FAILURE_S,
    ALONE,
    BEFORE_FAILURE_S,
    BULK_S,
    CONTENDERS,
    GAP_S,
    GIVEN_UP_S,
    LIMITS,
    MESH,
    REACTION_S,
    RESTP,
    SEEN_PACKETS,
    SIGNAL,
)
from report import locked, spread, table
from sections import Target, failures, grid, targets, values

# Mbit/s of IP packets that the links carry, losses deducted.
RATES = {"equal": 100, "unequal": 55, "unequal alone": 50, "lossy": 99.5}
# Of a full packet of bulk data: its bytes on the link, those of the application in it, and what the rest is.
PACKETS = {
    "restp": (1464, 1400, "IPv4 20, UDP 8, ResTP 36; a segment is 1400 bytes"),
    "tcp": (1500, 1448, "IPv4 20, TCP 20, timestamps 12"),
    "mptcp": (1500, 1424, "IPv4 20, TCP 20, timestamps 12, data sequence signal 24"),
    "noq": (1480, 1419, "IPv4 20, UDP 8, QUIC 11, AES-GCM tag 16, STREAM frame 6"),
}
TARGETS = [
    Target("equal", RESTP, "mbps", lambda v: v >= 94.5, "50 + 50 Mbit/s: at least 94.5"),
    Target("unequal", RESTP, "mbps", lambda v: v >= 51, "50 + 5 Mbit/s: at least 51"),
    Target("unequal", RESTP, "worst_mbps", lambda v: v >= 48, "the same: at least 48 in every second after the first"),
    Target("lossy", RESTP, "mbps", lambda v: v >= 92, "1 % loss on A: at least 92"),
    Target("cut", RESTP, "gap_s", lambda v: v <= 0.12, "A falls silent: data again within 0.12 s"),
    Target("unplugged", RESTP, "gap_s", lambda v: v <= 0.05, "A is unplugged: data again within 0.05 s"),
    Target("start", RESTP, "extra_ms", lambda v: v <= 50, "A dead from the start: at most 50 ms behind B alone"),
]


def page(samples: list[dict], arguments: argparse.Namespace) -> str:
    parts = [
        "# Two paths, real sockets\n\nWritten by `make bench-multipath`; not edited by hand. Ranges are minimum – **median** – "
        "maximum over the rounds.",
        conditions(samples, arguments),
        targets(samples, TARGETS),
        goodputs(samples),
        unequal(samples),
        failing(samples),
        starting(samples),
        ceilings(),
        failures(samples),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def conditions(samples: list[dict], arguments: argparse.Namespace) -> str:
    text = (
        "`restp emulate --tun` joins two network namespaces by two paths; all protocols cross the same queues (one "
        "bandwidth-delay product each) with their IP headers and meet the same losses by packet number, one seed per round. "
        "The emulator runs at `chrt -f 10`, the ends at `chrt -f 5`, two measurements at a time. Bytes and moments are those of "
        "the receiving application. A run is refused when a path that belongs to it carried fewer than "
        f"{SEEN_PACKETS} packets, and repeated, in the end refused, when packets left the emulator more than 1 ms late in the "
        "mean or its system dropped any.\n\n"
        "* **ResTP**: preset `multipath`, plain; the client bound to both devices, the server to both addresses, one path over "
        f"each link. *{MESH}*: every device to every address, as `restp send --bind tA --bind tB` has it: four paths over two "
        "links, since the kernel takes an address it has no route to for a neighbour on the device.\n"
        "* **MPTCP**: the kernel's, one socket of IPPROTO_MPTCP a side, TCP_NODELAY, congestion control by socket option, "
        f"listener on 0.0.0.0, client connected to the server's address of path A. In both namespaces `ip {' '.join(LIMITS)}`, "
        f"in the server's `ip {' '.join(SIGNAL)}`; scheduler `default`, everything else as the kernel has it.\n"
        "* **noq** (multipath QUIC): TLS 1.3 with AES-GCM, windows of 2.5 MB (with 16 MiB it ends connections over the unequal "
        "paths: too many gaps in its stream buffer), idle timeout of the connection 180 s, timeouts of paths as by default; the client opens a path to the server's second address as soon as the first stands."
    )
    peers = f"kernel MPTCP and TCP; noq {locked('noq')}, noq-proto {locked('noq-proto')}"
    return sections.conditions(samples, arguments, text, peers)


def goodputs(samples: list[dict]) -> str:
    columns = {
        "50/20 + 50/40": "equal",
        "50/20 + 5/200": "unequal",
        "50/20 with 1 % loss + 50/40": "lossy",
    }
    rows = [
        (name, *(with_share(values(samples, case, name, "mbps"), ends[0], case) for case in columns.values()))
        for name, ends in CONTENDERS.items()
    ]
    text = (
        f"Mbit/s / ms of round trip of paths A + B; loss in both directions. Goodput in Mbit/s over {BULK_S} s from the first "
        "byte, start included, and its median as a share of what fits (below)."
    )
    return f"## Goodput\n\n{text}\n\n{table(['', *columns], rows)}"


def with_share(measured: list[float], transport: str, case: str) -> str:
    if not measured:
        return spread(measured)
    return f"{spread(measured)}, {median(measured) / ceiling(transport, case):.1%}"


def ceiling(transport: str, case: str) -> float:
    """Mbit/s of application bytes."""
    packet, payload, _ = PACKETS[transport]
    return RATES[case] * payload / packet


def unequal(samples: list[dict]) -> str:
    rows = []
    for name, ends in ALONE.items():
        both, alone = (values(samples, case, name, "mbps") for case in ("unequal", "unequal alone"))
        gain = f"{median(both) / median(alone):.3f}" if both and alone else "–"
        worst = spread(values(samples, "unequal", name, "worst_mbps"))
        rows.append((name, spread(both), worst, ends[0], with_share(alone, ends[0], "unequal alone"), gain))
    text = "50 Mbit/s at 20 ms and 5 Mbit/s at 200 ms: what the second path adds to the first, or takes from it."
    head = ["", "both paths", "their worst second after the first", "alone: by", "path A alone", "both / alone"]
    return f"## Unequal paths\n\n{text}\n\n{table(head, rows)}"


def failing(samples: list[dict]) -> str:
    columns = {
        "silent: longest gap, s": ("cut", "gap_s"),
        "then Mbit/s": ("cut", "after_mbps"),
        "unplugged: longest gap, s": ("unplugged", "gap_s"),
        "then, Mbit/s": ("unplugged", "after_mbps"),
    }
    text = (
        f"Two paths of 50 Mbit/s, 20 and 40 ms; {BEFORE_FAILURE_S} s into a transfer path A fails. Silent: it swallows what is "
        "on it, both ways, and nobody is told. Unplugged: the client's device is set down (`ip link set tA down`). The longest "
        f"time between two arrivals at the receiving application that began within {REACTION_S} s of the failure "
        f"({GAP_S * 1000:.0f} ms are the least that is seen; {GIVEN_UP_S} s means that nothing more had come by then), and what "
        f"it gets from then on, for {AFTER_FAILURE_S - REACTION_S} s; path B carries at most 48."
    )
    return f"## A path fails\n\n{text}\n\n{grid(samples, list(CONTENDERS), columns)}"


def starting(samples: list[dict]) -> str:
    columns = {
        "B alone, ms": ("start", "alone_ms"),
        "A and B, A dead, ms": ("start", "ms"),
        "difference, ms": ("start", "extra_ms"),
    }
    text = (
        "From opening the connection to the first byte of a response, over path B alone (40 ms) and over both while A, which is "
        f"named first, swallows everything. {GIVEN_UP_S * 1000} ms means: not by then. A TCP or QUIC client that races addresses "
        "itself would do better; these are connected to the one address that MPTCP and noq take."
    )
    return f"## A path is dead from the start\n\n{text}\n\n{grid(samples, list(CONTENDERS), columns)}"


def ceilings() -> str:
    rows = [
        (
            transport,
            str(packet),
            str(payload),
            how,
            *(f"{ceiling(transport, case):.1f}" for case in ("equal", "unequal", "unequal alone", "lossy")),
        )
        for transport, (packet, payload, how) in PACKETS.items()
    ]
    text = "Bytes of a full packet of bulk data on the link and of the application in it; Mbit/s of payload that fit, without acknowledgements."
    head = ["", "packet", "payload", "of which headers", "50 + 50", "50 + 5", "50", "50 with 1 % loss + 50"]
    return f"## What fits\n\n{text}\n\n{table(head, rows)}"
