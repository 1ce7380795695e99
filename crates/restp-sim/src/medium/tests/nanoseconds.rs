//! Without a backoff nothing is left to chance: every frame of an exchange has its nanosecond.

use super::*;

const RTS: u64 = 272;
const CTS: u64 = 248;
const ACK: u64 = CTS;
const DATA: u64 = 4496;
const SIFS: u64 = 10;
const DIFS: u64 = 50;
const TIMEOUT: u64 = 222;

/// A chain in which every draw is of no slot.
fn drawless(hops: usize) -> MediumSpec {
    let mut spec = chain(hops);
    (spec.timing.cw_min, spec.timing.cw_max) = (0, 0);
    spec
}

/// So many microseconds, and as many times 300 m.
fn at(us: u64, crossings: u64) -> Time {
    Time::ZERO + Duration::from_nanos(us * 1000 + crossings * 1001)
}

/// What becomes of packets that are offered at a time on the way from a station to another.
fn fates(spec: &MediumSpec, offers: &[(u64, usize, usize)]) -> Vec<(Time, Outcome)> {
    let (mut medium, mut offers, mut fates) = (Medium::new(spec, 1), offers.iter().peekable(), vec![]);
    loop {
        let due = medium.next();
        let offer = offers.next_if(|(us, ..)| due.is_none_or(|due| at(*us, 0) <= due));
        if let Some(&(us, from, to)) = offer {
            let packet = parcel(0, PACKET);
            medium
                .offer(at(us, 0), hop(spec, from, to), packet)
                .expect("room");
        } else if let Some(now) = due {
            fates.extend(medium.advance(now).map(|fate| (now, fate)));
        } else {
            return fates;
        }
    }
}

/// When packets were delivered.
fn arrivals(spec: &MediumSpec, offers: &[(u64, usize, usize)]) -> Vec<Time> {
    let fates = fates(spec, offers);
    let delivered = fates
        .iter()
        .filter(|(_, fate)| matches!(fate, Outcome::Delivered { .. }));
    delivered.map(|(at, _)| *at).collect()
}

/// From the beginning of an RTS to the end of the data frame.
const TO_DATA: u64 = RTS + SIFS + CTS + SIFS + DATA;

#[test]
fn who_gets_no_answer_tries_again_when_it_would_have_begun() {
    let mut spec = drawless(1);
    spec.bit_error_rate = 1.0;
    for attempts in 1..=3 {
        spec.short_retries = attempts;
        let attempts = u64::from(attempts);
        let given_up = at(DIFS + attempts * (RTS + TIMEOUT), attempts);
        let dropped = fates(&spec, &[(0, 0, 1)]);
        assert_eq!(dropped.len(), 1);
        assert_eq!(dropped[0].0, given_up, "{attempts}");
    }
}

/// 2 hears the CTS of 1, and nothing of 0.
#[test]
fn a_cts_reserves_the_rest_of_the_exchange_and_no_more() {
    let first = DIFS + TO_DATA;
    let second = first + SIFS + ACK + DIFS + TO_DATA;
    let arrivals = arrivals(&drawless(2), &[(0, 0, 1), (1000, 2, 1)]);
    // The ACK is one more crossing away.
    assert_eq!(arrivals, [at(first, 3), at(second, 7)]);
}

/// 2 hears the data frame of 1, and not the ACK of 0.
#[test]
fn a_data_frame_reserves_its_acknowledgement() {
    let mut spec = drawless(2);
    spec.rts_threshold = 3000;
    let arrivals = arrivals(&spec, &[(0, 1, 0), (1000, 2, 1)]);
    let second = DIFS + DATA + SIFS + ACK + DIFS + DATA;
    assert_eq!(arrivals, [at(DIFS + DATA, 1), at(second, 2)]);
}

/// 2 has heard the CTS of 1; the RTS of 3 finds no answer until the exchange is over.
#[test]
fn who_hears_a_reservation_grants_nothing() {
    let mut spec = drawless(3);
    let near = spec.ranges.decode;
    (spec.ranges.sense, spec.ranges.interfere) = (near, near);
    let arrivals = arrivals(&spec, &[(0, 0, 1), (4000, 3, 2)]);
    assert_eq!(arrivals.len(), 2);
    assert_eq!(arrivals[0], at(DIFS + TO_DATA, 3));
    assert!(
        arrivals[1] > at(DIFS + TO_DATA + SIFS + ACK + TO_DATA, 3),
        "{arrivals:?}"
    );
}
