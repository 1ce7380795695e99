//! Seam between a protocol and an application: open, write, read, close, by flow.

use crate::machine::PathAddress;
use crate::observe::{Cause, Changed, Loss};
use crate::streams::Streams;
use crate::time::{Duration, Time};
use bytes::Bytes;
use thiserror::Error;

/// Names one flow (connection or association) of one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u64);

/// Why a flow ended.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CloseReason {
    /// Both directions were finished and acknowledged.
    #[error("finished")]
    Finished,
    /// The peer does not serve this port, or does not accept the composition.
    #[error(
        "the peer refused the connection (nobody serves that port, or it does not accept this composition)"
    )]
    Refused,
    /// The peer broke off.
    #[error("the peer broke off the connection")]
    Reset,
    /// This side broke off.
    #[error("this side broke off the connection")]
    Aborted,
    /// Nothing came back within the attempts or the time allowed.
    #[error("the peer did not answer for {:.1} s", .0.as_secs_f64())]
    TimedOut(Duration),
}

/// What one path of a flow is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathState {
    /// It carries data, or could.
    Up,
    /// An answer is overdue: what was on it is repeated elsewhere.
    Suspect,
    /// It is taken for dead, and probed.
    Down,
    /// It has ended.
    Closed,
}

/// Why [`Flow::open`] failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OpenError {
    /// Every local port towards this peer is in use.
    #[error("all local ports towards {0} are in use; close a connection first")]
    NoPort(std::net::SocketAddr),
    /// The machine was not set up to open flows.
    #[error("{0}")]
    Unsupported(String),
    /// The flow does not use this address of the host, or no longer does.
    #[error("{0} is no path of this flow")]
    NoSuchPath(std::net::SocketAddr),
}

/// Why [`Flow::write`] did not take the data.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WriteError {
    /// The send buffer is full; wait for [`Event::Writable`](crate::machine::Event::Writable).
    #[error("the send buffer is full; wait until the flow is writable")]
    Blocked,
    /// With fixed framing one message must fit into one segment.
    #[error(
        "a message of {size} bytes does not fit into a segment of {limit}; send less or choose framing = \"coalesce\""
    )]
    TooLarge {
        /// Bytes of the message.
        size: usize,
        /// Bytes a segment carries.
        limit: usize,
    },
    /// Where segments are numbered, an empty message cannot be told from an acknowledgement.
    #[error("an empty message cannot be sent where segments are numbered; send at least one byte")]
    Empty,
    /// The flow carries streams.
    #[error("the flow carries streams; open one and write to that")]
    Streams,
    /// The sending direction is finished, or the flow does not exist.
    #[error("the flow is closed for writing")]
    Closed,
}

/// What it takes to change the services of a running flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// They are as asked for already.
    Nothing,
    /// What this end decides alone: it has changed.
    Local,
    /// What the peer has to know: it is asked, and [`Flow::take_changes`] says what became of it.
    Agreed,
}

/// Why the services of a flow cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ChangeError {
    /// This machine, or this flow, has services that stay.
    #[error("{0}")]
    Unsupported(String),
    /// What the set-up has settled for as long as the flow lives.
    #[error("{key} is settled when a flow is opened: it is {from} and cannot become {to}; open another flow")]
    Settled {
        /// Which service or number.
        key: &'static str,
        /// What it is.
        from: String,
        /// What it was to be.
        to: String,
    },
    /// The services that were asked for are none, or do not go together.
    #[error("{0}")]
    Invalid(String),
    /// The peer has said, when the flow was set up, that it knows no changes.
    #[error("the peer knows no changes of {key}; change what is local, or open another flow")]
    PeerCannot {
        /// What it would have to agree on.
        key: &'static str,
    },
    /// The flow is not established, or over.
    #[error("the flow is not established, or over; services change while it runs")]
    NotRunning,
}

/// What [`Flow::read`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read {
    /// One message (fixed framing) or the next bytes of the stream (coalesce).
    Data(Bytes),
    /// Nothing yet.
    Empty,
    /// The peer has finished and everything was read, or the flow is over.
    End,
}

/// Counters and estimates of one flow, for eyes only: nothing in a protocol reads them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowStats {
    /// Path in use.
    pub path: Option<PathAddress>,
    /// From opening (or the first SYN heard) to established.
    pub handshake: Option<Duration>,
    /// Datagrams sent.
    pub sent_packets: u64,
    /// Datagrams received and accepted.
    pub received_packets: u64,
    /// Transport bytes sent, headers included.
    pub sent_bytes: u64,
    /// Transport bytes received, headers included.
    pub received_bytes: u64,
    /// Application bytes sent, repeats included.
    pub sent_payload_bytes: u64,
    /// Segments that were out before the set-up was complete and were taken at once: what they carry came a round trip
    /// earlier.
    pub early_segments: u64,
    /// Application bytes handed to the reader.
    pub delivered_bytes: u64,
    /// Messages or segments handed to the reader.
    pub delivered_messages: u64,
    /// Segments sent again.
    pub retransmitted_packets: u64,
    /// Application bytes in them.
    pub repeated_payload_bytes: u64,
    /// Bytes of SACK, NAK and SNACK options sent, where the machine counts them.
    pub report_bytes: Option<u64>,
    /// Segments declared lost by this sender.
    pub lost_packets: u64,
    /// Those of them declared lost because the retransmission timer ran out.
    pub timed_out_packets: u64,
    /// Packets of forward error correction sent.
    pub encoded_packets: u64,
    /// Segments rebuilt by forward error correction.
    pub repaired_packets: u64,
    /// Retransmission timers that ran out.
    pub timeouts: u64,
    /// Segments that arrived again after they had been accepted.
    pub duplicate_packets: u64,
    /// Segments the receiver gave up because they had not come in time: gaps in what the reader gets.
    pub skipped_segments: u64,
    /// Segments that arrived after they had been given up.
    pub late_packets: u64,
    /// Datagrams dropped because a rule of the protocol was broken.
    pub rejected_packets: u64,
    /// Payloads that failed their check sum.
    pub corrupted_packets: u64,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Retransmission timeout in force, back-off included.
    pub rto: Option<Duration>,
    /// Congestion window in bytes.
    pub congestion_window_bytes: u64,
    /// Bytes of application data and bookkeeping this flow holds now.
    pub memory_bytes: u64,
    /// Segments sent and neither acknowledged nor declared lost.
    pub in_flight_segments: u64,
    /// Each path by itself; empty where the machine knows one only and says so above.
    pub paths: Vec<PathStats>,
}

/// Counters and estimates of one path of a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct PathStats {
    /// Its addresses.
    pub path: PathAddress,
    /// Datagrams sent on it.
    pub sent_packets: u64,
    /// Transport bytes sent on it, headers included.
    pub sent_bytes: u64,
    /// Transport bytes received on it, headers included.
    pub received_bytes: u64,
    /// Segments declared lost on it.
    pub lost_packets: u64,
    /// Its smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Times it was silent for too long, and what it carried was repeated elsewhere.
    pub suspicions: u64,
    /// Times it was taken for dead.
    pub down_events: u64,
    /// Times that losses on it cut its window, timeouts apart, where the machine counts them.
    pub window_cuts: u64,
    /// Its congestion window in bytes, where it has one of its own.
    pub congestion_window_bytes: Option<u64>,
    /// Application bytes that arrived on it, where the machine counts them.
    pub arrived_payload_bytes: u64,
    /// Those of them that had arrived before, on whichever path.
    pub repeated_payload_bytes: u64,
    /// What its losses were taken for, where the sender infers that.
    pub causes: Option<LossCauses>,
    /// What its controller takes the path for, where it adapts: the value of `mode` in changes.
    pub mode: Option<&'static str>,
}

/// How many segments that did not arrive in time a sender took for what (ResTP §3.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossCauses {
    /// Lost to a full queue, or to one that is kept short.
    pub congestion: Inferred,
    /// Changed or lost by the wire.
    pub corruption: Inferred,
    /// Sent while the link was down.
    pub outage: Inferred,
    /// Not lost at all. They count above, too, as what they were taken for before.
    pub late: Inferred,
}

/// Segments that were taken for one thing, and how sure that was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inferred {
    /// How many.
    pub segments: u64,
    /// The sum over all of them of how sure each was, in percent.
    pub percents: u64,
}

impl LossCauses {
    /// So many `segments` more are taken for `cause`, each with this probability in percent.
    pub fn add(&mut self, cause: Cause, segments: u64, percent: u64) {
        let inferred = match cause {
            Cause::Congestion => &mut self.congestion,
            Cause::Corruption => &mut self.corruption,
            Cause::Outage => &mut self.outage,
            Cause::Late => &mut self.late,
        };
        inferred.segments += segments;
        inferred.percents += segments * percent;
    }

    /// What was counted since `earlier`.
    pub fn since(&self, earlier: &LossCauses) -> LossCauses {
        LossCauses {
            congestion: self.congestion.since(earlier.congestion),
            corruption: self.corruption.since(earlier.corruption),
            outage: self.outage.since(earlier.outage),
            late: self.late.since(earlier.late),
        }
    }
}

impl Inferred {
    /// How sure it was on average, in percent; none of nothing.
    pub fn confidence(self) -> Option<u64> {
        self.percents.checked_div(self.segments)
    }

    fn since(self, earlier: Inferred) -> Inferred {
        Inferred {
            segments: self.segments.saturating_sub(earlier.segments),
            percents: self.percents.saturating_sub(earlier.percents),
        }
    }

    fn plus(self, later: Inferred) -> Inferred {
        Inferred {
            segments: self.segments + later.segments,
            percents: self.percents + later.percents,
        }
    }
}

impl PathStats {
    /// Nothing is counted.
    pub fn new(path: PathAddress) -> Self {
        PathStats {
            path,
            sent_packets: 0,
            sent_bytes: 0,
            received_bytes: 0,
            lost_packets: 0,
            srtt: None,
            suspicions: 0,
            down_events: 0,
            window_cuts: 0,
            congestion_window_bytes: None,
            arrived_payload_bytes: 0,
            repeated_payload_bytes: 0,
            causes: None,
            mode: None,
        }
    }

    fn add(&mut self, later: &PathStats) {
        self.sent_packets += later.sent_packets;
        self.sent_bytes += later.sent_bytes;
        self.received_bytes += later.received_bytes;
        self.lost_packets += later.lost_packets;
        self.srtt = later.srtt.or(self.srtt);
        self.suspicions += later.suspicions;
        self.down_events += later.down_events;
        self.window_cuts += later.window_cuts;
        self.congestion_window_bytes = later.congestion_window_bytes.or(self.congestion_window_bytes);
        self.arrived_payload_bytes += later.arrived_payload_bytes;
        self.repeated_payload_bytes += later.repeated_payload_bytes;
        self.causes = match (self.causes, later.causes) {
            (Some(known), Some(more)) => Some(LossCauses {
                congestion: known.congestion.plus(more.congestion),
                corruption: known.corruption.plus(more.corruption),
                outage: known.outage.plus(more.outage),
                late: known.late.plus(more.late),
            }),
            (known, more) => more.or(known),
        };
        self.mode = later.mode.or(self.mode);
    }
}

impl FlowStats {
    /// Adds the counters of one path to those of the flow. Estimates are of one path only and are not added.
    pub fn add(&mut self, path: &FlowStats) {
        self.sent_packets += path.sent_packets;
        self.early_segments += path.early_segments;
        self.received_packets += path.received_packets;
        self.sent_bytes += path.sent_bytes;
        self.received_bytes += path.received_bytes;
        self.sent_payload_bytes += path.sent_payload_bytes;
        self.retransmitted_packets += path.retransmitted_packets;
        self.repeated_payload_bytes += path.repeated_payload_bytes;
        self.lost_packets += path.lost_packets;
        self.encoded_packets += path.encoded_packets;
        self.repaired_packets += path.repaired_packets;
        self.timeouts += path.timeouts;
        self.duplicate_packets += path.duplicate_packets;
        self.skipped_segments += path.skipped_segments;
        self.late_packets += path.late_packets;
        self.rejected_packets += path.rejected_packets;
        self.corrupted_packets += path.corrupted_packets;
        self.congestion_window_bytes += path.congestion_window_bytes;
        self.memory_bytes += path.memory_bytes;
        self.in_flight_segments += path.in_flight_segments;
        for path in &path.paths {
            // A pair of addresses that was given up and dialled again is still one path.
            match self.paths.iter_mut().find(|known| known.path == path.path) {
                Some(known) => known.add(path),
                None => self.paths.push(path.clone()),
            }
        }
    }
}

/// What an application can do with the flows of a machine.
pub trait Flow {
    /// Opens a flow to the service `port` of the host at `path.remote`.
    ///
    /// # Errors
    /// When no local port is free or this machine cannot open flows.
    fn open(&mut self, now: Time, path: PathAddress, port: u16) -> Result<FlowId, OpenError>;

    /// Asks the service `port` of the host at `path.remote` for an object with one message, where objects are asked for without a
    /// connection: what it answers is read from the flow.
    ///
    /// # Errors
    /// When no local port is free, the message is too large, or this machine has connections.
    fn request(
        &mut self,
        _now: Time,
        _path: PathAddress,
        _port: u16,
        _message: Bytes,
    ) -> Result<FlowId, OpenError> {
        Err(OpenError::Unsupported(
            "this transport has connections; open one and write the request".into(),
        ))
    }

    /// Gives the flow one more pair of addresses to use; `backup`: only when no other path works. While the flow is being
    /// opened the pairs race, afterwards they join. Where this end has not opened it, MPTCP tells the peer of `path.local`.
    ///
    /// # Errors
    /// When the flow, or this machine, has one path only.
    fn add_path(
        &mut self,
        _now: Time,
        _flow: FlowId,
        path: PathAddress,
        _backup: bool,
    ) -> Result<(), OpenError> {
        Err(OpenError::Unsupported(format!(
            "this transport has one path and cannot use {} as well",
            path.local
        )))
    }

    /// Takes a pair of addresses away from the flow: what it carries goes on over the others.
    ///
    /// # Errors
    /// When the flow does not use the pair, or no other path of it works.
    fn remove_path(&mut self, _now: Time, _flow: FlowId, path: PathAddress) -> Result<(), OpenError> {
        Err(OpenError::Unsupported(format!(
            "this transport has one path and cannot do without {}",
            path.local
        )))
    }

    /// Hands over data to send: one message with fixed framing, bytes of a stream otherwise. All or nothing.
    ///
    /// # Errors
    /// When there is no room, the message is too large, or the flow is closed for writing.
    fn write(&mut self, now: Time, flow: FlowId, data: Bytes) -> Result<(), WriteError>;

    /// The same, on a path of the application's choice. While that path does not answer another carries the data; where a
    /// flow has one path only, that is the path.
    ///
    /// # Errors
    /// As [`write`](Flow::write).
    fn write_on(
        &mut self,
        now: Time,
        flow: FlowId,
        data: Bytes,
        _path: PathAddress,
    ) -> Result<(), WriteError> {
        self.write(now, flow, data)
    }

    /// Takes the next data in order of delivery.
    fn read(&mut self, now: Time, flow: FlowId) -> Read;

    /// No more writes will come: everything written is delivered, then the direction ends. Where a flow carries streams none is
    /// opened any more, and it ends when all are over.
    fn finish(&mut self, now: Time, flow: FlowId);

    /// The streams of a flow that carries some; its own [`write`](Flow::write) and [`read`](Flow::read) carry nothing then. None
    /// where it carries none, or is gone.
    fn streams(&mut self, _now: Time, _flow: FlowId) -> Option<&mut dyn Streams> {
        None
    }

    /// Breaks the flow off at once and tells the peer.
    fn abort(&mut self, now: Time, flow: FlowId);

    /// The application is done with this flow: unread data is dropped, the identifier dies as soon as the
    /// protocol is done with it too.
    fn release(&mut self, now: Time, flow: FlowId);

    /// Counters of one flow, while it exists.
    fn stats(&self, flow: FlowId) -> Option<FlowStats>;

    /// Adds what was found lost since the last call to `into`, for whoever observes; the first call begins the record, and
    /// without one nothing is kept. False where the machine does not tell.
    fn take_losses(&mut self, _flow: FlowId, _into: &mut Vec<Loss>) -> bool {
        false
    }

    /// Changes services of the flow while it runs: keys and values as in a composition, on top of those in force.
    ///
    /// # Errors
    /// When a service stays as it was set up, what is asked for is not valid, or the peer cannot follow. Nothing is changed
    /// then.
    fn reconfigure(
        &mut self,
        _now: Time,
        _flow: FlowId,
        _set: &[(String, String)],
    ) -> Result<Change, ChangeError> {
        Err(ChangeError::Unsupported(
            "this transport has services that stay; use restp".into(),
        ))
    }

    /// Adds how the services of the flow changed since the last call to `into`, as [`take_losses`](Flow::take_losses) does of
    /// losses.
    fn take_changes(&mut self, _now: Time, _flow: FlowId, _into: &mut Vec<Changed>) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    fn of(host: u8, sent_bytes: u64, srtt: Option<u64>) -> FlowStats {
        let at = |host| SocketAddr::from(([10, 0, 0, host], 1));
        let path = PathStats {
            sent_packets: 1,
            sent_bytes,
            srtt: srtt.map(Duration::from_millis),
            down_events: 1,
            ..PathStats::new(PathAddress {
                local: at(host),
                remote: at(9),
            })
        };
        FlowStats {
            sent_bytes,
            paths: vec![path],
            ..FlowStats::default()
        }
    }

    #[test]
    fn a_path_that_was_dialled_again_is_counted_as_one() {
        let mut total = FlowStats::default();
        for stats in [of(1, 100, Some(7)), of(2, 10, None), of(1, 1000, None)] {
            total.add(&stats);
        }
        let paths: Vec<_> = total
            .paths
            .iter()
            .map(|path| (path.sent_bytes, path.down_events))
            .collect();
        assert_eq!((total.sent_bytes, paths), (1110, vec![(1100, 2), (10, 1)]));
        assert_eq!(
            total.paths[0].srtt,
            Some(Duration::from_millis(7)),
            "the last that was known"
        );
    }
}
