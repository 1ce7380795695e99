//! What is put on record of a seal: the PDUs that pass it, the datagrams that come to it, and what it does for them.

use super::Side;
use super::application::Application;
use super::ledger::{Party, Saying};
use super::tap::Note;
use super::trace::{Mark, Trace, What, Work};
use super::wire::Wire;
use bytes::Bytes;
use restp_base::flow::FlowId;
use restp_base::machine::{Datagram, Head};
use restp_base::time::Time;
use restp_proto::wire::bare_request;
use restp_seal::SealStats;
use restp_seal::packet::Packet;
use std::collections::BTreeMap;

/// Watches the seal of one side.
#[derive(Default)]
pub struct Watch {
    /// Who had said the PDU that was handed up last.
    last: Option<Saying>,
    /// How flows of this machine began that were not opened here.
    began: BTreeMap<FlowId, Began>,
    told: BTreeMap<usize, Party>,
    work: Work,
    since: Time,
}

/// How a flow began.
#[derive(Clone, Copy, Debug)]
pub enum Began {
    /// With a PDU of this conversation.
    Conversation(usize),
    /// With a PDU of somebody else.
    Guest,
}

impl Watch {
    /// A datagram comes; true when it is early data.
    pub fn on_arrival(
        &mut self,
        now: Time,
        side: Side,
        datagram: &Datagram,
        wire: &Wire<'_>,
        trace: &mut Trace,
    ) -> bool {
        let Some(ledger) = wire.sealed() else {
            return false;
        };
        let bytes = datagram.to_vec();
        let (remote, mut proof) = (datagram.path.remote, false);
        let maker = ledger.maker(&bytes);
        let packet = match Packet::parse(&bytes) {
            Some(Packet::Data(header)) => Some(header),
            Some(Packet::Hello(hello)) => {
                self.work.requests += 1;
                proof = ledger.is_proof(remote, hello.token);
                None
            }
            Some(Packet::Reset { .. }) => {
                self.work.resets += u64::from(maker == Some(Party::Side(side.other())));
                None
            }
            _ => None,
        };
        // Behind an answer there may be another.
        let answers = bytes.first().is_some_and(|first| *first == 0x82);
        self.work.packets += u64::from(packet.is_some() || answers);
        let mark = Mark::of(&bytes);
        let sealed = maker.filter(|_| match mark {
            Some(Mark::Packet(header)) => !header.early,
            Some(Mark::Request(_)) => true,
            _ => false,
        });
        let came = What::Came {
            to: side,
            from: remote,
            bytes: bytes.len(),
            sealed,
            proof,
            mark,
        };
        trace.add(now, came);
        packet.is_some_and(|header| header.early)
    }

    /// What passed between the engine and the seal.
    #[expect(clippy::too_many_arguments, reason = "one note, and all that it may touch")]
    pub fn take(
        &mut self,
        now: Time,
        side: Side,
        note: Note,
        early: bool,
        application: &Application<'_>,
        wire: &mut Wire<'_>,
        trace: &mut Trace,
    ) {
        match note {
            Note::Sent(datagram) => wire.say(now, side, &datagram, trace),
            Note::Received(datagram) => self.on_received(now, side, &datagram, early, wire, trace),
            Note::Accepted(flow) => {
                let conversation = (self.last).and_then(|saying| wire.owner_of(saying.packet?));
                let began =
                    conversation.map_or(Began::Guest, |owner| Began::Conversation(owner.conversation));
                self.began.insert(flow, began);
            }
            Note::Closed(flow) => {
                if let Some(end) = application.end(flow) {
                    let party = self.last.map(|saying| saying.party);
                    trace.add(now, What::EndedBy { end, party });
                }
            }
        }
    }

    fn on_received(
        &mut self,
        now: Time,
        side: Side,
        datagram: &Datagram,
        early: bool,
        wire: &mut Wire<'_>,
        trace: &mut Trace,
    ) {
        let pdu = Bytes::from(datagram.to_vec());
        self.last = wire.on_received(side, datagram.path, &pdu);
        let genuine = (self.last).filter(|saying| saying.party == Party::Side(side.other()));
        match genuine.and_then(|saying| saying.packet) {
            Some(packet) => {
                let delivered = What::Delivered {
                    packet,
                    to: side,
                    path: 0,
                    datagram: Datagram {
                        body: pdu,
                        head: Head::new(),
                        ..datagram.clone()
                    },
                };
                trace.add(now, delivered);
                if early {
                    trace.add(now, What::Early { packet });
                }
            }
            None => {
                let party = self.last.map(|saying| saying.party);
                let request = bare_request(datagram).is_some();
                let strange = What::Strange {
                    to: side,
                    party,
                    request,
                };
                trace.add(now, strange);
            }
        }
    }

    /// How `flow` began, where there is a seal.
    pub fn began(&self, flow: FlowId) -> Option<Began> {
        self.began.get(&flow).copied()
    }

    /// Is it new that the other end of `end` is `party`?
    pub fn is_news(&mut self, end: usize, party: Party) -> bool {
        self.told.insert(end, party) != Some(party)
    }

    /// What the seal holds now.
    pub fn weigh(&mut self, work: Option<(usize, usize, SealStats)>) {
        if let Some((half_open, sessions, _)) = work {
            self.work.half_open = self.work.half_open.max(half_open);
            self.work.sessions = self.work.sessions.max(sessions);
        }
    }

    /// What the seal did in the life of its machine, which is over.
    pub fn finish(&mut self, now: Time, stats: &SealStats) -> Work {
        let work = Work {
            life: now.since(self.since),
            computed: stats.computed,
            unproved: stats.computed_unproved,
            tried: stats.opened + stats.forged + stats.replayed,
            forgotten: stats.resets,
            ..self.work
        };
        *self = Watch {
            since: now,
            ..Watch::default()
        };
        work
    }
}
