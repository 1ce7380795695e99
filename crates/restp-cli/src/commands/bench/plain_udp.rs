//! Both ends of plain UDP through the same socket layer, with segmentation offload and receive coalescing and no
//! protocol: what this machine can carry at most. What the receiver's buffer drops is lost; what arrives counts.

use super::UDP_PAYLOAD;
use super::meter::{Meter, announce};
use crate::failure::Failure;
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSocketState};
use restp::clock::Clock;
use restp_base::time::Time;
use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// Asked of the kernel for each direction, as the product does.
const SOCKET_BUFFER_BYTES: usize = 4 << 20;

/// Most bytes of one call, before segmentation and after coalescing.
const LARGEST_CALL: usize = 65_507;

/// A datagram of one byte says that the transfer is over; any of them may be lost.
const OVER: [u8; 1] = [0];
const FAREWELLS: usize = 10;
const BETWEEN_FAREWELLS: Duration = Duration::from_millis(20);

struct Socket {
    io: UdpSocket,
    state: UdpSocketState,
}

/// Counts what arrives until the sender says that it is over.
pub async fn serve(listen: SocketAddr) -> Result<(), Failure> {
    let socket = Socket::bind(listen).map_err(Failure::operation)?;
    announce(socket.io.local_addr().map_err(Failure::operation)?)?;
    let mut space = vec![0; BATCH_SIZE * LARGEST_CALL];
    let mut metas = [RecvMeta::default(); BATCH_SIZE];
    let (mut meter, mut packets) = (Meter::start(), 0);
    loop {
        let calls = socket
            .receive(&mut space, &mut metas)
            .await
            .map_err(Failure::operation)?;
        for meta in &metas[..calls] {
            if meta.len <= OVER.len() {
                return meter.report("udp", "server", packets, None);
            }
            meter.add(meta.len);
            packets += meta.len.div_ceil(meta.stride.max(1)) as u64;
        }
    }
}

/// Sends as fast as the socket takes it, for `seconds`.
pub async fn send(to: SocketAddr, seconds: Duration) -> Result<(), Failure> {
    let socket = Socket::bind((Ipv4Addr::UNSPECIFIED, 0).into()).map_err(Failure::operation)?;
    let segments = socket.state.max_gso_segments().min(LARGEST_CALL / UDP_PAYLOAD);
    let data = vec![0x5a; UDP_PAYLOAD * segments];
    let (clock, mut meter, mut packets) = (Clock::start(), Meter::start(), 0);
    while clock.now().since(Time::ZERO).as_nanos() < seconds.as_nanos() as u64 {
        socket.send(to, &data).await.map_err(Failure::operation)?;
        meter.add(data.len());
        packets += segments as u64;
    }
    for _ in 0..FAREWELLS {
        tokio::time::sleep(BETWEEN_FAREWELLS).await;
        // Once the receiver has left, the system refuses: it has understood.
        if socket.send(to, &OVER).await.is_err() {
            break;
        }
    }
    meter.report("udp", "client", packets, None)
}

impl Socket {
    fn bind(local: SocketAddr) -> io::Result<Self> {
        let raw = socket2::Socket::new(
            socket2::Domain::for_address(local),
            socket2::Type::DGRAM,
            Some(socket2::Protocol::UDP),
        )?;
        raw.set_recv_buffer_size(SOCKET_BUFFER_BYTES)?;
        raw.set_send_buffer_size(SOCKET_BUFFER_BYTES)?;
        raw.set_nonblocking(true)?;
        raw.bind(&local.into())?;
        let state = UdpSocketState::new((&raw).into())?;
        let io = UdpSocket::from_std(raw.into())?;
        Ok(Socket { io, state })
    }

    async fn send(&self, to: SocketAddr, contents: &[u8]) -> io::Result<()> {
        let transmit = Transmit {
            destination: to,
            ecn: None,
            contents,
            segment_size: (contents.len() > UDP_PAYLOAD).then_some(UDP_PAYLOAD),
            src_ip: None,
        };
        let attempt = || self.state.try_send((&self.io).into(), &transmit);
        self.io.async_io(Interest::WRITABLE, attempt).await
    }

    async fn receive(&self, space: &mut [u8], metas: &mut [RecvMeta; BATCH_SIZE]) -> io::Result<usize> {
        let mut slices: Vec<_> = space.chunks_mut(LARGEST_CALL).map(IoSliceMut::new).collect();
        let attempt = || self.state.recv((&self.io).into(), &mut slices, metas);
        self.io.async_io(Interest::READABLE, attempt).await
    }
}
