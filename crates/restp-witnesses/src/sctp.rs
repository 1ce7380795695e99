//! `sctp:sctp-proto`: the SCTP of sctp-proto 0.10, directly over IP as RFC 9260 has it, one ordered stream, one path (its
//! engine knows one). An application's bytes travel as messages of at most one DATA chunk, so that a reader gets them as
//! they come, as from a TCP.
//!
//! Its tags and first numbers are drawn by its own generator, which cannot be seeded. Nothing but the bytes of its headers
//! depends on them: sizes and times are the same in every run.

use crate::adapter::{News, Sent, Stack, one_path};
use crate::clock::Epoch;
use bytes::Bytes;
use restp_base::flow::{CloseReason, FlowStats, OpenError, Read};
use restp_base::machine::{Datagram, Ecn, Head, PathAddress};
use restp_base::time::Time;
use sctp_proto::{
    Association, AssociationError, ClientConfig, DatagramEvent, Endpoint, EndpointConfig, Event, Payload,
    PayloadProtocolIdentifier, ServerConfig, Stream, StreamEvent, Transmit, TransportConfig,
};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// The one stream.
const STREAM: u16 = 0;
/// First retransmission timeout (RFC 9260 §16: 1 s), which also tells us the engine's clock; see [`Stack::open`].
const FIRST_TIMEOUT: Duration = Duration::from_secs(1);
/// Bytes written that are not acknowledged, above which no more are taken: several large paths.
const SEND_BYTES: usize = 4 << 20;
/// Bytes the receiver grants.
const RECEIVE_BYTES: u32 = 4 << 20;
/// Bytes of the headers of a packet and of a DATA chunk (RFC 9260 §3, §3.3.1).
const COMMON_HEADER_BYTES: usize = 12;
const CHUNK_HEADER_BYTES: usize = 4;
const DATA_HEADER_BYTES: usize = 16;
/// Kinds of chunks (RFC 9260 §3.2).
const DATA: u8 = 0;
const SHUTDOWN_COMPLETE: u8 = 14;

/// What can be set of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SctpParameters {
    /// Payload bytes of a full DATA chunk. Default 1200, as it ships.
    pub(crate) segment_bytes: u32,
}

impl Default for SctpParameters {
    fn default() -> Self {
        SctpParameters { segment_bytes: 1200 }
    }
}

/// One endpoint with one association.
pub(crate) struct Sctp {
    epoch: Epoch,
    endpoint: Endpoint,
    transport: Arc<TransportConfig>,
    segment_bytes: usize,
    association: Option<Association>,
    path: Option<PathAddress>,
    leaving: VecDeque<Bytes>,
    news: VecDeque<News>,
    /// The association is over: a reader gets no more.
    ended: bool,
    /// It is ending as both applications wished.
    closing: bool,
    /// Everything was written.
    finishing: bool,
    /// Highest number of a DATA chunk sent, to tell a retransmission.
    newest: Option<u32>,
}

impl Sctp {
    /// An endpoint that opens, or one that `listens`.
    pub(crate) fn new(parameters: SctpParameters, listens: bool) -> Self {
        let transport = TransportConfig::default()
            .with_rto_initial_ms(FIRST_TIMEOUT.as_millis() as u64)
            .with_max_receive_buffer_size(RECEIVE_BYTES);
        let transport = Arc::new(transport);
        let mut config = EndpointConfig::new();
        config.max_payload_size(parameters.segment_bytes);
        let server = listens.then(|| {
            let mut server = ServerConfig::new();
            server.transport = transport.clone();
            Arc::new(server)
        });
        Sctp {
            epoch: Epoch::new(),
            endpoint: Endpoint::new(Arc::new(config), server),
            transport,
            segment_bytes: parameters.segment_bytes as usize,
            association: None,
            path: None,
            leaving: VecDeque::new(),
            news: VecDeque::new(),
            ended: false,
            closing: false,
            finishing: false,
            newest: None,
        }
    }

    /// Events of the engine, and what waits for them.
    fn settle(&mut self) {
        let Some(association) = &mut self.association else {
            return;
        };
        self.closing |= association.is_closing();
        // The only such event tells the endpoint to forget the association, and it comes before the end is agreed on.
        while association.poll_endpoint_event().is_some() {}
        while let Some(event) = association.poll() {
            match event {
                Event::Connected => {
                    // Both ends open it, so that either may write first; a fresh association has no streams.
                    let _ = association.open_stream(STREAM, PayloadProtocolIdentifier::Binary);
                    self.news.push_back(News::Established);
                }
                Event::Stream(StreamEvent::Readable { .. }) => self.news.push_back(News::Readable),
                Event::HandshakeFailed { .. } => self.news.push_back(News::Closed(CloseReason::Refused)),
                Event::AssociationLost { reason } => {
                    let reason = match reason {
                        _ if self.closing => CloseReason::Finished,
                        AssociationError::LocallyClosed => CloseReason::Aborted,
                        _ => CloseReason::Reset,
                    };
                    self.news.extend([News::Readable, News::Closed(reason)]);
                    self.ended = true;
                }
                _ => {}
            }
        }
        // It sends nothing new once it is shutting down, so that has to wait for the last byte.
        if self.finishing && association.stream(STREAM).is_ok_and(|stream| is_drained(&stream)) {
            self.finishing = false;
            self.closing = association.shutdown().is_ok();
        }
    }

    fn look(&mut self, packet: &[u8]) -> Sent {
        let mut sent = Sent::default();
        let mut rest = packet.get(COMMON_HEADER_BYTES..).unwrap_or_default();
        while let [kind, _, high, low, ..] = *rest {
            let length = usize::from(u16::from_be_bytes([high, low]));
            if kind == SHUTDOWN_COMPLETE {
                // The engine does not tell who says it that this was the end.
                self.news
                    .extend([News::Readable, News::Closed(CloseReason::Finished)]);
                self.ended = true;
            }
            if kind == DATA
                && let Some(&[a, b, c, d]) = rest.get(CHUNK_HEADER_BYTES..CHUNK_HEADER_BYTES + 4)
            {
                let number = u32::from_be_bytes([a, b, c, d]);
                let new = |before: u32| (number.wrapping_sub(before) as i32) > 0;
                sent.payload += length.saturating_sub(DATA_HEADER_BYTES);
                if self.newest.is_none_or(new) {
                    self.newest = Some(number);
                } else {
                    sent.again = true;
                }
            }
            rest = rest.get(length.next_multiple_of(4).max(4)..).unwrap_or_default();
        }
        sent
    }
}

/// Everything written has been acknowledged.
fn is_drained(stream: &Stream<'_>) -> bool {
    stream.buffered_amount().is_ok_and(|bytes| bytes == 0)
}

/// The engine wants a port beside the address, as of a UDP that it might run over.
fn with_port(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip(), sctp_proto::DEFAULT_SCTP_PORT)
}

impl Stack for Sctp {
    /// The engine reads std's clock once, here, to start its first timer. What that timer shows is what the clock read:
    /// it becomes our `now`.
    fn open(&mut self, now: Time, path: PathAddress) -> Result<(), OpenError> {
        let mut config = ClientConfig::new();
        config.transport = self.transport.clone();
        let opened = self.endpoint.connect(config, with_port(path.remote));
        let (_, association) = opened.map_err(|error| {
            OpenError::Unsupported(format!("sctp-proto cannot open to {}: {error}", path.remote))
        })?;
        if let Some(expiry) = association.poll_timeout() {
            self.epoch = Epoch::with(expiry - FIRST_TIMEOUT, now);
        }
        self.path = Some(path);
        self.association = Some(association);
        Ok(())
    }

    fn add_path(&mut self, _now: Time, path: PathAddress, _backup: bool) -> Result<(), OpenError> {
        Err(one_path(path))
    }

    fn receive(&mut self, now: Time, datagram: &Datagram, bytes: Vec<u8>) {
        self.path.get_or_insert(datagram.path);
        let remote = with_port(datagram.path.remote);
        let now = self.epoch.instant(now);
        match self.endpoint.handle(now, remote, None, None, bytes.into()) {
            Some((_, DatagramEvent::NewAssociation(association))) => self.association = Some(association),
            Some((_, DatagramEvent::AssociationEvent(event))) => {
                if let Some(association) = &mut self.association {
                    association.handle_event(event);
                }
            }
            None => {}
        }
        self.settle();
    }

    fn expire(&mut self, now: Time) {
        if let Some(association) = &mut self.association {
            association.handle_timeout(self.epoch.instant(now));
        }
        self.settle();
    }

    fn deadline(&mut self, _now: Time) -> Option<Time> {
        let expiry = self.association.as_ref()?.poll_timeout()?;
        Some(self.epoch.time(expiry))
    }

    fn transmit(&mut self, now: Time, out: &mut Datagram) -> Option<Sent> {
        if self.leaving.is_empty() {
            let now = self.epoch.instant(now);
            let own = self.endpoint.poll_transmit();
            let next = own.or_else(|| self.association.as_mut()?.poll_transmit(now));
            if let Some(Transmit {
                payload: Payload::RawEncode(packets),
                ..
            }) = next
            {
                self.leaving.extend(packets);
            }
            self.settle();
        }
        let packet = self.leaving.pop_front()?;
        let sent = self.look(&packet);
        out.path = self.path?;
        (out.ecn, out.may_fragment, out.head, out.body) = (Ecn::NotEct, false, Head::new(), packet);
        Some(sent)
    }

    fn poll(&mut self) -> Option<News> {
        self.news.pop_front()
    }

    fn write(&mut self, _now: Time, data: &Bytes) -> usize {
        let Some(association) = &mut self.association else {
            return 0;
        };
        let Ok(mut stream) = association.stream(STREAM) else {
            return 0;
        };
        let mut taken = 0;
        while taken < data.len() && stream.buffered_amount().is_ok_and(|held| held < SEND_BYTES) {
            let end = data.len().min(taken + self.segment_bytes);
            match stream.write_chunk(&data.slice(taken..end)) {
                Ok(bytes) if bytes > 0 => taken += bytes,
                _ => break,
            }
        }
        taken
    }

    fn finish(&mut self, _now: Time) {
        self.finishing = true;
        self.settle();
    }

    fn read(&mut self, _now: Time) -> Read {
        let chunks = self
            .association
            .as_mut()
            .and_then(|association| association.stream(STREAM).ok()?.read().ok()?);
        match chunks {
            Some(chunks) => {
                let mut data = vec![0; chunks.len()];
                match chunks.read(&mut data) {
                    Ok(_) => Read::Data(data.into()),
                    Err(_) => Read::Empty,
                }
            }
            None if self.ended => Read::End,
            None => Read::Empty,
        }
    }

    fn abort(&mut self, _now: Time) {
        if let Some(association) = &mut self.association {
            // Closing what is closed already changes nothing.
            let _ = association.close();
        }
        self.settle();
    }

    fn describe(&self, stats: &mut FlowStats) {
        if let Some(association) = &self.association {
            let mut own = association.stats();
            stats.timeouts = own.get_num_t3timeouts();
        }
    }
}
