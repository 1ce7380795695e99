//! A server with a key of its own, at the address of the one that is asked: it hears requests before that one does.

use crate::chaos::ledger::Party;
use crate::chaos::seal::Seal;
use crate::chaos::{Case, seat};
use crate::traffic::PORT;
use bytes::Bytes;
use restp_base::machine::{Datagram, Input, Machine, PathAddress};
use restp_base::time::Time;
use restp_proto::{Acceptance, Endpoint, EndpointConfig};
use restp_seal::Sealed;

pub struct Impostor {
    sealed: Sealed<Endpoint>,
}

impl Impostor {
    pub fn new(case: &Case, seal: &Seal) -> Option<Self> {
        let [_, server] = case.compositions().ok()?;
        let engine = Endpoint::new(EndpointConfig::new(server).listen(PORT, Acceptance::Any));
        let config = seat::configuration(case, seal, Party::Impostor, 1);
        Some(Impostor {
            sealed: Sealed::new(engine, config),
        })
    }

    /// The client sent this along `path`, as the server sees it.
    pub fn on_received(&mut self, now: Time, path: PathAddress, bytes: &[u8]) {
        let mut datagram = Datagram {
            path,
            body: Bytes::copy_from_slice(bytes),
            ..Datagram::empty()
        };
        self.sealed.handle(now, Input::Datagram(&mut datagram));
    }

    pub fn wake(&mut self, now: Time) {
        if self.next().is_some_and(|at| at <= now) {
            self.sealed.handle(now, Input::Deadline);
        }
        while self.sealed.poll_event().is_some() {}
    }

    pub fn next(&self) -> Option<Time> {
        self.sealed.next_deadline().map(|(at, _)| at)
    }

    /// What leaves next, and the path as the client sees it.
    pub fn transmit(&mut self, now: Time) -> Option<(PathAddress, Vec<u8>)> {
        let mut out = Datagram::empty();
        let sends = self.sealed.poll_transmit(now, &mut out);
        sends.then(|| (out.path.reversed(), out.to_vec()))
    }
}
