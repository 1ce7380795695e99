//! Where the paths of one connection stand, and what follows for all of them (ResTP §3.3). A path is asked again when it was
//! touched, and the whole is found again when one of them then answers differently, which is seldom.

use super::Path;
use restp_base::time::Duration;

/// Paths that one connection can have: each protocol allows fewer.
const MOST_PATHS: usize = 64;

/// Where a path stands that is up: the least is the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Standing {
    health: u8,
    is_backup: bool,
    smoothed_rtt: Option<Duration>,
}

impl Standing {
    /// Asks the path; none: it is not up.
    pub(super) fn of<P: Path>(path: &P) -> Option<Self> {
        let (health, is_backup) = path.standing()?;
        Some(Standing {
            health,
            is_backup,
            smoothed_rtt: path.smoothed_rtt(),
        })
    }
    /// Nobody doubts it.
    pub(super) fn works(&self) -> bool {
        self.health == 0
    }
    /// It carries data, or could.
    pub(super) fn carries(&self) -> bool {
        self.works() && !self.is_backup
    }
}

/// What one path answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Answer {
    /// None: it is not up.
    standing: Option<Standing>,
    /// Payload bytes of a segment that it may have to carry; none where it does not count.
    segment_bytes: Option<u32>,
}

/// What follows from all answers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Overview {
    /// How many are up.
    pub(super) up: usize,
    /// The best of these, by its ordinal.
    pub(super) best: Option<usize>,
    /// The least that any of them may have to carry.
    pub(super) segment_bytes: Option<u32>,
}

/// The answers of all paths, by their ordinals.
#[derive(Debug, Default)]
pub(super) struct Survey {
    answers: Vec<Answer>,
    /// A bit for each that was touched since it was asked: a connection has few paths.
    touched: u64,
    overview: Overview,
}

impl Survey {
    /// The path may answer differently from now on.
    pub(super) fn touch(&mut self, ordinal: usize) {
        debug_assert!(ordinal < MOST_PATHS, "the path {ordinal} is one too many");
        self.touched |= 1 << (ordinal % MOST_PATHS);
    }

    /// Asks those that were touched; `paths` are all there are.
    pub(super) fn update<P: Path>(&mut self, paths: &[P]) -> &Self {
        let mut changed = self.answers.len() != paths.len();
        if self.touched == 0 && !changed {
            return self;
        }
        self.answers.resize(paths.len(), Answer::default());
        while self.touched != 0 {
            let ordinal = self.touched.trailing_zeros() as usize;
            self.touched &= self.touched - 1;
            let (Some(path), Some(known)) = (paths.get(ordinal), self.answers.get_mut(ordinal)) else {
                continue; // it is gone
            };
            let answer = Answer {
                standing: Standing::of(path),
                segment_bytes: path.segment_bytes(),
            };
            changed |= *known != answer;
            *known = answer;
        }
        if changed {
            let best = self.standings().min_by_key(|(_, standing)| *standing);
            self.overview = Overview {
                up: self.standings().count(),
                best: best.map(|(ordinal, _)| ordinal),
                segment_bytes: self
                    .answers
                    .iter()
                    .filter_map(|answer| answer.segment_bytes)
                    .min(),
            };
        }
        self
    }

    /// What follows from the answers.
    pub(super) fn overview(&self) -> Overview {
        self.overview
    }
    /// Where each path stands that is up, by its ordinal.
    pub(super) fn standings(&self) -> impl Iterator<Item = (usize, Standing)> {
        let all = self.answers.iter().enumerate();
        all.filter_map(|(ordinal, answer)| Some((ordinal, answer.standing?)))
    }
}
