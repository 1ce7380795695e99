//! Voice over transports that keep boundaries and over streams that do not.

use crate::common::{runs, with};

/// One second of voice over a path as long as the published one.
const VOICE: &str = r#"
id = "voice"
duration = "4 s"

[[link]]
name = "wire"
between = ["a", "b"]
rate = "100 Mbit/s"
delay = "32 ms"

[[flow]]
name = "voice"
from = "a"
to = "b"
transport = "udp"
traffic = { voip = { duration = "1 s" } }
"#;

#[test]
fn a_talk_without_losses_is_on_time_everywhere() {
    for transport in ["udp", "restp:unrel", "restp:3wh-arq", "classic-tcp:newreno"] {
        let run = runs(&with(VOICE, &[("flow.voice.transport", transport)])).swap_remove(0);
        let flow = &run.flows[0];
        let (sent, lost, late) = (flow.sent_messages, flow.lost_messages, flow.late_messages);
        assert_eq!((sent, lost, late), (Some(50), Some(0), Some(0)), "{transport}");
        assert_eq!(
            (flow.missed_messages, flow.on_time_share),
            (Some(0), Some(1.0)),
            "{transport}"
        );
        let prefix = if ["restp:3wh-arq", "classic-tcp:newreno"].contains(&transport) {
            2
        } else {
            0
        };
        assert_eq!(
            flow.delivered_bytes,
            50 * (160 + prefix),
            "{transport}: streams carry the length"
        );
    }
}

/// Frame 20 is lost and retransmitted a round trip later. Until then TCP holds what follows and then returns all of it in
/// one read: with lengths every frame is found, as fixed frames only the head of the first one is.
#[test]
fn a_raw_sink_loses_the_heads_of_frames_that_a_stream_merged() {
    let run = |framing: &str| {
        let settings = [
            ("flow.voice.transport", "classic-tcp:newreno"),
            ("link.wire.loss.drop", "[[22]]"),
            ("flow.voice.traffic.voip.framing", framing),
        ];
        runs(&with(VOICE, &settings)).swap_remove(0).flows.swap_remove(0)
    };
    let framed = run("length");
    assert_eq!(
        (framed.lost_messages, framed.delivered_messages),
        (Some(0), Some(50))
    );
    assert!(framed.latency_p99_ms > Some(100.0), "{:?}", framed.latency_p99_ms);
    let raw = run("raw");
    assert_eq!(
        raw.delivered_bytes,
        50 * 160,
        "nothing is missing from the stream"
    );
    let lost = raw.lost_messages.expect("counted");
    // The set-up merges the first four frames; the retransmission comes with those of a round trip, four or five of 20 ms.
    assert!((6..=11).contains(&lost), "{lost}");
    assert_eq!(raw.delivered_messages, Some(50 - lost));
}

#[test]
fn lost_and_late_frames_are_missed() {
    let settings = [
        ("link.wire.loss.drop", "[[3, 4]]"),
        ("link.wire.reorder", "{ rate = 0.5, delay = \"150 ms\" }"),
    ];
    let flow = runs(&with(VOICE, &settings)).swap_remove(0).flows.swap_remove(0);
    let late = flow.late_messages.expect("counted");
    assert!((15..35).contains(&late), "{late}");
    assert_eq!(
        (flow.lost_messages, flow.missed_messages),
        (Some(2), Some(2 + late))
    );
    assert_eq!(flow.on_time_share, Some((48 - late) as f64 / 50.0));
}
