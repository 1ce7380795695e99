"""What is measured on one emulated path: every case is a function of a network's ends that returns plain numbers.

A job is one case for one contender. All contenders of a case run at the same time, each on a link of its own, so that the
load of the machine meets them alike; and while the longest outage lasts, the other cases have their turn.
"""

import time
from concurrent.futures import ThreadPoolExecutor

from job import Job, Programs, arrivals, sample
from network import PORT, Network, next_line

LOSSY_S, FAIR_S, VOICE_S = 20, 40, 60
# Of a fairness run: what the start is given.
FAIR_SKIP_S = 5
BEFORE_OUTAGE_S = 5
RESUME_LIMIT_S = 120
# When in a round: while the outage of 60 s lasts one loss rate after the other, then the couples, then the visits.
LOSSY_DELAY_S = {1: 18, 5: 40}
FAIR_DELAY_S, VISIT_DELAY_S = 63, 107
# A receiver's log may come this much after it was to end.
WAIT_S = 30
LINK = {"p": 'rate = "20 Mbit/s"\ndelay = "25 ms"\nqueue = { drop_tail = "bdp" }'}
FAR = {"p": 'delay = "50 ms"'}
CALL = {"p": 'delay = "30 ms"\nloss = { rate = 0.02, direction = "both" }'}

RESTP = "restp resilient"
# Transport and options of both ends, by the name in the tables.
CONTENDERS = {
    RESTP: ["restp", "--set", "preset=resilient"],
    "tcp cubic": ["tcp"],
    "tcp bbr": ["tcp", "--congestion", "bbr"],
    "quinn cubic": ["quinn"],
    "quinn bbr": ["quinn", "--congestion", "bbr"],
}
VISITORS = {
    "restp resilient, opportunistic": [*CONTENDERS[RESTP], "--set", "connection=opportunistic"],
    RESTP: CONTENDERS[RESTP],
    "tcp fast open": ["tcp", "--early"],
    "tcp": ["tcp"],
    "quinn 0-RTT": ["quinn", "--early"],
    "quinn": ["quinn"],
}
CALLERS = {
    "restp par-arq": ["restp", "--set", "preset=par-arq"],
    "tcp cubic": ["tcp"],
    "tcp bbr": ["tcp", "--congestion", "bbr"],
}
COUPLES = [
    (RESTP, "tcp cubic"),
    ("tcp cubic", "tcp cubic"),
    ("tcp bbr", "tcp cubic"),
    ("quinn bbr", "tcp cubic"),
    (RESTP, RESTP),
]


def jobs(programs: Programs, cases: set[str]) -> list[Job]:
    """All jobs of a round, those of `cases`."""
    lossy = [
        Job(
            f"loss {percent} % {way}",
            name,
            lossy_link(percent, way),
            goodput(programs, contender),
            LOSSY_DELAY_S[percent],
        )
        for percent in LOSSY_DELAY_S
        for way in ("both", "forward")
        for name, contender in CONTENDERS.items()
    ]
    couples = [
        Job("share", f"{one} beside {other}", LINK, shares(programs, CONTENDERS[one], CONTENDERS[other]), FAIR_DELAY_S)
        for one, other in COUPLES
    ]
    silent = [
        Job(f"outage {seconds} s", name, LINK, outage(programs, contender, seconds))
        for seconds in (10, 60)
        for name, contender in CONTENDERS.items()
        if name != "quinn bbr"
    ]
    voice = [Job("voice", name, CALL, call(programs, contender)) for name, contender in CALLERS.items()]
    visits = [
        Job(case, name, FAR, visit(programs, contender, lost), VISIT_DELAY_S)
        for case, lost in (("first byte", None), ("first byte, SYN lost", "drop=1"))
        for name, contender in VISITORS.items()
    ]
    every = [*silent, *voice, *lossy, *couples, *visits]
    return [job for job in every if job.case.split()[0].strip(",") in cases]


def measure(programs: Programs, cases: set[str], round_: int) -> list[dict]:
    """A round of `cases`: every job at its time, and a sample for each."""
    chosen = jobs(programs, cases)

    def punctual(numbered: tuple[int, Job]) -> dict:
        number, job = numbered
        time.sleep(job.delay_s)
        return sample(programs, str(number), job, round_)

    with ThreadPoolExecutor(len(chosen)) as threads:
        return list(threads.map(punctual, enumerate(chosen)))


def lossy_link(percent: int, way: str) -> dict[str, str]:
    return {"p": f'{LINK["p"]}\nloss = {{ rate = {percent / 100}, direction = "{way}" }}'}


def goodput(programs: Programs, contender: list[str]):
    """Bytes that the receiving application got within LOSSY_S from the first one."""

    def measure(network: Network) -> dict:
        program, options = programs.at("bulk", contender)
        server, found = network.server(program, "--seconds", str(LOSSY_S), *options)
        network.client(program, *found, *options)
        tenths = arrivals(server, LOSSY_S + WAIT_S)["tenths"]
        return {"mbps": round(sum(tenths) * 8 / LOSSY_S / 1e6, 3)}

    return measure


def shares(programs: Programs, one: list[str], other: list[str]):
    """Two flows that start together over one link; what each got after the first seconds."""

    def measure(network: Network) -> dict:
        ends = []
        for number, contender in enumerate((one, other)):
            program, options = programs.at("bulk", contender)
            server, found = network.server(program, "--seconds", str(FAIR_S), *options, port=PORT + number)
            ends.append((server, program, found, options))
        for _, program, found, options in ends:
            network.client(program, *found, *options)
        rates = []
        for server, *_ in ends:
            tenths = arrivals(server, FAIR_S + WAIT_S)["tenths"][FAIR_SKIP_S * 10 :]
            rates.append(sum(tenths) * 8 / (FAIR_S - FAIR_SKIP_S) / 1e6)
        jain = sum(rates) ** 2 / (2 * sum(rate**2 for rate in rates))
        return {
            "mbps": round(rates[0], 3),
            "other_mbps": round(rates[1], 3),
            "share": round(rates[0] / sum(rates), 4),
            "jain": round(jain, 4),
        }

    return measure


def outage(programs: Programs, contender: list[str], seconds: int):
    """A black hole in mid-transfer: from its end until the receiving application gets data again."""

    def measure(network: Network) -> dict:
        program, options = programs.at("bulk", contender)
        server, found = network.server(program, "--seconds", "3600", *options)
        network.client(program, *found, *options)
        time.sleep(BEFORE_OUTAGE_S)
        network.tell("down p")
        time.sleep(seconds)
        restored = network.tell("up p")
        deadline = restored + RESUME_LIMIT_S
        while True:
            silence = next_line(server, max(deadline - time.monotonic(), 0.1))["silence"]
            if silence[1] / 1e9 > restored:
                return {"resumed_s": round(silence[1] / 1e9 - restored, 3)}

    return measure


def call(programs: Programs, contender: list[str]):
    """Frames of a call that arrived while they were of use."""

    def measure(network: Network) -> dict:
        program, options = programs.at("voice", contender)
        length = ["--seconds", str(VOICE_S)]
        server, found = network.server(program, *length, *options)
        network.client(program, *found, *length, *options)
        result = next_line(server, VOICE_S + WAIT_S)
        return {**result, "on_time": round(result["on_time"] / result["frames"], 5)}

    return measure


def visit(programs: Programs, contender: list[str], lost: str | None):
    """The second visit of a client; before it the path may be told to lose packets."""

    def measure(network: Network) -> dict:
        program, options = programs.at("answer", contender)
        _, found = network.server(program, *options)
        client = network.client(program, *found, *options)
        next_line(client, 30)
        if lost:
            network.tell(f"set p {lost}")
            time.sleep(0.2)
        client.stdin.write("\n")
        client.stdin.flush()
        return {"ms": next_line(client, 60)["second_visit_ms"]}

    return measure
