//! What a transfer looks like while it runs, by regular looks at its counters: progress for people, and outages of
//! the path.

use super::diagnosis::{self, Span};
use restp::clock::Clock;
use restp::{Connection, FlowStats, PathAddress, PathEvent, PathState, PathStats};
use restp_base::observe::Changed;
use restp_base::time::{Duration, Time};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Between two looks.
const INTERVAL: Duration = Duration::from_millis(200);

/// A path counts as down after this long without a packet from the peer although segments are outstanding: five
/// times the smallest retransmission timeout (OP-58), so that an unlucky loss is no outage. Two round trips come on top of it: that of
/// what was lost, and that of its retransmission.
const DOWN_AFTER: Duration = Duration::from_secs(1);

/// What is said of paths is of so many looks: ten seconds.
const LOOKS: usize = 50;

/// People hear of a path that is down for longer than this: in less they could do nothing about it.
const TOLD_AFTER: Duration = Duration::from_millis(500);

/// Changes of services that are kept; the oldest go first.
const MOST_CHANGES: usize = 256;

/// Counters that both a transfer and its observer use.
#[derive(Debug)]
pub struct Watch {
    bytes: AtomicU64,
    resumed: AtomicU64,
    down_events: AtomicU64,
    clock: Clock,
    /// When the peer was last heard, in nanoseconds.
    heard_at: AtomicU64,
    /// When data last arrived, and the longest time between two arrivals, in nanoseconds; zero before there are any.
    arrived_at: AtomicU64,
    longest_stall: AtomicU64,
    /// How services changed, the latest of it.
    changes: Mutex<VecDeque<Changed>>,
}

impl Default for Watch {
    fn default() -> Self {
        Watch {
            bytes: AtomicU64::new(0),
            resumed: AtomicU64::new(0),
            down_events: AtomicU64::new(0),
            clock: Clock::start(),
            heard_at: AtomicU64::new(0),
            arrived_at: AtomicU64::new(0),
            longest_stall: AtomicU64::new(0),
            changes: Mutex::default(),
        }
    }
}

/// One look.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    /// Data bytes handed to or taken from the connection.
    pub bytes: u64,
    /// The path is down since.
    pub down_for: Option<Duration>,
    /// Each path by itself, when there are several.
    pub paths: Vec<PathStats>,
    /// What was found on the paths lately, in words.
    pub found: Vec<String>,
}

/// What became of a path, and when since the transfer began.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct News {
    /// What.
    pub event: PathEvent,
    /// When.
    pub seconds: f64,
    /// To whom.
    pub audience: Audience,
}

/// Who hears of it. Programs hear everything, at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// People and programs.
    All,
    /// Programs.
    Programs,
    /// People: programs know.
    People,
}

impl Watch {
    /// `bytes` more have been handed to the connection.
    pub fn add(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// `bytes` of them were there already and have not been sent.
    pub fn resume(&self, bytes: u64) {
        self.resumed.fetch_add(bytes, Ordering::Relaxed);
    }

    /// `bytes`, of which so many were `resumed`, are of a file that does not come after all.
    pub fn take_back(&self, bytes: u64, resumed: u64) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.resumed.fetch_sub(resumed, Ordering::Relaxed);
    }

    /// Bytes so far that have not been sent.
    pub fn resumed_bytes(&self) -> u64 {
        self.resumed.load(Ordering::Relaxed)
    }

    /// `bytes` more have come out of the connection, just now.
    pub fn take_in(&self, bytes: u64) {
        self.add(bytes);
        let now = self.clock.now().since(Time::ZERO).as_nanos();
        match self.arrived_at.swap(now, Ordering::Relaxed) {
            0 => {}
            before => {
                self.longest_stall
                    .fetch_max(now.saturating_sub(before), Ordering::Relaxed);
            }
        }
    }

    /// The longest time between two arrivals; none where nothing arrives.
    pub fn longest_stall(&self) -> Option<Duration> {
        let stall = Duration::from_nanos(self.longest_stall.load(Ordering::Relaxed));
        (self.arrived_at.load(Ordering::Relaxed) > 0).then_some(stall)
    }

    /// Data bytes so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// How often the path went down.
    pub fn down_events(&self) -> u64 {
        self.down_events.load(Ordering::Relaxed)
    }

    /// How long nothing has come from the peer, as seen by looks.
    pub fn silent_for(&self) -> Duration {
        let heard_at = Duration::from_nanos(self.heard_at.load(Ordering::Relaxed));
        self.clock.now().since(Time::ZERO + heard_at)
    }

    /// How services have changed so far: the latest 256.
    pub fn changes(&self, connection: &Connection) -> Vec<Changed> {
        self.keep(connection.take_changes());
        let changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        changes.iter().cloned().collect()
    }

    fn keep(&self, new: Vec<Changed>) {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        changes.extend(new);
        let excess = changes.len().saturating_sub(MOST_CHANGES);
        changes.drain(..excess);
    }

    /// Looks until it is dropped; hears of paths as soon as there is news.
    pub async fn run(
        &self,
        connection: &Connection,
        each: impl Fn(Look),
        news: impl Fn(News),
    ) -> std::convert::Infallible {
        let mut ticks = tokio::time::interval(std::time::Duration::from_nanos(INTERVAL.as_nanos()));
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut silence = Silence::default();
        let mut lately = Lately::default();
        loop {
            tokio::select! {
                Some(event) = connection.path_event() => {
                    let now = self.clock.now();
                    let is_for_people = lately.on_event(now, event);
                    news(News {
                        event,
                        audience: if is_for_people { Audience::All } else { Audience::Programs },
                        seconds: now.since(Time::ZERO).as_secs_f64(),
                    });
                }
                _ = ticks.tick() => {
                    for (event, at) in lately.overdue(self.clock.now()) {
                        news(News {
                            event,
                            audience: Audience::People,
                            seconds: at.since(Time::ZERO).as_secs_f64(),
                        });
                    }
                    let stats = connection.stats();
                    if stats.received_packets != silence.heard {
                        let now = self.clock.now().since(Time::ZERO).as_nanos();
                        self.heard_at.store(now, Ordering::Relaxed);
                    }
                    let down_for = silence.look(&stats);
                    self.down_events.store(silence.outages, Ordering::Relaxed);
                    self.keep(connection.take_changes());
                    let found = lately.look(self.clock.now(), &stats.paths, down_for);
                    each(Look {
                        bytes: self.bytes(),
                        down_for,
                        paths: if stats.paths.len() > 1 { stats.paths } else { Vec::new() },
                        found,
                    });
                }
            }
        }
    }
}

impl News {
    /// The state as results spell it.
    pub fn state(&self) -> &'static str {
        match self.event.state {
            PathState::Up => "up",
            PathState::Suspect => "suspect",
            PathState::Down => "down",
            PathState::Closed => "closed",
        }
    }
}

/// What paths looked like some seconds ago, and since when they are silent.
#[derive(Debug, Default)]
struct Lately {
    looks: VecDeque<Vec<PathStats>>,
    silent_since: BTreeMap<PathAddress, Time>,
    /// Suspect or down, and people do not know: since when they are down.
    untold: BTreeMap<PathAddress, Option<Time>>,
}

impl Lately {
    /// Paths of several tell of themselves when they fall silent. False where it is no news for people, or not yet: on paths that wait in
    /// queues, lose much or are read by a busy machine answers are overdue now and then, for less than the blink of an eye.
    fn on_event(&mut self, now: Time, event: PathEvent) -> bool {
        match event.state {
            PathState::Up | PathState::Closed => _ = self.silent_since.remove(&event.path),
            PathState::Suspect | PathState::Down => _ = self.silent_since.entry(event.path).or_insert(now),
        }
        let is_untold = self.untold.remove(&event.path).is_some();
        match event.state {
            PathState::Suspect => _ = self.untold.insert(event.path, None),
            PathState::Down => _ = self.untold.insert(event.path, Some(now)),
            PathState::Up => return !is_untold,
            PathState::Closed => return true,
        }
        false
    }

    /// Paths that have been down for so long that people hear of it, and since when.
    fn overdue(&mut self, now: Time) -> Vec<(PathEvent, Time)> {
        let is_due = |since: Time| now.since(since) >= TOLD_AFTER;
        let due = self
            .untold
            .extract_if(.., |_, since| since.is_some_and(is_due))
            .filter_map(|(path, since)| {
                let state = PathState::Down;
                Some((PathEvent { path, state }, since?))
            });
        due.collect()
    }

    /// What was found since the look some seconds ago. `down_for`: how long a single path has been silent.
    fn look(&mut self, now: Time, paths: &[PathStats], down_for: Option<Duration>) -> Vec<String> {
        let earlier: &[PathStats] = match self.looks.front() {
            Some(first) if self.looks.len() >= LOOKS => first,
            _ => &[], // the transfer is not that old
        };
        let spans: Vec<_> = paths
            .iter()
            .map(|path| Span {
                before: earlier.iter().find(|before| before.path == path.path),
                now: path,
                silent_for: match paths {
                    [_] => down_for,
                    _ => self.silent_since.get(&path.path).map(|since| now.since(*since)),
                },
            })
            .collect();
        let found = diagnosis::sentences(&spans);
        if self.looks.len() >= LOOKS {
            self.looks.pop_front();
        }
        self.looks.push_back(paths.to_vec());
        found
    }
}

/// How long nothing has come back.
#[derive(Debug, Default)]
struct Silence {
    heard: u64,
    lasts: Duration,
    is_outage: bool,
    outages: u64,
}

impl Silence {
    /// Takes a look; how long the path has been down, if it is.
    fn look(&mut self, stats: &FlowStats) -> Option<Duration> {
        let waits = stats.in_flight_segments > 0 && stats.received_packets == self.heard;
        self.heard = stats.received_packets;
        self.lasts = if waits {
            self.lasts + INTERVAL
        } else {
            Duration::ZERO
        };
        let longest = DOWN_AFTER + stats.srtt.unwrap_or_default() * 2;
        let was_outage = std::mem::replace(&mut self.is_outage, self.lasts >= longest);
        self.outages += u64::from(self.is_outage && !was_outage);
        self.is_outage.then_some(self.lasts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(received_packets: u64, in_flight_segments: u64) -> FlowStats {
        FlowStats {
            received_packets,
            in_flight_segments,
            ..FlowStats::default()
        }
    }

    #[test]
    fn an_outage_is_silence_while_an_answer_is_due() {
        let mut silence = Silence::default();
        assert_eq!(silence.look(&stats(5, 3)), None);
        let looks: Vec<_> = (0..6).map(|_| silence.look(&stats(5, 3))).collect();
        assert_eq!(looks[..4], [None; 4]);
        assert_eq!(looks[4], Some(DOWN_AFTER));
        assert_eq!(looks[5], Some(Duration::from_millis(1200)));
        assert_eq!(silence.look(&stats(6, 3)), None);
        assert_eq!(silence.outages, 1);
    }

    /// Over a satellite a loss and its retransmission take more than a second.
    #[test]
    fn what_two_round_trips_explain_is_no_outage() {
        let far = FlowStats {
            srtt: Some(Duration::from_millis(600)),
            ..stats(5, 3)
        };
        let mut silence = Silence::default();
        silence.look(&far);
        assert!((0..10).all(|_| silence.look(&far).is_none()));
        assert_eq!(silence.look(&far), Some(DOWN_AFTER + Duration::from_millis(1200)));
    }

    #[test]
    fn an_idle_path_is_not_down() {
        let mut silence = Silence::default();
        assert!((0..20).all(|_| silence.look(&stats(5, 0)).is_none()));
    }

    fn path(host: u8) -> PathStats {
        let at = |host| std::net::SocketAddr::from(([10, 0, 0, host], 1));
        PathStats::new(PathAddress {
            local: at(host),
            remote: at(9),
        })
    }

    #[test]
    fn losses_are_of_the_last_ten_seconds() {
        let mut lately = Lately::default();
        let mut now = path(1);
        let mut look = |sent: u64, lost: u64| {
            (now.sent_packets, now.lost_packets) = (now.sent_packets + sent, now.lost_packets + lost);
            lately.look(Time::ZERO, std::slice::from_ref(&now), None)
        };
        assert_eq!(look(1_000, 100), ["10.0 % lost"]);
        (1..LOOKS).for_each(|_| assert_ne!(look(1_000, 0), Vec::<String>::new()));
        assert_eq!(look(1_000, 0), Vec::<String>::new());
    }

    #[test]
    fn one_of_several_paths_that_is_silent_is_named_with_its_number() {
        let mut lately = Lately::default();
        let paths = [path(1), path(2)];
        let mut told = |state, seconds: u64| {
            let now = Time::ZERO + Duration::from_secs(seconds);
            lately.on_event(
                now,
                PathEvent {
                    path: paths[1].path,
                    state,
                },
            );
            lately.look(now + Duration::from_secs(3), &paths, None)
        };
        assert_eq!(told(PathState::Suspect, 10), ["path 2: silent for 3 s: probing"]);
        assert_eq!(
            told(PathState::Down, 11),
            ["path 2: silent for 4 s: probing"],
            "since the suspicion"
        );
        assert_eq!(told(PathState::Up, 20), Vec::<String>::new());
    }

    #[test]
    fn people_hear_of_a_path_that_stays_down_and_of_its_return_and_of_no_blink() {
        let path = path(1).path;
        let at = |ms| Time::ZERO + Duration::from_millis(ms);
        let mut lately = Lately::default();
        let mut told = Vec::new();
        let events = [
            (0, PathState::Up),
            (10, PathState::Suspect),
            (20, PathState::Up),
            (30, PathState::Suspect),
            (40, PathState::Down),
            (530, PathState::Up),
            (600, PathState::Suspect),
            (700, PathState::Down),
            (1500, PathState::Up),
            (1600, PathState::Suspect),
            (1700, PathState::Closed),
            (3000, PathState::Up),
        ];
        for (ms, state) in events {
            told.extend(lately.overdue(at(ms)));
            if lately.on_event(at(ms), PathEvent { path, state }) {
                told.push((PathEvent { path, state }, at(ms)));
            }
        }
        let told: Vec<_> = told.into_iter().map(|(event, at)| (event.state, at)).collect();
        assert_eq!(
            told,
            [
                (PathState::Up, at(0)),
                (PathState::Down, at(700)),
                (PathState::Up, at(1500)),
                (PathState::Closed, at(1700)),
                (PathState::Up, at(3000)),
            ]
        );
    }

    #[test]
    fn no_more_than_the_latest_changes_are_kept() {
        let watch = Watch::default();
        let changed = |at| Changed {
            at: Time::ZERO + Duration::from_secs(at),
            key: "mode",
            from: "alone".into(),
            to: "competing".into(),
            why: restp_base::observe::Why::Path,
        };
        watch.keep((0..300).map(changed).collect());
        let kept = watch.changes.lock().expect("nobody else");
        assert_eq!(
            (kept.len(), kept[0].clone()),
            (MOST_CHANGES, changed(300 - MOST_CHANGES as u64))
        );
    }
}
