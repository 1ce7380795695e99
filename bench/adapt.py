#!/usr/bin/env python3
"""docs/results/adapt.md: regret and harm of the default, and its verdicts on losses, from the pages of scenarios/adapt.

    bench/adapt.py [FOLDER with the pages, docs/results unless given]
"""

import argparse
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ALONE = ["adapt-alone", "adapt-alone-slow", "adapt-alone-fast", "adapt-alone-far"]
OURS = "restp:default"
CAUSES = ["congestion", "corruption", "outage", "late"]
# What a neighbour may lose to a rival that the default is measured against: with random loss it varies more.
MOST_HARM = {False: 0.15, True: 0.20}
CELL, LABEL, TOP = (92, 18), 300, 24


def table(page: Path) -> tuple[list[str], dict[str, list[float]]]:
    """Headings and means of the results on a page, by environment."""
    lines = page.read_text().split("## Results")[1].splitlines()
    cells = [[c.strip() for c in line.strip("| ").split(" | ")] for line in lines if line.startswith("|")]
    rows = {row[0]: [float(c.split()[0]) if c != "–" else 0.0 for c in row[1:-1]] for row in cells[2:]}
    return cells[0][1:-1], rows


def harms(folder: Path) -> dict[str, dict[str, float]]:
    """What CUBIC lacks beside each transport of what it has beside another CUBIC."""
    headings, rows = table(folder / "adapt-beside.md")
    names = [h.split(", ")[-1] for h in headings if h.startswith("CUBIC")]
    return {env: {n: 1 - row[i] / row[0] for i, n in enumerate(names)} for env, row in rows.items()}


def is_lossy(env: str) -> bool:
    return "lost" in env or "bursts" in env


def best(env: str, row: dict[str, float], harm: dict[str, dict[str, float]]) -> str:
    """The one that carries most of those who leave enough to a neighbour; all may where that is not known."""
    worst = {"restp:cubic": 0.0, **harm.get(env, {})}
    may = [name for name in row if name == OURS or worst.get(name, 0.0) <= MOST_HARM[is_lossy(env)]]
    return max(may, key=row.__getitem__)


def heat(rows: dict[str, dict[str, float]]) -> str:
    """A picture: goodput by environment and transport, red for nothing, yellow for half, green for the most."""
    names = list(next(iter(rows.values())))
    (w, h), parts = CELL, []
    for x, name in enumerate(names):
        parts.append(f'<text x="{LABEL + x * w + 4}" y="16">{name}</text>')
    for y, (env, row) in enumerate(rows.items()):
        parts.append(f'<text x="4" y="{TOP + y * h + 13}">{env}</text>')
        for x, name in enumerate(names):
            share = row[name] / max(row.values())
            place = f'x="{LABEL + x * w}" y="{TOP + y * h}" width="{w}" height="{h}"'
            parts.append(f'<rect {place} fill="hsl({120 * share**2:.0f},70%,70%)"/>')
            parts.append(f'<text x="{LABEL + x * w + 4}" y="{TOP + y * h + 13}">{100 * share:.0f} %</text>')
    size = f"0 0 {LABEL + len(names) * w} {TOP + len(rows) * h}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}" font-family="sans-serif" font-size="11">'
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>\n"])


def regrets(rows: dict[str, dict[str, float]], harm: dict[str, dict[str, float]]) -> list[str]:
    lines, all_of = ["| environment | best | regret |", "|---|---|---|"], []
    for env, row in rows.items():
        leader = best(env, row, harm)
        all_of.append(100 * (1 - row[OURS] / row[leader]))
        lines.append(f"| {env} | {leader} | {all_of[-1]:.1f} % |")
    mean = sum(all_of) / len(all_of)
    return [f"Mean {mean:.1f} %, worst {max(all_of):.1f} %, over {len(all_of)} environments.", "", *lines]


def harm_lines(harm: dict[str, dict[str, float]]) -> list[str]:
    names = [name for name in next(iter(harm.values())) if name != "tcp:cubic"]
    lines = [f"| environment | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    lines += [f"| {env} | {' | '.join(f'{100 * row[n]:.0f} %' for n in names)} |" for env, row in harm.items()]
    said = []
    for lossy, word in [(False, "without"), (True, "with")]:
        of = [100 * row[OURS] for env, row in harm.items() if is_lossy(env) == lossy]
        said.append(f"{word} random loss mean {sum(of) / len(of):.0f} %, worst {max(of):.0f} %")
    return [f"Of the default: {'; '.join(said)}.", "", *lines]


def cause_lines(folder: Path) -> list[str]:
    headings, rows = table(folder / "adapt-causes.md")
    lines = ["| true cause | segments | right | worst environment with 50 or more |", "|---|---|---|---|"]
    for cause in CAUSES:
        of = {}
        for env, row in rows.items():
            told = {h.split(" > ")[1]: n for h, n in zip(headings, row) if h.startswith(f"{cause} >")}
            of[env] = (told.get(cause, 0.0), sum(told.values()))
        right, total = (sum(pair[i] for pair in of.values()) for i in (0, 1))
        worst = min(((r / n, env) for env, (r, n) in of.items() if n >= 50), default=(0.0, "none"))
        share = f"{100 * right / max(total, 1):.1f} %"
        lines.append(f"| {cause} | {total:.0f} | {share} | {100 * worst[0]:.0f} %, {worst[1]} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "docs/results", help="where the pages are")
    folder = parser.parse_args().folder
    rows = {}
    for page in ALONE:
        headings, found = table(folder / f"{page}.md")
        rows |= {env: dict(zip(headings, row)) for env, row in found.items()}
    harm = harms(folder)
    text = [
        "# The default, which adapts",
        "",
        "`bench/adapt.py` makes this page of those of `scenarios/adapt/` ([adapt-alone](adapt-alone.md) and others).",
        "",
        "## Alone: goodput as a share of the most",
        "",
        "![Goodput by environment](adapt-heat.svg)",
        "",
        "## Regret",
        "",
        "What the default lacks of the best of those that take at most 15 % (20 % with random loss) from a CUBIC",
        "beside them; of all, where [adapt-beside](adapt-beside.md) lacks the environment.",
        "",
        *regrets(rows, harm),
        "",
        "## Harm",
        "",
        "What a CUBIC lacks beside each of what it has beside another CUBIC.",
        "",
        *harm_lines(harm),
        "",
        "## Causes of losses",
        "",
        "Of one flow alone ([adapt-causes](adapt-causes.md)); with eight flows in a short queue far fewer are right",
        "([adapt-eight](adapt-eight.md)).",
        "",
        *cause_lines(folder),
    ]
    (folder / "adapt.md").write_text("\n".join(text) + "\n")
    (folder / "adapt-heat.svg").write_text(heat(rows))


if __name__ == "__main__":
    main()
