//! The comparison is honest: over the same path, with headers that count the same, ResTP's 3WH-ARQ and TCP NewReno
//! have the same congestion window at every moment, because the same services decide it; and it is the window of the RFCs.

use bytes::Bytes;
use restp_base::flow::{FlowId, Read};
use restp_base::machine::{Datagram, Event, Input, Machine};
use restp_base::time::{Duration, Time};
use restp_base::units::Rate;
use restp_lab::host::address_of;
use restp_lab::registry::Transport;
use restp_lab::traffic::PORT;
use std::collections::BTreeMap;
use std::path::Path;

const RATE: Rate = Rate::from_bps(2_000_000);
const DELAY: Duration = Duration::from_millis(45);
/// What every header counts, whatever it is.
const HEADER_BYTES: u64 = 40;
const SAMPLE: Duration = Duration::from_millis(10);

/// One direction: a line that sends one datagram after the other.
#[derive(Default)]
struct Line {
    free_at: Time,
    /// Data segments so far.
    data: u64,
}

/// Congestion window in bytes and segments in flight, every 10 ms, of a bulk transfer. Of the data segments those for
/// which `lost` holds never arrive; they are counted from 1, retransmissions included.
fn trace(name: &str, lost: impl Fn(u64) -> bool) -> Vec<(u64, u64)> {
    let path = restp_base::machine::PathAddress {
        local: address_of(0),
        remote: address_of(1),
    };
    let ends = Transport::new(name, &[], Path::new(""))
        .expect("a transport")
        .machines(path);
    let mut ends = [ends.client, ends.server];
    let mut lines = [Line::default(), Line::default()];
    let mut arrivals: BTreeMap<(Time, u64), (usize, Datagram)> = BTreeMap::new();
    let (mut now, mut sent, mut samples) = (Time::ZERO, 0, Vec::new());
    let flow = ends[0].open(now, path, PORT).expect("opened");
    while samples.len() < 2000 {
        for side in 0..2 {
            let mut out = Datagram::empty();
            loop {
                while ends[side].poll_transmit(now, &mut out) {
                    let line = &mut lines[side];
                    let payload = out.body.len() as u64;
                    line.data += u64::from(payload > 0);
                    line.free_at = line.free_at.max(now) + RATE.transmission_time(payload + HEADER_BYTES);
                    sent += 1;
                    if payload == 0 || !lost(line.data) {
                        let mut datagram = out.clone();
                        datagram.path = datagram.path.reversed();
                        arrivals.insert((line.free_at + DELAY, sent), (1 - side, datagram));
                    }
                }
                let Some(event) = ends[side].poll_event() else {
                    break;
                };
                apply(&mut *ends[side], now, &event);
            }
        }
        let sample = Time::ZERO + SAMPLE * (samples.len() as u64 + 1);
        let arrival = arrivals.first_key_value().map_or(Time::MAX, |(key, _)| key.0);
        let wake = |end: &dyn Machine| end.next_deadline().map_or(Time::MAX, |(at, _)| at);
        let wakes = [wake(&*ends[0]), wake(&*ends[1])];
        let next = arrival.min(wakes[0]).min(wakes[1]);
        if sample < next {
            let stats = ends[0].stats(flow).expect("the flow exists");
            samples.push((stats.congestion_window_bytes, stats.in_flight_segments));
            now = sample;
            continue;
        }
        now = now.max(next);
        if arrival == next
            && let Some((_, (to, mut datagram))) = arrivals.pop_first()
        {
            ends[to].handle(now, Input::Datagram(&mut datagram));
        }
        for side in 0..2 {
            if wakes[side] == next {
                ends[side].handle(now, Input::Deadline);
            }
        }
    }
    samples
}

/// A source that writes as much as is taken, and a reader that takes all.
fn apply(end: &mut dyn Machine, now: Time, event: &Event) {
    let fill = |end: &mut dyn Machine, flow: FlowId| {
        while end.write(now, flow, Bytes::from_static(&[0; 10_000])).is_ok() {}
    };
    match event {
        Event::Connected(flow) | Event::Writable(flow) => fill(end, *flow),
        Event::Readable(flow) => while matches!(end.read(now, *flow), Read::Data(_)) {},
        Event::Accepted(_) | Event::Stream(..) | Event::Path(..) | Event::Closed(..) => {}
    }
}

fn agree(lost: impl Fn(u64) -> bool + Copy) -> Vec<(u64, u64)> {
    let (restp, tcp) = (trace("restp:3wh-arq", lost), trace("classic-tcp:newreno", lost));
    for (at, (restp, tcp)) in restp.iter().zip(&tcp).enumerate() {
        assert_eq!(restp, tcp, "after {} ms", 10 * (at + 1));
    }
    tcp
}

const SEGMENT: u64 = 1400;

/// RFC 5681 §3.1: each acknowledgement adds what it acknowledges, one segment here. The first ten come after a round trip and then
/// one for each segment that the line carries; nothing ends slow start.
#[test]
fn without_losses() {
    let windows = agree(|_| false);
    let (first, _) = windows[0];
    let per_segment = RATE.transmission_time(SEGMENT + HEADER_BYTES);
    // The handshake takes a round trip and three headers; then the line is never idle once a window fills it.
    let full = windows
        .iter()
        .position(|(_, in_flight)| per_segment * *in_flight > DELAY * 2 + SAMPLE);
    let full = full.expect("a window that fills the line");
    for (at, pair) in windows[full + 10..].windows(101).enumerate() {
        let grown = (pair[100].0 - pair[0].0) / SEGMENT;
        let carried = (SAMPLE * 100).as_nanos() / per_segment.as_nanos();
        assert!(
            grown.abs_diff(carried) <= 2,
            "{grown} of {carried} in the second from sample {at}"
        );
    }
    // Before that it doubles with each round trip, and grows by what was in flight.
    let round_trip = ((DELAY * 2 + per_segment).as_nanos() / SAMPLE.as_nanos()) as usize;
    let start = windows
        .iter()
        .position(|(window, _)| *window > first)
        .expect("growth");
    assert!(
        windows[start + round_trip].0 >= 2 * first - SEGMENT,
        "{:?}",
        &windows[..start + round_trip]
    );
    for (at, (window, in_flight)) in windows[start..].iter().enumerate() {
        assert!(
            in_flight * SEGMENT <= *window && *window < (in_flight + 2) * SEGMENT,
            "the window is used: {window} and {in_flight} at {at}"
        );
    }
}

/// RFC 5681 §3.1 (4), RFC 6582 §3.2: a fast retransmit leaves half of what was in flight, two segments at least, and a
/// timeout one segment; avoidance adds a segment per window, not faster.
#[test]
fn with_losses_that_are_repaired_and_losses_that_time_out() {
    let windows = agree(|n| n % 97 == 0 || (400..404).contains(&n));
    let (mut halved, mut timed_out) = (0, 0);
    for (at, pair) in windows.windows(2).enumerate() {
        let [(before, in_flight), (after, _)] = [pair[0], pair[1]];
        if after >= before {
            continue;
        }
        if after == SEGMENT {
            timed_out += 1;
            continue;
        }
        let half = (in_flight * SEGMENT / 2).max(2 * SEGMENT);
        assert!(
            after.abs_diff(half) <= 2 * SEGMENT,
            "{after} of {in_flight} segments at sample {at}"
        );
        halved += 1;
    }
    assert!(halved > 5, "a saw with {halved} teeth");
    assert!(timed_out > 0, "a timeout leaves one segment");
}
