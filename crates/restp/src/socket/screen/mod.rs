//! A screen before a socket: while unknown peers send more than the host can answer, it admits only some of their datagrams. The
//! first byte tells a datagram of an unknown peer, and a tag in a request tells who receives at its address
//! (docs/protocol/sealed.md). Peers with a tag and peers without take turns, each kind in a ring of its own: a new peer waits for
//! one turn among all sources, forged ones included, and from then on for one among those that have a tag. Once there was a
//! flood, what is not sealed stays outside, but for what relays say.
//!
//! The screen judges each datagram behind the socket. Where the system takes filters, the kernel applies the same rule before
//! (`program.rs`). Without a flood the screen drops nothing.

#[cfg(any(target_os = "linux", target_os = "android"))]
mod program;
mod ring;
#[cfg(test)]
mod tests;

use crate::rendezvous::wire;
use restp_base::time::Time;
use restp_seal::gate::{Gate, GateKeys};
use restp_seal::packet::{FIRST_OF_A_SESSION, SEALED};
use ring::Ring;
use std::net::SocketAddr;
use std::ops::RangeInclusive;

/// The screen of one socket.
#[derive(Debug)]
pub(crate) struct Screen(Option<Watch>);

#[derive(Debug)]
struct Watch {
    gate: Gate,
    keys: GateKeys,
    tagged: Ring,
    others: Ring,
    /// What begins with one of these is for others, and none of the gate's business.
    passing: Vec<RangeInclusive<u8>>,
    /// The kernel's program does not know them yet.
    is_stale: bool,
    /// There was a flood: what is not sealed is kept out from then on.
    was_needed: bool,
    /// The kernel takes programs.
    delegates: bool,
}

impl Screen {
    /// One that lets all in until it is too much; without a gate whatever comes.
    pub(crate) fn new(gate: Option<Gate>) -> Self {
        Screen(gate.map(|gate| Watch {
            keys: gate.keys(Time::ZERO),
            gate,
            tagged: Ring::new(),
            others: Ring::new(),
            passing: vec![wire::FIRST_BYTES],
            is_stale: false,
            was_needed: false,
            delegates: true,
        }))
    }

    /// What begins with one of `first_bytes` is for machines that see to themselves. So do relays, which a host would lose in a flood.
    pub(crate) fn pass(&mut self, first_bytes: &[RangeInclusive<u8>]) {
        let passing = [&[wire::FIRST_BYTES], first_bytes].concat();
        if let Some(watch) = &mut self.0
            && watch.passing != passing
        {
            watch.passing = passing;
            watch.is_stale = watch.was_needed;
        }
    }

    /// `datagram` came from `source`. Does it come in?
    pub(crate) fn admits(&mut self, datagram: &[u8], source: SocketAddr) -> bool {
        let Some(watch) = &mut self.0 else {
            return true;
        };
        match datagram.first() {
            Some(first) if watch.passing.iter().any(|passing| passing.contains(first)) => true,
            Some(FIRST_OF_A_SESSION..) => true,
            Some(SEALED..) => watch.admits(datagram, source),
            // It is judged like the others until it has been too much once.
            _ => !watch.was_needed && watch.admits(&[], source),
        }
    }

    /// Gives the turn to the next when it is over, and tells the kernel whose it is.
    pub(crate) fn turn(&mut self, now: Time, socket: &tokio::net::UdpSocket) {
        if let Some(watch) = &mut self.0
            && watch.turn(now)
            && watch.delegates
            && let Err(error) = watch.delegate(socket)
        {
            tracing::debug!(%error, "the kernel takes no filter: unknown peers are screened behind the socket only");
            watch.delegates = false;
        }
    }

    /// When to look after it, though nothing comes: a flood may be over.
    pub(crate) fn wakes(&self) -> Option<Time> {
        let watch = self.0.as_ref()?;
        [watch.tagged.ends(), watch.others.ends()]
            .into_iter()
            .flatten()
            .min()
    }
}

impl Watch {
    fn admits(&mut self, datagram: &[u8], source: SocketAddr) -> bool {
        let knock = self.keys.judge(datagram, source);
        let ring = if knock.tagged {
            &mut self.tagged
        } else {
            &mut self.others
        };
        ring.admits(knock.hash)
    }

    /// True when others come in from now on.
    fn turn(&mut self, now: Time) -> bool {
        let turned = [self.tagged.turn(now), self.others.turn(now)];
        let aged = !self.keys.are_of(now);
        if aged {
            self.keys = self.gate.keys(now);
        }
        let is_open = self.tagged.is_open() && self.others.is_open();
        self.was_needed |= !is_open;
        std::mem::take(&mut self.is_stale) || turned.contains(&true) || aged && !is_open
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn delegate(&self, socket: &tokio::net::UdpSocket) -> std::io::Result<()> {
        let steps = program::program(&self.passing, &self.keys, self.tagged.arc(), self.others.arc());
        let filter: Vec<socket2::SockFilter> = steps.into_iter().map(Into::into).collect();
        attach(socket, &filter)
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    fn delegate(&self, _: &tokio::net::UdpSocket) -> std::io::Result<()> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
}

/// Gives the kernel `filter` in the place of the one before. When the kernel refuses, it has none: the one before would admit an old
/// turn for ever, and nobody else.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn attach(socket: &tokio::net::UdpSocket, filter: &[socket2::SockFilter]) -> std::io::Result<()> {
    let socket = socket2::SockRef::from(socket);
    socket.attach_filter(filter).inspect_err(|_| {
        let _ = socket.detach_filter(); // there may be none
    })
}
