"""One figure, drawn without a library: goodput against packet error rate, both on logarithmic axes."""

from math import log10

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 250, 24, 52
COLOURS = {"tcp:newreno": "#222222", "restp:3wh-arq": "#1f77b4", "restp:arq-only": "#d62728"}
DASHES = {"tcp:newreno": "6 4"}
LABELS = {
    "tcp:newreno": "TCP NewReno",
    "restp:3wh-arq": "ResTP with NewReno",
    "restp:arq-only": "ResTP, no congestion control",
}


def goodput_against_loss(summaries: list[dict]) -> str:
    series: dict[str, list[tuple[float, float, float, float]]] = {}
    for summary in summaries:
        loss = summary["point"]["link.bottleneck.loss.rate"]
        goodput = summary["summary"]["flows"][0]["goodput_bps"]
        if loss > 0:  # zero has no place on a logarithmic axis
            point = (loss, goodput["mean"], max(goodput["low"], 1e3), goodput["high"])
            series.setdefault(summary["point"]["flow.bulk.transport"], []).append(point)
    # TCP comes last and dashed: it lies on ResTP with NewReno.
    drawn = sorted(series, key=lambda name: name in DASHES)
    parts = [*frame(), *(part for name in drawn for part in curve(name, series[name]))]
    for row, name in enumerate(series):
        y = TOP + 14 + 20 * row
        x = WIDTH - RIGHT + 14
        parts.append(line(x, y - 4, x + 22, y - 4, COLOURS[name], 2, DASHES.get(name)))
        parts.append(text(x + 28, y, LABELS[name], "start", 11))
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">\n'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>\n{body}\n</svg>\n'
    )


def x_of(loss: float) -> float:
    return LEFT + (log10(loss) + 3) / 2.7 * (WIDTH - LEFT - RIGHT)  # 0.001 to 0.5


def y_of(goodput: float) -> float:
    return TOP + (log10(3e6) - log10(goodput)) / (log10(3e6) - 3) * (HEIGHT - TOP - BOTTOM)  # 3 Mbit/s to 1 kbit/s


def frame() -> list[str]:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts = []
    for loss in (0.001, 0.01, 0.1, 0.5):
        parts += [line(x_of(loss), TOP, x_of(loss), bottom, "#dddddd", 1), text(x_of(loss), bottom + 18, f"{loss:g}")]
    for goodput, label in ((1e3, "1 kbit/s"), (1e4, "10 kbit/s"), (1e5, "100 kbit/s"), (1e6, "1 Mbit/s")):
        parts += [line(LEFT, y_of(goodput), right, y_of(goodput), "#dddddd", 1)]
        parts += [text(LEFT - 6, y_of(goodput) + 4, label, "end", 10)]
    parts += [line(LEFT, bottom, right, bottom, "black", 1), line(LEFT, TOP, LEFT, bottom, "black", 1)]
    title = "packet error rate (2 Mbit/s, 90 ms round trip, 20 seeds, 95 % intervals)"
    return [*parts, text((LEFT + right) / 2, HEIGHT - 12, title)]


def curve(name: str, points: list[tuple[float, float, float, float]]) -> list[str]:
    path = " ".join(f"{x_of(loss):.1f},{y_of(mean):.1f}" for loss, mean, _, _ in points)
    dash = f' stroke-dasharray="{DASHES[name]}"' if name in DASHES else ""
    parts = [f'<polyline points="{path}" fill="none" stroke="{COLOURS[name]}" stroke-width="2"{dash}/>']
    for loss, mean, low, high in points:
        parts.append(line(x_of(loss), y_of(low), x_of(loss), y_of(high), COLOURS[name], 1))
        parts.append(f'<circle cx="{x_of(loss):.1f}" cy="{y_of(mean):.1f}" r="3" fill="{COLOURS[name]}"/>')
    return parts


def line(x1: float, y1: float, x2: float, y2: float, colour: str, width: int, dash: str | None = None) -> str:
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="{colour}" stroke-width="{width}"{dashed}/>'


def text(x: float, y: float, words: str, anchor: str = "middle", size: int = 11) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">{words}</text>'
