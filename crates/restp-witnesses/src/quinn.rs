//! `quic:quinn`: the QUIC of quinn-proto 0.11 (RFC 9000, RFC 9002), one bidirectional stream.

use crate::adapter::{News, Sent, Stack, one_path};
use crate::clock::Epoch;
use crate::quic::{self, Identifiers, QuicCongestion, QuicParameters, with_port};
use crate::tls;
use bytes::Bytes;
use quinn_proto::congestion::{BbrConfig, CubicConfig, NewRenoConfig};
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, ConnectionId, ConnectionIdGenerator,
    DatagramEvent, Dir, EcnCodepoint, Endpoint, EndpointConfig, Event, ReadError, ServerConfig, StreamEvent,
    StreamId, Transmit, TransportConfig, VarInt,
};
use restp_base::flow::{CloseReason, FlowStats, OpenError, Read};
use restp_base::machine::{Datagram, Ecn, PathAddress};
use restp_base::time::{Duration, Time};
use std::collections::VecDeque;
use std::sync::Arc;

/// One endpoint with one connection.
pub(crate) struct Quinn {
    epoch: Epoch,
    endpoint: Endpoint,
    client: ClientConfig,
    connection: Option<(ConnectionHandle, Connection)>,
    stream: Option<StreamId>,
    path: Option<PathAddress>,
    /// What the endpoint answers beside the connection.
    answers: VecDeque<Vec<u8>>,
    news: VecDeque<News>,
    ours_over: bool,
    theirs_over: bool,
}

impl Quinn {
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
        config.cid_generator(move || Box::new(Identifiers::new(letter)));
        config.rng_seed(Some(quic::SEED));
        let server = listens.then(|| Arc::new(server));
        Quinn {
            epoch: Epoch::new(),
            endpoint: Endpoint::new(Arc::new(config), server, true, None),
            client,
            connection: None,
            stream: None,
            path: None,
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
        self.conclude(now);
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
}

fn transport(parameters: &QuicParameters) -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport.enable_segmentation_offload(false);
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
            let mut config = BbrConfig::default();
            window.map(|bytes| config.initial_window(bytes));
            transport.congestion_controller_factory(Arc::new(config));
        }
    }
    transport
}

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

impl Stack for Quinn {
    fn open(&mut self, now: Time, path: PathAddress) -> Result<(), OpenError> {
        let (now, remote) = (self.epoch.instant(now), with_port(path.remote));
        let opened = self.endpoint.connect(now, self.client.clone(), remote, "server");
        let refused =
            |error| OpenError::Unsupported(format!("quinn cannot open to {}: {error}", path.remote));
        self.connection = Some(opened.map_err(refused)?);
        self.path = Some(path);
        Ok(())
    }

    fn add_path(&mut self, _now: Time, path: PathAddress, _backup: bool) -> Result<(), OpenError> {
        Err(one_path(path))
    }

    fn receive(&mut self, now: Time, datagram: &Datagram, bytes: Vec<u8>) {
        let Some(payload) = quic::payload(&bytes) else {
            return;
        };
        self.path.get_or_insert(datagram.path);
        let (remote, local) = (with_port(datagram.path.remote), datagram.path.local.ip());
        let (at, ecn) = (
            self.epoch.instant(now),
            EcnCodepoint::from_bits(datagram.ecn as u8),
        );
        let mut answer = Vec::new();
        let event = self
            .endpoint
            .handle(at, remote, Some(local), ecn, payload.into(), &mut answer);
        match event {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) if self.connection.is_none() => {
                self.connection = self.endpoint.accept(incoming, at, &mut answer, None).ok();
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.endpoint.ignore(incoming),
            Some(DatagramEvent::Response(_)) => self.answers.push_back(answer),
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
        let (_, connection) = self.connection.as_mut()?;
        Some(self.epoch.time(connection.poll_timeout()?))
    }

    fn transmit(&mut self, now: Time, out: &mut Datagram) -> Option<Sent> {
        let path = self.path?;
        let (packet, ecn) = match self.answers.pop_front() {
            Some(answer) => (answer, None),
            None => {
                let mut packet = Vec::new();
                let (_, connection) = self.connection.as_mut()?;
                let sent = connection.poll_transmit(self.epoch.instant(now), 1, &mut packet);
                let Some(Transmit { ecn, .. }) = sent else {
                    self.settle(now);
                    return None;
                };
                (packet, ecn)
            }
        };
        let sent = Sent {
            payload: packet.len(),
            again: false,
        };
        let ecn = ecn.map_or(Ecn::NotEct, |_| Ecn::Ect0);
        quic::send(path, ecn, packet, out);
        Some(sent)
    }

    fn poll(&mut self) -> Option<News> {
        self.news.pop_front()
    }

    fn write(&mut self, _now: Time, data: &Bytes) -> usize {
        let (Some((_, connection)), Some(stream)) = (&mut self.connection, self.stream) else {
            return 0;
        };
        let chunks = &mut [data.clone()];
        let written = connection.send_stream(stream).write_chunks(chunks);
        written.map_or(0, |written| written.bytes)
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
        if let Some((_, connection)) = &self.connection {
            let path = connection.stats().path;
            stats.srtt = Some(Duration::from_nanos(path.rtt.as_nanos() as u64));
            stats.congestion_window_bytes = path.cwnd;
            stats.lost_packets = path.lost_packets;
            stats.retransmitted_packets = path.lost_packets;
        }
    }
}
