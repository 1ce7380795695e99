//! `tcp:smoltcp`: the TCP of smoltcp 0.14. It speaks IP; the simulator's network stands below IP, so headers of 20 bytes
//! are put on and taken off here.
//!
//! Its rules that a comparison meets: growth by acknowledgements, one second as the least timeout, three duplicates, Reno
//! without RFC 6582 (the first new acknowledgement ends recovery), received blocks are reported and not used, its timer
//! sends everything again from the first gap, an initial window of 2048 bytes.

use crate::adapter::{News, Sent, Stack, one_path};
use bytes::Bytes;
use restp_base::flow::{CloseReason, FlowStats, OpenError, Read};
use restp_base::machine::{Datagram, Ecn, Head, PathAddress};
use restp_base::time::Time;
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{self, ChecksumCapabilities, Device, DeviceCapabilities, Medium};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer, State};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{HardwareAddress, IpCidr, IpProtocol, Ipv4Packet, Ipv4Repr, TcpPacket, TcpSeqNumber};
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};

/// Bytes of each of its two buffers: twice the largest path that our own receiver serves is beyond its scaled window.
const BUFFER_BYTES: usize = 4 << 20;
/// Headers of IP and TCP without options.
const HEADER_BYTES: usize = 40;
const IP_HEADER_BYTES: usize = 20;
/// The port of both ends; each host has an address of its own.
const PORT: u16 = 9;

/// What can be set of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SmoltcpParameters {
    /// Default CUBIC, as it ships.
    pub(crate) congestion: CongestionControl,
    /// Payload bytes of a full segment. Default 1400, as ours.
    pub(crate) segment_bytes: usize,
    /// Default 10 ms, as it ships.
    pub(crate) ack_delay: restp_base::time::Duration,
}

impl Default for SmoltcpParameters {
    fn default() -> Self {
        SmoltcpParameters {
            congestion: CongestionControl::Cubic,
            segment_bytes: 1400,
            ack_delay: restp_base::time::Duration::from_millis(10),
        }
    }
}

/// One host with one socket.
pub(crate) struct Smoltcp {
    wire: Wire,
    interface: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
    path: Option<PathAddress>,
    /// One past the highest byte sent, to tell a retransmission.
    sent_to: Option<TcpSeqNumber>,
    /// Our direction was ended; the peer's reset before that is one.
    finished: bool,
    told: Told,
}

/// What the adapter was told last.
#[derive(Debug, Default)]
struct Told {
    established: bool,
    ended: bool,
    closed: bool,
}

impl Smoltcp {
    /// A host that opens, or one that `listens`.
    pub(crate) fn new(parameters: SmoltcpParameters, listens: bool) -> Self {
        let mut wire = Wire {
            mtu: parameters.segment_bytes + HEADER_BYTES,
            arrived: VecDeque::new(),
            leaving: VecDeque::new(),
        };
        let config = Config::new(HardwareAddress::Ip);
        let interface = Interface::new(config, &mut wire, Instant::ZERO);
        let buffer = || SocketBuffer::new(vec![0; BUFFER_BYTES]);
        let mut socket = Socket::new(buffer(), buffer());
        socket.set_congestion_control(parameters.congestion);
        socket.set_nagle_enabled(false);
        let delay = Duration::from_micros(parameters.ack_delay.as_micros());
        socket.set_ack_delay((delay != Duration::ZERO).then_some(delay));
        if listens {
            // A closed socket and a port above zero: it cannot refuse.
            let _ = socket.listen(PORT);
        }
        let mut sockets = SocketSet::new(vec![]);
        Smoltcp {
            socket: sockets.add(socket),
            wire,
            interface,
            sockets,
            path: None,
            sent_to: None,
            finished: false,
            told: Told::default(),
        }
    }

    fn socket(&self) -> &Socket<'static> {
        self.sockets.get(self.socket)
    }
    fn socket_mut(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut(self.socket)
    }

    /// The host's own address is known once its path is.
    fn live_at(&mut self, path: PathAddress) {
        if self.path.is_none() {
            self.path = Some(path);
            self.interface.update_ip_addrs(|addresses| {
                // Room for one there is.
                let _ = addresses.push(IpCidr::new(v4(path.local.ip()).into(), 0));
            });
        }
    }

    fn poll_interface(&mut self, now: Time) {
        self.interface
            .poll(instant(now), &mut self.wire, &mut self.sockets);
    }

    /// What leaves in this IP packet.
    fn look(&mut self, packet: &[u8]) -> Sent {
        let Ok(segment) = TcpPacket::new_checked(&packet[IP_HEADER_BYTES..]) else {
            return Sent::default();
        };
        let payload = segment.payload().len();
        let end = segment.seq_number() + payload;
        let again = payload > 0 && self.sent_to.is_some_and(|before| end <= before);
        if !again {
            self.sent_to = Some(end);
        }
        Sent { payload, again }
    }
}

impl Stack for Smoltcp {
    fn open(&mut self, _now: Time, path: PathAddress) -> Result<(), OpenError> {
        self.live_at(path);
        let remote = (v4(path.remote.ip()), PORT);
        let socket = self.sockets.get_mut::<Socket<'_>>(self.socket);
        socket
            .connect(self.interface.context(), remote, PORT)
            .map_err(|error| {
                OpenError::Unsupported(format!("smoltcp cannot open to {}: {error}", path.remote))
            })
    }

    fn add_path(&mut self, _now: Time, path: PathAddress, _backup: bool) -> Result<(), OpenError> {
        Err(one_path(path))
    }

    fn receive(&mut self, now: Time, datagram: &Datagram, bytes: Vec<u8>) {
        self.live_at(datagram.path);
        let header = Ipv4Repr {
            src_addr: v4(datagram.path.remote.ip()),
            dst_addr: v4(datagram.path.local.ip()),
            next_header: IpProtocol::Tcp,
            payload_len: bytes.len(),
            hop_limit: 64,
        };
        let mut packet = vec![0; IP_HEADER_BYTES + bytes.len()];
        packet[IP_HEADER_BYTES..].copy_from_slice(&bytes);
        header.emit(
            &mut Ipv4Packet::new_unchecked(&mut packet[..]),
            &ChecksumCapabilities::default(),
        );
        self.wire.arrived.push_back(packet);
        self.poll_interface(now);
    }

    fn expire(&mut self, now: Time) {
        self.poll_interface(now);
    }

    fn deadline(&mut self, now: Time) -> Option<Time> {
        let at = self.interface.poll_at(instant(now), &self.sockets)?;
        Some(Time::from_nanos(at.total_micros().max(0) as u64 * 1000))
    }

    fn transmit(&mut self, now: Time, out: &mut Datagram) -> Option<Sent> {
        if self.wire.leaving.is_empty() {
            self.poll_interface(now);
        }
        let packet = self.wire.leaving.pop_front()?;
        let sent = self.look(&packet);
        out.path = self.path?;
        (out.ecn, out.may_fragment, out.head) = (Ecn::NotEct, false, Head::new());
        out.body = Bytes::from(packet).slice(IP_HEADER_BYTES..);
        Some(sent)
    }

    fn poll(&mut self) -> Option<News> {
        let (state, readable) = (self.socket().state(), self.socket().can_recv());
        let synchronised = !matches!(
            state,
            State::Closed | State::Listen | State::SynSent | State::SynReceived
        );
        if synchronised && !std::mem::replace(&mut self.told.established, true) {
            return Some(News::Established);
        }
        if !self.told.established {
            return None;
        }
        let ended = !self.socket().may_recv() && state != State::Established;
        if (readable || ended) && !std::mem::replace(&mut self.told.ended, ended || readable) {
            return Some(News::Readable);
        }
        if matches!(state, State::Closed | State::TimeWait) && !std::mem::replace(&mut self.told.closed, true)
        {
            let reason = if self.finished {
                CloseReason::Finished
            } else {
                CloseReason::Reset
            };
            return Some(News::Closed(reason));
        }
        None
    }

    fn write(&mut self, _now: Time, data: &Bytes) -> usize {
        self.socket_mut().send_slice(data).unwrap_or(0)
    }

    fn finish(&mut self, _now: Time) {
        self.finished = true;
        self.socket_mut().close();
    }

    fn read(&mut self, _now: Time) -> Read {
        self.told.ended = false;
        let taken = self
            .socket_mut()
            .recv(|data| (data.len(), Bytes::copy_from_slice(data)));
        match taken {
            Ok(data) if !data.is_empty() => Read::Data(data),
            Ok(_) => Read::Empty,
            Err(_) => {
                self.told.ended = true;
                Read::End
            }
        }
    }

    fn abort(&mut self, _now: Time) {
        self.socket_mut().abort();
    }

    fn describe(&self, stats: &mut FlowStats) {
        // It keeps its window and estimates to itself.
        stats.in_flight_segments = 0;
    }
}

/// The queue pair that smoltcp takes for a network card.
#[derive(Debug)]
struct Wire {
    mtu: usize,
    arrived: VecDeque<Vec<u8>>,
    leaving: VecDeque<Vec<u8>>,
}

impl Device for Wire {
    type RxToken<'a> = Arrived;
    type TxToken<'a> = Leaving<'a>;

    fn receive(&mut self, _now: Instant) -> Option<(Arrived, Leaving<'_>)> {
        let packet = self.arrived.pop_front()?;
        Some((Arrived(packet), Leaving(&mut self.leaving)))
    }
    fn transmit(&mut self, _now: Instant) -> Option<Leaving<'_>> {
        Some(Leaving(&mut self.leaving))
    }
    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.mtu;
        capabilities
    }
}

struct Arrived(Vec<u8>);

impl phy::RxToken for Arrived {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

struct Leaving<'a>(&'a mut VecDeque<Vec<u8>>);

impl phy::TxToken for Leaving<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut packet = vec![0; len];
        let result = f(&mut packet);
        self.0.push_back(packet);
        result
    }
}

/// Its clock has microseconds: what is due within one is due at its end.
fn instant(now: Time) -> Instant {
    Instant::from_micros((now.as_nanos() / 1000) as i64)
}

/// The simulator's hosts live in 10.0.0.0/8.
fn v4(address: IpAddr) -> Ipv4Addr {
    match address {
        IpAddr::V4(v4) => v4,
        IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
    }
}
