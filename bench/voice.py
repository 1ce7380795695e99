#!/usr/bin/env python3
"""docs/results/voice.md: what any code could bring in time, beside what pages of scenarios/adapt say that ours brings.

Usage: bench/voice.py [FOLDER with the pages, docs/results unless given]
"""

import random
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FRAMES, INTERVAL_MS = 1_000_000, 20
ONE_WAY_MS, DEADLINE_MS, LOSS = 125, 200, 0.05
# Frames that leave after a lost one while something may leave that arrives in time.
REACH = (DEADLINE_MS - ONE_WAY_MS) // INTERVAL_MS


def channel(burst: float, seed: int):
    """Gilbert's channel, packet by packet: is this one lost?"""
    draw = random.Random(seed)
    to_good = 1 / burst
    to_bad = LOSS * to_good / (1 - LOSS)
    bad = False
    while True:
        yield bad
        bad = draw.random() >= to_good if bad else draw.random() < to_bad


def bound(burst: float, every: int) -> tuple[float, float]:
    """Shares of the frames: lost, and lost but saved by the best code, with an encoded packet behind each `every` frames."""
    lost_packets = channel(burst, 1)
    pending: list[int] = []  # lost frames that may still be saved, the oldest first
    lost = saved = 0
    for frame in range(FRAMES):
        if next(lost_packets):
            lost += 1
            pending.append(frame)
        if (frame + 1) % every == 0 and not next(lost_packets):
            pending = [old for old in pending if old + REACH >= frame]
            if pending:
                pending.pop(0)
                saved += 1
    return lost / FRAMES, saved / FRAMES


def table(page: Path) -> dict[tuple[str, str], list[str]]:
    """Cells of the results by path and transport."""
    lines = page.read_text().split("## Results")[1].splitlines()
    cells = [[c.strip() for c in line.strip("| ").split(" | ")] for line in lines if line.startswith("|")]
    return {(row[0], row[1]): row[2:] for row in cells[2:]}


def mean(cell: str) -> float:
    return float(cell.split()[0])


BOUND = """\
## What any code could bring

A frame is of use for {deadline} ms and takes {one_way} ms, so something that leaves more than {slack} ms after it is too late: of what
leaves with it and with the {reach} frames after it, something has to arrive. Take any code that sends the frames as they are, and encoded
packets of the size of a frame at the times at which ours leave. Let S be lost frames that it brings in time, and suppose that every
packet that could save one of them leaves in a span T and before its end. Encoded packets that left before a frame say nothing of it,
those that leave after its time help no more, and what arrived of other frames is known. So all of S follows from the encoded packets
that left in T and arrived; each of them says no more than one frame has bits, so there are at least as many of them as frames in S. This
holds for every T: by Hall's theorem each frame of S can be given an encoded packet of its own, among those that arrived and left in its
time. The largest number of frames that can be paired in this way is therefore a bound on every code, also on one that knew in advance
what would be lost. With equal times it is found by giving each arrival to the oldest frame that still waits.

The bound over {frames:,} frames of Gilbert's channel, {loss:.0%} lost, and the simulator's figures (`restp reproduce adapt-voice`):
"""


def voice(folder: Path) -> list[str]:
    ours = table(folder / "adapt-voice.md")
    cases = [
        ("independent", 1 / (1 - LOSS), "250 ms, 5 %", 2, "voice"),
        ("in bursts of 3", 3.0, "250 ms, 5 % in bursts of 3", 2, "up to 50 %"),
        ("in bursts of 3", 3.0, "250 ms, 5 % in bursts of 3", 1, "voice"),
    ]
    rows = [
        "| losses | redundancy | in time | any code | of these | lost frames saved | any code | of these |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for losses, burst, path, every, label in cases:
        lost, saved = bound(burst, every)
        cells = ours[path, label]
        in_time, redundancy = mean(cells[0]) / 100, mean(cells[2])
        most = 1 - lost + saved
        without = mean(ours[path, "UDP"][0]) / 100
        rescued = (in_time - without) / (1 - without)
        rows.append(
            f"| {losses} | {redundancy:.1f} % | {in_time:.2%} | {most:.2%} | {in_time / most:.1%} "
            f"| {rescued:.1%} | {saved / lost:.1%} | {rescued * lost / saved:.1%} |"
        )
    return rows


def video(folder: Path) -> list[str]:
    ours = table(folder / "adapt-video.md")
    rows = ["| losses | redundancy | in time | UDP |", "| --- | --- | --- | --- |"]
    for path in ["300 ms, 0.5 %", "300 ms, 2 %", "300 ms, 2 % in bursts of 3", "100 ms, 2 %"]:
        in_time, _, redundancy, *_ = ours[path, "video"]
        rows.append(f"| {path} | {mean(redundancy):.1f} % | {mean(in_time):.2f} % | {mean(ours[path, 'UDP'][0]):.2f} % |")
    return rows


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "results"
    text = BOUND.format(
        deadline=DEADLINE_MS,
        one_way=ONE_WAY_MS,
        slack=DEADLINE_MS - ONE_WAY_MS,
        reach=REACH,
        frames=FRAMES,
        loss=LOSS,
    )
    page = [
        "# Voice and video: what redundancy brings",
        "",
        "`bench/voice.py` makes this page of [adapt-voice](adapt-voice.md) and [adapt-video](adapt-video.md); the code and its rate are in",
        "[reliability](../services/reliability.md#sliding-window).",
        "",
        text,
        *voice(folder),
        "",
        "*Lost frames saved* compares with UDP under the same seeds, which brings just what is not lost. The bound knows what will be",
        "lost; no code does. With one encoded packet for two frames some frames are in none but the one that leaves beside them, which a",
        "burst takes too.",
        "",
        "## Live video",
        "",
        "4 Mbit/s, of use for 250 ms, at most 15 encoded packets for 100:",
        "",
        *video(folder),
        "",
    ]
    (folder / "voice.md").write_text("\n".join(page))


if __name__ == "__main__":
    main()
