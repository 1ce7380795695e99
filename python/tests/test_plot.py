"""Figures show the numbers of the frames: what is drawn is read back."""

import matplotlib
import pytest

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

import restp  # noqa: E402
from restp import _restp, plot  # noqa: E402

LOSS = "link.bottleneck.loss.rate"


@pytest.fixture(autouse=True)
def figure():
    yield pyplot.figure()
    pyplot.close("all")


@pytest.fixture(scope="module")
def frame():
    from conftest import SCENARIO

    return restp.run(SCENARIO, **{LOSS: [0.0, 0.02, 0.05]}, flow__a__transport=["restp:3wh-arq", "tcp:bic"], runs=4)


@pytest.fixture(scope="module")
def traces():
    from conftest import SCENARIO

    return restp.trace(SCENARIO)


def lines(ax):
    return {line.get_label(): line for line in ax.get_lines()}


def test_lines_are_means_and_bands_their_intervals(frame):
    ax = plot.line(frame, x=LOSS)
    assert set(lines(ax)) == {"restp:3wh-arq", "tcp:bic"}
    drawn = lines(ax)["tcp:bic"]
    assert list(drawn.get_xdata()) == [0.0, 0.02, 0.05]
    rows = frame[(frame["transport"] == "tcp:bic") & (frame[LOSS] == 0.02)]
    mean, low, high = _restp.interval((rows["goodput_bps"] / 1e6).to_list())
    assert drawn.get_ydata()[1] == pytest.approx(mean) == pytest.approx((rows["goodput_bps"] / 1e6).mean())
    band = ax.collections[1].get_paths()[0].vertices
    at = {round(y, 9) for x, y in band if x == 0.02}
    assert at == {round(low, 9), round(high, 9)} and low < mean < high
    assert (ax.get_xlabel(), ax.get_ylabel()) == (LOSS, "goodput in Mbit/s")


def test_one_run_has_no_band_and_texts_stand_side_by_side(frame):
    one = frame[frame["seed"] == 1]
    ax = plot.line(one, x="transport", by=LOSS)
    assert set(lines(ax)) == {"0", "0.02", "0.05"}
    assert [text.get_text() for text in ax.get_xticklabels()] == ["restp:3wh-arq", "tcp:bic"]


def test_polars_frames_are_drawn_as_well(frame):
    import polars

    pandas, other = plot.line(frame, x=LOSS), plot.line(polars.from_pandas(frame), x=LOSS, ax=pyplot.figure().gca())
    assert (lines(pandas)["tcp:bic"].get_ydata() == lines(other)["tcp:bic"].get_ydata()).all()


def test_cdf_goes_from_nothing_to_everything(frame):
    ax = plot.cdf(frame, by=None)
    (curve,) = ax.get_lines()
    assert curve.get_ydata()[0] == 0 and curve.get_ydata()[-1] == 1 and len(curve.get_ydata()) == len(frame) + 1
    assert curve.get_xdata()[-1] == frame["goodput_bps"].max() / 1e6


def test_fairness_is_the_index_of_the_flows_of_a_run():
    from conftest import SCENARIO

    second = SCENARIO[SCENARIO.index("[[flow]]") :].replace('name = "a"', 'name = "b"\nstart = "100 ms"')
    frame = restp.run(SCENARIO + second, **{LOSS: [0.0, 0.01]})
    ax = plot.fairness(frame, x=LOSS)
    (drawn,) = ax.get_lines()
    expected = []
    for _, run in frame[frame[LOSS] == 0.0].groupby("seed"):
        shares = run["goodput_bps"]
        expected.append(shares.sum() ** 2 / (2 * (shares**2).sum()))
    assert drawn.get_ydata()[0] == pytest.approx(sum(expected) / 2) and 0.5 < expected[0] < 1


def test_windows_and_queues_over_time(traces):
    ax = plot.window(traces)
    assert max(lines(ax)["a"].get_ydata()) == traces.window["congestion_window_bytes"].max() / 1e3
    ax = plot.queue(traces, ax=pyplot.figure().gca())
    assert set(lines(ax)) == {"bottleneck/forward"}
    assert max(lines(ax)["bottleneck/forward"].get_ydata()) == traces.queue["packets"].max()
    ax = plot.queue(traces, link="bottleneck", ax=pyplot.figure().gca())
    assert set(lines(ax)) == {"bottleneck/forward", "bottleneck/reverse"}


def test_sequence_numbers_as_sent_again_and_acknowledged(traces):
    drawn = lines(plot.sequence(traces))
    again = traces.flows["retransmitted_packets"].iloc[0]
    assert len(drawn["sent again"].get_xdata()) == again > 0
    assert list(drawn["acknowledged"].get_ydata()) == sorted(drawn["acknowledged"].get_ydata())


def test_paths_carry_what_was_sent(traces):
    ax = plot.paths(traces, bin_s=0.5)
    megabits = lines(ax)["path 0"].get_ydata()
    assert sum(megabits) * 0.5 == pytest.approx(traces.path["sent_bytes"].iloc[-1] * 8e-6)
    assert min(megabits) < max(megabits) / 2, "the outage is a gap"


def test_what_is_not_there_is_named_with_what_is(frame, traces):
    with pytest.raises(KeyError, match="no column 'loss'; the frame has scenario, point"):
        plot.line(frame, x="loss")
    with pytest.raises(KeyError, match="no column 'protocol'"):
        plot.line(frame, x=LOSS, by="protocol")
    with pytest.raises(ValueError, match="no flow 'b' in these traces; there are a"):
        plot.window(traces, flow="b")
    with pytest.raises(ValueError, match="no link 'access'"):
        plot.queue(traces, link="access")
