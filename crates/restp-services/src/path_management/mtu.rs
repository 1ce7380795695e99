//! How large a segment the path carries, found by asking it: datagram packetization layer path MTU discovery
//! (RFC 8899, DPLPMTUD). Read its §5.2, the state machine, first.
//!
//! Sizes are payload bytes of a segment; the headers around it are the caller's. The search begins at [`BASE_BYTES`], asks
//! for the wanted size at once, since most paths carry it, and then halves the gap. A question that is lost costs three
//! timers and no data: it carries none.

use restp_base::time::{Duration, Time};

/// BASE_PLPMTU less every header: with those of ResTP, a seal, UDP and IPv6 it stays below the 1280 bytes that IPv6
/// promises (RFC 8899 §5.1.2).
pub const BASE_BYTES: u32 = 1100;
/// MAX_PROBES: a size is too large when as many questions stayed without an answer (RFC 8899 §5.1.2).
const QUESTIONS: u32 = 3;
/// PROBE_TIMER is not smaller than this (RFC 8899 §5.1.1).
const LEAST_WAIT: Duration = Duration::from_secs(1);
/// PMTU_RAISE_TIMER: a path found narrow is asked again after this (RFC 8899 §5.1.1).
const RAISE_AFTER: Duration = Duration::from_secs(600);
/// The search ends when less than this is to be gained: one percent of a segment.
const RESOLUTION: u32 = 14;

/// A question on its way.
#[derive(Clone, Copy, Debug)]
struct Question {
    bytes: u32,
    asked: u32,
    lost_at: Time,
}

/// The search for the largest segment of one path.
#[derive(Clone, Copy, Debug)]
pub struct PathMtu {
    /// Nothing is asked: the size is given.
    fixed: bool,
    /// What the composition wants, and never more.
    wanted: u32,
    /// What the path is known to carry (PLPMTU).
    confirmed: u32,
    /// The smallest size known to be too large.
    too_large: u32,
    question: Option<Question>,
    /// When the next question may leave; `None` when there is nothing to ask.
    ask_at: Option<Time>,
    /// Full segments stay without an answer: do small ones get one (RFC 8899 §4.3, black hole detection)?
    doubted: bool,
}

impl PathMtu {
    /// A path that is taken to carry segments of `wanted` bytes.
    pub const fn known(wanted: u32) -> Self {
        PathMtu {
            fixed: true,
            wanted,
            confirmed: wanted,
            too_large: wanted.saturating_add(1),
            question: None,
            ask_at: None,
            doubted: false,
        }
    }

    /// A path of which nothing is known; it is asked up to `wanted` bytes, from [`PathMtu::start`] on.
    pub const fn unknown(wanted: u32) -> Self {
        let known = Self::known(wanted);
        PathMtu {
            fixed: false,
            confirmed: if wanted < BASE_BYTES { wanted } else { BASE_BYTES },
            ..known
        }
    }

    /// Payload bytes that a segment may have.
    pub fn segment_bytes(&self) -> u32 {
        self.confirmed
    }

    /// The same for who may have to send a segment on another path later: the wanted size while nothing speaks against it.
    pub fn expected_bytes(&self) -> u32 {
        if self.too_large > self.wanted {
            self.wanted
        } else {
            self.confirmed
        }
    }

    /// The path is established: questions may leave.
    pub fn start(&mut self, now: Time) {
        if self.confirmed < self.wanted {
            self.ask_at = Some(now);
        }
    }

    /// The size to ask for now.
    pub fn question(&self, now: Time) -> Option<u32> {
        if self.question.is_some_and(|question| question.lost_at > now) || self.ask_at? > now {
            return None;
        }
        Some(match self.question {
            Some(question) => question.bytes,
            None if self.doubted => self.wanted.min(BASE_BYTES),
            None if self.too_large > self.wanted => self.wanted,
            None => self.confirmed.midpoint(self.too_large),
        })
    }

    /// A question for `bytes` leaves; an answer takes less than `timeout`.
    pub fn on_probe_sent(&mut self, now: Time, bytes: u32, timeout: Duration) {
        let before = self.question.filter(|question| question.bytes == bytes);
        self.question = Some(Question {
            bytes,
            asked: before.map_or(0, |question| question.asked) + 1,
            lost_at: now + timeout.max(LEAST_WAIT),
        });
        self.ask_at = self.question.map(|question| question.lost_at);
    }

    /// The peer has received a question of `bytes`. True when the path has turned out to be narrower than before: what is
    /// outstanding may be too large for it.
    pub fn on_answer(&mut self, now: Time, bytes: u32) -> bool {
        if bytes > self.wanted || self.question.is_none_or(|question| bytes > question.bytes) {
            return false; // never asked
        }
        let narrower = self.doubted && bytes < self.confirmed;
        if narrower {
            self.too_large = self.confirmed;
            self.confirmed = bytes;
        } else if bytes > self.confirmed {
            self.confirmed = bytes;
        } else {
            return false; // of an earlier question
        }
        (self.doubted, self.question) = (false, None);
        self.ask_again(now);
        narrower
    }

    /// A full segment was acknowledged: whatever silence there was had another reason.
    pub fn on_progress(&mut self, now: Time) {
        if std::mem::take(&mut self.doubted) {
            self.question = None;
            self.ask_again(now);
        }
    }

    /// A segment of `bytes` is retransmitted and stays without an answer.
    pub fn on_silence(&mut self, now: Time, bytes: usize) {
        if !self.fixed && !self.doubted && bytes > BASE_BYTES as usize && self.confirmed > BASE_BYTES {
            (self.doubted, self.question, self.ask_at) = (true, None, Some(now));
        }
    }

    /// When to call [`PathMtu::on_deadline`] or to look for a question.
    pub fn deadline(&self) -> Option<Time> {
        self.ask_at
    }

    /// A question that stayed without an answer is repeated, or its size is too large; after a while a narrow path may
    /// have become wider.
    pub fn on_deadline(&mut self, now: Time) {
        if self.ask_at.is_none_or(|at| at > now) {
            return;
        }
        match self.question {
            Some(question) if question.asked >= QUESTIONS && !self.doubted => {
                self.too_large = question.bytes;
                self.question = None;
                self.ask_again(now);
            }
            Some(_) => {}
            None if !self.doubted && !self.has_gap() => self.too_large = self.wanted.saturating_add(1),
            None => {}
        }
    }

    fn has_gap(&self) -> bool {
        self.too_large - self.confirmed > RESOLUTION
    }

    fn ask_again(&mut self, now: Time) {
        self.ask_at = match (self.confirmed < self.wanted, self.has_gap()) {
            (false, _) => None,
            (true, true) => Some(now),
            (true, false) if self.too_large > self.wanted => Some(now),
            (true, false) => Some(now + RAISE_AFTER),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_millis(300);

    fn ms(n: u64) -> Time {
        Time::ZERO + Duration::from_millis(n)
    }

    /// Asks a path that carries `carries` bytes until nothing is asked for a minute; questions asked, and when it ended.
    fn search(mtu: &mut PathMtu, carries: u32, mut now: Time) -> (Vec<u32>, Time) {
        let mut asked = Vec::new();
        while let Some(at) = mtu.deadline().filter(|at| *at < now + Duration::from_secs(60)) {
            now = now.max(at);
            mtu.on_deadline(now);
            if let Some(bytes) = mtu.question(now) {
                asked.push(bytes);
                mtu.on_probe_sent(now, bytes, TIMEOUT);
                if bytes <= carries {
                    now += Duration::from_millis(50);
                    mtu.on_answer(now, bytes);
                }
            }
        }
        (asked, now)
    }

    fn found(wanted: u32, carries: u32) -> (PathMtu, Vec<u32>) {
        let mut mtu = PathMtu::unknown(wanted);
        mtu.start(ms(0));
        let (asked, _) = search(&mut mtu, carries, ms(0));
        (mtu, asked)
    }

    #[test]
    fn an_ordinary_path_is_asked_once() {
        let (mtu, asked) = found(1400, 1400);
        assert_eq!((mtu.segment_bytes(), asked), (1400, vec![1400]));
    }

    #[test]
    fn what_is_small_enough_for_every_path_needs_no_question() {
        let (mtu, asked) = found(1000, 1400);
        assert_eq!((mtu.segment_bytes(), asked), (1000, vec![]));
        let mut known = PathMtu::known(1400);
        known.on_silence(ms(0), 1400);
        assert_eq!((known.segment_bytes(), known.deadline()), (1400, None));
    }

    /// Each size that is too large is asked three times (RFC 8899 §5.1.2).
    #[test]
    fn a_narrow_path_is_found_by_halves() {
        let (mtu, asked) = found(1400, 1290);
        assert_eq!(
            asked,
            [
                1400, 1400, 1400, 1250, 1325, 1325, 1325, 1287, 1306, 1306, 1306, 1296, 1296, 1296
            ]
        );
        assert_eq!((mtu.segment_bytes(), mtu.expected_bytes()), (1287, 1287));
        let young = PathMtu::unknown(1400);
        assert_eq!(
            (young.segment_bytes(), young.expected_bytes()),
            (BASE_BYTES, 1400)
        );
    }

    #[test]
    fn whatever_it_carries_the_search_ends_within_the_resolution() {
        for carries in BASE_BYTES..=1400 {
            let (mtu, asked) = found(1400, carries);
            let found = mtu.segment_bytes();
            assert!(
                found <= carries && carries - found < RESOLUTION,
                "{carries}: {found}"
            );
            assert!(asked.len() <= 18, "{carries}: {asked:?}");
        }
    }

    #[test]
    fn a_narrow_path_is_asked_again_after_ten_minutes() {
        let (mut mtu, _) = found(1400, 1290);
        let later = mtu.deadline().unwrap();
        mtu.on_deadline(later);
        assert_eq!(mtu.question(later), Some(1400));
        let (_, end) = search(&mut mtu, 1400, later);
        assert_eq!(mtu.segment_bytes(), 1400);
        assert!(end < later + LEAST_WAIT);
        assert_eq!(mtu.deadline(), None);
    }

    /// RFC 8899 §4.3: only that small packets pass proves that the large ones are too large.
    #[test]
    fn silence_narrows_the_path_when_a_small_question_is_answered() {
        let (mut mtu, _) = found(1400, 1400);
        mtu.on_silence(ms(5000), 1100);
        assert_eq!(
            mtu.question(ms(5000)),
            None,
            "a small segment: the loss had another reason"
        );
        mtu.on_silence(ms(5000), 1101);
        assert_eq!(mtu.question(ms(5000)), Some(BASE_BYTES));
        assert_eq!(mtu.segment_bytes(), 1400, "not yet");
        mtu.on_probe_sent(ms(5000), BASE_BYTES, TIMEOUT);
        assert!(mtu.on_answer(ms(5050), BASE_BYTES));
        assert_eq!(mtu.segment_bytes(), BASE_BYTES);
        search(&mut mtu, 1290, ms(5050));
        assert_eq!(mtu.segment_bytes(), 1287);
    }

    #[test]
    fn a_path_that_is_down_keeps_its_size() {
        let (mut mtu, _) = found(1400, 1400);
        mtu.on_silence(ms(5000), 1400);
        let (asked, end) = search_for(&mut mtu, ms(5000), Duration::from_secs(30));
        assert!(asked >= 29, "{asked}");
        mtu.on_progress(end);
        assert_eq!((mtu.segment_bytes(), mtu.deadline()), (1400, None));
    }

    fn search_for(mtu: &mut PathMtu, from: Time, span: Duration) -> (u32, Time) {
        let (mut now, mut asked) = (from, 0);
        while let Some(at) = mtu.deadline().filter(|at| *at < from + span) {
            now = at;
            mtu.on_deadline(now);
            if let Some(bytes) = mtu.question(now) {
                asked += 1;
                mtu.on_probe_sent(now, bytes, TIMEOUT);
            }
        }
        (asked, now)
    }

    #[test]
    fn answers_to_what_was_not_asked_mean_nothing() {
        let mut mtu = PathMtu::unknown(1400);
        mtu.start(ms(0));
        assert!(!mtu.on_answer(ms(0), 1400));
        mtu.on_probe_sent(ms(0), 1250, TIMEOUT);
        assert!(!mtu.on_answer(ms(1), 1400));
        assert!(!mtu.on_answer(ms(1), 65_535));
        assert_eq!(mtu.segment_bytes(), BASE_BYTES);
        assert!(!mtu.on_answer(ms(2), 1250), "wider, not narrower");
        assert_eq!(mtu.segment_bytes(), 1250);
    }
}
