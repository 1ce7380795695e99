//! What acknowledgements take from a way back that is much slower than the way there.

use crate::common::{runs, with};

/// 20 Mbit/s there, 100 kbit/s back; the forward queue holds a round trip.
const THIN: &str = r#"
id = "thin"
duration = "30 s"

[[link]]
name = "left-{i}"
count = 2
between = ["sender-{i}", "west"]
rate = "100 Mbit/s"
delay = "0.1 ms"

[[link]]
name = "wire"
between = ["west", "east"]
rate = "20 Mbit/s"
reverse_rate = "100 kbit/s"
delay = "25 ms"
queue = { drop_tail = "83 packets" }

[[link]]
name = "right-{i}"
count = 2
between = ["east", "receiver-{i}"]
rate = "100 Mbit/s"
delay = "0.1 ms"

[[flow]]
name = "restp"
from = "sender-1"
to = "receiver-1"
transport = "restp:cubic"
traffic = { bulk = {} }
"#;

const NEIGHBOUR: &str = r#"
[[flow]]
name = "tcp"
from = "sender-2"
to = "receiver-2"
transport = "tcp:cubic"
traffic = { bulk = {} }
"#;

/// Goodput of the flows in Mbit/s.
fn goodput(text: &str, settings: &[(&str, &str)]) -> Vec<f64> {
    let run = runs(&with(text, settings)).remove(0);
    let flows = run.flows.iter();
    flows.map(|flow| flow.goodput_bps.expect("bulk") / 1e6).collect()
}

const ALONE: [&str; 2] = ["restp:cubic", "restp:resilient"];
const THINS: (&str, &str) = ("flow.restp.set.ack-thinning", "on");

/// An acknowledgement takes 52 bytes with IP and UDP, so 240 of them a second fit, and half as many as segments would be 860.
/// Their queue of 83 packets adds a third of a second to each round trip, and those that it drops delay everything else.
#[test]
fn a_thinned_flow_fills_a_link_whose_way_back_is_two_hundred_times_slower() {
    for transport in ALONE {
        let choose = ("flow.restp.transport", transport);
        let plain = goodput(THIN, &[choose])[0];
        let thinned = goodput(THIN, &[choose, THINS])[0];
        // 1400 of 1452 bytes on the wire are payload: 19.3 Mbit/s at most.
        assert!(
            plain < 15.0 && thinned > 18.0,
            "{transport}: {plain} and {thinned}"
        );
    }
}

/// A TCP is there before, and its acknowledgements fill the way back. They find room beside those of a thinned flow; without
/// thinning those of a BBR, which takes no loss for congestion, crowd them out.
#[test]
fn a_thinned_flow_leaves_a_tcp_room_for_its_acknowledgements() {
    let both = [THIN, NEIGHBOUR].concat();
    // How one pair shares depends on the moment at which they meet.
    let mean_of = |more: &[(&str, &str)]| {
        let mut mean = [0.0; 2];
        for start in ["3 s", "4 s", "5 s", "6 s", "7 s", "8 s"] {
            let later = [
                ("duration", "60 s"),
                ("flow.restp.start", start),
                ("flow.restp.transport", "restp:resilient"),
            ];
            let shares = goodput(&both, &[&later[..], more].concat());
            (0..2).for_each(|flow| mean[flow] += shares[flow] / 6.0);
        }
        mean
    };
    let (plain, thinned) = (mean_of(&[]), mean_of(&[THINS]));
    assert!(
        thinned.iter().all(|rate| *rate > 6.0),
        "halves of what fits: {thinned:?}"
    );
    assert!(thinned[1] > 1.3 * plain[1], "{plain:?} and {thinned:?}");
}

/// On a way back that carries everything, thinning takes nothing from the goodput.
#[test]
fn thinning_costs_nothing_where_the_way_back_is_wide() {
    let wide = ("link.wire.reverse_rate", "20 Mbit/s");
    for loss in ["0", "0.01", "0.05"] {
        let rate = format!("{{ rate = {loss}, unit = \"packet\" }}");
        for transport in ALONE {
            let settings = [
                wide,
                ("link.wire.loss", &rate),
                ("flow.restp.transport", transport),
            ];
            let plain = goodput(THIN, &settings)[0];
            let thinned = goodput(THIN, &[&settings[..], &[THINS]].concat())[0];
            assert!(
                thinned > 0.98 * plain,
                "{transport}, loss {loss}: {thinned} of {plain}"
            );
        }
    }
}

/// A controller that keeps no queue had a flight of a few segments there, and as few acknowledgements as fit for two segments each.
#[test]
fn the_default_finds_out_that_rarer_acknowledgements_carry_more() {
    for (rate, delay, back) in [
        (20.0, "10 ms", 60.0),
        (50.0, "10 ms", 120.0),
        (50.0, "25 ms", 60.0),
        (100.0, "15 ms", 120.0),
    ] {
        let (there, reverse) = (format!("{rate} Mbit/s"), format!("{back} kbit/s"));
        let path = [
            ("link.wire.rate", there.as_str()),
            ("link.wire.reverse_rate", reverse.as_str()),
            ("link.wire.delay", delay),
            ("flow.restp.transport", "restp:default"),
        ];
        let by_schedule = back / (52.0 * 8.0) * 2.0 * 1400.0 * 8.0 / 1e3;
        let least = f64::min(2.0 * by_schedule, 0.6 * rate);
        let carried = goodput(THIN, &path)[0];
        assert!(
            carried > least,
            "{path:?}: {carried} Mbit/s, {by_schedule} with one for two"
        );
    }
}
