//! `restp reproduce`, and claims that `restp sim --check` holds against results.

use crate::common::{restp, says, write};

#[test]
fn experiments_are_listed_and_not_run() {
    let list = restp(&["reproduce", "--list", "--json", "--scenarios", &scenarios()]);
    assert_eq!(list.code, Some(0), "{list:?}");
    let lines = list.stdout.lines();
    let listed: Vec<serde_json::Value> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    let one = listed.iter().find(|one| one["experiment"] == "tc-c1").unwrap();
    assert_eq!(one["folder"], "transfer_control");
    assert!(one["runs"].as_u64() > Some(0) && one["title"].is_string());
}

/// One link, one flow of 1000 bytes a second, and claims of which one holds, one fails for a reason and one for none.
const EXPERIMENT: &str = r#"
id = "tiny"
title = "One flow"
duration = "5 s"

[[link]]
name = "wire"
between = ["a", "b"]
rate = "1 Mbit/s"
delay = "5 ms"

[[flow]]
name = "f"
from = "a"
to = "b"
transport = "udp"
traffic = { cbr = { bytes = 1000, rate = "8 kbit/s" } }

[sweep]
"link.wire.delay" = ["5 ms", "6 ms"]

[[check]]
id = "T.holds"
text = "Nothing is lost"
metric = "flow.f.lost_messages"
where = { "link.wire.delay" = ["5 ms"] }
expect = { bound = { relation = "at_most", value = "0" } }

[[check]]
id = "T.explained"
text = "Everything is lost"
explained = "Nothing loses it."
explains = [{ between = [0.0, 0.0] }]
metric = "flow.f.lost_messages"
where = { "link.wire.delay" = ["5 ms"] }
expect = { bound = { relation = "at_least", value = "1" } }

[[check]]
id = "T.fails"
text = "Everything is lost here, too"
metric = "flow.f.lost_messages"
where = { "link.wire.delay" = ["6 ms"] }
expect = { bound = { relation = "at_least", value = "1" } }

[[check]]
id = "T.none"
text = "A datagram has a first byte"
metric = "flow.f.completion_s"
where = { "link.wire.delay" = ["6 ms"] }
expect = { bound = { relation = "at_least", value = "0" } }

[page]
title = "One flow"
introduction = "One flow."
axes = ["link.wire.delay"]
columns = [{ heading = "lost", metric = "flow.f.lost_messages" }]
"#;

#[test]
fn claims_that_fail_without_a_reason_are_named_and_end_the_command() {
    let dir = tempfile::tempdir().expect("a folder");
    let (file, pages) = (dir.path().join("tiny.toml"), dir.path().join("pages"));
    std::fs::write(&file, EXPERIMENT).expect("written");
    let (folder, pages) = (dir.path().to_str().unwrap(), pages.to_str().unwrap());
    let again = ["--scenarios", folder, "--output", pages];
    let done = restp(&[&["reproduce", "tiny", "--json"][..], &again].concat());
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.contains("claims of tiny fail"), "{done:?}");
    let line: serde_json::Value = serde_json::from_str(done.stdout.lines().next().unwrap()).unwrap();
    let counted = ["verdicts", "hold", "explained", "fail", "no_data"].map(|key| line[key].as_u64());
    assert_eq!(counted, [4, 1, 1, 1, 1].map(Some), "{line}");
    let failing = line["failing"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["check"].clone());
    assert_eq!(failing.collect::<Vec<_>>(), ["T.explained", "T.fails", "T.none"]);
    let said = restp(&[&["reproduce", "tiny"][..], &again].concat()).stdout;
    assert!(
        said.contains("1 of 4 verdicts hold, 1 fail for reasons the page gives, 1 FAIL, 1 without data"),
        "{said}"
    );
    let checked = restp(&["sim", file.to_str().unwrap(), "--check"]);
    assert_eq!(checked.code, Some(1));
    for outcome in ["holds\n", "fails, explained\n", "FAILS\n", "no data\n"] {
        assert!(checked.stdout.contains(outcome), "{outcome}: {}", checked.stdout);
    }
    let one = restp(&[
        "sim",
        file.to_str().unwrap(),
        "--check",
        "--set",
        "link.wire.delay=5 ms",
    ]);
    says(&one, 1, &["there are no data for 2 of 4 claims"]);
    let all = EXPERIMENT.split("[[check]]").collect::<Vec<_>>();
    let explained = [
        &all[..3].join("[[check]]"),
        "\n[page]",
        all[4].split("[page]").nth(1).unwrap(),
    ]
    .concat();
    let other = write(
        dir.path(),
        "explained.toml",
        explained.replace("\"tiny\"", "\"other\"").as_bytes(),
    );
    let one = restp(&["sim", other.to_str().unwrap(), "--check"]);
    assert_eq!(one.code, Some(0), "what is explained is no failure: {one:?}");
    let lost = restp(&[&["reproduce", "tiney"][..], &again].concat());
    assert!(lost.stderr.contains("did you mean \"tiny\""), "{lost:?}");
    std::fs::copy(&file, dir.path().join("second.toml")).expect("copied");
    let twice = restp(&[&["reproduce", "--list"][..], &again[..2]].concat());
    assert_eq!(twice.code, Some(2));
    assert!(twice.stderr.contains("have the same id, \"tiny\""), "{twice:?}");
}

#[test]
fn what_is_wrong_in_a_claim_or_a_page_is_told_in_the_file_s_words() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("tiny.toml");
    let wrong = EXPERIMENT.replacen(
        "where = { \"link.wire.delay\" = [\"5 ms\"]",
        "where = { \"link.wire.delay\" = [\"7 ms\"]",
        1,
    );
    std::fs::write(&file, wrong).expect("written");
    let refused = restp(&["sim", file.to_str().unwrap(), "--check"]);
    assert_eq!(refused.code, Some(2));
    assert!(
        refused
            .stderr
            .contains("there is no point with the value \"7 ms\"; write one of: 5 ms, 6 ms"),
        "{refused:?}"
    );
    let text = EXPERIMENT.replace(
        "[{ heading = \"lost\", metric = \"flow.f.lost_messages\" }]",
        "[\"lost\"]",
    );
    std::fs::write(&file, text).expect("written");
    let refused = restp(&["sim", file.to_str().unwrap()]);
    assert!(
        refused
            .stderr
            .contains("page.columns[0]: invalid type: string \"lost\", expected a table"),
        "{refused:?}"
    );
}

fn scenarios() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios").to_owned()
}
