//! SMT, simultaneous multipath transmission (SMT §2, §3), and what it is compared with. All of it is the sender's: receivers are
//! those of SCTP.

use super::SctpParameters;
use crate::tcp::parameters::{ParameterError, error, named};
use restp_base::units;
use restp_services::loss_handling::LateAfter;
use restp_services::loss_handling::{Differentiation, Member};
use restp_services::path_management::RetransmitTarget;

/// How new data is spread over the paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Spread {
    /// The path that data left by last is asked until it has nothing more, then the next one (CMT §2.2).
    #[default]
    Bursts,
    /// Packet by packet in turn; a path whose window is full is left out (NMT of SMT §2.1).
    Packets,
    /// Each packet draws its path with a chance by these rates, in bit/s, and waits for it (SMOS of SMT §2.1).
    Rates(Vec<u64>),
}

/// The schemes, with their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Mfr1,
    Mfr2,
    Amfr,
    Nmt,
    Smos,
}

const SCHEMES: [(&str, Scheme); 5] = [
    ("mfr1", Scheme::Mfr1),
    ("mfr2", Scheme::Mfr2),
    ("amfr", Scheme::Amfr),
    ("nmt", Scheme::Nmt),
    ("smos", Scheme::Smos),
];

/// By which path what was lost leaves again: the published names, and SMT's.
pub(super) const TARGETS: [(&str, RetransmitTarget); 6] = {
    let [same, asap, cwnd, ssthresh, lossrate] = RetransmitTarget::ALL;
    [
        same,
        asap,
        cwnd,
        ssthresh,
        lossrate,
        ("fastest", RetransmitTarget::Fastest),
    ]
};

const LATE_AFTER: &str = "write \"3\", \"4|5\" with a late-pivot, or \"adaptive\"";

impl SctpParameters {
    /// SMT by the scheme called `name`, changed by every pair of `set`.
    ///
    /// # Errors
    /// When the name, a key, value or unit is not understood, or the result makes no sense.
    pub fn simultaneous_from_pairs(name: &str, set: &[(&str, &str)]) -> Result<Self, ParameterError> {
        let scheme = named("transport", name, &SCHEMES)?;
        let late_after = match scheme {
            Scheme::Amfr => LateAfter::Adaptive {
                cycles: LateAfter::CYCLES,
            },
            _ => LateAfter::default(),
        };
        let inter_path = Differentiation::InterPath {
            member: Member::Owner,
            late_after,
        };
        let (target, differentiation, spread) = match scheme {
            // The two differ in the lowest number of a path alone, which says nothing of a path's own segments.
            Scheme::Mfr1 | Scheme::Mfr2 | Scheme::Amfr => {
                (RetransmitTarget::Fastest, inter_path, Spread::Bursts)
            }
            Scheme::Nmt => (
                RetransmitTarget::Alternate,
                Differentiation::Nothing,
                Spread::Packets,
            ),
            Scheme::Smos => (
                RetransmitTarget::Window,
                Differentiation::Split,
                Spread::Rates(Vec::new()),
            ),
        };
        let parameters = SctpParameters {
            concurrent: true,
            target,
            differentiation,
            spread,
            spares_fresh: true,
            ..SctpParameters::default()
        };
        parameters.with(set)
    }

    /// Names of all schemes.
    pub fn schemes() -> impl Iterator<Item = &'static str> {
        SCHEMES.into_iter().map(|(name, _)| name)
    }

    /// Sets what only schemes of SMT have. False: the key is none of these, or nothing of this scheme.
    pub(super) fn set_scheme(&mut self, key: &str, value: &str) -> Result<bool, ParameterError> {
        let about = |message: &str| error(key, format!("{key}: \"{value}\" is not understood; {message}"));
        let count = || {
            value
                .parse::<u64>()
                .ok()
                .filter(|count| (1..=1000).contains(count))
        };
        match (&mut self.differentiation, &mut self.spread) {
            (Differentiation::InterPath { member, .. }, _) if key == "member" => {
                *member = named(key, value, &Member::ALL)?;
            }
            (Differentiation::InterPath { member, .. }, _) if key == "late-share" => {
                let share = super::per_million(value);
                let late_per_million = share.ok_or_else(|| about("write a share, such as \"90 %\""))?;
                *member = Member::Drawn { late_per_million };
            }
            (Differentiation::InterPath { late_after, .. }, _) if key.starts_with("late-") => {
                *late_after = match (key, *late_after) {
                    ("late-after", rule) => read_rule(value, rule).ok_or_else(|| about(LATE_AFTER))?,
                    ("late-pivot", LateAfter::Pivot { below, above, .. }) => LateAfter::Pivot {
                        percent: percent(value).ok_or_else(|| about("write a share, such as \"45 %\""))?,
                        below,
                        above,
                    },
                    ("late-cycles", LateAfter::Adaptive { .. }) => LateAfter::Adaptive {
                        cycles: count().ok_or_else(|| about("write 1 to 1000"))?,
                    },
                    _ => return Ok(false),
                };
            }
            (_, Spread::Rates(rates)) if key == "bandwidths" => {
                let all = value
                    .split(',')
                    .map(|rate| units::rate(rate.trim()).map(|rate| rate.as_bps()));
                let all: Result<Vec<_>, _> = all.collect();
                *rates = all.map_err(|why| error(key, format!("{key}: {why}")))?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// What no scheme can do.
    pub(super) fn check_scheme(&self) -> Result<(), ParameterError> {
        match &self.spread {
            Spread::Rates(rates) if rates.is_empty() || rates.contains(&0) => {
                let message = "smos needs the rate of each path; write bandwidths = \"200 kbit/s, 1 Mbit/s\"";
                Err(error("bandwidths", message.into()))
            }
            _ => Ok(()),
        }
    }
}

/// "3", "4|5" or "adaptive".
fn read_rule(value: &str, before: LateAfter) -> Option<LateAfter> {
    let reports = |text: &str| {
        text.trim()
            .parse()
            .ok()
            .filter(|reports| (1..=100).contains(reports))
    };
    if value == "adaptive" {
        let cycles = LateAfter::CYCLES;
        return Some(LateAfter::Adaptive { cycles });
    }
    let Some((below, above)) = value.split_once('|') else {
        return reports(value).map(LateAfter::Reports);
    };
    let percent = match before {
        LateAfter::Pivot { percent, .. } => percent,
        _ => 100,
    };
    Some(LateAfter::Pivot {
        percent,
        below: reports(below)?,
        above: reports(above)?,
    })
}

fn percent(value: &str) -> Option<u64> {
    let number = value.strip_suffix('%')?.trim().parse().ok()?;
    (number <= 100).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(name: &str, set: &[(&str, &str)]) -> SctpParameters {
        SctpParameters::simultaneous_from_pairs(name, set).expect("a scheme, and keys of the documentation")
    }

    fn late_after(name: &str, set: &[(&str, &str)]) -> LateAfter {
        match made(name, set).differentiation {
            Differentiation::InterPath { late_after, .. } => late_after,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn schemes_differ_from_cmt_in_what_they_were_published_for() {
        for name in SctpParameters::schemes() {
            let set: &[_] = if name == "smos" {
                &[("bandwidths", "1 Mbit/s")]
            } else {
                &[]
            };
            let scheme = made(name, set);
            assert!(scheme.concurrent && !scheme.dac, "{name}: SMT leaves DAC out");
        }
        assert_eq!(late_after("mfr2", &[]), LateAfter::Reports(3));
        assert_eq!(late_after("amfr", &[]), LateAfter::Adaptive { cycles: 10 });
        assert_eq!(made("nmt", &[]).differentiation, Differentiation::Nothing);
        let smos = made("smos", &[("bandwidths", "200 kbit/s, 1 Mbit/s")]);
        assert_eq!(smos.spread, Spread::Rates(vec![200_000, 1_000_000]));
        assert_eq!(smos.differentiation, Differentiation::Split);
    }

    #[test]
    fn keys_of_schemes_are_understood_and_only_by_those_that_have_them() {
        let set = [("late_after", "4|5"), ("late-pivot", "80 %")];
        let pivot = LateAfter::Pivot {
            percent: 80,
            below: 4,
            above: 5,
        };
        assert_eq!(late_after("mfr2", &set), pivot);
        assert_eq!(
            late_after("amfr", &[("late-cycles", "20")]),
            LateAfter::Adaptive { cycles: 20 }
        );
        assert_eq!(late_after("mfr1", &[("late-after", "7")]), LateAfter::Reports(7));
        let range = made(
            "mfr2",
            &[("member", "range"), ("retransmit", "cwnd"), ("dac", "on")],
        );
        assert!(range.dac && range.target == RetransmitTarget::Window);
        let drawn = Member::Drawn {
            late_per_million: 900_000,
        };
        assert!(matches!(made("amfr", &[("late-share", "90 %")]).differentiation,
            Differentiation::InterPath { member, .. } if member == drawn));
        for (name, key, value) in [
            ("mfr2", "late-after", "0"),
            ("mfr2", "late-after", "3|"),
            ("mfr2", "late-pivot", "50 %"),
            ("mfr2", "late-cycles", "5"),
            ("mfr2", "member", "both"),
            ("mfr2", "late-share", "110 %"),
            ("nmt", "late-share", "90 %"),
            ("mfr2", "bandwidths", "1 Mbit/s"),
            ("nmt", "late-after", "3"),
            ("smos", "bandwidths", "fast"),
            ("smos", "bandwidths", "0 bit/s"),
        ] {
            let error = SctpParameters::simultaneous_from_pairs(name, &[(key, value)]).expect_err("refused");
            assert_eq!(error.key, key, "{name} {key} = {value}");
        }
        let error = SctpParameters::simultaneous_from_pairs("smos", &[]).expect_err("refused");
        assert_eq!(error.key, "bandwidths");
        assert!(SctpParameters::concurrent_from_pairs("cwnd", &[("late-after", "3")]).is_err());
    }
}
