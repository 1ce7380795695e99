//! The check: once, when a composition is built. After that the type says that it makes sense.

use super::rules::{RULES, Rule, Verdict};
use super::{Composition, KEYS};
use std::fmt;
use std::ops::Deref;
use thiserror::Error;

/// A composition that breaks no rule. There is no other way to one than [`Composition::check`].
#[derive(Clone, Debug, PartialEq)]
pub struct ValidComposition {
    composition: Composition,
    warnings: Vec<Breach>,
}

/// Why a composition, or what a peer asks for, cannot be used.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Refusal {
    /// Rules are broken: those that nothing can mend first, or else those about parts that are not built.
    #[error("{}", .0.iter().map(Breach::to_string).collect::<Vec<_>>().join("; also "))]
    Broken(Vec<Breach>),
    /// A peer's header names a service by a number that stands for none.
    #[error("{field} = {code} in the peer's header stands for no service here; {allowed}")]
    Code {
        /// The header field (ResTP §3.1.1).
        field: &'static str,
        /// Its value.
        code: u8,
        /// What it may be.
        allowed: &'static str,
    },
}

/// One rule broken by one composition: why it is refused, or what to beware of.
#[derive(Clone, Debug, PartialEq)]
pub struct Breach {
    /// The rule.
    pub rule: &'static Rule,
    /// Key and value of the choices that break it.
    pub given: Vec<(&'static str, String)>,
}

impl Composition {
    /// Judges every rule (ResTP §14). Discouraged choices are allowed and come back as warnings.
    ///
    /// # Errors
    /// Every rule that forbids the composition; if there is none, every part of it that is not built.
    pub fn check(self) -> Result<ValidComposition, Refusal> {
        for verdicts in [
            &[Verdict::Impossible, Verdict::Forbidden][..],
            &[Verdict::NotBuilt],
        ] {
            let breaches = self.breaches(verdicts);
            if !breaches.is_empty() {
                return Err(Refusal::Broken(breaches));
            }
        }
        let warnings = self.breaches(&[Verdict::Discouraged]);
        Ok(ValidComposition {
            composition: self,
            warnings,
        })
    }

    /// The broken rules among those with one of `verdicts`, in the order of the table.
    fn breaches(&self, verdicts: &[Verdict]) -> Vec<Breach> {
        RULES
            .iter()
            .filter(|rule| verdicts.contains(&rule.verdict) && (rule.broken)(self))
            .map(|rule| Breach {
                rule,
                given: self.given(rule),
            })
            .collect()
    }

    fn given(&self, rule: &Rule) -> Vec<(&'static str, String)> {
        let keys = KEYS.iter().filter(|key| rule.about.contains(&key.name));
        keys.filter_map(|key| Some((key.name, key.read(self)?))).collect()
    }
}

impl ValidComposition {
    /// The discouraged choices in it.
    pub fn warnings(&self) -> &[Breach] {
        &self.warnings
    }

    /// The plain value, to change and check again.
    pub fn into_inner(self) -> Composition {
        self.composition
    }
}

impl Deref for ValidComposition {
    type Target = Composition;
    fn deref(&self) -> &Composition {
        &self.composition
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs = |pairs: Vec<(&str, &str)>| {
            let written: Vec<_> = pairs
                .iter()
                .map(|(key, value)| format!("{key} = {value}"))
                .collect();
            written.join(", ")
        };
        let Rule {
            id,
            source,
            reason,
            instead,
            ..
        } = self.rule;
        let given = pairs(
            self.given
                .iter()
                .map(|(key, value)| (*key, value.as_str()))
                .collect(),
        );
        write!(
            f,
            "{given}: {reason} ({source}, rule {id}); choose {}",
            pairs(instead.to_vec())
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::every::combinations;
    use super::super::{PRESETS, Preset};
    use super::*;

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
        ids(&composition.breaches(&[Impossible, Forbidden, NotBuilt, Discouraged]))
    }

    /// A row of a table of the specification: the row, a preset, the keys changed, the rules it breaks.
    type Row = (
        &'static str,
        &'static str,
        &'static [(&'static str, &'static str)],
        &'static [&'static str],
    );

    /// ResTP §12.2, every row.
    const INTERACTIONS: &[Row] = &[
        ("positive + fast retransmit: standard", "3wh-arq", &[], &[]),
        (
            "delayed + fast retransmit: forbidden",
            "arq-only",
            &[("ack", "delayed")],
            &["delayed-fast-retransmit", "no-delayed"],
        ),
        (
            "delayed + NewReno: discouraged",
            "3wh-arq",
            &[("ack", "delayed"), ("recovery", "timer")],
            &["no-delayed", "delayed-window-congestion"],
        ),
        (
            "delayed + BIC: discouraged",
            "3wh-arq",
            &[("ack", "delayed"), ("recovery", "timer"), ("congestion", "bic")],
            &["no-delayed", "no-such-controller", "delayed-window-congestion"],
        ),
        (
            "delayed + a rate-based algorithm: fits",
            "3wh-arq",
            &[("ack", "delayed"), ("recovery", "timer"), ("congestion", "rate")],
            &["no-delayed", "no-such-controller"],
        ),
        (
            "delayed + PAR: discouraged",
            "unrel",
            &[
                ("connection", "three-way"),
                ("flow-control", "window"),
                ("ordering", "partial"),
                ("ack", "delayed"),
            ],
            &["no-partial-order", "no-delayed", "delayed-partial-order"],
        ),
        (
            "delayed + SNACK: recommended when delayed is used",
            "arq-only",
            &[("ack", "delayed+snack"), ("recovery", "pipe")],
            &["no-delayed", "no-snack"],
        ),
        (
            "delayed + SACK: allowed",
            "arq-only",
            &[("ack", "delayed+sack"), ("recovery", "pipe")],
            &["no-delayed"],
        ),
        (
            "NACK, SACK, SNACK alone: impossible",
            "unrel",
            &[("ack", "none+sack")],
            &["detail-alone"],
        ),
        (
            "SACK + long delay: recommended",
            "3wh-arq",
            &[("ack", "positive+sack"), ("recovery", "pipe")],
            &[],
        ),
        (
            "SNACK + narrow reverse path: preferred to SACK",
            "3wh-arq",
            &[("ack", "positive+snack"), ("recovery", "pipe")],
            &["no-snack"],
        ),
        (
            "SNACK or SACK + partially reliable: all holes at once",
            "par-arq",
            &[],
            &["no-partial-reliability", "no-such-controller"],
        ),
        (
            "SACK + fully reliable: selective repeat",
            "3wh-arq",
            &[("ack", "positive+sack")],
            &["selective-unused"],
        ),
        (
            "PAR without SACK or SNACK: forbidden",
            "par-arq",
            &[
                ("ack", "positive"),
                ("recovery", "duplicate-ack"),
                ("congestion", "cubic"),
            ],
            &["partial-needs-selective", "no-partial-reliability"],
        ),
        (
            "fully reliable without ACK module: forbidden",
            "arq-only",
            &[("ack", "none"), ("recovery", "timer"), ("flow-control", "none")],
            &["reliable-needs-ack"],
        ),
        (
            "window congestion control without ACK module: forbidden",
            "unrel",
            &[("connection", "three-way"), ("congestion", "newreno")],
            &["congestion-needs-ack"],
        ),
        (
            "window flow control without ACK module: forbidden",
            "unrel",
            &[("connection", "three-way"), ("flow-control", "window")],
            &["window-needs-ack"],
        ),
        (
            "HARQ + delayed: allowed without fast retransmit",
            "3wh-harq",
            &[("ack", "delayed"), ("recovery", "timer"), ("congestion", "none")],
            &["no-harq", "no-delayed"],
        ),
        (
            "duplicate ACK + noisy reverse path: recommended",
            "3wh-arq",
            &[("ack", "positive+repeat")],
            &["no-repeat"],
        ),
    ];

    /// ResTP §14, every cell that says yes, and those that say no.
    const NEEDS: &[Row] = &[
        (
            "fully reliable needs ACK",
            "3wh-arq",
            &[
                ("ack", "none"),
                ("recovery", "timer"),
                ("flow-control", "none"),
                ("congestion", "none"),
            ],
            &["reliable-needs-ack"],
        ),
        (
            "fully reliable: no fixed framing, no SACK",
            "3wh-arq",
            &[("framing", "coalesce")],
            &[],
        ),
        (
            "partially reliable needs ACK and SACK or SNACK",
            "par-arq",
            &[
                ("ack", "none"),
                ("recovery", "timer"),
                ("flow-control", "none"),
                ("congestion", "none"),
            ],
            &[
                "reliable-needs-ack",
                "partial-needs-selective",
                "no-partial-reliability",
            ],
        ),
        (
            "partially reliable needs fixed framing",
            "par-arq",
            &[("framing", "coalesce"), ("congestion", "cubic")],
            &[
                "partial-needs-fixed",
                "no-partial-reliability",
                "stream-with-holes",
            ],
        ),
        (
            "partially reliable is ARQ with PAR",
            "par-arq",
            &[("ordering", "ordered"), ("congestion", "cubic")],
            &["partial-needs-partial-order", "no-partial-reliability"],
        ),
        (
            "ARQ with PAR is partially reliable",
            "3wh-arq",
            &[("ordering", "partial"), ("framing", "fixed")],
            &["full-means-no-skipping", "no-partial-order"],
        ),
        (
            "quasi reliable needs no ACK",
            "unrel",
            &[("connection", "three-way"), ("reliability", "quasi")],
            &["no-quasi"],
        ),
        (
            "ordered needs neither ACK nor ARQ",
            "unrel",
            &[("connection", "three-way"), ("ordering", "ordered")],
            &[],
        ),
        (
            "partially ordered needs neither ACK nor ARQ",
            "unrel",
            &[("connection", "three-way"), ("ordering", "partial")],
            &["no-partial-order"],
        ),
        (
            "NewReno needs ACK",
            "unrel",
            &[("connection", "three-way"), ("congestion", "newreno")],
            &["congestion-needs-ack"],
        ),
        (
            "NewReno needs no ARQ",
            "unrel",
            &[
                ("connection", "three-way"),
                ("congestion", "newreno"),
                ("ack", "positive"),
            ],
            &[],
        ),
        (
            "BIC needs ACK",
            "unrel",
            &[("connection", "three-way"), ("congestion", "bic")],
            &["congestion-needs-ack", "no-such-controller"],
        ),
        (
            "window flow control needs ACK",
            "unrel",
            &[("connection", "three-way"), ("flow-control", "window")],
            &["window-needs-ack"],
        ),
        (
            "window flow control needs no ARQ",
            "unrel",
            &[
                ("connection", "three-way"),
                ("flow-control", "window"),
                ("ack", "positive"),
            ],
            &[],
        ),
    ];

    /// What the specification leaves to us: one case at least for every other rule.
    const OWN: &[Row] = &[
        (
            "an ACK without a use",
            "unrel",
            &[("connection", "three-way"), ("ack", "positive")],
            &["ack-unused"],
        ),
        (
            "duplicates without ACK",
            "unrel",
            &[("recovery", "duplicate-ack")],
            &["recovery-needs-ack"],
        ),
        (
            "pipe without evidence",
            "3wh-arq",
            &[("recovery", "pipe")],
            &["pipe-needs-selective"],
        ),
        (
            "everything that needs an agreed number",
            "3wh-arq",
            &[("connection", "connectionless")],
            &[
                "connectionless-reliability",
                "connectionless-ordering",
                "connectionless-congestion",
                "connectionless-window",
            ],
        ),
        (
            "FEC without an agreed number",
            "unrel",
            &[("reliability", "quasi")],
            &["connectionless-reliability", "no-quasi"],
        ),
        (
            "several paths without set-up",
            "unrel",
            &[("paths", "hot-standby")],
            &["connectionless-paths", "no-multipath"],
        ),
        (
            "a scheduler on one path",
            "3wh-arq",
            &[("scheduling", "round-robin")],
            &["scheduling-outside-spreading"],
        ),
        (
            "spreading without a scheduler",
            "geo-spread",
            &[("scheduling", "none")],
            &["spreading-needs-scheduling", "no-multipath"],
        ),
        (
            "BIC on several paths",
            "mp-opt",
            &[("congestion", "bic"), ("connection", "three-way")],
            &["bic-on-one-path", "no-such-controller", "no-multipath"],
        ),
        (
            "an outage nobody probes",
            "unrel",
            &[("loss", "outage")],
            &["outage-needs-repeats", "no-outage"],
        ),
        (
            "marks nobody heeds",
            "arq-only",
            &[("ecn", "on")],
            &["ecn-needs-congestion"],
        ),
        (
            "a pace nobody sets",
            "arq-only",
            &[("pacing", "on")],
            &["pacing-needs-congestion"],
        ),
        (
            "a segment of nothing",
            "unrel",
            &[("segment", "0 B")],
            &["segment-size"],
        ),
        (
            "a segment beyond UDP",
            "unrel",
            &[("segment", "65001 B")],
            &["segment-size"],
        ),
        (
            "a window always shut",
            "3wh-arq",
            &[("window", "0 segments")],
            &["window-size"],
        ),
        (
            "a window beyond 16 bits",
            "3wh-arq",
            &[("window", "65536 segments")],
            &["window-size"],
        ),
        (
            "nothing in flight",
            "arq-only",
            &[("flight-limit", "0 segments")],
            &["flight-limit-size"],
        ),
        (
            "no initial window",
            "3wh-arq",
            &[("initial-window", "0 segments")],
            &["initial-window-size"],
        ),
        (
            "eleven segments at once",
            "default",
            &[("initial-window", "11 segments")],
            &["initial-window-size"],
        ),
        (
            "an ACK for no packet",
            "3wh-arq",
            &[("ack-every", "0 packets")],
            &["ack-every-size"],
        ),
        (
            "an ACK after a second",
            "3wh-arq",
            &[("ack-delay", "1 s")],
            &["ack-delay-size"],
        ),
        (
            "SACK without blocks",
            "default",
            &[("sack-blocks", "0")],
            &["sack-blocks-size"],
        ),
        (
            "a SYN never sent",
            "3wh-arq",
            &[("handshake-attempts", "0")],
            &["handshake-size"],
        ),
        (
            "a SYN repeated at once",
            "3wh-arq",
            &[("handshake-rto", "0 s")],
            &["handshake-size"],
        ),
        (
            "a floor above the ceiling",
            "3wh-arq",
            &[("rto-floor", "61 s")],
            &["rto-bounds"],
        ),
        (
            "no patience",
            "3wh-arq",
            &[("data-attempts", "0")],
            &["data-attempts-size"],
        ),
        (
            "a buffer below a segment",
            "3wh-arq",
            &[("send-buffer", "1399 B")],
            &["send-buffer-size"],
        ),
        (
            "gone before it came",
            "3wh-arq",
            &[("idle-timeout", "0 s")],
            &["timeout-size"],
        ),
        ("no opportunistic", "opt-arq", &[], &["no-opportunistic"]),
        (
            "no NAK",
            "3wh-arq",
            &[("ack", "positive+nak"), ("recovery", "pipe")],
            &["no-nak"],
        ),
        ("no outage", "outage", &[], &["no-outage"]),
        (
            "NewReno that never slows down",
            "3wh-arq",
            &[("loss", "corruption")],
            &["corruption-with-congestion"],
        ),
        (
            "a stream out of order",
            "3wh-arq",
            &[("ordering", "unordered")],
            &["stream-with-holes"],
        ),
    ];

    fn hold(rows: &[Row]) {
        for (row, preset, changes, expected) in rows {
            assert_eq!(broken(&with(preset, changes)), *expected, "{row}");
        }
    }

    #[test]
    fn interactions_of_acknowledgements_are_judged_as_specified() {
        hold(INTERACTIONS);
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
        let cases: Vec<_> = [INTERACTIONS, NEEDS, OWN].concat();
        for rule in RULES {
            assert!(
                cases.iter().any(|(.., broken)| broken.contains(&rule.id)),
                "{}",
                rule.id
            );
        }
    }

    #[test]
    fn rules_are_named_once_and_speak_of_keys_that_exist() {
        for (i, rule) in RULES.iter().enumerate() {
            assert!(RULES[..i].iter().all(|other| other.id != rule.id), "{}", rule.id);
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
    fn what_is_not_built_is_said_only_of_what_would_be_valid() {
        let refusal = with("opt-arq", &[("recovery", "pipe")]).check().unwrap_err();
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
        let sentence = with("3wh-arq", &[("congestion", "bic")])
            .check()
            .unwrap_err()
            .to_string();
        assert_eq!(
            sentence,
            "congestion = bic: this congestion algorithm is not built yet (ResTP §3.5.6, rule \
             no-such-controller); choose congestion = cubic"
        );
    }

    #[test]
    fn a_preset_checks_or_lacks_a_part_that_is_not_built() {
        for preset in PRESETS {
            let lacks: &[_] = match preset.name {
                "3wh-harq" => &["no-harq"],
                "opt-arq" => &["no-opportunistic"],
                "mp-opt" => &["no-opportunistic", "no-multipath"],
                "outage" => &["no-outage"],
                "ful-arq" => &["no-such-controller"],
                "par-arq" => &["no-partial-reliability", "no-such-controller"],
                "geo-spread" => &["no-multipath"],
                _ => &[],
            };
            match preset.composition().check() {
                Ok(valid) => assert!(lacks.is_empty() && valid.warnings().is_empty(), "{}", preset.name),
                Err(Refusal::Broken(breaches)) => assert_eq!(ids(&breaches), lacks, "{}", preset.name),
                Err(other) => panic!("{}: {other}", preset.name),
            }
        }
    }

    /// The composition after the ways out of everything that is wrong with it.
    fn mended(composition: &Composition, breaches: &[Breach]) -> Composition {
        let instead = breaches
            .iter()
            .flat_map(|breach| breach.rule.instead.iter().copied());
        Composition::from_pairs(composition.clone(), instead).unwrap()
    }

    #[test]
    fn every_combination_is_valid_or_refused_and_following_the_hints_mends_it() {
        let (mut count, mut valid) = (0_u64, 0_u64);
        combinations(&["none", "newreno", "bic", "rate"], |composition| {
            count += 1;
            let refused = RULES
                .iter()
                .any(|rule| rule.verdict != Verdict::Discouraged && (rule.broken)(composition));
            valid += u64::from(!refused);
            // Mending all of them takes twenty seconds; 97 shares no factor with the numbers of choices.
            if !count.is_multiple_of(97) {
                return;
            }
            let mut attempt = composition.clone();
            for _ in 0..16 {
                match attempt.clone().check() {
                    Ok(_) => return,
                    Err(Refusal::Broken(breaches)) => attempt = mended(&attempt, &breaches[..1]),
                    Err(other) => panic!("{other}"),
                }
            }
            panic!("hints do not mend {composition:?}, they lead to {attempt:?}");
        });
        assert_eq!(count, 3_732_480);
        assert!(valid > 50 && valid < count / 100, "{valid}");
    }
}
