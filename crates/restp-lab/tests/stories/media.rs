//! Live media over two links of 5 Mbit/s that lose 1 % of the packets both ways: what is there within 300 ms.

use crate::common::{runs, with};
use restp_proto::composition::{Composition, Preset};

const MEDIA: &str = r#"
id = "media"
duration = "23 s"

[measure]
from = "2 s"
to = "22 s"

[[link]]
name = "a"
between = ["van", "studio"]
rate = "5 Mbit/s"
delay = "20 ms"
queue = { drop_tail = "100 packets" }
loss = { rate = 0.01, unit = "packet", direction = "both" }

[[link]]
name = "b"
between = ["van", "studio"]
rate = "5 Mbit/s"
delay = "35 ms"
queue = { drop_tail = "100 packets" }
loss = { rate = 0.01, unit = "packet", direction = "both" }

[[flow]]
name = "media"
from = "van"
to = "studio"
transport = "restp:video"
set = { SET }
paths = [["a"], ["b"]]
traffic = { cbr = { rate = "6 Mbit/s", bytes = 1319, late_after = "300 ms" } }
"#;

/// As `restp forward --udp --deadline 300ms` over several links: what differs from the preset.
fn media() -> String {
    let video = Preset::named("video").expect("a preset").composition();
    let several = video.clone().over_several_paths();
    let changed = |(key, value, _): (&str, String, &str)| {
        let before = services(&video).into_iter().find(|(other, ..)| *other == key);
        (before.map(|(_, value, _)| value).as_ref() != Some(&value)).then(|| format!("{key} = \"{value}\""))
    };
    let mut set: Vec<String> = services(&several).into_iter().filter_map(changed).collect();
    set.push("deadline = \"300 ms\"".into());
    MEDIA.replace("SET", &set.join(", "))
}

fn services(composition: &Composition) -> Vec<(&'static str, String, &'static str)> {
    composition.services()
}

/// Six of the ten that both links carry.
#[test]
fn media_that_neither_link_carries_alone_is_there_in_time() {
    for seed in ["1", "2", "3"] {
        let flow = runs(&with(&media(), &[("seed", seed)]))
            .swap_remove(0)
            .flows
            .swap_remove(0);
        assert!(
            flow.on_time_share >= Some(0.998),
            "{seed}: {:?}",
            flow.on_time_share
        );
        let missed = flow.missed_messages.expect("messages");
        assert!(missed <= 11, "{seed}: {missed} of 11372 lost or late");
        assert!(
            flow.paths.iter().all(|path| path.bytes_sent > 4_000_000),
            "{:?}",
            flow.paths
        );
    }
}

/// One link dies half-way; the other has room for all of it.
#[test]
fn media_survives_a_link_in_time() {
    let dies = media()
        .replacen(
            "delay = \"20 ms\"",
            "delay = \"20 ms\"\noutage = [\"12 s..23 s\"]",
            1,
        )
        .replace("6 Mbit/s", "4 Mbit/s");
    for seed in ["1", "2", "3"] {
        let flow = runs(&with(&dies, &[("seed", seed)]))
            .swap_remove(0)
            .flows
            .swap_remove(0);
        let missed = flow.missed_messages.expect("messages");
        assert!(missed <= 7, "{seed}: {missed} of 7582 lost or late");
        assert!(
            flow.on_time_share >= Some(0.998),
            "{seed}: {:?}",
            flow.on_time_share
        );
    }
}
