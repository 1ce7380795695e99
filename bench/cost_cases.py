"""The cases of bench/cost.py: how fast and lossy a link, how many flows, how many paths."""

from dataclasses import dataclass
from pathlib import Path

from simulator import LONG_S, SCENARIOS, SHORT_S


@dataclass(frozen=True)
class Case:
    """One scenario, and the seconds of the short and the long run: both end after the slow start."""

    group: str
    name: str
    what: str
    text: str
    seconds: tuple[float, float]

    def write(self, folder: Path) -> str:
        """The scenario in a file of its own; its path without the extension."""
        path = folder / self.name
        path.with_suffix(".toml").write_text(self.text)
        return str(path)


def link(name: str, ends: tuple[str, str], rate: str, delay: str, *further: str) -> str:
    return "\n".join(
        [
            "[[link]]",
            f'name = "{name}"',
            f'between = ["{ends[0]}", "{ends[1]}"]',
            f'rate = "{rate}"',
            f'delay = "{delay}"',
            *further,
            "",
        ]
    )


def flow(name: str, ends: tuple[str, str], transport: str, *further: str) -> str:
    return "\n".join(
        [
            "[[flow]]",
            f'name = "{name}"',
            f'from = "{ends[0]}"',
            f'to = "{ends[1]}"',
            f'transport = "{transport}"',
            "traffic = { bulk = {} }",
            *further,
            "",
        ]
    )


def scenario(name: str, *parts: str) -> str:
    return "\n".join([f'id = "{name}"', 'title = "Cost of a packet"', 'duration = "1 s"', "seed = 1", "", *parts])


def one_link(rate: str, delay: str) -> str:
    """A flow that reports losses precisely, over a link that loses one packet in a thousand."""
    loss = 'loss = { rate = 0.001, direction = "forward" }'
    ends = ("source", "sink")
    return scenario("rate", link("line", ends, rate, delay, loss), flow("a", ends, "restp:resilient"))


def many_flows(flows: int, nodes: int) -> str:
    """Flows of 1 Mbit/s each, from `nodes` access links into one bottleneck."""
    access = 'queue = { drop_tail = "1000 packets" }'
    parts = [link("bottleneck", ("west", "east"), f"{flows} Mbit/s", "20 ms")]
    for node in range(nodes):
        ends = (f"sender-{node}", f"receiver-{node}")
        rate = f"{10 * flows // nodes} Mbit/s"
        parts += [
            link(f"left-{node}", (ends[0], "west"), rate, "2 ms", access),
            link(f"right-{node}", ("east", ends[1]), rate, "2 ms", access),
            flow(f"{node}-{{i}}", ends, "restp:3wh-arq", f"count = {flows // nodes}", 'start_spread = "0.5 s"'),
        ]
    return scenario("flows", *parts)


def many_paths(paths: int) -> str:
    """One flow over paths of 10 Mbit/s each."""
    ends = ("source", "sink")
    names = [f"path-{index}" for index in range(paths)]
    links = [link(name, ends, "10 Mbit/s", "20 ms") for name in names]
    return scenario("paths", *links, flow("a", ends, "restp:multipath", f"paths = {[[name] for name in names]}"))


ALL = [
    Case(
        "dumbbell",
        "dumbbell-2",
        "two flows, 10 Mbit/s",
        (SCENARIOS / "dumbbell-2.toml").read_text(),
        (SHORT_S, LONG_S),
    ),
    Case("rate", "slow", "10 Mbit/s, 20 ms, 0.1 % loss", one_link("10 Mbit/s", "10 ms"), (5, 25)),
    Case("rate", "fast", "1 Gbit/s, 100 ms, 0.1 % loss", one_link("1 Gbit/s", "50 ms"), (3, 4)),
    Case("flows", "flows-1", "1 flow of 1 Mbit/s", many_flows(1, 1), (10, 110)),
    Case("flows", "flows-1000", "1,000 flows", many_flows(1000, 50), (2, 2.5)),
    Case("flows", "flows-4096", "4,096 flows", many_flows(4096, 64), (2, 2.2)),
    Case("paths", "paths-1", "1 path of 10 Mbit/s", many_paths(1), (5, 15)),
    Case("paths", "paths-2", "2 paths", many_paths(2), (5, 10)),
    Case("paths", "paths-8", "8 paths", many_paths(8), (5, 7)),
]
