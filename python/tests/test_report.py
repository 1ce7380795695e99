"""The page holds what the results hold, and a browser shows it without a complaint."""

import base64
import json
import re
import shutil
import subprocess

import pytest

import restp
from restp.__main__ import main

GRID = {"link.bottleneck.loss.rate": [0.0, 0.02, 0.05], "flow.a.transport": ["restp:3wh-arq", "tcp:bic"]}
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    from conftest import SCENARIO

    folder = tmp_path_factory.mktemp("reports") / "loss"
    restp.sweep(SCENARIO.replace("lossy link", "<lossy> & 'bad' link"), GRID, folder=folder, runs=5, progress=False)
    return restp.report(folder)


def test_the_page_is_beside_the_results_and_holds_all_of_it(page):
    text = page.read_text()
    assert page.name == "loss.html"
    for word in ("short", "&lt;lossy&gt; &amp;", "1 to 5", "tcp:bic", "30 (6 points)", "[[link]]", "Means with"):
        assert word in text, word
    # One figure for the one question, in light and in dark.
    assert (text.count("<img "), text.count("data:image/svg+xml;base64,")) == (1, 2)
    assert text.index("<figure>") < text.index("<table>"), "figures come first"
    assert "loss rate of bottleneck: 0 %, 2 %, 5 %" in text and "5 runs of each combination" in text
    assert "&lt;lossy&gt;" in text.split("</h1>")[0], "the title, not the id"
    frame = restp.load(page.with_suffix(""))
    rows = frame[(frame["transport"] == "tcp:bic") & (frame["link.bottleneck.loss.rate"] == 0.05)]
    assert f"{rows['goodput_bps'].mean() / 1e6:.4g} ± " in text


def test_one_result_gives_one_page(page, tmp_path):
    again = restp.report(page.with_suffix(""), tmp_path / "again.html")
    strip = re.compile(r"base64,[^\"]+")  # matplotlib draws names for clip paths at random
    assert strip.sub("", again.read_text()) == strip.sub("", page.read_text())


def test_what_restp_sim_prints_is_reported_with_its_verdicts(file, tmp_path):
    """Lines as the command writes them: a run, its summary, a verdict."""
    from restp import _restp

    lines = []
    built = _restp.Scenario(file.read_text())
    built.run(built.jobs(), 1, lines.append)
    runs = [json.loads(line) | {"scenario": "short", "point": {"x.y.z": 1}, "wall_seconds": 0.1} for line in lines]
    verdict = {"scenario": "short", "check": "c1", "text": "It is < fast", "point": {}, "claim": "", "expected": 1.0}
    printed = [*runs, {"scenario": "short", "point": {}, "summary": {}}, verdict | {"measured": 2.0, "held": False}]
    path = tmp_path / "short.jsonl"
    path.write_text("\n".join(map(json.dumps, printed)))
    text = restp.report(path, scenario=file).read_text()
    assert "FAILS" in text and "It is &lt; fast" in text and "[[flow]]" in text
    assert "0 of 1 claims hold." in text.split("<table>")[0]


def test_a_claim_is_read_in_the_unit_of_what_it_measures():
    from restp.reports import _quantity

    def shown(value, claim):
        return re.sub("<[^>]*>", "", _quantity(value, claim))

    assert shown(1.871e6, "goodput_bps of flow a: mean within 1 % of the formula") == "1.871 Mbit/s"
    assert shown(0.0421, "completion_s of flow a: x is at most y") == "42.1 ms"
    assert shown(2_000_000, "delivered_bytes of flow a is equal to the formula") == "2 MB"
    assert shown(7, "timeouts of flow a is at most the formula") == "7"
    assert shown(None, "goodput_bps") == "-"


def test_values_that_span_decades_are_on_logarithmic_axes_and_lines_differ_in_shape():
    import pandas as pd
    from matplotlib.figure import Figure

    from restp import plot

    rates = [0.0, 0.001, 0.01, 0.1]
    rows = [
        {"x": rate, "transport": name, "goodput_bps": 1e6 / (1 + 1000 * rate), "seed": seed}
        for rate in rates
        for name in ("a", "b")
        for seed in (1, 2)
    ]
    ax = plot.line(pd.DataFrame(rows), x="x", ax=Figure().subplots())
    assert (ax.get_xscale(), ax.get_yscale()) == ("symlog", "log")
    styles = [(line.get_color(), line.get_marker(), line.get_linestyle()) for line in ax.get_lines()]
    assert all(len(set(kind)) == 2 for kind in zip(*styles, strict=True))
    narrow = pd.DataFrame([row | {"x": 1 + row["x"], "goodput_bps": 1e6} for row in rows])
    ax = plot.line(narrow, x="x", ax=Figure().subplots())
    assert (ax.get_xscale(), ax.get_yscale(), ax.get_ylim()[0]) == ("linear", "linear", 0)


def test_where_stations_stand_and_when_they_transmit_is_drawn(air_file, tmp_path):
    folder = tmp_path / "chains"
    restp.sweep(air_file, {"flow.a.transport": ["restp:3wh-arq", "tcp:newreno"]}, folder=folder, runs=1, progress=False)
    text = restp.report(folder).read_text()
    assert "<h2>The air</h2>" in text
    for caption in ("stations, links, and how far", "who transmits when (point 0, seed 1)"):
        assert f"medium channel: {caption}" in text
    drawn = base64.b64decode(re.findall(r"base64,([^\"]+)", text)[-1]).decode()
    assert drawn.startswith("<?xml") and "</svg>" in drawn


def test_the_air_of_runs_with_settings_is_drawn(air_file, tmp_path):
    """As ``restp sim --set`` prints them: their points have what the file does not vary."""
    from restp import _restp

    lines = []
    settings = [("duration", '"2 s"'), ("medium.channel.queue_packets", "4")]
    built = _restp.Scenario(air_file.read_text(), air_file, settings)
    built.run(built.jobs(1, 1), 1, lines.append)
    [point] = json.loads(built.coordinates())
    assert point == {"duration": "2 s", "medium.channel.queue_packets": 4}
    path = tmp_path / "set.jsonl"
    runs = [json.loads(line) | {"scenario": "chain", "point": point, "wall_seconds": 0.1} for line in lines]
    path.write_text("\n".join(map(json.dumps, runs)))
    assert "<h2>The air</h2>" in restp.report(path, tmp_path / "set.html", scenario=air_file).read_text()
    path.write_text("\n".join(json.dumps(run | {"point": {"x.y": 1}}) for run in runs))
    assert "<h2>The air</h2>" not in restp.report(path, tmp_path / "none.html", scenario=air_file).read_text()


def test_what_is_no_result_is_refused(tmp_path, capsys):
    def refused(path):
        code = main(["report", str(path)])
        return code, capsys.readouterr().err

    code, error = refused(tmp_path / "nothing")
    assert code == 2 and error.startswith(f"error: {tmp_path}/nothing: there is no such file or folder; give the")
    (tmp_path / "text").write_text("hello\n")
    code, error = refused(tmp_path / "text")
    assert code == 2 and "line 1" in error
    (tmp_path / "empty").write_text("")
    code, error = refused(tmp_path / "empty")
    assert code == 2 and "no run in it" in error
    code, error = refused(tmp_path)
    assert code == 2 and "there are no results here" in error
    assert main(["report", str(tmp_path / "empty"), "--output", "/nowhere/x.html"]) == 2


@pytest.mark.skipif(CHROMIUM is None, reason="NOT TESTED: no Chromium to show the report (install chromium)")
def test_a_browser_shows_every_image_and_says_nothing(page, tmp_path):
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--window-size=1200,900")

    def browser(url, *options):
        command = [CHROMIUM, *flags, f"--user-data-dir={tmp_path / 'profile'}", *options, url]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)

    shown = browser(page.as_uri(), "--dump-dom", "--virtual-time-budget=5000")
    assert "CONSOLE" not in shown.stderr, shown.stderr
    assert "&lt;lossy&gt;" in shown.stdout.split("</h1>")[0], "its title says what it is"

    # A copy that may run a script, which looks at what was drawn.
    probe = tmp_path / "probe.html"
    text = re.sub(r"<meta http-equiv=\"Content-Security-Policy\"[^>]*>", "", page.read_text())
    script = """<script>addEventListener('load', () => {
      const box = element => { const b = element.getBoundingClientRect(); return [b.width, b.height]; };
      document.body.innerHTML = '<pre id="seen">' + JSON.stringify({
        images: [...document.images].map(image => [image.complete && image.naturalWidth, ...box(image)]),
        tables: [...document.querySelectorAll('table')].map(box),
        wide: document.documentElement.scrollWidth, window: innerWidth,
        outside: performance.getEntriesByType('resource').filter(one => !one.name.startsWith('data:')).length,
      }) + '</pre>'; });</script>"""
    probe.write_text(text.replace("</body>", script + "</body>"))
    dom = browser(probe.as_uri(), "--dump-dom", "--virtual-time-budget=5000").stdout
    seen = json.loads(re.search(r'<pre id="seen">(.*?)</pre>', dom).group(1))
    assert len(seen["images"]) == 1
    assert all(natural and width > 300 and height > 150 for natural, width, height in seen["images"])
    assert len(seen["tables"]) == 3 and all(width > 100 and height > 50 for width, height in seen["tables"])
    assert seen["wide"] <= seen["window"] and seen["outside"] == 0

    # It would notice: a page with an image that cannot be had, and a script that is not allowed, complains.
    probe.write_text(page.read_text().replace("</body>", "<img src='missing.png'><script>x</script></body>"))
    assert "CONSOLE" in browser(probe.as_uri(), "--dump-dom").stderr
