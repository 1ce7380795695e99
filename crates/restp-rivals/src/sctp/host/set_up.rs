//! INIT and COOKIE ECHO (RFC 9260 §5.1, §5.2): an INIT is answered and forgotten, whatever there is; a cookie that comes back opens an
//! association, or says something to the one that is between the same addresses and ports.

use super::Sctp;
use crate::sctp::STREAMS;
use crate::sctp::association::{Association, Meaning, Offer, SetUp};
use crate::sctp::chunk::{Cause, Chunk, Init};
use crate::sctp::state_cookie::{Refusal, StateCookie};
use crate::sctp::wire::Header;
use restp_base::flow::FlowId;
use restp_base::machine::PathAddress;
use restp_base::time::{Duration, Time};
use restp_services::connection_management::Ports;
use smallvec::{SmallVec, smallvec};
use std::net::{IpAddr, SocketAddr};

impl Sctp {
    /// The association between these addresses and ports, unless it is over, or its peer has named an address that may be another's
    /// (RFC 9260 §5.4).
    pub(super) fn existing(&self, address: PathAddress, ports: Ports) -> Option<FlowId> {
        let flow = *self.by_path.get(&(address, ports))?;
        let slot = self.slots.get(&flow)?;
        slot.association.is_confirmed(address).then_some(flow)
    }

    /// INIT, with a tag of 0 in the header.
    pub(super) fn on_init(&mut self, now: Time, address: PathAddress, ports: Ports, init: &Init) {
        let existing = self.met(address, ports, init);
        let is_known = existing.is_some() || self.config.listen == Some(ports.local);
        if let Some(cause) = init.refusal() {
            return self.refuse(address, ports, init.tag, Some(cause));
        }
        let set_up = match existing.and_then(|flow| self.slots.get_mut(&flow)) {
            Some(slot) => slot.association.on_init(address, init),
            None if is_known => SetUp::Offer(Offer::default()),
            None => return self.refuse(address, ports, init.tag, None),
        };
        match set_up {
            SetUp::Offer(offer) => {
                let answer = self.promise(now, address, ports, init, offer);
                self.answer(address, ports, init.tag, Chunk::InitAck(answer));
            }
            SetUp::NewAddresses(new) => {
                let cause = Cause::new_addresses(&new);
                self.refuse(address, ports, init.tag, Some(cause));
            }
            SetUp::Shutdown => existing.into_iter().for_each(|flow| self.touch(flow)),
        }
    }

    /// The association that an INIT meets: between the addresses that it came by, or between ours and one that it names (RFC 9260 §5.2.2).
    fn met(&self, address: PathAddress, ports: Ports, init: &Init) -> Option<FlowId> {
        let named = init.addresses.iter().map(|ip| at(address, *ip));
        let mut addresses = std::iter::once(address).chain(named);
        addresses.find_map(|address| self.existing(address, ports))
    }

    /// ABORT to whoever chose `tag`.
    fn refuse(&mut self, address: PathAddress, ports: Ports, tag: u32, cause: Option<Cause>) {
        self.dropped += 1;
        let abort = Chunk::Abort {
            reflects_tag: false,
            causes: cause.into_iter().collect(),
        };
        self.answer(address, ports, tag, abort);
    }

    /// INIT ACK: all that is to be known comes back in the cookie.
    fn promise(&mut self, now: Time, address: PathAddress, ports: Ports, init: &Init, offer: Offer) -> Init {
        let (local_tag, local_tsn) = offer
            .identity
            .unwrap_or_else(|| (self.fresh_tag(), self.first_tsn()));
        let mut addresses: SmallVec<[_; 2]> = smallvec![address.remote.ip()];
        let further = init.addresses.iter().copied();
        addresses.extend(further.filter(|further| *further != address.remote.ip()));
        let cookie = StateCookie {
            made_at: now,
            local_tag,
            peer_tag: init.tag,
            local_tsn,
            peer_tsn: init.first_tsn,
            peer_window: init.window,
            ports,
            streams: init.streams_in,
            streams_in: STREAMS.min(init.streams_out) as u8,
            tie_tags: offer.tie_tags,
            addresses,
        };
        let window = self.parameters.receive_buffer_bytes;
        Init {
            tag: local_tag,
            window: u32::try_from(window).unwrap_or(u32::MAX),
            streams_out: STREAMS.min(init.streams_in),
            streams_in: STREAMS,
            first_tsn: local_tsn,
            addresses: self.named_addresses(address, offer.addresses),
            cookie: Some(cookie.seal(&self.mint)),
            reported: init.unrecognized.clone(),
            ..Init::default()
        }
    }

    /// What INIT ACK names beside the address that it leaves from: those of an association that there is, or this host's.
    fn named_addresses(&self, address: PathAddress, offered: SmallVec<[IpAddr; 2]>) -> SmallVec<[IpAddr; 2]> {
        if !offered.is_empty() {
            return offered;
        }
        let own = self.config.addresses.iter().copied();
        own.filter(|own| *own != address.local.ip()).collect()
    }

    /// COOKIE ECHO: the peer receives at its address (RFC 9260 §5.1.5, §5.2.4). `rest` is what stands behind it.
    pub(super) fn on_cookie(
        &mut self,
        now: Time,
        address: PathAddress,
        header: Header,
        sealed: &[u8],
        rest: SmallVec<[Chunk; 2]>,
    ) {
        let Some((cookie, late)) = self.open_cookie(now, address, header, sealed) else {
            self.dropped += 1; // the peer will try again, or give up
            return;
        };
        let existing = self.of_cookie(address, &cookie);
        let meaning = existing
            .and_then(|flow| self.slots.get(&flow))
            .map(|slot| slot.association.meaning_of(&cookie));
        if let Some(late) = late
            && meaning != Some(Meaning::Same)
        {
            self.dropped += 1;
            let late_us = u32::try_from(late.as_micros()).unwrap_or(u32::MAX);
            let error = Chunk::Error(smallvec![Cause::stale_cookie(late_us)]);
            return self.answer(address, cookie.ports, cookie.peer_tag, error);
        }
        match (meaning, existing) {
            (Some(Meaning::Collision | Meaning::Same), Some(flow)) => {
                self.confirm(now, address, flow, &cookie, rest);
            }
            (Some(Meaning::RestartInShutdown), Some(flow)) => {
                let error = Chunk::Error(smallvec![Cause::cookie_in_shutdown()]);
                self.answer(address, cookie.ports, cookie.peer_tag, error);
                self.with(flow, Association::retransmit_shutdown);
            }
            (Some(Meaning::Nothing), _) => self.dropped += 1,
            (_, before) => self.accept(now, address, &cookie, rest, before),
        }
    }

    /// The cookie in a packet that it was made for, and how long ago it expired.
    fn open_cookie(
        &self,
        now: Time,
        address: PathAddress,
        header: Header,
        sealed: &[u8],
    ) -> Option<(StateCookie, Option<Duration>)> {
        let (cookie, late) = match StateCookie::open(&self.mint, now, sealed) {
            Ok(cookie) => (cookie, None),
            Err(Refusal::Stale(cookie, late)) => (cookie, Some(late)),
            Err(Refusal::Forged) => return None,
        };
        let is_of_packet = cookie.local_tag == header.tag
            && cookie.ports.local == header.destination_port
            && cookie.ports.remote == header.source_port
            && cookie.addresses.contains(&address.remote.ip());
        is_of_packet.then_some((cookie, late))
    }

    /// The association that a cookie speaks of: the one of its tag, or else the one that there was when it was made, or there is now. Its
    /// peer may bring it from any of its addresses.
    fn of_cookie(&self, address: PathAddress, cookie: &StateCookie) -> Option<FlowId> {
        let is_it = |flow: &FlowId| {
            let slot = self.slots.get(flow);
            slot.is_some_and(|slot| !slot.association.is_over())
        };
        let of_tag = |tag: u32| self.by_tag.get(&tag).copied().filter(is_it);
        let tied = || cookie.tie_tags.and_then(|tags| of_tag(tags.local));
        let standing = || self.existing(address, cookie.ports);
        of_tag(cookie.local_tag).or_else(tied).or_else(standing)
    }

    /// The cookie is that of the association `flow`.
    fn confirm(
        &mut self,
        now: Time,
        address: PathAddress,
        flow: FlowId,
        cookie: &StateCookie,
        rest: SmallVec<[Chunk; 2]>,
    ) {
        if let Some(slot) = self.slots.get_mut(&flow) {
            let index = slot.association.path_of(now, address).unwrap_or(0);
            slot.association.on_cookie(now, index, cookie);
            slot.association.handle(now, index, rest, 0);
        }
        self.register(flow);
        self.touch(flow);
    }

    /// A new association, in the place of the one `before`, of which its peer knows nothing any more.
    fn accept(
        &mut self,
        now: Time,
        address: PathAddress,
        cookie: &StateCookie,
        rest: SmallVec<[Chunk; 2]>,
        before: Option<FlowId>,
    ) {
        if self.slots.len() >= self.config.max_associations {
            self.dropped += 1;
            return;
        }
        if let Some(before) = before {
            self.with(before, Association::on_restart);
        }
        if self.config.listen != Some(cookie.ports.local) {
            return self.refuse(address, cookie.ports, cookie.peer_tag, None); // it was ours that had opened
        }
        let (parameters, chance) = (self.parameters.clone(), self.fork());
        // RFC 9260 §5.4: only where INIT ACK went the peer has shown that it receives, wherever its cookie comes from.
        let first = cookie.addresses.first();
        let confirmed = first.map_or(address, |ip| at(address, *ip));
        let association = Association::accept(now, parameters, confirmed, cookie, chance);
        let flow = self.insert(association);
        self.confirm(now, address, flow, cookie, rest);
    }
}

/// The same path with another host at its far end.
fn at(path: PathAddress, remote: IpAddr) -> PathAddress {
    PathAddress {
        remote: SocketAddr::new(remote, path.remote.port()),
        ..path
    }
}
