//! One subflow: a TCP of its own, and what the connection remembers of it.

use crate::tcp::connection::Connection as Tcp;
use bytes::Bytes;
use restp_base::flow::{FlowStats, PathStats};
use restp_base::machine::{Datagram, PathAddress, Wakeup};
use restp_base::time::{Duration, Time};
use restp_services::multipath::{Path, Shared};
use restp_services::sender::Sender;

/// One subflow.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) tcp: Tcp,
    /// Times its data were given to others because its timer ran out.
    pub(super) reinjections: u64,
    /// It was seen to be usable.
    pub(super) up: bool,
    /// It has ended, and what it carried was seen to.
    pub(super) gone: bool,
    /// What earlier subflows in this place have counted.
    past: Option<Box<FlowStats>>,
}

impl Member {
    pub(super) fn new(tcp: Tcp) -> Self {
        Member {
            tcp,
            reinjections: 0,
            up: false,
            gone: false,
            past: None,
        }
    }

    /// It takes the place of `other`, which is gone, and with it what that has counted.
    pub(super) fn in_place_of(mut self, other: &Member) -> Self {
        let mut past = FlowStats::default();
        other.count(&mut past);
        (
            past.congestion_window_bytes,
            past.memory_bytes,
            past.in_flight_segments,
        ) = (0, 0, 0);
        for path in &mut past.paths {
            (path.srtt, path.congestion_window_bytes) = (None, None);
        }
        self.past = Some(Box::new(past));
        self
    }
}

impl Path for Member {
    const UNMEASURED_RTT: Duration = Duration::ZERO;

    fn sender(&self) -> &Sender {
        self.tcp.sender()
    }
    fn sender_mut(&mut self) -> &mut Sender {
        self.tcp.sender_mut()
    }
    fn address(&self) -> PathAddress {
        self.tcp.address()
    }
    fn is_over(&self) -> bool {
        self.tcp.is_over()
    }
    fn is_closed(&self) -> bool {
        self.tcp.is_closed()
    }
    fn standing(&self) -> Option<(u8, bool)> {
        let standing = (u8::from(self.sender().is_failing()), self.tcp.is_backup());
        self.tcp.is_usable().then_some(standing)
    }

    /// The working ones, of these backups only when there is no other, and those that repair a timeout only when nothing
    /// else is left.
    fn rank(&self, _copies: bool) -> Option<u8> {
        self.standing().map(|standing| match standing {
            (0, false) => 0,
            (0, true) => 1,
            _ => 2,
        })
    }

    fn segment_bytes(&self) -> Option<u32> {
        self.tcp.is_usable().then(|| self.tcp.segment_bytes())
    }
    fn largest_segment_bytes(&self) -> u32 {
        self.tcp.segment_bytes()
    }
    fn takes(&mut self, now: Time, bytes: u64) -> bool {
        self.sender_mut().takes(now, bytes)
    }
    fn assign(&mut self, now: Time, number: u64, payload: Bytes) -> u64 {
        self.tcp.assign(now, number, payload)
    }
    fn carried(&self) -> impl Iterator<Item = u64> + '_ {
        self.tcp.carried().map(|mapping| mapping.data)
    }
    fn acknowledge_soon(&mut self) {
        self.tcp.acknowledge_soon();
    }
    fn announce_end(&mut self, fin: u64) {
        self.tcp.announce_end(fin);
    }
    fn asks_window(&mut self) -> bool {
        false // the next byte asks
    }
    fn abort(&mut self, _now: Time) {
        self.tcp.abort();
    }
    fn poll_transmit(&mut self, now: Time, shared: &Shared, out: &mut Datagram) -> bool {
        self.tcp.poll_path(now, *shared, out)
    }
    fn deadline(&self, _judged: bool) -> Option<(Time, Wakeup)> {
        self.tcp.deadline()
    }

    fn count(&self, total: &mut FlowStats) {
        if let Some(past) = &self.past {
            total.add(past);
        }
        let stats = self.tcp.stats();
        let path = PathStats {
            sent_packets: stats.sent_packets,
            sent_bytes: stats.sent_bytes,
            received_bytes: stats.received_bytes,
            lost_packets: stats.lost_packets,
            srtt: stats.srtt,
            suspicions: self.reinjections,
            congestion_window_bytes: Some(stats.congestion_window_bytes),
            ..PathStats::new(self.tcp.address())
        };
        total.add(&FlowStats {
            paths: vec![path],
            ..stats
        });
    }
}
