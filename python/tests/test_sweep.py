import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import restp
from restp import sweeps

GRID = {"link.bottleneck.loss.rate": [0.0, 0.01, 0.05], "flow__a__transport": ["restp:3wh-arq", "tcp:newreno"]}


def test_a_sweep_is_a_run_over_axes(file):
    swept = restp.sweep(file, GRID, progress=False)
    assert swept.equals(restp.run(file, **GRID))
    assert len(swept) == 12


def test_an_experiment_is_swept_over_less_than_its_axes():
    """Of two models one is left out, which reasons of its claims speak of."""
    file = Path(__file__).parents[2] / "scenarios/air/air-w1.toml"
    grid = {
        "medium.*": [{"label": "disk"}],
        "station.*.count": [5],
        "flow.bg.traffic.cbr.interval": ["1000 s"],
        "flow.a": [{"label": "AwareApp", "transport": "sctp", "paths": [["one"]]}],
    }
    swept = restp.sweep(file, grid, runs=1, progress=False)
    assert set(swept["medium.*.label"]) == {"disk"}
    assert (swept[swept["flow"] == "a"]["goodput_bps"] > 0).all()


def test_a_folder_is_gone_on_with(file, tmp_path, monkeypatch):
    folder = tmp_path / "results"
    whole = restp.sweep(file, GRID, progress=False)
    monkeypatch.setattr(sweeps, "_SAVE_EVERY_S", 0)

    seen = []

    class Stop(Exception):
        pass

    class Bar(sweeps.tqdm):
        def update(self, n=1):
            seen.append(n)
            if sum(seen) >= 5:
                raise Stop

    monkeypatch.setattr(sweeps, "tqdm", Bar)
    with pytest.raises(Stop):
        restp.sweep(file, GRID, folder=folder, progress=False)
    monkeypatch.undo()
    assert len(restp.load(folder)) == 5
    done = []
    take = sweeps._Saved.take
    monkeypatch.setattr(sweeps._Saved, "take", lambda self, lines: (done.extend(lines), take(self, lines)))
    assert restp.sweep(file, GRID, folder=folder, progress=False).equals(whole)
    assert len(done) == 7
    assert restp.load(folder).equals(whole)
    assert restp.load(folder, table="links").equals(restp.sweep(file, GRID, table="links", progress=False))


def test_a_killed_process_keeps_what_it_finished(file, tmp_path):
    folder = tmp_path / "results"
    code = f"""
import restp, restp.sweeps
restp.sweeps._SAVE_EVERY_S = 0
restp.sweep({str(file)!r}, {{"duration": ["60 s"]}}, runs=2000, folder={str(folder)!r}, threads=1)
"""
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while len(list(folder.glob("part-*"))) < 3 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = restp.load(folder)
    assert 3 <= len(kept) < 2000
    assert kept.equals(restp.run(file, duration=["60 s"], runs=len(kept)))


def test_folders_of_others_are_refused(file, tmp_path):
    folder = tmp_path / "results"
    restp.sweep(file, {"link.bottleneck.rate": ["1 Mbit/s"]}, folder=folder, progress=False)
    with pytest.raises(restp.FolderError, match="rate = .*1 Mbit/s.* there, .*3 Mbit/s.* here.*another folder"):
        restp.sweep(file, {"link.bottleneck.rate": ["3 Mbit/s"]}, folder=folder, progress=False)
    with pytest.raises(restp.FolderError, match="runs = nothing there, 7 here"):
        restp.sweep(file, {"link.bottleneck.rate": ["1 Mbit/s"]}, runs=7, folder=folder, progress=False)
    file.write_text(file.read_text() + "\n# another text\n")
    with pytest.raises(restp.FolderError, match="the text of the scenario"):
        restp.sweep(file, {"link.bottleneck.rate": ["1 Mbit/s"]}, folder=folder, progress=False)
    with pytest.raises(restp.FolderError, match="not a folder of results, and not empty"):
        restp.sweep(file, GRID, folder=tmp_path, progress=False)
    with pytest.raises(restp.FolderError, match="there are no results here"):
        restp.load(tmp_path)


def test_a_damaged_file_is_named(file, tmp_path):
    folder = tmp_path / "results"
    restp.sweep(file, GRID, folder=folder, progress=False)
    part = next(folder.glob("part-*"))
    part.write_bytes(part.read_bytes()[:100])
    with pytest.raises(restp.FolderError, match=f"{part.name}.*damaged.*remove it"):
        restp.load(folder)
    part.unlink()
    assert restp.sweep(file, GRID, folder=folder, progress=False).equals(restp.run(file, **GRID))


def test_a_full_disk_is_an_error_that_says_what_is_kept(file, tmp_path):
    folder = tmp_path / "results"
    code = f"""
import resource, restp, restp.sweeps
restp.sweep({str(file)!r}, {GRID!r}, runs=1, folder={str(folder)!r}, progress=False)
restp.sweeps._SAVE_EVERY_S = 0
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
restp.sweep({str(file)!r}, {GRID!r}, runs=3, folder={str(folder) + "-2"!r}, progress=False)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert re.search(r"could not be written \(.*File too large\); make room", done.stderr), done.stderr
    assert len(restp.load(folder)) == 6
    assert not list((tmp_path / "results-2").glob(".*")), "nothing half written is left"


def test_grids_that_name_nothing_are_refused_before_the_first_run(file, tmp_path):
    folder = tmp_path / "results"
    with pytest.raises(restp.ScenarioError, match='no flow "b"') as caught:
        restp.sweep(file, {"flow.b.transport": ["udp"]}, folder=folder)
    assert caught.value.key == "flow.b.transport"
    with pytest.raises(restp.ScenarioError, match="an axis without values"):
        restp.sweep(file, {"flow.a.transport": []}, folder=folder)
    with pytest.raises(TypeError, match="write a list of values, even for one"):
        restp.sweep(file, {"flow.a.transport": "udp"}, folder=folder)
    with pytest.raises(TypeError, match="a grid maps keys to lists"):
        restp.sweep(file, ["flow.a.transport"], folder=folder)
    assert not folder.exists()


def test_a_cluster_gives_the_same_frame(file, client, tmp_path):
    folder = tmp_path / "results"
    here = restp.sweep(file, GRID, runs=10, progress=False)
    assert restp.sweep(file, GRID, client, runs=10, folder=folder, progress=False).equals(here)
    assert restp.load(folder).equals(here)


def test_a_worker_that_is_killed_loses_nothing(file, client, tmp_path, monkeypatch):
    pids = client.run(os.getpid)
    killed = []

    class Bar(sweeps.tqdm):
        def update(self, n=1):
            super().update(n)
            if not killed:
                killed.append(next(iter(pids.values())))
                os.kill(killed[0], signal.SIGKILL)

    monkeypatch.setattr(sweeps, "tqdm", Bar)
    grid = {"link.bottleneck.loss.rate": [i / 1000 for i in range(200)]}
    frame = restp.sweep(file, grid, client, folder=tmp_path / "results", progress=False)
    assert killed and frame.equals(restp.run(file, **grid))


def test_an_error_on_a_worker_is_the_error_here(file, client):
    text = file.read_text().replace("restp:3wh-arq", "udp")
    with pytest.raises(restp.RunError, match="bulk and file have no rate; use cbr") as here:
        restp.sweep(text, {"duration": ["1 s"]}, runs=1, progress=False)
    with pytest.raises(restp.RunError) as there:
        restp.sweep(text, {"duration": ["1 s"]}, client, runs=1, progress=False)
    assert str(here.value) == str(there.value)
