//! Profiles set timers and queues where the scenario says nothing of them.

use crate::common::{runs, with};

const FLOW: &str = r#"
id = "profiles"
duration = "100 s"

[[link]]
name = "wire"
between = ["a", "b"]
rate = "2 Mbit/s"
delay = "0.01 ms"
loss = { drop = [1] }

[[flow]]
name = "file"
from = "a"
to = "b"
transport = "restp:3wh-arq"
traffic = { file = { bytes = 100000 } }

[sweep]
profile = ["published-like", "sane"]
"#;

#[test]
fn the_handshake_waits_as_the_profile_says_and_as_the_flow_says_first() {
    for transport in ["restp:3wh-arq", "classic-tcp:newreno"] {
        let handshakes = |settings: &[(&str, &str)]| -> Vec<u64> {
            let all = runs(&with(
                FLOW,
                &[&[("flow.file.transport", transport)], settings].concat(),
            ));
            all.iter()
                .map(|run| run.flows[0].handshake_s.expect("set up").round() as u64)
                .collect()
        };
        assert_eq!(handshakes(&[]), [3, 1], "{transport}");
        assert_eq!(
            handshakes(&[("flow.file.set.handshake_rto", "2 s")]),
            [2, 2],
            "{transport}"
        );
    }
}

/// The published queue of one bandwidth-delay product is one packet here, and a window above two overflows it.
#[test]
fn the_queue_holds_one_packet_or_fifty() {
    let dropped = |settings: &[(&str, &str)]| -> Vec<u64> {
        let all = runs(&with(FLOW, settings));
        all.iter().map(|run| run.links[0].dropped_queue).collect()
    };
    assert!(dropped(&[])[0] > 0 && dropped(&[])[1] == 0, "{:?}", dropped(&[]));
    let own = dropped(&[("link.wire.queue.drop_tail", "1 packet")]);
    assert_eq!(own[0], dropped(&[])[0], "one packet either way");
    assert!(own[1] > 0, "a queue of its own counts more than the profile");
}

#[test]
fn udp_has_no_timers_and_every_other_name_is_refused() {
    let udp = with(
        FLOW,
        &[("flow.file", "{ transport = \"udp\", traffic = { voip = {} } }")],
    );
    assert_eq!(udp.points().len(), 2);
    let error = restp_lab::Scenario::parse(FLOW)
        .expect("valid")
        .with("profile", "sain")
        .expect_err("refused");
    let sentence = error.to_string();
    assert!(
        sentence.contains("published-like, sane") && sentence.contains("did you mean"),
        "{sentence}"
    );
}
