//! Datagrams of an attacker at a steady rate, from addresses of 127.0.0.0/8: what `bench/flood.py` lets loose on a receiver. It
//! says each second how many it sent, until it is killed.
//! usage: flood TARGET PER_SECOND plain|ik|ix|junk|tagged|forged SOURCES [CONNECTION-ID]
//! SOURCES: so many with a socket each; 0: another address on each envelope. `tagged` shows the proof that each source was given,
//! `forged` are packets with a connection id that somebody has seen.

#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program of its own that keeps a rate"
)]

use quinn_udp::{Transmit, UdpSocketState};
use restp::clock::Clock;
use restp_base::random::Stream;
use std::error::Error;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

/// Bytes of a request: as long as a genuine one.
const BYTES: usize = 200;
/// Of a forged packet: the shorter, the cheaper it is for its sender.
const FORGED_BYTES: usize = 32;
/// What a receiver that wants a proof says, and where the proof is in it and in a request.
const RETRY: u8 = 0x83;
const PROOF: (std::ops::Range<usize>, std::ops::Range<usize>) = (9..25, 9..25);

/// What is sent.
enum Kind {
    /// Requests, or what is none, that begin with this byte.
    Request(u8),
    Junk,
    /// Requests for a key of nobody, with the proof of each source.
    Tagged(Vec<[u8; 16]>),
    /// Packets of a session.
    Forged([u8; 8]),
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [target, rate, kind, count, rest @ ..] = words.as_slice() else {
        return Err("usage: flood TARGET PER_SECOND plain|ik|ix|junk|tagged|forged SOURCES [ID]".into());
    };
    let (target, rate, count): (SocketAddr, f64, u32) = (target.parse()?, rate.parse()?, count.parse()?);
    let sources = (0..count.max(1))
        .map(|number| Source::new(number, count > 0))
        .collect::<Result<Vec<_>, _>>()?;
    let kind = match kind.as_str() {
        "plain" => Kind::Request(0x00),
        "ik" => Kind::Request(0x80),
        "ix" => Kind::Request(0x81),
        "junk" => Kind::Junk,
        "tagged" => Kind::Tagged(
            sources
                .iter()
                .map(|source| source.learn(target))
                .collect::<Result<_, _>>()?,
        ),
        "forged" => {
            let id = rest.first().ok_or("forged packets of which session?")?;
            Kind::Forged(u64::from_str_radix(id, 16)?.to_be_bytes())
        }
        other => return Err(format!("{other:?} is no kind of flood").into()),
    };
    let mut dice = Stream::named(1, "flood");
    let (clock, mut sent, mut told) = (Clock::start(), 0_u64, 1_u64);
    loop {
        let now = clock.now().as_secs_f64();
        if now >= told as f64 {
            println!("{{\"per_second\": {:.0}}}", sent as f64 / now);
            told += 1;
        }
        if sent >= (now * rate) as u64 {
            std::thread::sleep(Duration::from_micros(500));
            continue;
        }
        let place = dice.below(sources.len() as u64) as usize;
        // What does not fit into the kernel's buffer is lost, as elsewhere.
        let _ = sources[place].send(target, &kind.datagram(place, &mut dice), &mut dice);
        sent += 1;
    }
}

impl Kind {
    fn datagram(&self, source: usize, dice: &mut Stream) -> Vec<u8> {
        let length = if matches!(self, Kind::Forged(_)) {
            FORGED_BYTES
        } else {
            BYTES
        };
        let mut bytes = vec![0; length];
        for word in bytes.chunks_mut(8) {
            word.copy_from_slice(&dice.bits().to_le_bytes()[..word.len()]);
        }
        match self {
            Kind::Junk => {}
            Kind::Request(first) => {
                bytes[0] = *first;
                bytes[PROOF.1].fill(0);
            }
            Kind::Tagged(proofs) => {
                bytes[0] = 0x80;
                bytes[PROOF.1].copy_from_slice(&proofs[source]);
            }
            Kind::Forged(id) => {
                // Of any path, and of the present keys or the next ones: what makes a receiver compute most.
                bytes[0] = 0xC0 | bytes[0] & 0x0F;
                bytes[1..9].copy_from_slice(id);
                bytes[9..12].fill(0);
                bytes[12] &= 0x1F;
            }
        }
        bytes
    }
}

/// Where datagrams come from.
struct Source {
    socket: UdpSocket,
    state: UdpSocketState,
    /// It has one address.
    bound: bool,
}

impl Source {
    fn new(number: u32, bound: bool) -> io::Result<Self> {
        // Spread over the whole network, and none of it 127.0.0.1.
        let address = if bound {
            Ipv4Addr::from(0x7F01_0000 + number * 30_011)
        } else {
            Ipv4Addr::UNSPECIFIED
        };
        let socket = UdpSocket::bind((address, 0))?;
        let state = UdpSocketState::new((&socket).into())?;
        Ok(Source { socket, state, bound })
    }

    fn send(&self, target: SocketAddr, bytes: &[u8], dice: &mut Stream) -> io::Result<()> {
        let invented = Ipv4Addr::from(0x7F01_0000 + dice.below(0xFE_0000) as u32);
        let transmit = Transmit {
            destination: target,
            ecn: None,
            contents: bytes,
            segment_size: None,
            src_ip: (!self.bound).then(|| invented.into()),
        };
        self.state.try_send((&self.socket).into(), &transmit)
    }

    /// The proof that a receiver gives who asks from here.
    fn learn(&self, target: SocketAddr) -> Result<[u8; 16], Box<dyn Error>> {
        self.socket.set_nonblocking(false)?;
        self.socket.set_read_timeout(Some(Duration::from_millis(200)))?;
        let mut request = [7; BYTES];
        request[0] = 0x80;
        request[PROOF.1].fill(0);
        for _ in 0..20 {
            self.socket.send_to(&request, target)?;
            let mut answer = [0; 100];
            if self.socket.recv(&mut answer).is_ok_and(|_| answer[0] == RETRY) {
                self.socket.set_nonblocking(true)?;
                return Ok(answer[PROOF.0].try_into()?);
            }
        }
        Err("no proof was given".into())
    }
}
