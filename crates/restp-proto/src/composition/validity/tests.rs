use super::cases::{INTERACTIONS, NEEDS, OWN, RECOMMENDED, Row};
use super::*;
use crate::composition::every::combinations;
use crate::composition::{PRESETS, Preset};
use restp_services::reliability::Reliability;

/// The preset `name` with some keys changed.
fn with(name: &str, pairs: &[(&str, &str)]) -> Composition {
    let base = Preset::named(name).unwrap().composition();
    Composition::from_pairs(base, pairs.iter().copied()).unwrap()
}

fn ids(breaches: &[Breach]) -> Vec<&'static str> {
    breaches.iter().map(|breach| breach.rule.id).collect()
}

/// Every rule it breaks, whatever the verdict.
fn broken(composition: &Composition) -> Vec<&'static str> {
    use Verdict::*;
    ids(&composition.breaches(&[Impossible, Forbidden, Discouraged]))
}

fn hold(rows: &[Row]) {
    for (row, preset, changes, expected) in rows {
        assert_eq!(broken(&with(preset, changes)), *expected, "{row}");
    }
}

#[test]
fn interactions_of_acknowledgements_are_judged_as_specified() {
    hold(INTERACTIONS);
    for (row, preset, changes, _) in INTERACTIONS {
        use Verdict::*;
        let verdicts = [
            (Impossible, "impossible"),
            (Forbidden, "forbidden"),
            (Discouraged, "discouraged"),
        ];
        for (verdict, word) in verdicts {
            let judged = !with(preset, changes).breaches(&[verdict]).is_empty();
            // Only the row of SACK with full reliability warns of something the row does not speak of.
            let besides = row.starts_with("SACK + fully") && verdict == Discouraged;
            assert_eq!(judged, row.contains(word) || besides, "{row}: {word}");
        }
    }
    // SACK + SNACK: impossible. SAK and NAK together mean SNACK, so there is no such value.
    assert!(Composition::default().set("ack", "positive+sack+snack").is_err());
}

#[test]
fn needs_of_services_are_judged_as_specified() {
    hold(NEEDS);
}

#[test]
fn what_the_specification_leaves_open_is_judged_by_our_rules() {
    hold(OWN);
}

#[test]
fn every_rule_has_a_case() {
    let cases: Vec<_> = [INTERACTIONS, NEEDS, OWN, RECOMMENDED].concat();
    for rule in rules() {
        assert!(
            cases.iter().any(|(.., broken)| broken.contains(&rule.id)),
            "{}",
            rule.id
        );
    }
}

#[test]
fn rules_are_named_once_and_speak_of_keys_that_exist() {
    for (i, rule) in rules().enumerate() {
        assert!(rules().take(i).all(|other| other.id != rule.id), "{}", rule.id);
        let known = |name: &str| KEYS.iter().any(|key| key.name == name);
        assert!(rule.about.iter().all(|key| known(key)), "{}", rule.id);
        assert!(!rule.instead.is_empty(), "{}", rule.id);
    }
}

#[test]
fn a_discouraged_choice_is_allowed_with_a_warning() {
    let valid = with("3wh-arq", &[("ack", "positive+sack")]).check().unwrap();
    assert_eq!(ids(valid.warnings()), ["selective-unused"]);
    assert!(Composition::default().check().unwrap().warnings().is_empty());
}

#[test]
fn several_paths_are_judged_like_one() {
    let refusal = with("mp-opt", &[("recovery", "pipe")]).check().unwrap_err();
    let Refusal::Broken(breaches) = refusal else {
        panic!("{refusal}")
    };
    assert_eq!(ids(&breaches), ["pipe-needs-selective"]);
}

#[test]
fn a_refusal_names_values_rule_source_and_way_out() {
    let sentence = with("unrel", &[("ordering", "ordered")])
        .check()
        .unwrap_err()
        .to_string();
    assert_eq!(
        sentence,
        "connection = connectionless, ordering = ordered: without an agreed first number there is no order \
         to restore (ResTP §3.5.5, rule connectionless-ordering); choose connection = three-way"
    );
}

#[test]
fn every_preset_is_valid_and_needs_no_warning() {
    for preset in PRESETS {
        let valid = preset.composition().check();
        let valid = valid.unwrap_or_else(|refusal| panic!("{}: {refusal}", preset.name));
        assert!(valid.warnings().is_empty(), "{}", preset.name);
    }
}

#[test]
fn what_is_recommended_is_a_hint_that_leads_to_a_valid_composition() {
    for preset in PRESETS {
        let valid = preset.composition().check().unwrap();
        for hint in valid.hints() {
            let better = with(preset.name, hint.rule.instead);
            let said = ids(&better.check().unwrap().hints());
            assert!(!said.contains(&hint.rule.id), "{}: {}", preset.name, hint.rule.id);
        }
    }
    for (row, preset, changes, expected) in RECOMMENDED {
        let hints = with(preset, changes).check().unwrap().hints();
        assert_eq!(ids(&hints), *expected, "{row}");
    }
}

/// ResTP §16: partially ordered and reliable, SACK or SNACK, window, BIC, fixed framing; variants of set-up and retransmissions.
#[test]
fn the_real_time_profile_is_valid_in_all_its_variants() {
    for ack in [
        "positive+sack",
        "positive+snack",
        "positive+sack+repeat",
        "positive+snack+repeat",
    ] {
        for connection in ["three-way", "opportunistic"] {
            let composition = with("par-arq", &[("ack", ack), ("connection", connection)]);
            let services: Vec<_> = composition
                .services()
                .into_iter()
                .map(|(_, choice, _)| choice)
                .collect();
            for choice in ["fixed", "window", "partial", "bic"] {
                assert!(services.iter().any(|chosen| chosen == choice), "{choice}");
            }
            assert!(
                composition.check().unwrap().warnings().is_empty(),
                "{ack}, {connection}"
            );
        }
    }
}

/// How many combinations are valid, by congestion control and, in the order of their list, reliability: 89 884 of
/// 12 317 184. A rule that is added, lifted or widened changes a number here, and the change says why. An algorithm that
/// decides a rate needs pacing, which these combinations have together with ECN, so it has half of what a window
/// algorithm has; while no such algorithm was built, it had none. Shared numbers are tried with ECN, pacing and CRC alone.
/// Since encoded packets go over several paths partial reliability has the same with them as without.
const VALID: [(&str, [u64; 6]); 4] = [
    ("none", [880, 876, 8352, 2592, 320, 320]),
    ("newreno", [3456, 3456, 17_024, 5184, 768, 768]),
    ("bic", [3456, 3456, 17_024, 5184, 768, 768]),
    ("rate", [1728, 1728, 8672, 2592, 448, 448]),
];

#[test]
fn every_combination_is_valid_or_refused_and_following_the_hints_mends_it() {
    let names = VALID.map(|(congestion, _)| congestion);
    let (mut count, mut valid) = (0_u64, VALID.map(|(congestion, _)| (congestion, [0; 6])));
    combinations(&names, |composition| {
        count += 1;
        let refuses = |verdict| matches!(verdict, Verdict::Impossible | Verdict::Forbidden);
        if !rules().any(|rule| refuses(rule.verdict) && (rule.broken)(composition)) {
            let congestion = names
                .iter()
                .position(|name| *name == composition.congestion.name());
            let reliability = Reliability::ALL
                .iter()
                .position(|(_, it)| *it == composition.reliability);
            valid[congestion.unwrap()].1[reliability.unwrap()] += 1;
        }
        // Mending all of them takes twenty seconds; 97 shares no factor with the numbers of choices.
        if !count.is_multiple_of(97) {
            return;
        }
        let mended = composition.mended();
        assert!(mended.is_some(), "the ways out do not mend {composition:?}");
    });
    assert_eq!((count, valid), (12_317_184, VALID));
}
