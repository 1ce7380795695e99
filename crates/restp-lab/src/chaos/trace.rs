//! What a run leaves behind: every packet and every act of an application, in order. Laws read this and nothing else.

use super::Side;
use super::conversations::Owner;
use super::ledger::Party;
use bytes::Bytes;
use restp_base::flow::CloseReason;
use restp_base::machine::Datagram;
use restp_base::time::{Duration, Time};
use restp_seal::packet::{ConnectionId, DataHeader, Packet};
use std::net::SocketAddr;

/// One run.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// In the order in which it happened.
    pub records: Vec<Record>,
    /// Every end of every conversation.
    pub ends: Vec<End>,
    /// How it was over.
    pub ending: Ending,
    /// Ends that their applications broke off after all the time that there is.
    pub let_go: Vec<usize>,
    /// Ends that a machine still knows after everything was closed and released.
    pub remembered: Vec<usize>,
    /// Flows that each machine holds then, with those that no application was told of.
    pub held: [usize; 2],
    /// Times a deadline woke a machine.
    pub wakeups: u64,
    /// Packets still on their way.
    pub in_flight: u64,
    /// Under the seal: what the network did with sealed datagrams. `records` has the PDUs in them then, sent by one engine and
    /// handed to the other.
    pub wire: Option<Vec<Record>>,
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
    /// An application asked for other services.
    Asked {
        /// Whose.
        end: usize,
        /// Which.
        set: String,
        /// What the machine made of it.
        answer: String,
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
    /// A seal handed up a PDU that the engine at the other end had not sent.
    Strange {
        /// To whom.
        to: Side,
        /// Who had said it, if anybody.
        party: Option<Party>,
        /// It asks for a flow or for a path, and may come with a first message that proves nothing.
        request: bool,
    },
    /// A seal handed up a PDU that came as early data.
    Early {
        /// Its number.
        packet: u64,
    },
    /// A seal told whose key the other end of a flow has.
    Told {
        /// The end.
        end: usize,
        /// Whose.
        party: Party,
    },
    /// A PDU ended a flow.
    EndedBy {
        /// The end.
        end: usize,
        /// Who had said it, if anybody.
        party: Option<Party>,
    },
    /// The server read what came in a flow that no client of the case had opened.
    Guest {
        /// Whose key is told as that of the other end.
        told: Option<Party>,
        /// The data.
        data: Bytes,
    },
    /// A sealed datagram came, whoever sent it.
    Came {
        /// To whom.
        to: Side,
        /// The address on its envelope.
        from: SocketAddr,
        /// Its size.
        bytes: usize,
        /// Who made it, if it is a request, or a packet of a session, as it was made.
        sealed: Option<Party>,
        /// It is a request with the proof that was asked for at this address.
        proof: bool,
        /// What it shows of a session.
        mark: Option<Mark>,
    },
    /// A sealed datagram left.
    Went {
        /// Whose.
        from: Side,
        /// Where to.
        to: SocketAddr,
        /// Its size.
        bytes: usize,
        /// Who gets what is sent there, if it may carry keys.
        reaches: Option<Party>,
        /// What it shows of a session.
        mark: Option<Mark>,
    },
    /// What a seal did in one life of its machine.
    Worked(Work),
}

/// What anybody sees of the session that a sealed datagram is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// It asks for one under this name.
    Request(ConnectionId),
    /// It gives the keys of one to who asked under this name.
    Answer(ConnectionId),
    /// It is a packet of one, or of early data.
    Packet(DataHeader),
    /// It tells the key of the host that says it.
    Key,
}

impl Mark {
    /// That of these bytes.
    pub fn of(sealed: &[u8]) -> Option<Mark> {
        match Packet::parse(sealed)? {
            Packet::Hello(hello) => Some(Mark::Request(hello.from)),
            Packet::Answer { to, .. } => Some(Mark::Answer(to)),
            Packet::Data(header) => Some(Mark::Packet(header)),
            Packet::Foreign { .. } => Some(Mark::Key),
            _ => None,
        }
    }
}

/// What a seal did in one life of its machine, and what it held at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// How long it lived.
    pub life: Duration,
    /// Requests that came.
    pub requests: u64,
    /// Packets that came.
    pub packets: u64,
    /// Handshakes that were computed.
    pub computed: u64,
    /// Of these, for addresses that proved nothing.
    pub unproved: u64,
    /// Packets that were decrypted, in vain or not.
    pub tried: u64,
    /// Times that its peer came to say that it has forgotten a session.
    pub resets: u64,
    /// Times that this was believed.
    pub forgotten: u64,
    /// Unfinished handshakes, at most.
    pub half_open: usize,
    /// Sessions, at most.
    pub sessions: usize,
}

impl Trace {
    /// Adds what happened.
    pub fn add(&mut self, at: Time, what: What) {
        self.records.push(Record { at, what });
    }

    /// Adds what happened to a packet on the wire.
    pub fn add_packet(&mut self, at: Time, what: What) {
        match &mut self.wire {
            Some(wire) => wire.push(Record { at, what }),
            None => self.add(at, what),
        }
    }

    /// What the network did, packet by packet.
    pub fn packets(&self) -> &[Record] {
        self.wire.as_deref().unwrap_or(&self.records)
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

    /// Has the other end of `end` ended before the record `before`? Then nobody is there to whom anything is done.
    pub fn is_left_alone(&self, end: usize, before: usize) -> bool {
        let peer = self.counterpart(end);
        let ends = |record: &Record| matches!(record.what, What::Closed { end, .. } if Some(end) == peer);
        self.records[..before].iter().any(ends)
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
