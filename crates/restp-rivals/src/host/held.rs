//! What a host holds for a flow: a connection of one path, or one of several. Both are driven by the same calls.

use crate::mptcp::connection::Connection as Several;
use crate::tcp::connection::{Connection, Packet, Verdict};
use bytes::Bytes;
use restp_base::flow::{FlowStats, Read, WriteError};
use restp_base::machine::{Datagram, Wakeup};
use restp_base::observe::Loss;
use restp_base::time::Time;
use restp_services::connection_management::{Cookie, Notice};

/// A connection.
#[derive(Debug)]
pub(super) enum Held {
    Single(Box<Connection>),
    Several(Box<Several>),
}

/// The same call on either.
macro_rules! each {
    ($held:expr, $connection:ident => $call:expr) => {
        match $held {
            Held::Single($connection) => $call,
            Held::Several($connection) => $call,
        }
    };
}

impl Held {
    /// A segment of the subflow `ordinal`; 0 with one path.
    pub(super) fn handle(&mut self, now: Time, ordinal: usize, packet: Packet<'_>) -> Verdict {
        match self {
            Held::Single(connection) => connection.handle(now, packet),
            Held::Several(several) => several.handle(now, ordinal, packet),
        }
    }
    pub(super) fn poll_transmit(&mut self, now: Time, out: &mut Datagram) -> bool {
        each!(self, connection => connection.poll_transmit(now, out))
    }
    pub(super) fn poll_notice(&mut self) -> Option<Notice> {
        each!(self, connection => connection.poll_notice())
    }
    pub(super) fn deadline(&self) -> Option<(Time, Wakeup)> {
        each!(self, connection => connection.deadline())
    }
    pub(super) fn on_deadline(&mut self, now: Time) {
        match self {
            Held::Single(connection) => _ = connection.on_deadline(now),
            Held::Several(several) => several.on_deadline(now),
        }
    }
    pub(super) fn take_losses(&mut self, into: &mut Vec<Loss>) {
        each!(self, connection => connection.take_losses(into));
    }
    pub(super) fn is_half_open(&self) -> bool {
        each!(self, connection => connection.is_half_open())
    }
    pub(super) fn is_closed(&self) -> bool {
        each!(self, connection => connection.is_closed())
    }
    pub(super) fn is_unknown_to_application(&self) -> bool {
        each!(self, connection => connection.is_unknown_to_application())
    }
    pub(super) fn owes_acknowledgement(&self) -> bool {
        each!(self, connection => connection.owes_acknowledgement())
    }
    pub(super) fn write(&mut self, now: Time, data: Bytes) -> Result<(), WriteError> {
        each!(self, connection => connection.write(now, data))
    }
    pub(super) fn read(&mut self) -> Read {
        each!(self, connection => connection.read())
    }
    pub(super) fn finish(&mut self) {
        each!(self, connection => connection.finish());
    }
    pub(super) fn abort(&mut self, now: Time) {
        match self {
            Held::Single(connection) => connection.abort(),
            Held::Several(connection) => connection.abort(now),
        }
    }
    pub(super) fn discard(&mut self, now: Time) {
        match self {
            Held::Single(connection) => connection.discard(now),
            Held::Several(connection) => connection.discard(),
        }
    }
    pub(super) fn stats(&self) -> FlowStats {
        each!(self, connection => connection.stats())
    }

    /// A cookie from the server, once; connections of several paths ask for none.
    pub(super) fn take_cookie(&mut self) -> Option<Cookie> {
        match self {
            Held::Single(connection) => connection.take_cookie(),
            Held::Several(_) => None,
        }
    }
    /// The subflow `ordinal` is over: its ports may be used again.
    pub(super) fn has_ended(&self, ordinal: usize) -> bool {
        match self {
            Held::Single(connection) => connection.is_closed(),
            Held::Several(several) => several.has_ended(ordinal),
        }
    }
    pub(super) fn several(&mut self) -> Option<&mut Several> {
        match self {
            Held::Single(_) => None,
            Held::Several(several) => Some(several),
        }
    }
}
