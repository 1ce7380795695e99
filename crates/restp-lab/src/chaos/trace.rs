//! What a run leaves behind: every packet and every act of an application, in order. Laws read this and nothing else.

use super::Side;
use super::conversations::Owner;
use bytes::Bytes;
use restp_base::flow::CloseReason;
use restp_base::machine::Datagram;
use restp_base::time::{Duration, Time};

/// One run.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// In the order in which it happened.
    pub records: Vec<Record>,
    /// Every end of every conversation.
    pub ends: Vec<End>,
    /// How it was over.
    pub ending: Ending,
    /// Ends that a machine still knows after everything was closed and released.
    pub remembered: Vec<usize>,
    /// Flows that each machine holds then, with those that no application was told of.
    pub held: [usize; 2],
    /// Times a deadline woke a machine.
    pub wakeups: u64,
    /// Packets still on their way.
    pub in_flight: u64,
}

/// One application's end of one conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Whose.
    pub side: Side,
    /// Which: conversations count from 0 in the order opened.
    pub conversation: usize,
    /// A late packet began the conversation once more; the application broke it off at once.
    pub again: bool,
}

/// How a run was over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// Nothing was left to happen.
    #[default]
    Quiet,
    /// Something was, and its time was up.
    TimeUp,
    /// Time did not go on any more.
    Stuck,
    /// More happened than so little data explains.
    Storm,
}

/// One thing that happened.
#[derive(Clone, Debug)]
pub struct Record {
    /// When, by the clock of the world.
    pub at: Time,
    /// What.
    pub what: What,
}

/// What happened. Packets are numbered in the order sent, copies included.
#[derive(Clone, Debug)]
pub enum What {
    /// A machine sent a packet.
    Sent {
        /// Its number.
        packet: u64,
        /// Whose.
        from: Side,
        /// The path it takes, from 0.
        path: usize,
        /// Conversation and connection it belongs to.
        owner: Option<Owner>,
        /// Its contents.
        datagram: Datagram,
    },
    /// The network made a copy.
    Copied {
        /// Its number.
        packet: u64,
        /// Of which.
        of: u64,
    },
    /// The network flipped a bit of it.
    Flipped {
        /// Its number.
        packet: u64,
    },
    /// The network lost it.
    Dropped {
        /// Its number.
        packet: u64,
    },
    /// A machine received it.
    Delivered {
        /// Its number.
        packet: u64,
        /// Whose machine.
        to: Side,
        /// The path on which it came, from 0.
        path: usize,
        /// Its contents.
        datagram: Datagram,
    },
    /// A machine was replaced by a fresh one.
    Restarted {
        /// Whose.
        side: Side,
    },
    /// A clock leapt forwards.
    Jumped {
        /// Whose.
        side: Side,
        /// By how much.
        by: Duration,
    },
    /// A flow could not be opened, or a machine accepted one that nobody had asked for.
    Unexpected {
        /// Where.
        side: Side,
        /// What it said.
        what: String,
    },
    /// A flow was opened, or accepted.
    Began {
        /// The end.
        end: usize,
    },
    /// The machine took data to send.
    Wrote {
        /// The end.
        end: usize,
        /// The data.
        data: Bytes,
    },
    /// The machine handed data up.
    Read {
        /// The end.
        end: usize,
        /// The data.
        data: Bytes,
    },
    /// The machine said that no more data comes.
    ReadEnd {
        /// The end.
        end: usize,
    },
    /// The application said that it writes no more.
    Finished {
        /// The end.
        end: usize,
    },
    /// The application broke off.
    Aborted {
        /// The end.
        end: usize,
    },
    /// The machine said that the flow is over.
    Closed {
        /// The end.
        end: usize,
        /// Why.
        reason: CloseReason,
    },
    /// The machine holds more for this flow than ever before.
    Holds {
        /// The end.
        end: usize,
        /// How much.
        bytes: u64,
    },
}

impl Trace {
    /// Adds what happened.
    pub fn add(&mut self, at: Time, what: What) {
        self.records.push(Record { at, what });
    }

    /// Adds an end and says which number it has.
    pub fn begin(&mut self, at: Time, end: End) -> usize {
        self.ends.push(end);
        let number = self.ends.len() - 1;
        self.add(at, What::Began { end: number });
        number
    }

    /// The end whose data `end` reads: the client's, or the first of the server's.
    pub fn counterpart(&self, end: usize) -> Option<usize> {
        let End {
            side, conversation, ..
        } = self.ends[end];
        self.ends
            .iter()
            .position(|other| other.conversation == conversation && other.side != side)
    }

    /// What `end` wrote.
    pub fn written(&self, end: usize) -> impl Iterator<Item = &Bytes> {
        self.records.iter().filter_map(move |record| match &record.what {
            What::Wrote { end: of, data } if *of == end => Some(data),
            _ => None,
        })
    }

    /// What `end` read.
    pub fn read(&self, end: usize) -> impl Iterator<Item = &Bytes> {
        self.records.iter().filter_map(move |record| match &record.what {
            What::Read { end: of, data } if *of == end => Some(data),
            _ => None,
        })
    }

    /// Why `end` was over.
    pub fn closed(&self, end: usize) -> Option<&CloseReason> {
        self.records.iter().find_map(|record| match &record.what {
            What::Closed { end: of, reason } if *of == end => Some(reason),
            _ => None,
        })
    }

    /// Did the machine of this end start again after it began, perhaps before everything was read?
    pub fn forgot(&self, end: usize) -> bool {
        let began = |record: &Record| matches!(record.what, What::Began { end: of } if of == end);
        let again =
            |record: &Record| matches!(record.what, What::Restarted { side } if side == self.ends[end].side);
        self.records.iter().skip_while(|record| !began(record)).any(again)
    }

    /// Did a machine restart while this conversation was open at either end?
    pub fn broken(&self, conversation: usize) -> bool {
        let mut open = 0;
        let of = |end: &usize| self.ends[*end].conversation == conversation;
        for record in &self.records {
            match &record.what {
                What::Began { end } if of(end) => open += 1,
                What::Closed { end, .. } if of(end) => open -= 1,
                What::Restarted { .. } if open > 0 => return true,
                _ => {}
            }
        }
        false
    }
}
