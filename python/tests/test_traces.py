import pytest

import restp


def test_a_trace_agrees_with_the_run(file):
    traces = restp.trace(file)
    run = restp.run(file, runs=1)
    assert traces.flows.equals(run)
    flow = run.iloc[0]
    sent = traces.sequence.query("host == 'opener' and step == 'sent'")
    assert len(sent) == flow["sent_packets"]
    assert sent["payload_bytes"].sum() == traces.window["sent_payload_bytes"].iloc[-1]
    assert traces.path["sent_bytes"].iloc[-1] == restp.run(file, runs=1, table="paths")["bytes_sent"].iloc[0]
    assert set(traces.queue["link"]) == {"bottleneck/forward", "bottleneck/reverse"}
    assert traces.queue["packets"].max() <= 20
    for frame in (traces.window, traces.path, traces.queue, traces.sequence):
        assert frame["at_s"].is_monotonic_increasing and frame["at_s"].max() <= 3


def test_seed_and_point_choose_the_run(file):
    rates = [0.0, 0.05]
    second = restp.trace(file, point=1, seed=7, sequence=False, link__bottleneck__loss__rate=rates)
    assert second.flows[["seed", "link.bottleneck.loss.rate"]].to_numpy().tolist() == [[7, 0.05]]
    assert len(second.sequence) == 0
    with pytest.raises(IndexError, match="there is no point 2"):
        restp.trace(file, point=2, link__bottleneck__loss__rate=rates)


def test_looking_less_often_keeps_traces_short(file):
    often, rarely = restp.trace(file, frame="polars"), restp.trace(file, every="100 ms", frame="polars")
    assert 10 < len(rarely.window) <= 31 < len(often.window)


def test_a_trace_too_long_says_what_to_change(file):
    with pytest.raises(restp.RunError, match=r"1000 rows at \d\.\d+ of 3\.000 s; shorten duration"):
        restp.trace(file, rows=1000)
    with pytest.raises(ValueError, match="write a number and one of ns, us, ms, s, min, h"):
        restp.trace(file, every="often")


def test_frames_on_the_air_are_noted_where_they_are_asked_for(air_file):
    assert len(restp.trace(air_file, sequence=False).air) == 0
    air = restp.trace(air_file, sequence=False, every="1 h", air=("1 s", "1500 ms")).air
    assert list(air) == ["at_s", "until_s", "medium", "station", "to", "kind", "outcome"]
    assert set(air["kind"]) == {"rts", "cts", "data", "ack"} and "received" in set(air["outcome"])
    assert air["until_s"].min() > 1 and air["at_s"].max() < 1.5
    assert (air["until_s"] > air["at_s"]).all() and (air["station"].astype(str) != air["to"].astype(str)).all()
