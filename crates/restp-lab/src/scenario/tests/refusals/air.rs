//! Media and stations that cannot be.

use super::*;

/// Two chains of stations on two channels.
const AIR: &str = r#"
id = "air"
duration = "10 s"

[[medium]]
name = "one"

[[medium]]
name = "two"

[[station]]
name = "n{i}"
count = 3
at_m = [0, 0]
step_m = [300, 0]
media = ["one", "two"]

[[station]]
name = "base"
at_m = [0, 350]
media = ["two"]

[[flow]]
name = "a"
from = "n1"
to = "n3"
transport = "udp"
traffic = { cbr = { rate = "10 kbit/s", bytes = 100 } }
"#;

/// `from` is the first of its kind in the text.
#[track_caller]
fn refused_air(from: &str, to: &str, parts: &[&str]) {
    assert!(AIR.contains(from), "{from}");
    let sentence = Scenario::parse(&AIR.replacen(from, to, 1))
        .expect_err("refused")
        .to_string();
    for part in parts {
        assert!(sentence.contains(part), "no {part:?} in: {sentence}");
    }
}

#[test]
fn stations_that_stand_in_one_place() {
    Scenario::parse(AIR).expect("it is whole");
    refused_air(
        "at_m = [0, 350]",
        "at_m = [300, 0]",
        &[
            "line 20: station.base.at_m",
            "\"base\" stands where \"n2\" does",
            "move one of them by a centimetre",
        ],
    );
    refused_air(
        "step_m = [300, 0]\n",
        "",
        &["line 14: station.n{i}.at_m", "\"n2\" stands where \"n1\" does"],
    );
}

#[test]
fn channels_nobody_knows_and_channels_without_stations() {
    refused_air(
        "media = [\"two\"]",
        "media = [\"tow\"]",
        &[
            "line 21: station.base.media",
            "\"tow\"",
            "one, two",
            "did you mean \"two\"?",
        ],
    );
    refused_air(
        "media = [\"two\"]",
        "media = []",
        &["line 21: station.base.media", "hears nobody", "name the channels"],
    );
    refused_air(
        "name = \"two\"",
        "name = \"two\"\n\n[[medium]]\nname = \"three\"",
        &[
            "line 12: medium.three.name",
            "no station has a radio on \"three\"",
            "write media = [\"three\"]",
        ],
    );
    refused_air(
        "media = [\"two\"]",
        "media = [\"two\", \"two\"]",
        &["line 21: station.base.media", "two radios on one channel"],
    );
    refused_air(
        "name = \"two\"",
        "name = \"one\"",
        &["line 9: medium.one.name", "two media are called \"one\""],
    );
    refused_air(
        "transport = \"udp\"",
        "transport = \"udp\"\npaths = [[\"tow\"]]",
        &[
            "line 28: flow.a.paths[0]",
            "no link is called \"tow\", nor a medium",
            "media in place of their hops",
        ],
    );
}

#[test]
fn places_that_are_none() {
    refused_air(
        "at_m = [0, 350]",
        "at_m = [0, 100001]",
        &[
            "line 20: station.base.at_m",
            "\"base\" cannot stand at (0, 100001) m",
            "from -100000 to 100000",
        ],
    );
    refused_air(
        "at_m = [0, 350]",
        "at_m = [0, nan]",
        &["line 20", "cannot stand at (0, NaN) m"],
    );
    refused_air("at_m = [0, 350]", "at_m = [0]", &["line 20: station.base.at_m"]);
    refused_air(
        "step_m = [300, 0]",
        "step_m = [60000, 0]",
        &[
            "line 14: station.n{i}.at_m",
            "\"n3\" cannot stand at (120000, 0) m",
        ],
    );
    let walk = |points: &str| format!("at_m = [0, 350]\nwaypoints = {points}");
    refused_air(
        "at_m = [0, 350]",
        &walk("[\n[\"1 s\", 0, 300],\n[\"2 s\", 0, 200000],\n]"),
        &[
            "line 23: station.base.waypoints",
            "\"base\" cannot stand at (0, 200000) m",
        ],
    );
    refused_air(
        "at_m = [0, 350]",
        &walk("[\n[\"2 s\", 0, 300],\n[\"1 s\", 0, 200],\n]"),
        &["line 23: station.base.waypoints", "in the order of time"],
    );
    refused_air(
        "at_m = [0, 350]",
        &walk("[[\"2 s\", 0, 300], [\"1 s\", 0, 200]]"),
        &[
            "line 21: station.base.waypoints",
            "\"base\" cannot be anywhere at 1 s",
            "in the order of time",
        ],
    );
    refused_air(
        "at_m = [0, 350]",
        &walk("[[\"2\", 0, 300]]"),
        &["line 21: station.base.waypoints", "no unit"],
    );
}

#[test]
fn radios_without_a_link() {
    refused_air(
        "at_m = [0, 350]",
        "at_m = [0, 371]",
        &[
            "line 21: station.base.media",
            "the radio of \"base\" has no link",
            "\"n1\" comes no nearer than 371.0 m and frames reach 370 m",
            "raise decode_m",
        ],
    );
    let alone = AIR.replacen("media = [\"one\", \"two\"]", "media = [\"one\"]", 1);
    let sentence = Scenario::parse(&alone).expect_err("refused").to_string();
    for part in [
        "line 21: station.base.media",
        "nobody else is on its channel",
        "add a [[station]]",
    ] {
        assert!(sentence.contains(part), "no {part:?} in: {sentence}");
    }
}

/// Control frames at 54 Mbit/s reach 139 m. Stations further apart carried nothing, without a word.
#[test]
fn control_frames_that_nobody_receives() {
    refused_air(
        "name = \"one\"",
        "name = \"one\"\nstandard = \"802.11g\"\nrate = \"6 Mbit/s\"\ncontrol_rate = \"54 Mbit/s\"",
        &["has no link", "frames reach 139 m", "send control frames slower"],
    );
}

/// What stood behind the last was passed over.
#[test]
fn places_of_another_number_of_values() {
    for (written, says) in [
        ("at_m = [0, 350, 1]", "2 values stand here, and not 3"),
        ("at_m = [0]", "2 values stand here, and not 1"),
        (
            "at_m = [0, 350]\nwaypoints = [[\"1 s\", 0, 300, 1]]",
            "3 values stand here, and not 4",
        ),
        (
            "at_m = [0, 350]\nwaypoints = [[\"1 s\", 0, \"far\"]]",
            "no number of metres",
        ),
    ] {
        refused_air("at_m = [0, 350]", written, &[says]);
    }
}

#[test]
fn media_that_cannot_be() {
    let medium = |key: &str| format!("name = \"one\"\n{key}");
    for (key, parts) in [
        (
            "sense_m = 100",
            &["line 7: medium.one.sense_m", "at least as far as decode"][..],
        ),
        (
            "rate = \"3 Mbit/s\"",
            &[
                "line 7: medium.one.rate",
                "do not send at 3 Mbit/s",
                "1 Mbit/s, 2 Mbit/s",
            ],
        ),
        (
            "rate = \"minstrl\"",
            &["do not send at minstrl", "11 Mbit/s, minstrel"],
        ),
        (
            "standard = \"802.11z\"",
            &["line 7: medium.one.standard", "802.11b, 802.11g"],
        ),
        (
            "eifs = \"carrier\"",
            &[
                "line 7: medium.one.eifs",
                "frames, carriers",
                "did you mean \"carriers\"?",
            ],
        ),
        (
            "capture = 0.5",
            &["line 7: medium.one.capture", "0.5", "1 to 1000000"],
        ),
        (
            "capture = 10\ninterfere_m = 812",
            &["line 7: medium.one.capture", "leave out capture or interfere_m"],
        ),
        (
            "queue_packets = 0",
            &["line 7: medium.one.queue_packets", "0 packets"],
        ),
        (
            "bit_errors = 2",
            &["line 7: medium.one.bit_errors", "from 0 to 1"],
        ),
        (
            "long_retries = 0",
            &["line 7: medium.one.long_retries", "0 attempts"],
        ),
        ("chanel = 1", &["line 7", "medium.one.chanel"]),
    ] {
        refused_air("name = \"one\"", &medium(key), parts);
    }
}
