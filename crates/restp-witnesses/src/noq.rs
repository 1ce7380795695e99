//! `mpquic:noq`: the multipath QUIC of noq-proto 1.4 (draft-ietf-quic-multipath), one bidirectional stream. A further path
//! is opened as soon as the engine can: it needs the peer's identifiers for it first. The engine sends on whichever path
//! has room. The engine is a fork of quinn's, so this file looks like `quinn.rs`; their types have nothing in common, and a macro
//! over both would hide which interface is whose.

use crate::adapter::{News, Sent, Stack};
use crate::clock::Epoch;
use crate::quic::{self, Identifiers, QuicCongestion, QuicParameters, with_port};
use crate::tls;
use bytes::Bytes;
use noq_proto::congestion::{Bbr3Config, CubicConfig, NewRenoConfig};
use noq_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, ConnectionId, ConnectionIdGenerator,
    DatagramEvent, Dir, EcnCodepoint, Endpoint, EndpointConfig, Event, FourTuple, PathEvent, PathId,
    PathStatus, ReadError, ServerConfig, StreamEvent, StreamId, Transmit, TransportConfig, VarInt,
};
use restp_base::flow::{CloseReason, FlowStats, OpenError, PathStats, Read};
use restp_base::machine::{Datagram, Ecn, PathAddress};
use restp_base::time::{Duration, Time};
use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::Arc;

/// One endpoint with one connection.
pub(crate) struct Noq {
    epoch: Epoch,
    endpoint: Endpoint,
    client: ClientConfig,
    connection: Option<(ConnectionHandle, Connection)>,
    stream: Option<StreamId>,
    paths: Vec<Way>,
    /// What the endpoint answers beside the connection.
    answers: VecDeque<(PathAddress, Vec<u8>)>,
    news: VecDeque<News>,
    ours_over: bool,
    theirs_over: bool,
}

/// One pair of addresses.
struct Way {
    address: PathAddress,
    /// Used at any time, or for need only.
    status: PathStatus,
    /// The engine's path of these addresses, once it is open.
    id: Option<PathId>,
    stats: PathStats,
    window_bytes: u64,
}

impl Way {
    fn new(address: PathAddress, backup: bool) -> Self {
        Way {
            address,
            status: if backup {
                PathStatus::Backup
            } else {
                PathStatus::Available
            },
            id: None,
            stats: PathStats::new(address),
            window_bytes: 0,
        }
    }

    fn tuple(&self) -> FourTuple {
        FourTuple::new(with_port(self.address.remote), Some(self.address.local.ip()))
    }
}

impl Noq {
    /// An endpoint that opens, or one that `listens`.
    pub(crate) fn new(parameters: &QuicParameters, listens: bool) -> Self {
        let (client, server) = tls::configs();
        let client = QuicClientConfig::try_from(client).expect(tls::SUITE);
        let server = QuicServerConfig::try_from(server).expect(tls::SUITE);
        let transport = Arc::new(transport(parameters));
        let mut client = ClientConfig::new(Arc::new(client));
        client.transport_config(transport.clone());
        client.initial_dst_cid_provider(Arc::new(|| ConnectionId::new(&quic::FIRST_NAME)));
        let mut server = ServerConfig::with_crypto(Arc::new(server));
        server.transport_config(transport);
        let reset_key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, &quic::SEED);
        let mut config = EndpointConfig::new(Arc::new(reset_key));
        let letter = if listens { quic::SERVER } else { quic::OPENER };
        config.cid_generator(Arc::new(move || Box::new(Identifiers::new(letter))));
        config.rng_seed(Some(quic::SEED));
        let server = listens.then(|| Arc::new(server));
        Noq {
            epoch: Epoch::new(),
            endpoint: Endpoint::new(Arc::new(config), server, true),
            client,
            connection: None,
            stream: None,
            paths: Vec::new(),
            answers: VecDeque::new(),
            news: VecDeque::new(),
            ours_over: false,
            theirs_over: false,
        }
    }

    fn settle(&mut self, now: Time) {
        let Some((handle, connection)) = &mut self.connection else {
            return;
        };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => {
                    if connection.side().is_client() {
                        self.stream = connection.streams().open(Dir::Bi);
                    }
                    self.news.push_back(News::Established);
                }
                Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
                    self.stream = self.stream.or(connection.streams().accept(Dir::Bi));
                    self.news.push_back(News::Readable);
                }
                Event::Stream(StreamEvent::Readable { .. }) => self.news.push_back(News::Readable),
                Event::Stream(StreamEvent::Finished { .. }) => self.ours_over = true,
                Event::Path(PathEvent::Abandoned { id, .. }) => {
                    for way in self.paths.iter_mut().filter(|way| way.id == Some(id)) {
                        way.id = None;
                        way.stats.down_events += 1;
                    }
                }
                Event::ConnectionLost { reason } => {
                    let over = std::mem::replace(&mut self.theirs_over, true);
                    self.news.push_back(News::Readable);
                    self.news.push_back(News::Closed(match reason {
                        ConnectionError::ApplicationClosed(_) if over => CloseReason::Finished,
                        ConnectionError::TimedOut => CloseReason::TimedOut(quic::IDLE),
                        _ => CloseReason::Reset,
                    }));
                }
                _ => {}
            }
        }
        self.open_paths(now);
        self.conclude(now);
    }

    /// Opens what is not open: what the engine cannot open yet is tried again at the next input.
    fn open_paths(&mut self, now: Time) {
        let Some((_, connection)) = &mut self.connection else {
            return;
        };
        if !connection.side().is_client() || connection.is_handshaking() || connection.is_closed() {
            return;
        }
        for way in self.paths.iter_mut().filter(|way| way.id.is_none()) {
            let opened = connection.open_path(way.tuple(), way.status, self.epoch.instant(now));
            way.id = opened.ok();
        }
    }

    /// Both directions are over: who opened the connection ends it.
    fn conclude(&mut self, now: Time) {
        if let Some((_, connection)) = &mut self.connection
            && connection.side().is_client()
            && self.ours_over
            && self.theirs_over
            && !connection.is_closed()
        {
            connection.close(self.epoch.instant(now), VarInt::from_u32(0), Bytes::new());
            self.news.push_back(News::Closed(CloseReason::Finished));
        }
    }

    /// The engine's own numbers of every open path.
    fn observe(&mut self) {
        let Some((_, connection)) = &mut self.connection else {
            return;
        };
        for way in &mut self.paths {
            if let Some(own) = way.id.and_then(|id| connection.path_stats(id)) {
                way.stats.lost_packets = own.lost_packets;
                way.stats.srtt = Some(Duration::from_nanos(own.rtt.as_nanos() as u64));
                way.window_bytes = own.cwnd;
            }
        }
    }
}

fn transport(parameters: &QuicParameters) -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport.enable_segmentation_offload(false);
    transport.max_concurrent_multipath_paths(PATHS);
    if let Some(bytes) = parameters.datagram_bytes {
        transport.initial_mtu(bytes).mtu_discovery_config(None);
    }
    if let Some(bytes) = parameters.stream_window_bytes {
        transport.stream_receive_window(bytes.into());
    }
    if let Some(bytes) = parameters.connection_window_bytes {
        transport.receive_window(bytes.into());
    }
    if let Some(bytes) = parameters.send_window_bytes {
        transport.send_window(bytes.into());
    }
    let window = parameters.initial_window_bytes();
    match parameters.congestion {
        QuicCongestion::Cubic => {
            let mut config = CubicConfig::default();
            window.map(|bytes| config.initial_window(bytes));
            transport.congestion_controller_factory(Arc::new(config));
        }
        QuicCongestion::NewReno => {
            let mut config = NewRenoConfig::default();
            window.map(|bytes| config.initial_window(bytes));
            transport.congestion_controller_factory(Arc::new(config));
        }
        QuicCongestion::Bbr => {
            let mut config = Bbr3Config::default();
            window.map(|bytes| config.initial_window(bytes));
            transport.congestion_controller_factory(Arc::new(config));
        }
    }
    transport
}

/// As many as a flow of the simulator may have.
const PATHS: u32 = 15;

impl ConnectionIdGenerator for Identifiers {
    fn generate_cid(&mut self) -> ConnectionId {
        ConnectionId::new(&self.next())
    }
    fn cid_len(&self) -> usize {
        quic::CID_BYTES
    }
    fn cid_lifetime(&self) -> Option<std::time::Duration> {
        None
    }
}

impl Stack for Noq {
    fn open(&mut self, now: Time, path: PathAddress) -> Result<(), OpenError> {
        let (now, remote) = (self.epoch.instant(now), with_port(path.remote));
        let opened = self.endpoint.connect(now, self.client.clone(), remote, "server");
        let refused = |error| OpenError::Unsupported(format!("noq cannot open to {}: {error}", path.remote));
        self.connection = Some(opened.map_err(refused)?);
        self.paths.push(Way {
            id: Some(PathId::ZERO),
            ..Way::new(path, false)
        });
        Ok(())
    }

    fn add_path(&mut self, now: Time, path: PathAddress, backup: bool) -> Result<(), OpenError> {
        self.paths.push(Way::new(path, backup));
        self.open_paths(now);
        Ok(())
    }

    fn receive(&mut self, now: Time, datagram: &Datagram, bytes: Vec<u8>) {
        let Some(payload) = quic::payload(&bytes) else {
            return;
        };
        let path = datagram.path;
        if !self.paths.iter().any(|way| way.address == path) {
            self.paths.push(Way::new(path, false));
        }
        for way in self.paths.iter_mut().filter(|way| way.address == path) {
            way.stats.received_bytes += bytes.len() as u64;
        }
        let tuple = FourTuple::new(with_port(path.remote), Some(path.local.ip()));
        let (at, ecn) = (
            self.epoch.instant(now),
            EcnCodepoint::from_bits(datagram.ecn as u8),
        );
        let mut answer = Vec::new();
        match self.endpoint.handle(at, tuple, ecn, payload.into(), &mut answer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) if self.connection.is_none() => {
                self.connection = self.endpoint.accept(incoming, at, &mut answer, None).ok();
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.endpoint.ignore(incoming),
            Some(DatagramEvent::Response(_)) => self.answers.push_back((path, answer)),
            None => {}
        }
        self.settle(now);
    }

    fn expire(&mut self, now: Time) {
        if let Some((_, connection)) = &mut self.connection {
            connection.handle_timeout(self.epoch.instant(now));
        }
        self.settle(now);
    }

    fn deadline(&mut self, _now: Time) -> Option<Time> {
        self.observe();
        let (_, connection) = self.connection.as_mut()?;
        Some(self.epoch.time(connection.poll_timeout()?))
    }

    fn transmit(&mut self, now: Time, out: &mut Datagram) -> Option<Sent> {
        let (path, packet, ecn) = match self.answers.pop_front() {
            Some((path, answer)) => (path, answer, None),
            None => {
                let mut packet = Vec::new();
                let (_, connection) = self.connection.as_mut()?;
                let sent = connection.poll_transmit(self.epoch.instant(now), NonZeroUsize::MIN, &mut packet);
                let Some(Transmit { destination, ecn, .. }) = sent else {
                    self.settle(now);
                    return None;
                };
                // No two paths of a flow share a remote address.
                let mut ways = self.paths.iter().map(|way| way.address);
                let path = ways.find(|path| path.remote.ip() == destination.ip())?;
                (path, packet, ecn)
            }
        };
        let sent = Sent {
            payload: packet.len(),
            again: false,
        };
        let ecn = ecn.map_or(Ecn::NotEct, |_| Ecn::Ect0);
        quic::send(path, ecn, packet, out);
        for way in self.paths.iter_mut().filter(|way| way.address == path) {
            way.stats.sent_packets += 1;
            way.stats.sent_bytes += out.len() as u64;
        }
        Some(sent)
    }

    fn poll(&mut self) -> Option<News> {
        self.news.pop_front()
    }

    fn write(&mut self, _now: Time, data: &Bytes) -> usize {
        let (Some((_, connection)), Some(stream)) = (&mut self.connection, self.stream) else {
            return 0;
        };
        let mut chunks = &mut [data.clone()][..];
        connection
            .send_stream(stream)
            .write_chunks(&mut chunks)
            .unwrap_or(0)
    }

    fn finish(&mut self, _now: Time) {
        if let (Some((_, connection)), Some(stream)) = (&mut self.connection, self.stream) {
            // A stream that the peer has stopped is finished as well.
            let _ = connection.send_stream(stream).finish();
        }
    }

    fn read(&mut self, now: Time) -> Read {
        if self.theirs_over {
            return Read::End;
        }
        let (Some((_, connection)), Some(stream)) = (&mut self.connection, self.stream) else {
            return Read::Empty;
        };
        let mut stream = connection.recv_stream(stream);
        let Ok(mut chunks) = stream.read(true) else {
            return Read::End;
        };
        let next = chunks.next(usize::MAX);
        // The connection asks for room by itself; the driver polls it next.
        let _ = chunks.finalize();
        match next {
            Ok(Some(chunk)) => Read::Data(chunk.bytes),
            Err(ReadError::Blocked) => Read::Empty,
            Ok(None) | Err(_) => {
                self.theirs_over = true;
                self.conclude(now);
                Read::End
            }
        }
    }

    fn abort(&mut self, now: Time) {
        if let Some((_, connection)) = &mut self.connection {
            connection.close(self.epoch.instant(now), VarInt::from_u32(1), Bytes::new());
        }
    }

    fn describe(&self, stats: &mut FlowStats) {
        stats.paths = self.paths.iter().map(|way| way.stats.clone()).collect();
        stats.srtt = self.paths.iter().find_map(|way| way.stats.srtt);
        stats.congestion_window_bytes = self.paths.iter().map(|way| way.window_bytes).sum();
        stats.lost_packets = stats.paths.iter().map(|path| path.lost_packets).sum();
        stats.retransmitted_packets = stats.lost_packets;
    }
}
