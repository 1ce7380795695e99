//! Is a segment that reports name as missing lost on its path, or only late there (SMT §3.1, §3.3)? Where several paths share the
//! numbers a hole has two reasons. A later segment of the same path has arrived: then the path has lost the segment, which is
//! congestion. Only segments of other paths have: then its path is slower than they are, nothing is known to be wrong, and no
//! window is cut.
//!
//! Counting the reports of either kind is recovery's ([`MissingReports`](crate::recovery::MissingReports)); here is what one
//! report says of one segment.

/// Whose arrivals say something of a missing segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Differentiation {
    /// Those of its own path alone; what arrives elsewhere says nothing (split fast retransmit, CMT §2.3).
    #[default]
    Split,
    /// All of them: one path is taken for all there are, by the window's growth as well (NMT of SMT §2.1).
    Nothing,
    /// Those of its own path tell of a loss, and others of lateness (IMPD, SMT §3.3).
    InterPath {
        /// What makes an arrival one of the segment's path.
        member: Member,
        /// Reports of others before a copy of what is late leaves by another path.
        late_after: LateAfter,
    },
}

/// How many reports from other paths make a segment late enough for a copy by a faster one (SMT §3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LateAfter {
    /// Always after so many (MFR: 3).
    Reports(u64),
    /// By one share of the buffer: fewer reports where less of it is free.
    Pivot {
        /// In percent of the buffer.
        percent: u64,
        /// Reports where less is free.
        below: u64,
        /// Reports where as much or more is.
        above: u64,
    },
    /// AMFR: 3 in the critical zone, 4 in the substantial one, 5 in the moderate one.
    Adaptive {
        /// Reports in a row in the substantial zone after which it is taken for moderate. SMT names no value; 10 here.
        cycles: u64,
    },
}

impl LateAfter {
    /// Reports in a row in the substantial zone, unless set.
    pub const CYCLES: u64 = 10;
}

impl Default for LateAfter {
    fn default() -> Self {
        LateAfter::Reports(3) // as many as make a loss on its own path (RFC 5681 §3.2)
    }
}

/// Which segments an arrival on a path may speak of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Member {
    /// Those that left by that path last.
    #[default]
    Owner,
    /// Those between the lowest and the highest number that the path still waits for, whoever they left by (SMT §3.3 to the
    /// letter). It takes lateness for loss where the numbers of paths interleave.
    Range,
    /// Those that left by that path last, but for a share that is taken for late, number by number: one path alone behaves as
    /// one of several that are unequal (the simulation beside the model, SMT §5.7).
    Drawn {
        /// Late of a million.
        late_per_million: u32,
    },
}

impl Member {
    /// Those that can be chosen by name.
    pub const ALL: [(&'static str, Member); 2] = [("owner", Member::Owner), ("range", Member::Range)];
}

/// What a report said of one path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathNews {
    /// The lowest number that the path waited for before the report; 0 of a path that is alone.
    pub lowest: u64,
    /// The highest number that the report named for the first time; none: it named none.
    pub highest: Option<u64>,
}

/// What a report says of a missing segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Its path has delivered something later (intra-path).
    Lost,
    /// Only other paths have (inter-path).
    Late,
}

impl Differentiation {
    /// What a report says of segment `number`, which it does not name and which left by path `own` of `paths` last.
    pub fn says(self, number: u64, own: usize, paths: &[PathNews]) -> Option<Missing> {
        let is_beyond = |news: &PathNews| news.highest.is_some_and(|highest| number < highest);
        let is_lost = match self {
            Differentiation::Nothing => paths.iter().any(is_beyond),
            Differentiation::InterPath {
                member: Member::Drawn { late_per_million },
                ..
            } => is_beyond(&paths[own]) && draw(number) >= late_per_million,
            Differentiation::InterPath {
                member: Member::Range,
                ..
            } => paths.iter().any(|news| news.lowest <= number && is_beyond(news)),
            _ => is_beyond(&paths[own]),
        };
        match self {
            _ if is_lost => Some(Missing::Lost),
            Differentiation::InterPath { .. } if paths.iter().any(is_beyond) => Some(Missing::Late),
            _ => None,
        }
    }
}

/// A number below a million for each segment's number, the same whenever it is asked: the finalizer of SplitMix64 (Steele, Lea, Flood
/// 2014). The first number of an association is drawn, so another seed draws other labels.
fn draw(number: u64) -> u32 {
    let mut bits = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((bits ^ bits >> 31) % 1_000_000) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_what_a_path_has_lost_is_taken_for_late_number_by_number() {
        let of = |late_per_million, number| {
            by(Member::Drawn { late_per_million }).says(number, 0, &[news(0, Some(1 << 20))])
        };
        let late = (0..100_000)
            .filter(|number| of(900_000, *number) == Some(Missing::Late))
            .count();
        assert!((89_500..90_500).contains(&late), "{late}");
        assert!((0..100).all(|number| of(900_000, number) == of(900_000, number)));
        assert_eq!(
            (of(0, 7), of(1_000_000, 7)),
            (Some(Missing::Lost), Some(Missing::Late))
        );
        assert_eq!(of(500_000, 1 << 20), None, "nothing later has come");
    }

    fn by(member: Member) -> Differentiation {
        Differentiation::InterPath {
            member,
            late_after: LateAfter::default(),
        }
    }

    fn news(lowest: u64, highest: Option<u64>) -> PathNews {
        PathNews { lowest, highest }
    }

    #[test]
    fn later_arrivals_of_the_same_path_tell_of_a_loss_and_others_of_lateness() {
        // 5 to 7 are open on the first path, 12 to 14 on the second, and 8 to 11 have just come.
        let paths = [news(5, None), news(8, Some(11))];
        for member in [Member::Owner, Member::Range] {
            assert_eq!(by(member).says(6, 0, &paths), Some(Missing::Late), "{member:?}");
            assert_eq!(by(member).says(9, 1, &paths), Some(Missing::Lost), "{member:?}");
            assert_eq!(by(member).says(12, 1, &paths), None, "nothing later has come");
        }
        assert_eq!(Differentiation::Split.says(6, 0, &paths), None);
        assert_eq!(Differentiation::Split.says(9, 1, &paths), Some(Missing::Lost));
        assert_eq!(Differentiation::Nothing.says(6, 0, &paths), Some(Missing::Lost));
        assert_eq!(Differentiation::Nothing.says(12, 1, &paths), None);
    }

    #[test]
    fn where_numbers_interleave_ranges_take_lateness_for_loss() {
        // Odd numbers left by the first path, even ones by the second, which has just delivered 8.
        let paths = [news(1, None), news(2, Some(8))];
        assert_eq!(by(Member::Owner).says(5, 0, &paths), Some(Missing::Late));
        assert_eq!(by(Member::Range).says(5, 0, &paths), Some(Missing::Lost));
        assert_eq!(
            by(Member::Range).says(1, 0, &paths),
            Some(Missing::Late),
            "below the range"
        );
    }
}
