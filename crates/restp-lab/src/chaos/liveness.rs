//! How long a run may take once everything is whole, and how soon a connection may rightly be given up. Both follow
//! from the numbers of the compositions, the network and the traffic, never from what a machine says.

use super::changes::Wish;
use super::faults::Fault;
use super::paths::at;
use super::{Case, Side, network};
use restp_base::time::{Duration, Time};
use restp_base::units;
use restp_proto::composition::{Composition, ValidComposition};
use restp_services::connection_management::{Establishment, TIME_WAIT};
use restp_services::loss_handling::LossSignal;

/// Most bytes of a header that matter for how long a packet takes.
const HEADER_BYTES: u64 = 100;

/// From the healing to the moment at which nothing may be left to happen.
pub fn longest_run(case: &Case, compositions: &[ValidComposition; 2]) -> Duration {
    let mut total = Duration::ZERO;
    for (side, composition) in Side::BOTH.into_iter().zip(compositions) {
        // A connection that begins, misses its last packet, is asked for and given up, and lingers.
        total += waits(composition, composition.handshake.attempts)
            + composition.rto.ceiling * 8
            + composition.idle_timeout * 2
            + composition.progress_timeout * 2
            + TIME_WAIT * 2
            + case.writes(side).start()
            + case.writes(side).interval() * case.writes(side).writes(u64::from(composition.segment_bytes));
        total += transfer(case, side, compositions) + rejoining(case);
        if case.paths() > 1 && composition.loss_handling.probes() {
            total += composition.outage_timeout * 2; // a path that carries one direction only never ends sooner
        }
    }
    total * (case.opens_ms.len() as u64 + restarts(case))
}

/// The longest a transfer takes that has to wait for every single segment: a round trip through full queues, an
/// acknowledgement that is held back, and a timer that runs out.
fn transfer(case: &Case, side: Side, compositions: &[ValidComposition; 2]) -> Duration {
    let composition = &compositions[side.index()];
    let segment = u64::from(composition.segment_bytes);
    let traffic = case.writes(side);
    let segments = traffic.bytes().div_ceil(segment).max(traffic.writes(segment)) + 1;
    let turn = network::longest_of_all(case, segment + HEADER_BYTES);
    (turn * 4 + Duration::from_secs(1) + composition.rto.floor * 2) * segments
}

fn restarts(case: &Case) -> u64 {
    let restart = |fault: &&Fault| matches!(fault, Fault::Restart { .. });
    case.faults.iter().filter(restart).count() as u64
}

/// The waits of a set-up packet before it leaves for the last time and after, `count` of them.
fn waits(composition: &Composition, count: u32) -> Duration {
    (0..count).fold(Duration::ZERO, |total, attempt| {
        total + composition.handshake.rto * (1 << attempt.min(20))
    })
}

/// Do the faults of the case explain that this end gives its peer up?
pub fn may_give_up(case: &Case, side: Side, composition: &Composition) -> bool {
    let silence = silence(case, side, u64::from(composition.segment_bytes));
    // A lost packet is missed only when the timer runs out, and a hole given up only when its time is over.
    let frame = composition
        .numbers()
        .into_iter()
        .find(|(key, ..)| *key == "frame-interval");
    let hold = frame
        .and_then(|(_, value, _)| units::duration(&value).ok())
        .unwrap_or_default();
    let counts = |change: &Wish| {
        change.side == side && change.set.get("loss").is_some_and(|cause| cause == "congestion")
    };
    let counts = case.changes.iter().any(counts);
    shortest_silence(composition, counts) <= silence + composition.rto.floor * 2 + hold * 2
}

/// The shortest silence after which this end may rightly give its peer up: any of its time limits, or all attempts,
/// the last of which leaves before the last wait. `counts`: attempts may count, whatever it does with losses at first.
fn shortest_silence(composition: &Composition, counts: bool) -> Duration {
    let numbers = composition.numbers();
    let limits = numbers.iter().filter(|(key, ..)| key.ends_with("-timeout"));
    let mut least = limits
        .filter_map(|(_, value, _)| units::duration(value).ok())
        .min()
        .unwrap_or(Duration::MAX);
    if composition.establishment != Establishment::Connectionless {
        least = least.min(waits(
            composition,
            composition.handshake.attempts.saturating_sub(1),
        ));
    }
    let timeout = composition.loss_handling.reaction(LossSignal::Timeout);
    if timeout.count_attempt || counts {
        let rto = composition.rto;
        let waits = (1..rto.attempts).map(|attempt| (rto.floor * (1 << attempt.min(20))).min(rto.ceiling));
        least = least.min(waits.fold(Duration::ZERO, |total, wait| total + wait));
    }
    least
}

/// The shortest time between two questions to a silent peer: a timer, or a quarter of the silence after which it is given up.
pub fn shortest_pause(composition: &Composition) -> Duration {
    let timer = composition.rto.floor.min(composition.handshake.rto);
    timer.min(shortest_silence(composition, true) / 4)
}

/// The longest silence that the faults of the case explain at one end.
fn silence(case: &Case, side: Side, segment_bytes: u64) -> Duration {
    let jumps = case.faults.iter().map(|fault| match *fault {
        Fault::ClockJump { side: of, by_ms, .. } if of == side => by_ms,
        _ => 0,
    });
    // What a restarted client asks for waits until the server has forgotten the old conversation.
    Duration::from_millis(case.heal_ms + jumps.sum::<u64>())
        + TIME_WAIT * restarts(case)
        + rejoining(case)
        + network::longest_of_all(case, segment_bytes + HEADER_BYTES) * 2
}

/// The longest until a path that ended while it was broken is asked for again and answers: three requests that double
/// their wait of a second, and a second until the next.
const REJOIN: Duration = Duration::from_secs(8);

fn rejoining(case: &Case) -> Duration {
    if case.paths() > 1 { REJOIN } else { Duration::ZERO }
}

/// The longest that data may wait although one path is whole, see the law of stalls.
pub fn stall(case: &Case, compositions: &[ValidComposition; 2]) -> Duration {
    let of = |composition: &ValidComposition| {
        let bytes = u64::from(composition.segment_bytes) + HEADER_BYTES;
        let turn = network::longest_of_all(case, bytes) + composition.ack.unmeasured_wait();
        // A timer of RFC 6298 is the smoothed round trip and four times a deviation that is half of it at most.
        (turn * 3).max(composition.rto.floor)
    };
    let timeout = compositions.iter().map(of).max().unwrap_or_default();
    let [noticed, repaired] = [timeout * 3, timeout * 7];
    REJOIN + noticed + repaired
}

/// Since when the reader of `side` reads and one path has been whole, at `now`; `now` itself where that is not so.
pub fn undisturbed_since(case: &Case, side: Side, now: Time) -> Time {
    let whole = (0..case.paths()).map(|path| whole_since(case, path, now));
    let reads = case.faults.iter().map(|fault| match *fault {
        Fault::PauseReading {
            side: of,
            from_ms,
            until_ms,
        } if of == side && at(from_ms) <= now => at(until_ms),
        _ => Time::ZERO,
    });
    let since = whole.min().unwrap_or(now).max(reads.max().unwrap_or_default());
    since.min(now)
}

/// Since when nothing has hit `path`, at `now`; later than that where something does.
fn whole_since(case: &Case, path: usize, now: Time) -> Time {
    let hops = case.hops_of(path);
    let further = path.checked_sub(1).map(|further| &case.further[further]);
    if further.is_some_and(|further| further.leaves_ms.is_some()) {
        return Time::MAX;
    }
    let joins_ms = further.map_or(0, |further| further.joins_ms);
    let opened = case.opens_ms.iter().filter(|open| at(**open) <= now).max();
    let joined = opened.map_or(Time::MAX, |open| at(open + joins_ms));
    let hits = case.faults.iter().filter_map(|fault| match *fault {
        Fault::Rebind { path: of, at_ms } | Fault::Notice { path: of, at_ms, .. } if of == path => {
            Some((at_ms, at_ms))
        }
        _ if fault.hop().is_none_or(|hop| !hops.contains(&hop)) => None,
        Fault::Kill { at_ms, .. } => Some((at_ms, u64::MAX)),
        Fault::Outage {
            from_ms, until_ms, ..
        }
        | Fault::Flap {
            from_ms, until_ms, ..
        }
        | Fault::Refuse {
            from_ms, until_ms, ..
        } => Some((from_ms, until_ms)),
        _ => Some((0, case.heal_ms)),
    });
    let hit_until = hits
        .filter(|(from, _)| at(*from) <= now)
        .map(|(_, until)| if until == u64::MAX { Time::MAX } else { at(until) })
        .max();
    joined.max(hit_until.unwrap_or_default())
}
