//! What an endpoint holds for one flow: a connection on one path, or an association over several; and the streams it may carry.

mod streams;

use crate::association::{Association, Dial};
use crate::composition::{Strength, ValidComposition};
use crate::connection::{Connection, Packet, Ports};
use crate::wire::Header;
use bytes::Bytes;
use restp_base::flow::{Change, ChangeError, FlowStats, Read, WriteError};
use restp_base::machine::{Datagram, PathAddress, Wakeup};
use restp_base::observe::{Changed, Loss};
use restp_base::time::Time;
use restp_services::connection_management::{Cookie, Notice};
use restp_services::framing::Streams;
use std::net::SocketAddr;
use std::sync::Arc;

/// One flow.
#[expect(
    clippy::large_enum_variant,
    reason = "it lives in a box of its own, and the larger one is the common one"
)]
#[derive(Debug)]
pub(super) enum Session {
    One(Connection),
    Several(Association),
}

macro_rules! each {
    ($self:ident, $inner:ident => $call:expr) => {
        match $self {
            Session::One($inner) => $call,
            Session::Several($inner) => $call,
        }
    };
}

impl Session {
    /// Takes a packet of the path `ordinal`. An association whose peer declines further paths becomes a connection.
    pub(super) fn handle(&mut self, now: Time, ordinal: usize, packet: Packet<'_>) {
        self.take_packet(now, ordinal, packet);
        self.feed_streams(now);
    }
    fn take_packet(&mut self, now: Time, ordinal: usize, packet: Packet<'_>) {
        match self {
            Session::One(connection) => {
                connection.handle(now, packet);
            }
            Session::Several(association) => {
                association.handle(now, ordinal, packet);
                if let Some(single) = association.take_single() {
                    *self = Session::One(single);
                }
            }
        }
    }
    pub(super) fn poll_transmit(&mut self, now: Time, out: &mut Datagram) -> bool {
        let sent = each!(self, inner => inner.poll_transmit(now, out));
        sent || self.end_streams() && each!(self, inner => inner.poll_transmit(now, out))
    }
    pub(super) fn has_notices(&self) -> bool {
        each!(self, inner => inner.has_notices() || inner.streams().is_some_and(Streams::has_events))
    }
    pub(super) fn poll_notice(&mut self) -> Option<Notice> {
        if self.carries_streams() {
            self.poll_notice_of_streams()
        } else {
            self.poll_own_notice()
        }
    }
    fn poll_own_notice(&mut self) -> Option<Notice> {
        each!(self, inner => inner.poll_notice())
    }
    pub(super) fn deadline(&self) -> Option<(Time, Wakeup)> {
        each!(self, inner => inner.deadline())
    }
    pub(super) fn on_deadline(&mut self, now: Time) {
        each!(self, inner => inner.on_deadline(now));
        self.feed_streams(now);
    }
    /// Lets the peer of a flow with one path hear from it; those with several ask by themselves.
    pub(super) fn acknowledge_now(&mut self) {
        if let Session::One(connection) = self {
            connection.acknowledge_now();
        }
    }

    pub(super) fn on_path_notice(&mut self, now: Time, local: SocketAddr, up: bool) {
        match self {
            Session::One(connection) => connection.on_path_notice(now, up),
            Session::Several(association) => association.on_path_notice(now, local, up),
        }
    }

    pub(super) fn write(&mut self, now: Time, data: Bytes) -> Result<(), WriteError> {
        if self.carries_streams() {
            return Err(WriteError::Streams);
        }
        match self {
            Session::One(connection) => connection.write(now, data),
            Session::Several(association) => association.write(now, data, None),
        }
    }
    pub(super) fn write_on(&mut self, now: Time, data: Bytes, path: PathAddress) -> Result<(), WriteError> {
        if self.carries_streams() {
            return Err(WriteError::Streams);
        }
        match self {
            Session::One(connection) => connection.write(now, data), // it has no other
            Session::Several(association) => association.write(now, data, Some(path)),
        }
    }
    pub(super) fn read(&mut self) -> Read {
        match self.streams() {
            None => self.read_own(),
            Some(streams) if streams.has_ended() => Read::End,
            Some(_) => Read::Empty,
        }
    }
    fn read_own(&mut self) -> Read {
        each!(self, inner => inner.read())
    }
    pub(super) fn finish(&mut self, now: Time) {
        match self.streams_at(now) {
            Some(streams) => streams.finish_all(),
            None => self.finish_own(),
        }
    }
    fn finish_own(&mut self) {
        each!(self, inner => inner.finish());
    }
    pub(super) fn abort(&mut self, now: Time) {
        self.abort_own(now);
        self.feed_streams(now);
    }
    fn abort_own(&mut self, now: Time) {
        each!(self, inner => inner.abort(now));
    }
    pub(super) fn discard(&mut self, now: Time) {
        match self.streams_at(now) {
            Some(streams) => streams.discard(),
            None => each!(self, inner => inner.discard()),
        }
    }

    /// One more pair of addresses to use; false where there can be one path only.
    pub(super) fn add_line(&mut self, now: Time, address: PathAddress, backup: bool) -> bool {
        match self {
            Session::One(_) => false,
            Session::Several(association) => {
                association.add_line(now, address, backup);
                true
            }
        }
    }
    /// A pair of addresses not to be used any more: false where nothing works without it, none where it is no path.
    pub(super) fn remove_line(&mut self, now: Time, address: PathAddress) -> Option<bool> {
        self.association()
            .map_or(Some(false), |association| association.remove_line(now, address))
    }
    /// A path to be dialled now.
    pub(super) fn poll_dial(&mut self, now: Time) -> Option<Dial> {
        match self {
            Session::One(_) => None,
            Session::Several(association) => association.poll_dial(now),
        }
    }
    /// A path that has ended, whose ports may be forgotten.
    pub(super) fn poll_vacated(&mut self) -> Option<(usize, PathAddress, Ports)> {
        match self {
            Session::One(_) => None,
            Session::Several(association) => association.poll_vacated(),
        }
    }
    pub(super) fn association(&mut self) -> Option<&mut Association> {
        match self {
            Session::One(_) => None,
            Session::Several(association) => Some(association),
        }
    }
    /// Asks the connection on the path `ordinal`.
    pub(super) fn on_path<R>(&mut self, ordinal: usize, ask: impl FnOnce(&mut Connection) -> R) -> Option<R> {
        match self {
            Session::One(connection) => Some(ask(connection)),
            Session::Several(association) => association.on_member(ordinal, ask),
        }
    }

    pub(super) fn composition(&self) -> &Arc<ValidComposition> {
        each!(self, inner => inner.composition())
    }
    /// What it will have once all that is asked for has come.
    pub(super) fn outlook(&self) -> &Arc<ValidComposition> {
        match self {
            Session::One(connection) => connection.outlook(),
            Session::Several(association) => association.composition(),
        }
    }
    pub(super) fn stats(&self) -> FlowStats {
        each!(self, inner => inner.stats())
    }
    pub(super) fn take_losses(&mut self, into: &mut Vec<Loss>) {
        each!(self, inner => inner.take_losses(into));
    }
    /// Goes on with the services of `to`, of which the application has asked for those whose keys it `names`.
    pub(super) fn reconfigure(
        &mut self,
        now: Time,
        to: ValidComposition,
        names: impl Fn(&str) -> bool,
    ) -> Result<Change, ChangeError> {
        let asked = Strength::of(&to);
        let change = each!(self, inner => inner.reconfigure(now, to))?;
        if let Session::One(connection) = self {
            let relied_on = connection.relied_on();
            connection.rely_on(relied_on.asked(asked, names("ordering"), names("reliability")));
        }
        Ok(change)
    }
    pub(super) fn take_changes(&mut self, now: Time, into: &mut Vec<Changed>) {
        each!(self, inner => inner.take_changes(now, into));
    }
    pub(super) fn wants_turn(&self) -> bool {
        each!(self, inner => inner.wants_turn())
    }
    pub(super) fn is_closed(&self) -> bool {
        each!(self, inner => inner.is_closed())
    }
    pub(super) fn is_unknown(&self) -> bool {
        each!(self, inner => inner.is_unknown())
    }
    pub(super) fn is_half_open(&self) -> bool {
        each!(self, inner => inner.is_half_open())
    }
    /// Its set-up is not complete, and it takes data all the same.
    pub(super) fn takes_early_data(&self) -> bool {
        each!(self, inner => inner.takes_early_data())
    }
    /// Its path waits to be confirmed, and another host than `peer` has asked for it. Such a path is lent nothing.
    pub(super) fn is_asked_for_by_another(&self, ordinal: usize, peer: u128) -> bool {
        match self {
            Session::One(connection) => connection.is_asked_for_by_another(peer),
            Session::Several(association) => association
                .path(ordinal)
                .is_some_and(|path| path.is_asked_for_by_another(peer)),
        }
    }
    /// The packet is of an earlier connection that the peer still holds at the ports of this path.
    pub(super) fn finds_half_open(&mut self, ordinal: usize, header: &Header) -> bool {
        self.on_path(ordinal, |path| path.finds_half_open(header))
            .unwrap_or(false)
    }
    /// The cookie its peer has given for the next time.
    pub(super) fn take_cookie(&mut self, ordinal: usize) -> Option<Cookie> {
        self.on_path(ordinal, Connection::take_cookie)?
    }
    pub(super) fn is_on(&self, local: SocketAddr) -> bool {
        each!(self, inner => inner.is_on(local))
    }
}
