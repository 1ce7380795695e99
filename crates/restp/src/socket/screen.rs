//! A screen before a socket: while strangers send more than can be answered, the kernel lets only some of it in. What is
//! dropped there neither takes the place of established peers' packets in the socket's buffer nor the processor from them.
//!
//! Strangers are told by the first byte (docs/protocol/sealed.md), and which of their datagrams come in is chance (a
//! classic BPF program, Linux `Documentation/networking/filter.rst`): a newcomer repeats a request that was dropped, as any
//! that was lost. Where the system knows no such programs everything comes in, as it does while there is no flood.

use restp_base::time::{Duration, Time};

/// How often the share of strangers that comes in is set, unless they are too many before.
const INTERVAL: Duration = Duration::from_millis(100);

/// The shortest time that a rate is taken from.
const SHORTEST: Duration = Duration::from_millis(1);

/// Datagrams of strangers that come in each interval, 10 000 a second: a tenth of a processor for what each costs (about
/// 7 µs with its answer), and far above what arrives where nobody means harm.
const ADMITTED: u64 = 1_000;

/// All of them.
const ALL: u32 = 1 << 16;
/// Of ten million a second these are what may come in.
const LEAST: u32 = ALL / 1_000;

/// The screen of one socket.
#[derive(Debug)]
pub(crate) struct Screen {
    /// First bytes below it are those of strangers; none: everybody is let in.
    below: Option<u8>,
    /// How many of [`ALL`] come in.
    share: u32,
    /// Strangers' datagrams that came in during this interval.
    seen: u64,
    since: Time,
}

impl Screen {
    /// One that lets all in. `below`: datagrams whose first byte is smaller are strangers'.
    pub(crate) fn new(below: Option<u8>) -> Self {
        Screen {
            below,
            share: ALL,
            seen: 0,
            since: Time::ZERO,
        }
    }

    /// A datagram came in.
    pub(crate) fn see(&mut self, datagram: &[u8]) {
        let strange = self.below.zip(datagram.first());
        self.seen += u64::from(strange.is_some_and(|(below, first)| *first < below));
    }

    /// Sets the share anew when the interval is over, or as soon as more came in than all of it may bring.
    pub(crate) fn turn(&mut self, now: Time, socket: &tokio::net::UdpSocket) {
        let Some(below) = self.below else {
            return;
        };
        let passed = now.since(self.since).max(SHORTEST);
        if passed < INTERVAL && self.seen <= ADMITTED {
            return;
        }
        let each_interval = self.seen * INTERVAL.as_nanos() / passed.as_nanos();
        let share = next(self.share, each_interval);
        (self.seen, self.since) = (0, now);
        if share == self.share {
            return;
        }
        match set(socket, below, share) {
            Ok(()) => self.share = share,
            Err(error) => {
                tracing::debug!(%error, "strangers cannot be screened here");
                self.below = None;
            }
        }
    }

    /// When to look after it, though nothing comes: a flood may be over.
    pub(crate) fn wakes(&self) -> Option<Time> {
        (self.share < ALL).then_some(self.since + INTERVAL)
    }
}

/// The share after an interval in which `seen` came in under `share`. It closes at once and opens by and by: what was in the
/// buffer before comes in as well, and a flood that pauses is met by what is left.
fn next(share: u32, seen: u64) -> u32 {
    let fitting = u64::from(share) * ADMITTED / seen.max(1);
    let most = (share * 2).min(ALL);
    u32::try_from(fitting).unwrap_or(most).clamp(LEAST, most)
}

/// Lets in `share` of the datagrams whose first byte is below `below`, and all others.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn set(socket: &tokio::net::UdpSocket, below: u8, share: u32) -> std::io::Result<()> {
    use socket2::{SockFilter, SockRef};
    // Of linux/filter.h. The program sees a datagram from its UDP header on.
    const LOAD_BYTE: u16 = 0x30;
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_NOT_LESS: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const UDP_HEADER: u32 = 8;
    const CHANCE: u32 = 0xFFFF_F000 + 56;
    const WHOLE: u32 = u32::MAX;
    let socket = SockRef::from(socket);
    if share >= ALL {
        return socket.detach_filter();
    }
    socket.attach_filter(&[
        SockFilter::new(LOAD_BYTE, 0, 0, UDP_HEADER),
        SockFilter::new(JUMP_IF_NOT_LESS, 2, 0, below.into()),
        SockFilter::new(LOAD_WORD, 0, 0, CHANCE),
        SockFilter::new(JUMP_IF_NOT_LESS, 1, 0, share << 16),
        SockFilter::new(RETURN, 0, 0, WHOLE),
        SockFilter::new(RETURN, 0, 0, 0),
    ])
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn set(_: &tokio::net::UdpSocket, _: u8, _: u32) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shares under a flood of so many datagrams an interval, as far as chance is fair.
    fn under(flood: &[u64]) -> Vec<u32> {
        let mut share = ALL;
        let mut step = |arriving: &u64| {
            share = next(share, arriving * u64::from(share) / u64::from(ALL));
            share
        };
        flood.iter().map(&mut step).collect()
    }

    #[test]
    fn a_flood_is_thinned_to_what_is_admitted_and_the_end_of_it_opens_the_screen() {
        assert_eq!(under(&[0, 10, 999, 1_000]), [ALL; 4]);
        let flood = under(&[10_000; 5]);
        assert_eq!(flood[0], ALL / 10, "after one interval");
        let comes_in = 10_000 * u64::from(flood[4]) / u64::from(ALL);
        assert!((950..=1_050).contains(&comes_in), "{comes_in}");
        assert_eq!(under(&[10_000_000; 3]), [LEAST; 3], "some always come in");
        let mut flood = vec![10_000; 5];
        flood.extend([0; 4]);
        assert_eq!(under(&flood)[8], ALL);
    }

    #[test]
    fn strangers_are_counted_and_nobody_else() {
        let mut screen = Screen::new(Some(0xC0));
        for first in [0x00, 0x80, 0x85, 0xC0, 0xE3] {
            screen.see(&[first, 0]);
        }
        screen.see(&[]);
        assert_eq!(screen.seen, 3);
        let mut open = Screen::new(None);
        open.see(&[0]);
        assert_eq!((open.seen, open.wakes()), (0, None));
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn the_kernel_drops_strangers_and_lets_in_established_peers() {
        let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let peer = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = socket.local_addr().unwrap();
        let mut buffer = [0; 9];
        set(&socket, 0xC0, 0).unwrap();
        for first in [0x00, 0x81, 0xC0, 0x85, 0xE0] {
            peer.send_to(&[first; 9], to).unwrap();
        }
        for first in [0xC0, 0xE0] {
            assert_eq!(socket.recv(&mut buffer).await.unwrap(), 9, "whole");
            assert_eq!(buffer[0], first);
        }
        set(&socket, 0xC0, ALL).unwrap();
        peer.send_to(&[0x81], to).unwrap();
        assert_eq!(socket.recv(&mut buffer).await.unwrap(), 1, "the screen is gone");
    }
}
