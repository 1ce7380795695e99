use super::*;
use crate::composition::{Refusal, Verdict};

fn needs(written: &[(&str, &str)]) -> Needs {
    let mut needs = Needs::default();
    for (key, value) in written {
        needs.set(key, value).unwrap();
    }
    needs
}

fn profile(written: &[(&str, &str)]) -> String {
    let pairs = needs(written).profile();
    let pairs: Vec<_> = pairs
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    pairs.join(" ")
}

/// Every guidance of the specification that names what to choose.
#[test]
fn what_the_specification_advises_for_a_need_is_what_comes_out() {
    for (source, written, expected) in [
        ("ResTP §3.6, the default", &[][..], "preset=default"),
        (
            "ResTP §3.7: timeliness only",
            &[("reliability", "none")],
            "preset=unrel",
        ),
        (
            "ResTP §3.7: timeliness with repair",
            &[
                ("reliability", "partial"),
                ("deadline", "160 ms"),
                ("frame", "160 B"),
            ],
            "preset=par-arq deadline=160 ms",
        ),
        (
            "ResTP §3.7: SNACK on narrow or asymmetric paths, opportunistic for a lower start latency",
            &[
                ("reliability", "partial"),
                ("bandwidth", "narrow"),
                ("early-start", "on"),
            ],
            "preset=par-arq connection=opportunistic ack=positive+snack",
        ),
        (
            "ResTP §3.5.8: quasi reliable needs numbers",
            &[
                ("reliability", "quasi"),
                ("ordering", "full"),
                ("deadline", "100 ms"),
            ],
            "preset=unrel connection=three-way reliability=quasi ordering=ordered deadline=100 ms",
        ),
        (
            "ResTP §3.5.3: frames stay whole",
            &[("frame", "1400 B")],
            "preset=default framing=fixed",
        ),
        ("ResTP §3.6: outage", &[("loss", "outage")], "preset=resilient"),
        (
            "ResTP §3.6: corruption, congestion control off",
            &[("loss", "corruption")],
            "preset=arq-only ack=positive+sack recovery=pipe",
        ),
        (
            "ResTP §3.6 and §3.7 together",
            &[("reliability", "partial"), ("loss", "corruption")],
            "preset=par-arq loss=corruption congestion=none",
        ),
        (
            "ResTP §3.3.2: a spare path",
            &[("failures", "1")],
            "preset=default paths=hot-standby",
        ),
        (
            "ResTP §3.3.2: pooled paths",
            &[("failures", "2"), ("bandwidth", "hungry")],
            "preset=multipath",
        ),
    ] {
        assert_eq!(profile(written), expected, "{source}");
        needs(written).composition().unwrap().check().expect(source);
    }
    assert_eq!(needs(&[("failures", "2")]).paths(), 3, "OP-56");
}

/// Whatever is asked for together is composed, or refused with the rule that the needs themselves break.
#[test]
fn any_needs_are_met_or_refused_with_a_rule() {
    let (mut met, mut refused) = (0, Vec::new());
    for (_, reliability) in RELIABILITY {
        for ordering in [None]
            .into_iter()
            .chain(ORDERING.iter().map(|(_, order)| Some(*order)))
        {
            for (_, bandwidth) in BANDWIDTH {
                for (_, loss) in LossHandling::ALL {
                    for (early_start, failures, frame_bytes) in [
                        (false, 0, None),
                        (true, 0, Some(160)),
                        (false, 1, Some(160)),
                        (true, 14, None),
                    ] {
                        let needs = Needs {
                            reliability: *reliability,
                            ordering,
                            deadline: None,
                            frame_bytes,
                            early_start,
                            bandwidth: *bandwidth,
                            loss,
                            failures,
                        };
                        match needs.composition().unwrap().check() {
                            Ok(_) => met += 1,
                            Err(Refusal::Broken(breaches)) => {
                                let forbids = |verdict| verdict != Verdict::Discouraged;
                                assert!(breaches.iter().all(|breach| forbids(breach.rule.verdict)));
                                refused.extend(breaches.iter().map(|breach| breach.rule.id));
                            }
                            Err(other) => panic!("{needs:?}: {other}"),
                        }
                    }
                }
            }
        }
    }
    refused.sort_unstable();
    refused.dedup();
    assert_eq!(
        refused,
        [
            "connectionless-paths",
            "early-data-needs-ack",
            "full-means-no-skipping",
            "outage-needs-repeats",
            "partial-needs-partial-order",
            "paths-need-arq",
            "paths-need-order",
            "sharing-needs-three-way",
        ]
    );
    assert_eq!(met, 312, "of 768");
}

#[test]
fn a_deadline_has_no_meaning_where_nothing_is_skipped() {
    let refused = needs(&[("deadline", "1 s")]).composition().unwrap_err();
    let sentence = refused.to_string();
    assert!(
        sentence.contains("deadline") && sentence.contains("choose that, or leave"),
        "{sentence}"
    );
}

#[test]
fn what_is_not_understood_is_said_with_the_way_out() {
    let said = |key, value| Needs::default().set(key, value).unwrap_err().to_string();
    for (key, value, parts) in [
        ("speed", "high", ["\"speed\"", "reliability, ordering, deadline"]),
        ("reliability", "high", ["\"high\"", "none, quasi, partial, full"]),
        ("deadline", "160", ["deadline", "ms"]),
        ("frame", "1401 B", ["1401 B", "1400 B"]),
        ("failures", "15", ["\"15\"", "0 to 14"]),
    ] {
        for part in parts {
            assert!(said(key, value).contains(part), "{}", said(key, value));
        }
    }
    for (key, allowed) in NEEDS {
        let value = allowed
            .split([',', '"', ' '])
            .find(|part| !part.is_empty())
            .unwrap();
        let value = match *key {
            "deadline" => "160 ms",
            "frame" => "160 B",
            _ => value,
        };
        Needs::default().set(key, value).unwrap();
    }
}
