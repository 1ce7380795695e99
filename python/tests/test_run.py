import json
import subprocess
import sys

import numpy as np
import pytest

import restp
from restp import changes


def test_a_row_per_run_and_flow_with_the_axes_as_columns(file):
    frame = restp.run(
        file, link__bottleneck__loss__rate=[0.0, 0.05], flow__a__transport=["restp:3wh-arq", "tcp:newreno"]
    )
    assert len(frame) == 2 * 2 * 2
    assert list(frame["seed"]) == [1, 2] * 4
    assert list(frame["link.bottleneck.loss.rate"]) == [0.0] * 4 + [0.05] * 4
    assert list(frame["transport"].unique()) == ["restp:3wh-arq", "tcp:newreno"]
    means = frame.groupby("link.bottleneck.loss.rate")["goodput_bps"].mean()
    assert means[0.0] > means[0.05] > 0


def test_text_and_file_are_the_same_scenario(file, scenario):
    assert restp.run(file).equals(restp.run(scenario))


def test_threads_change_nothing(file):
    assert restp.run(file, threads=1, runs=5).equals(restp.run(file, threads=2, runs=5))


def test_polars_and_arrow_hold_what_pandas_holds(file):
    pandas, polars, arrow = (restp.run(file, frame=kind) for kind in ("pandas", "polars", "arrow"))
    assert list(pandas.columns) == polars.columns == arrow.column_names
    assert pandas["goodput_bps"].to_list() == polars["goodput_bps"].to_list() == arrow["goodput_bps"].to_pylist()


def test_the_frame_says_what_the_lab_says(file):
    """Line by line against the nested results, field by field."""
    from restp import _restp, results

    lines = []
    built = _restp.Scenario(file.read_text(), str(file))
    built.run(built.jobs(), 1, lines.append)
    raw = [json.loads(line) for line in lines]
    assert results.parse(lines).to_pylist() == raw
    row = restp.run(file).iloc[1]
    window = raw[1]["flows"][0]["window"] or {}
    assert all(row[f"window.{field}"] == value or value is None for field, value in window.items())
    for field, value in raw[1]["flows"][0].items():
        if field not in ("name", "loss_causes", "window", "bins_bps", "rto_events", "outages", "changes", "paths"):
            assert row[field] == value or (value is None and row[field] != row[field]), field
    for truth, inferred in raw[1]["flows"][0]["loss_causes"].items():
        assert all(row[f"loss_causes.{truth}.{cause}"] == count for cause, count in inferred.items())
    tables = {name: restp.run(file, table=name) for name in ("links", "paths", "bins", "outages", "timeouts", "runs")}
    flow = raw[1]["flows"][0]
    second = {name: frame[frame["seed"] == 2] for name, frame in tables.items()}
    assert list(second["bins"]["bps"]) == flow["bins_bps"] and list(second["bins"]["bin"]) == [0, 1, 2]
    assert list(second["outages"]["resume_s"]) == [outage["resume_s"] for outage in flow["outages"]]
    assert list(second["timeouts"]["at_s"]) == [event["at_s"] for event in flow["rto_events"]]
    assert list(second["paths"]["bytes_sent"]) == [path["bytes_sent"] for path in flow["paths"]]
    assert list(second["paths"]["links"]) == ["bottleneck"]
    assert list(second["links"]["dropped_error"]) == [raw[1]["links"][0]["dropped_error"]]
    assert list(second["runs"]["events"]) == [raw[1]["events"]]


@pytest.mark.parametrize(
    ("given", "written"),
    [
        (True, "true"),
        (3, "3"),
        (1e-5, "1e-05"),
        (float("inf"), "inf"),
        ("10 Mbit/s", '"10 Mbit/s"'),
        ('a "b" \\ ü\n\x7f', '"a \\"b\\" \\\\ ü\\n\\u007f"'),
        ([1, "x"], '[1, "x"]'),
        (np.array([0.5, 1.0]), "[0.5, 1.0]"),
        (np.float64(0.25), "0.25"),
        (range(3), "[0, 1, 2]"),
        ({"drop_tail": "bdp"}, '{ "drop_tail" = "bdp" }'),
    ],
)
def test_values_of_python_are_written_as_toml(given, written):
    assert changes.value(given) == written


def test_a_table_is_a_value_too(file):
    assert len(restp.run(file, link__bottleneck__queue={"codel": {}}, runs=1)) == 1


def test_refusals_name_the_key_and_the_way_out(file):
    with pytest.raises(restp.ScenarioError, match='no link "bottlneck".*did you mean "bottleneck"') as caught:
        restp.run(file, link__bottlneck__rate="1 Mbit/s")
    assert caught.value.key == "link.bottlneck.rate"
    with pytest.raises(restp.ScenarioError, match="1.5 is not a probability") as caught:
        restp.run(file, link__bottleneck__loss__rate=1.5)
    assert caught.value.key == "link.bottleneck.loss.rate" and caught.value.line is None
    file.write_text(file.read_text().replace("runs = 2", "rnus = 2"))
    with pytest.raises(restp.ScenarioError, match="line 5") as caught:
        restp.run(file)
    assert (caught.value.key, caught.value.line, caught.value.file) == ("rnus", 5, file)
    with pytest.raises(FileNotFoundError, match="give the path of a scenario file"):
        restp.run("nowhere.toml")
    with pytest.raises(TypeError, match="cannot stand in a scenario"):
        restp.run(file, duration=object())


def test_names_of_frames_and_tables_are_checked_with_the_choices(file):
    with pytest.raises(ValueError, match="'pandas', 'polars' or 'arrow'"):
        restp.run(file, frame="spark")
    with pytest.raises(ValueError, match="flows, groups, hosts, links"):
        restp.run(file, table="flow")


def test_other_threads_go_on_while_runs_run(scenario):
    """The interpreter's lock is given up: a second thread counts while the first one simulates."""
    code = f"""
import sys, threading, restp
count, done = 0, threading.Event()
def busy():
    restp.run({scenario!r}, duration="100 s", runs=20, threads=1)
    done.set()
thread = threading.Thread(target=busy)
sys.setswitchinterval(1000)  # whoever holds the lock keeps it
thread.start()
while not done.wait(0.001):
    count += 1
print(count)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert int(done.stdout) > 3


def test_an_exception_ends_the_rest(file):
    from restp import _restp

    built = _restp.Scenario(file.read_text())
    seen = []

    def each(line):
        seen.append(line)
        if len(seen) == 3:
            raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        built.run(built.jobs(runs=50), 1, each)
    assert len(seen) == 3
    with pytest.raises(IndexError, match="there is no point 7"):
        built.run([(7, 1)], 1, seen.append)
