//! What travels from here to the peer, over whatever paths: the data not yet sent, those not yet acknowledged, which path
//! carries them, and what the peer takes.
//!
//! | File | What |
//! |---|---|
//! | `placing` | which path takes the next data |
//! | `reinjection` | data of a path that went silent or is late are given to others |
//! | `ending` | a shut window is probed, the head is sent again, the data end |
//! | `affinity` | what belongs on a path that the application chose |

mod affinity;
mod ending;
mod placing;
mod reinjection;

use super::{Path, Paths};
use crate::flow_control::SendWindow;
use crate::framing::{Boundaries, Framing, SendBuffer, SendQueue, Streams};
use crate::path_management::PathMode;
use crate::reliability::TransmitBuffer;
use crate::scheduling::{Copy, PathAssignment, PathAssignments, Scheduler, Scheduling};
pub(super) use affinity::PathAffinity;
use bytes::Bytes;
use ending::Deadlines;
use reinjection::Doubt;
use restp_base::flow::{FlowStats, WriteError};
use restp_base::machine::PathAddress;
use restp_base::time::{Duration, Time};
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// Writes that may wait to be numbered, whatever their size.
const MAX_FRAMES: usize = 16_384;

/// What the numbers of a connection count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbering {
    /// Segments (ResTP §3.1.13).
    Segments,
    /// Bytes (RFC 8684 §3.3).
    Bytes,
}

/// When data leave on another path as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reinjection {
    /// When a path's timer ran out, once on each path, as Linux does it.
    OnTimeout,
    /// As soon as a faster path would bring them earlier (Raiciu and others, NSDI 2012 §4.2; OP-54, OP-55).
    Early,
}

/// What a protocol or a composition decides about the sending side.
#[derive(Clone, Debug)]
pub struct DataSenderParameters {
    /// What the connection's numbers count.
    pub numbering: Numbering,
    /// Number of the first data.
    pub first: u64,
    /// What the peer takes before it has said so.
    pub window: u64,
    /// How writes become segments.
    pub framing: Framing,
    /// Payload bytes of a full segment, where no path says otherwise.
    pub segment_bytes: u32,
    /// Room for what is written.
    pub send_buffer: SendBuffer,
    /// How paths are used.
    pub paths: PathMode,
    /// How one is chosen, with spreading.
    pub scheduling: Option<Scheduling>,
    /// When data leave on another path as well.
    pub reinjection: Reinjection,
    /// How long a peer that answers and takes nothing is borne (OP-50); none: as long as it answers.
    pub stall_timeout: Option<Duration>,
}

/// The sending side of a connection over several paths.
#[derive(Debug)]
pub struct DataSender {
    parameters: DataSenderParameters,
    scheduler: Scheduler,
    queue: SendQueue,
    /// The lowest segment that the peer has not acknowledged, and the next new one.
    first: u64,
    next: u64,
    /// Where they lie among the bytes, if the connection numbers these.
    boundaries: Option<Boundaries>,
    buffer: TransmitBuffer,
    /// Which path carries each of them.
    assignments: PathAssignments,
    affinity: PathAffinity,
    window: SendWindow,
    /// The window was shut at the last look although data waits, and how often it came to that.
    stalled: bool,
    stalls: u64,
    /// To be placed before anything new: they went to a path that is now silent, or a slower path took later ones.
    again: BTreeSet<u64>,
    /// The first of them leaves at once.
    urgent: bool,
    doubt: Option<Doubt>,
    deadlines: Deadlines,
    /// Segments given to another path after a timeout, and their bytes.
    reinjected: (u64, u64),
}

impl DataSender {
    /// From now on paths are chosen by `scheduling`, and writes wait where so many bytes do.
    pub fn schedule_by(&mut self, scheduling: Option<Scheduling>, send_buffer: SendBuffer) {
        if scheduling != self.parameters.scheduling {
            self.scheduler = Scheduler::new(self.parameters.paths, scheduling.as_ref());
        }
        self.parameters.scheduling = scheduling;
        self.parameters.send_buffer = send_buffer;
    }

    /// Nothing is written yet.
    pub fn new(parameters: DataSenderParameters) -> Self {
        let first = parameters.first;
        let by_bytes = parameters.numbering == Numbering::Bytes;
        DataSender {
            scheduler: Scheduler::new(parameters.paths, parameters.scheduling.as_ref()),
            queue: SendQueue::new(parameters.framing),
            first,
            next: first,
            boundaries: by_bytes.then(|| Boundaries::new(first, first)),
            buffer: TransmitBuffer::new(first),
            assignments: PathAssignments::new(first),
            affinity: PathAffinity::default(),
            window: SendWindow::initial(first, parameters.window),
            stalled: false,
            stalls: 0,
            again: BTreeSet::new(),
            urgent: false,
            doubt: None,
            deadlines: Deadlines::default(),
            reinjected: (0, 0),
            parameters,
        }
    }

    /// Takes data to send, on `path` if the application chose one; so many paths are `up`.
    pub(super) fn write(
        &mut self,
        data: Bytes,
        path: Option<PathAddress>,
        up: usize,
    ) -> Result<(), WriteError> {
        let limit = self.parameters.segment_bytes as usize;
        if !self.queue.fits(&data, limit) {
            return Err(WriteError::TooLarge {
                size: data.len(),
                limit,
            });
        }
        if data.is_empty() {
            return Err(WriteError::Empty);
        }
        let buffer = self.parameters.send_buffer.over(up);
        if buffer.is_full(self.queue.bytes(), self.buffer.bytes()) || self.queue.frames() >= MAX_FRAMES {
            self.queue.refuse();
            return Err(WriteError::Blocked);
        }
        if let Some(path) = path {
            self.affinity.add(self.queue.bytes(), data.len(), path);
        }
        self.queue.push(data);
        Ok(())
    }

    /// True once when a writer was refused and there is room again.
    pub(super) fn takes_writes_again(&mut self, up: usize) -> bool {
        let buffer = self.parameters.send_buffer.over(up);
        let has_room = buffer.has_room_again(self.queue.bytes(), self.buffer.bytes());
        self.queue.takes_writes_again(has_room)
    }

    /// The streams, where there are any.
    pub fn streams(&self) -> Option<&Streams> {
        self.queue.streams()
    }
    /// The same, to be written and read.
    pub fn streams_mut(&mut self) -> Option<&mut Streams> {
        self.queue.streams_mut()
    }

    /// Moves out what is written and not numbered, and the paths that the application chose for it.
    pub(super) fn take_queue(&mut self) -> (SendQueue, PathAffinity) {
        let queue = SendQueue::new(self.parameters.framing);
        let queue = std::mem::replace(&mut self.queue, queue);
        (queue, std::mem::take(&mut self.affinity))
    }

    /// The first path has settled what the peer takes from the first number on.
    pub fn set_window(&mut self, window: u64) {
        let first = self
            .boundaries
            .as_ref()
            .map_or(self.first, Boundaries::first_byte);
        self.window = SendWindow::initial(first, window);
    }

    /// The peer has everything below `number`, and takes `window` from there on; false: that was never sent.
    pub(super) fn on_data_ack(&mut self, number: u64, window: Option<u64>) -> bool {
        if number > self.next_data() {
            return false;
        }
        if let Some(window) = window {
            self.window.extend(number, window);
        }
        let first = self.segment_at(number);
        if first > self.first {
            self.first = first;
            self.buffer.release_below(first);
            self.assignments.release_below(first);
            if let Some(boundaries) = &mut self.boundaries {
                boundaries.release_below(first);
            }
            self.again = self.again.split_off(&first);
            // More than before the silence, so it speaks of what was placed again.
            self.doubt = self.doubt.filter(|doubt| first <= doubt.head());
            self.deadlines.on_progress();
        }
        true
    }

    /// Data may leave before the peer has said what it takes.
    pub(super) fn sends_early(&self) -> bool {
        self.parameters.window > 0
    }

    /// Nothing more will be sent.
    pub(super) fn stop(&mut self) {
        self.queue.clear();
        self.buffer.clear();
        self.again.clear();
        (self.assignments, self.affinity) = (PathAssignments::new(self.next), PathAffinity::default());
        self.deadlines = Deadlines::default();
    }

    /// Bytes of memory that it keeps.
    pub(super) fn memory(&self) -> usize {
        let boundaries = self.boundaries.as_ref().map_or(0, Boundaries::memory);
        self.queue.memory() + self.buffer.bytes() + self.assignments.memory() + boundaries
    }

    /// Adds what it counted.
    pub(super) fn count(&self, total: &mut FlowStats) {
        total.retransmitted_packets += self.reinjected.0;
        total.retransmitted_payload_bytes += self.reinjected.1;
    }

    /// The lowest number of the connection that the peer has not acknowledged.
    pub fn first_data(&self) -> u64 {
        self.boundaries
            .as_ref()
            .map_or(self.first, Boundaries::first_byte)
    }

    /// The next new one.
    fn next_data(&self) -> u64 {
        self.boundaries.as_ref().map_or(self.next, Boundaries::next_byte)
    }

    /// Number of the connection that the outstanding `segment` begins with.
    fn data_of(&self, segment: u64) -> Option<u64> {
        match &self.boundaries {
            None => Some(segment),
            Some(boundaries) => boundaries.start_of(segment),
        }
    }

    /// The segment that begins with `number` of the connection or has it inside.
    fn segment_at(&self, number: u64) -> u64 {
        match &self.boundaries {
            None => number,
            Some(boundaries) => boundaries.ended_by(number),
        }
    }

    /// Numbers the next segment: `payload`, or the end.
    fn number_next(&mut self, payload: Option<Bytes>) {
        if let Some(boundaries) = &mut self.boundaries {
            boundaries.push(payload.as_ref().map_or(1, |payload| payload.len() as u64));
        }
        self.buffer.push(payload);
        self.next += 1;
    }

    /// Takes at most `most` bytes from the queue and numbers them.
    fn take_next(&mut self, most: usize) -> Bytes {
        let payload = self.queue.next_segment(most).unwrap_or_default();
        self.affinity.take(payload.len());
        self.number_next(Some(payload.clone()));
        payload
    }

    /// Gives a segment to every path of `chosen`; `settled`: no other retransmits it while they answer.
    fn give<P: Path>(
        &mut self,
        now: Time,
        segment: u64,
        payload: &Bytes,
        chosen: &[usize],
        settled: bool,
        paths: &mut Paths<P>,
    ) {
        let Some(number) = self.data_of(segment) else {
            return;
        };
        if let Some(doubt) = &mut self.doubt {
            doubt.pass();
        }
        let copies = chosen.iter().map(|path| Copy {
            path: *path,
            number: paths[*path].assign(now, number, payload.clone()),
        });
        let copies: SmallVec<[Copy; 2]> = copies.collect();
        if self.assignments.is_given(segment) {
            for copy in copies {
                self.assignments.add_copy(segment, now, copy);
            }
            return;
        }
        let assignment = PathAssignment {
            copies,
            at: now,
            settled,
        };
        self.assignments.record(segment, assignment);
    }
}
