//! What connections cost on the heap, counted by the allocator and not by the engine: an idle one at most 16 KiB, a
//! transfer at most four times what the path holds, and 1 MiB.

mod common;

use bytes::Bytes;
use common::{PORT, composition};
use peak_alloc::PeakAlloc;
use restp_base::flow::{Flow, FlowId, Read};
use restp_base::machine::{Datagram, Event, Input, Machine, PathAddress};
use restp_base::random::Stream;
use restp_base::time::{Duration, Time};
use restp_base::units::Rate;
use restp_proto::{Acceptance, Endpoint, EndpointConfig};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// One measurement at a time: the heap belongs to the whole program.
static MEASURING: Mutex<()> = Mutex::new(());

fn endpoint(preset: &str) -> Endpoint {
    let valid = composition(preset, &[]).check().expect("a valid preset");
    Endpoint::new(EndpointConfig::new(valid).listen(PORT, Acceptance::Any))
}

/// A line between two ends with one queue per direction. Unlike the other stories' network it keeps no record.
struct Line {
    now: Time,
    rate: Rate,
    delay: Duration,
    queue_bytes: u64,
    loss: f64,
    chance: Stream,
    free_at: [Time; 2],
    on_the_way: [VecDeque<(Time, Datagram)>; 2],
}

impl Line {
    fn new(rate: Rate, delay: Duration, queue_bytes: u64, loss: f64) -> Self {
        Line {
            now: Time::ZERO,
            rate,
            delay,
            queue_bytes,
            loss,
            chance: Stream::named(1, "memory/loss"),
            free_at: [Time::ZERO; 2],
            on_the_way: [VecDeque::new(), VecDeque::new()],
        }
    }

    fn path() -> PathAddress {
        let [local, remote] =
            ["10.0.0.1:0", "10.0.0.2:0"].map(|address| address.parse().expect("an address"));
        PathAddress { local, remote }
    }

    fn send(&mut self, from: usize, mut datagram: Datagram) {
        let starts = self.free_at[from].max(self.now);
        let waiting = self.rate.bytes_in(starts.since(self.now));
        if waiting > self.queue_bytes || self.chance.chance(self.loss) {
            return;
        }
        self.free_at[from] = starts + self.rate.transmission_time(datagram.len() as u64);
        datagram.path = datagram.path.reversed();
        self.on_the_way[from].push_back((self.free_at[from] + self.delay, datagram));
    }

    /// Lets everything that is due happen until `until`.
    fn run(&mut self, ends: &mut [Endpoint; 2], until: Time) {
        let mut out = Datagram::empty();
        loop {
            for (side, end) in ends.iter_mut().enumerate() {
                while end.poll_transmit(self.now, &mut out) {
                    self.send(side, out.clone());
                }
            }
            let arrivals = [0, 1].map(|from| self.on_the_way[from].front().map(|(at, _)| *at));
            let wakes = ends.each_ref().map(|end| end.next_deadline().map(|(at, _)| at));
            let next = arrivals.into_iter().chain(wakes).flatten().min();
            let Some(next) = next.filter(|next| *next <= until) else {
                break;
            };
            self.now = self.now.max(next);
            for side in 0..2 {
                if arrivals[1 - side] == Some(next)
                    && let Some((_, mut datagram)) = self.on_the_way[1 - side].pop_front()
                {
                    ends[side].handle(self.now, Input::Datagram(&mut datagram));
                }
                if wakes[side] == Some(next) {
                    ends[side].handle(self.now, Input::Deadline);
                }
            }
        }
        self.now = until;
    }
}

/// Flows that the acceptor was told of so far.
fn accepted(end: &mut Endpoint) -> Vec<FlowId> {
    std::iter::from_fn(|| end.poll_event())
        .filter_map(|event| match event {
            Event::Accepted(flow) => Some(flow),
            _ => None,
        })
        .collect()
}

#[test]
fn an_idle_connection_takes_at_most_sixteen_kibibytes_fresh_or_used() {
    let _alone = MEASURING.lock().unwrap_or_else(PoisonError::into_inner);
    for payload in [0, 100_000] {
        const CONNECTIONS: usize = 1000;
        let empty = HEAP.current_usage();
        let mut ends = [endpoint("default"), endpoint("default")];
        let mut line = Line::new(
            Rate::from_bps(1_000_000_000),
            Duration::from_millis(5),
            1 << 30,
            0.0,
        );
        for _ in 0..CONNECTIONS {
            let flow = ends[0].open(line.now, Line::path(), PORT).expect("a free port");
            if payload > 0 {
                let data = vec![1; payload].into();
                ends[0].write(line.now, flow, data).expect("room to write");
            }
            let until = line.now + Duration::from_millis(100);
            line.run(&mut ends, until);
            for flow in accepted(&mut ends[1]) {
                let until = line.now + Duration::from_millis(500);
                line.run(&mut ends, until);
                while let Read::Data(_) = ends[1].read(line.now, flow) {}
            }
            while ends[0].poll_event().is_some() {}
        }
        let until = line.now + Duration::from_secs(1);
        line.run(&mut ends, until);
        assert_eq!(ends.each_ref().map(Endpoint::connections), [CONNECTIONS; 2]);
        drop(line);
        for (end, role) in ends.into_iter().zip(["opener", "acceptor"]) {
            let before = HEAP.current_usage();
            drop(end);
            let each = (before - HEAP.current_usage()) / CONNECTIONS;
            assert!(
                each <= 16 * 1024,
                "{role} after {payload} bytes: {each} bytes per connection"
            );
            assert!(each > 100, "{role}: {each} bytes cannot be all of it");
        }
        assert!(
            HEAP.current_usage() <= empty + 64 * 1024,
            "everything is given back"
        );
    }
}

#[test]
fn each_end_of_a_transfer_holds_at_most_four_times_its_path_and_a_mebibyte() {
    let _alone = MEASURING.lock().unwrap_or_else(PoisonError::into_inner);
    let cases = [100_000, 1_000_000, 4_000_000].map(|path| [(path, 0.01), (path, 0.0)]);
    for (bandwidth_delay, loss) in cases.into_iter().flatten() {
        let round_trip = Duration::from_millis(100);
        let rate = Rate::of(bandwidth_delay, round_trip);
        let mut line = Line::new(rate, round_trip / 2, bandwidth_delay, loss);
        let mut ends = [endpoint("default"), endpoint("default")];
        let empty = HEAP.current_usage();
        HEAP.reset_peak_usage();
        let flow = ends[0].open(line.now, Line::path(), PORT).expect("a free port");
        let total = 8 * bandwidth_delay as usize;
        let (mut written, mut read, mut sink) = (0, 0, None);
        let mut peaks = [0, 0];
        while read < total {
            while written < total {
                let piece = vec![1; 16_384.min(total - written)];
                let size = piece.len();
                if ends[0].write(line.now, flow, Bytes::from(piece)).is_err() {
                    break;
                }
                written += size;
            }
            let until = line.now + Duration::from_millis(1);
            line.run(&mut ends, until);
            sink = sink.or(accepted(&mut ends[1]).pop());
            while ends[0].poll_event().is_some() {}
            for (peak, (end, flow)) in peaks.iter_mut().zip(ends.iter().zip([Some(flow), sink])) {
                let now = flow
                    .and_then(|flow| end.stats(flow))
                    .map_or(0, |stats| stats.memory_bytes);
                *peak = now.max(*peak);
            }
            for (peak, (end, flow)) in peaks.iter_mut().zip(ends.iter().zip([Some(flow), sink])) {
                let now = flow
                    .and_then(|flow| end.stats(flow))
                    .map_or(0, |stats| stats.memory_bytes);
                *peak = now.max(*peak);
            }
            while let Some(Read::Data(data)) = sink.map(|flow| ends[1].read(line.now, flow)) {
                read += data.len();
            }
            assert!(
                line.now < Time::ZERO + Duration::from_secs(1_000),
                "{read} of {total} bytes"
            );
        }
        let most = 4 * bandwidth_delay + (1 << 20);
        println!(
            "path {bandwidth_delay} B, loss {loss}: sender {}, receiver {} B, at most {most}",
            peaks[0], peaks[1]
        );
        assert!(peaks.iter().all(|peak| *peak <= most), "{peaks:?}");
        // What the ends count is what the heap holds, but for the packets on the line.
        let heap = (HEAP.peak_usage() - empty) as u64;
        assert!(heap <= 2 * most, "the heap held {heap} bytes");
        assert!(
            heap <= peaks[0] + peaks[1] + bandwidth_delay + (1 << 20),
            "of {heap} bytes the ends know of {peaks:?}"
        );
    }
}
