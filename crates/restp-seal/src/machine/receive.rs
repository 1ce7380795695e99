//! From the network to the machine: packets are opened, everything else is part of a handshake. It all comes from anybody:
//! what is not genuine is a counter, and nothing is kept for an address in proportion to what it says.

use super::Sealed;
use crate::packet::{self, DATA_HEADER, DataHeader, Packet};
use crate::protection::Refusal;
use crate::schedule::TAG_BYTES;
use crate::validation::Control;
use restp_base::machine::{Datagram, Machine};
use restp_base::time::Time;

impl<M: Machine> Sealed<M> {
    pub(super) fn on_datagram(&mut self, now: Time, datagram: &mut Datagram) {
        if !datagram.head.is_empty() {
            datagram.body = datagram.to_vec().into();
            datagram.head.clear();
        }
        // Most are packets, genuine or not; a clone would cost each of them a counter.
        if let Some(Packet::Data(header)) = Packet::parse(&datagram.body) {
            return self.on_data(now, &header, datagram);
        }
        let bytes = datagram.body.clone();
        if bytes.first().is_none_or(|first| first & packet::SEALED == 0) {
            self.stats.plain += 1;
            return;
        }
        match Packet::parse(&bytes) {
            Some(Packet::Hello(hello)) => self.on_hello(now, datagram.path, bytes.len(), &hello),
            Some(Packet::Answer { to, rest }) => self.on_answer(now, datagram, to, rest),
            Some(Packet::Retry { to, .. } | Packet::Foreign { to, .. } | Packet::Stale { to })
                if !self.peers.handshakes.is_asked(&to, datagram.path.remote) =>
            {
                self.stats.unknown += 1;
            }
            Some(Packet::Retry { to, token }) => self.on_retry(now, to, token),
            Some(Packet::Foreign { to, key }) => self.on_foreign(to, key),
            Some(Packet::Stale { to }) => self.on_stale(to),
            Some(Packet::Reset { of, token }) => self.on_reset(now, datagram.path, &of, &token),
            Some(Packet::Data(_)) | None => self.stats.malformed += 1,
        }
    }

    pub(super) fn on_data(&mut self, now: Time, header: &DataHeader, datagram: &mut Datagram) {
        let id = self.peers.receiver(header, datagram.path.remote);
        let session = id.and_then(|id| Some((id, self.peers.opening(&id)?)));
        let Some((id, (session, room))) = session else {
            let overtakes = !header.early && self.peers.handshakes.keep(&header.to, datagram);
            if !overtakes {
                self.stats.unknown += 1;
                // Early data says what its client is called, or anything: perhaps a session that goes on.
                if !header.early {
                    self.say_unknown(now, datagram.path, &header.to);
                }
            }
            return;
        };
        let (peer, length) = (session.peer(), datagram.body.len());
        let (finishes, unwelcome) = (!header.early && !session.is_finished(), session.is_unwelcome());
        let sealed = &datagram.body[DATA_HEADER..];
        let mut opened = self.arena.place(sealed.len() - TAG_BYTES);
        let from = (datagram.path.remote, length);
        match session.open(now, header, sealed, from, (&mut opened, room)) {
            Ok(()) => {}
            Err(Refusal::Forged) => {
                self.stats.forged += 1;
                return;
            }
            Err(Refusal::Replayed) => {
                self.stats.replayed += 1;
                return;
            }
            Err(Refusal::Crowded) => {
                self.stats.overflowed += 1;
                return;
            }
        }
        // A client that is not on the list has shown that it is who it said.
        if unwelcome {
            return self.peers.remove(&id);
        }
        datagram.body = opened.freeze();
        if let Some(control) = Control::parse(&datagram.body) {
            return self.on_control(now, id, datagram.path, control);
        }
        if header.early {
            if self.peers.credit(peer, datagram.path.remote, length) {
                self.stats.opened += 1;
                return self.hand_over(now, &id, datagram);
            }
            self.stats.misplaced += 1;
            return;
        }
        let is_pdu = datagram.body.len() >= Control::BYTES;
        let placed = is_pdu && self.place(now, id, peer, header.space, datagram);
        let remote = datagram.path.remote;
        if placed && !(self.peers).on_received(now, peer, remote, length, true) {
            self.stats.misplaced += 1;
            return;
        }
        let certain = if finishes {
            self.peers.finish(now, &id, remote)
        } else {
            self.peers.believe(peer, remote)
        };
        self.accept_certain(certain);
        self.stats.opened += 1;
        if placed {
            self.hand_over(now, &id, datagram);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Clients, SealConfig, SecretKey};
    use restp_base::flow::Flow;
    use restp_base::machine::{Event, Input, PathAddress};
    use restp_proto::wire::bare_request;
    use restp_proto::{Acceptance, Composition, Endpoint, EndpointConfig};

    fn host(of: u8, clients: Clients) -> Sealed<Endpoint> {
        let composition = Composition::default().check().expect("valid");
        let engine = Endpoint::new(EndpointConfig::new(composition).listen(7, Acceptance::Any));
        let seal = SealConfig::new(SecretKey::from_chance([of; 32]), [of; 32], bare_request);
        Sealed::new(engine, SealConfig { clients, ..seal })
    }

    fn path() -> PathAddress {
        PathAddress {
            local: ([10, 0, 0, 1], 1).into(),
            remote: ([10, 0, 0, 2], 1).into(),
        }
    }

    /// What `from` has to send goes to `to`.
    fn carry(from: &mut Sealed<Endpoint>, to: &mut Sealed<Endpoint>) {
        let mut out = Datagram::empty();
        while from.poll_transmit(Time::ZERO, &mut out) {
            out.path = out.path.reversed();
            to.handle(Time::ZERO, Input::Datagram(&mut out));
        }
    }

    /// Is the client accepted, which goes on whatever it is told? It `leaves` the list behind the answer: that could be all
    /// that tells it from one that never was there.
    fn is_accepted(leaves: bool) -> bool {
        let mut client = host(1, Clients::All);
        let mut server = host(2, Clients::Only([client.public_key()].into()));
        client.open(Time::ZERO, path(), 7).expect("a port");
        for turn in 0..3 {
            carry(&mut client, &mut server);
            if turn == 0 && leaves {
                server.peers.take_from_list();
            }
            carry(&mut server, &mut client);
        }
        assert_eq!((server.sessions(), server.half_open()), (usize::from(!leaves), 0));
        let mut events = std::iter::from_fn(|| server.poll_event());
        events.any(|event| matches!(event, Event::Accepted(_)))
    }

    #[test]
    fn who_is_not_on_the_list_gets_in_with_no_packet() {
        assert!(is_accepted(false));
        assert!(!is_accepted(true));
    }

    /// Each of them found room for ever, and kept the address.
    #[test]
    fn nothing_stays_of_who_asks_with_a_key_that_leads_to_no_secret() {
        const ONE_TIME_KEY: usize = 1 + 8 + 16; // behind kind, name and token
        let mut client = host(1, Clients::All);
        client.open(Time::ZERO, path(), 7).expect("a port");
        let mut request = Datagram::empty();
        assert!(client.poll_transmit(Time::ZERO, &mut request));
        for clients in [Clients::All, Clients::Only([client.public_key()].into())] {
            let mut server = host(2, clients);
            for number in 0..10 {
                let mut bytes = request.to_vec();
                bytes[ONE_TIME_KEY..ONE_TIME_KEY + 32].fill(0);
                bytes[ONE_TIME_KEY + 32] ^= number;
                let mut asked = Datagram {
                    path: path().reversed(),
                    body: bytes.into(),
                    ..Datagram::empty()
                };
                server.handle(Time::ZERO, Input::Datagram(&mut asked));
                assert_eq!((server.peers.count(), server.half_open()), (0, 0));
            }
            assert_eq!(server.seal_stats().forged, 10);
            assert!(!server.poll_transmit(Time::ZERO, &mut Datagram::empty()));
        }
    }

    /// Each of three challenges was longer than all that came.
    #[test]
    fn what_is_shorter_than_a_challenge_is_answered_by_none() {
        for (length, answers) in [(0, false), (Control::BYTES - 1, false), (Control::BYTES, true)] {
            let (mut client, mut server) = (host(1, Clients::All), host(2, Clients::All));
            client.open(Time::ZERO, path(), 7).expect("a port");
            for _ in 0..3 {
                carry(&mut client, &mut server);
                carry(&mut server, &mut client);
            }
            let peer = client.peers.server_at(path().remote, None).expect("a peer");
            let session = client.peers.session_of(peer).expect("a session");
            let plain = Datagram {
                path: path(),
                body: vec![7; length].into(),
                ..Datagram::empty()
            };
            let mut sealed = Datagram::empty();
            assert!(session.seal(Time::ZERO, &plain, &mut sealed).is_ok());
            sealed.path = path().reversed();
            sealed.path.remote = ([10, 0, 0, 9], 1).into();
            server.handle(Time::ZERO, Input::Datagram(&mut sealed));
            let answered = server.poll_transmit(Time::ZERO, &mut Datagram::empty());
            assert_eq!(answered, answers, "{length}");
        }
    }
}
