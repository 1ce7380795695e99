//! What one TCP connection says and hears for the connection above it once it is set up: what its bytes are, and how far the
//! data have come (RFC 8684 §3.3). It judges segments; TCP acts.

mod addresses;
pub(crate) mod dss;
pub mod options;
pub(crate) mod set_up;

use bytes::Bytes;
use options::{AddAddress, Addresses, Capable, Dss, Mapped, Multipath, Number};
use restp_base::sequence::{ORIGIN, expand, truncate};
use restp_services::connection_management::first_long_number;
use restp_services::multipath::Shared;
use restp_services::path_management::{ByteMapping, ByteMappings};
use set_up::{Judgement, SetUp};
use smallvec::SmallVec;

/// Number of the first byte of the connection, as it is counted here: the one that travels is the peer's or our
/// [`first_long_number`] and one.
pub(crate) const FIRST_DATA: u64 = ORIGIN + 1;
/// ByteMappings kept at most: tiny ones cost more memory than the window counts.
const MAX_MAPPINGS: usize = 16_384;

/// What has arrived in order on a subflow, by its numbers in the connection.
pub(crate) type Arrived = SmallVec<[(u64, Bytes); 1]>;

/// What a segment has said of the connection, and brought to it.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// Data ACK, and the bytes from there on that the peer takes.
    pub(crate) ack: Option<(u64, u64)>,
    /// Number of the peer's DATA_FIN.
    pub(crate) fin: Option<u64>,
    pub(crate) arrived: Arrived,
    /// An address of the peer, or its echo of one of ours.
    pub(crate) announced: Option<AddAddress>,
    /// Addresses that the peer has no longer.
    pub(crate) removed: Option<Addresses>,
}

/// One subflow's part.
#[derive(Debug)]
pub(crate) struct Subflow {
    pub(crate) set_up: SetUp,
    /// First bytes of the two directions: number 1 in mappings.
    first: (u64, u64),
    tx: ByteMappings,
    rx: ByteMappings,
    /// First byte that has not been handed up.
    next_up: u64,
    shared: Shared,
    news: News,
    last_ack: u64,
    /// The DATA_FIN that the next segment without payload announces.
    end: Option<u64>,
    /// What the next segment without payload says of addresses, in the place of its signal.
    notice: Option<Multipath>,
    /// The peer has sent the proof of its join, and waits for an acknowledgement.
    pub(crate) must_answer: bool,
}

impl Subflow {
    pub(crate) fn new(set_up: SetUp) -> Self {
        Subflow {
            set_up,
            first: (0, 0),
            tx: ByteMappings::default(),
            rx: ByteMappings::default(),
            next_up: 0,
            shared: Shared {
                next: Some(FIRST_DATA),
                window: 0,
                edge: FIRST_DATA,
                paths: 0,
            },
            news: News::default(),
            last_ack: 0,
            end: None,
            notice: None,
            must_answer: false,
        }
    }
    pub(crate) fn tx(&self) -> &ByteMappings {
        &self.tx
    }

    /// TCP knows both first bytes.
    pub(crate) fn begin(&mut self, local: u64, remote: u64) {
        self.first = (local, remote);
        self.next_up = remote;
    }

    /// A segment of the established subflow, whose payload is the bytes `start..end` and may reach up to `edge`, has this
    /// option and a window of so many bytes.
    pub(crate) fn on_segment(
        &mut self,
        option: Option<Multipath>,
        (start, end): (u64, u64),
        edge: u64,
        window_bytes: u64,
    ) -> Judgement {
        let (signal, ends) = match option {
            Some(Multipath::Data(dss)) => (self.read(dss, start, edge), dss.fin),
            Some(Multipath::Capable(said)) => (self.read_capable(said), false),
            Some(Multipath::JoinProof(_)) => {
                self.must_answer = true;
                (Some((None, None)), false)
            }
            Some(Multipath::AddAddress(announced)) => {
                self.news.announced = Some(announced);
                (Some((None, None)), false)
            }
            Some(Multipath::RemoveAddresses(removed)) => {
                self.news.removed = Some(removed);
                (Some((None, None)), false)
            }
            _ => (Some((None, None)), false),
        };
        let Some((ack, mut mapping)) = signal else {
            return Judgement::Ignore;
        };
        let fin = mapping.filter(|_| ends).map(|whole| whole.data + whole.bytes - 1);
        if let Some(whole) = &mut mapping
            && ends
        {
            whole.bytes -= 1;
        }
        if let Some(mapping) =
            mapping.filter(|mapping| mapping.bytes > 0 && mapping.subflow + mapping.bytes > self.next_up)
            && (self.rx.count() >= MAX_MAPPINGS || self.rx.add(mapping).is_err())
        {
            return Judgement::Ignore;
        }
        if !self.rx.cover(start.max(self.next_up), end) {
            return Judgement::Ignore;
        }
        self.set_up.on_heard(matches!(option, Some(Multipath::Data(_))));
        if let Some(ack) = ack {
            self.news.ack = Some((ack, window_bytes));
        }
        self.news.fin = self.news.fin.or(fin);
        Judgement::Take
    }

    /// Data ACK and mapping of a signal, in the numbers used here; `None` when it speaks of bytes that cannot be.
    #[allow(clippy::type_complexity, reason = "two answers, or none")]
    fn read(&self, dss: Dss, start: u64, edge: u64) -> Option<(Option<u64>, Option<ByteMapping>)> {
        let keys = self.set_up.keys()?;
        let ack = match dss.ack {
            Some(ack) => Some(count(
                first_long_number(keys.local),
                ack,
                self.last_ack.max(FIRST_DATA),
            )?),
            None => None,
        };
        let Some(mapped) = dss.mapping else {
            return Some((ack, None));
        };
        let data = count(first_long_number(keys.remote), mapped.data, self.next())?;
        let (reference, length) = (
            start.max(self.first.1) - self.first.1 + 1,
            u64::from(mapped.length),
        );
        let only_the_end = mapped.subflow == 0 && length == 1 && dss.fin;
        let subflow = match mapped.subflow {
            _ if only_the_end => start,
            0 => return None,
            number => (self.first.1 - 1 + expand(ORIGIN + reference, number)).checked_sub(ORIGIN)?,
        };
        let bytes = length - u64::from(dss.fin && length > 0);
        let fits = data >= FIRST_DATA && data + bytes <= self.shared.edge && subflow + bytes <= edge;
        let mapping = ByteMapping {
            subflow,
            data,
            bytes: length,
        };
        (fits && length > 0).then_some((ack, Some(mapping)))
    }

    /// MP_CAPABLE behind the set-up: the keys once more, and what the first bytes are.
    #[allow(clippy::type_complexity, reason = "two answers, or none")]
    fn read_capable(&self, said: Capable) -> Option<(Option<u64>, Option<ByteMapping>)> {
        let keys = self.set_up.keys()?;
        let same = said.sender == Some(keys.remote) && said.receiver == Some(keys.local);
        let mapping = said
            .length
            .filter(|length| *length > 0)
            .map(|length| ByteMapping {
                subflow: self.first.1,
                data: FIRST_DATA,
                bytes: length.into(),
            });
        let fits = mapping.is_none_or(|mapping| FIRST_DATA + mapping.bytes <= self.shared.edge);
        (same && fits).then_some((Some(FIRST_DATA), mapping))
    }

    /// The Data ACK of the last segment was none that an earlier one had said. Asked once per segment.
    pub(crate) fn data_ack_moved(&mut self) -> bool {
        let said = self.news.ack.map_or(0, |(ack, _)| ack);
        let moved = said > self.last_ack;
        self.last_ack = self.last_ack.max(said);
        moved
    }

    /// The option of a segment with the payload that begins at `start`, or of one without.
    pub(crate) fn sign(&mut self, start: Option<u64>) -> Option<Multipath> {
        if start.is_none() && self.notice.is_some() {
            return self.notice.take(); // beside a data sequence signal there is no room
        }
        let keys = self.set_up.keys()?;
        let mapping = start.and_then(|start| self.tx.of(start));
        let at_first = mapping.is_none_or(|mapping| mapping.subflow == self.first.0);
        if let Some(proof) = self.set_up.proof() {
            return Some(Multipath::JoinProof(proof));
        }
        if self.set_up.confirms() && at_first && self.end.is_none() {
            return Some(Multipath::Capable(Capable {
                checksums: false,
                sender: Some(keys.local),
                receiver: Some(keys.remote),
                length: mapping.map(|mapping| mapping.bytes as u16),
            }));
        }
        let end = match start {
            Some(_) => None,
            None => self.end.take(),
        };
        let at = |data: u64| Number::Long(travels(first_long_number(keys.local), data));
        let carried = mapping.map(|mapping| Mapped {
            data: at(mapping.data),
            subflow: truncate(mapping.subflow - self.first.0 + 1),
            length: mapping.bytes as u16,
        });
        let ends = end.map(|fin| Mapped {
            data: at(fin),
            subflow: 0,
            length: 1,
        });
        let ack = travels(first_long_number(keys.remote), self.next());
        Some(Multipath::Data(Dss {
            ack: Some(Number::Long(ack)),
            mapping: carried.or(ends),
            fin: ends.is_some(),
        }))
    }

    /// Bytes from `subflow` on are those from `data` on. They must not have another meaning already.
    pub(crate) fn map(&mut self, subflow: u64, data: u64, bytes: u64) {
        let new = ByteMapping { subflow, data, bytes };
        debug_assert!(self.tx.of(subflow).is_none(), "bytes are mapped once");
        let _once = self.tx.add(new);
    }

    /// TCP has an acknowledgement for every byte below.
    pub(crate) fn acknowledged_below(&mut self, byte: u64) {
        self.tx.release_below(byte);
    }

    /// The next bytes in order of the subflow, cut where mappings end, with their numbers in the connection.
    pub(crate) fn hand_up(&mut self, mut piece: Bytes, arrived: &mut Arrived) {
        while !piece.is_empty() {
            let Some(mapping) = self.rx.of(self.next_up) else {
                break; // not taken without one
            };
            let left = mapping.subflow + mapping.bytes - self.next_up;
            let part = piece.split_to(piece.len().min(left as usize));
            arrived.push((mapping.data_at(self.next_up), part.clone()));
            self.next_up += part.len() as u64;
        }
        self.rx.release_below(self.next_up);
    }

    fn next(&self) -> u64 {
        self.shared.next.unwrap_or(FIRST_DATA)
    }
    pub(crate) fn stamp(&mut self, shared: Shared) {
        self.shared = shared;
    }
    /// Bytes that we take, for the header's field.
    pub(crate) fn window_bytes(&self) -> u64 {
        self.shared.window
    }
    pub(crate) fn take_news(&mut self) -> News {
        std::mem::take(&mut self.news)
    }
    /// The next segment without payload says this of addresses. False while another notice waits.
    pub(crate) fn notify(&mut self, notice: Multipath) -> bool {
        let free = self.notice.is_none();
        self.notice.get_or_insert(notice);
        free
    }
    /// Such a segment is to leave.
    pub(crate) fn has_notice(&self) -> bool {
        self.notice.is_some()
    }
    /// The next segment without payload says that `fin` is the end of our data.
    pub(crate) fn announce_end(&mut self, fin: u64) {
        self.end = Some(fin);
    }
}

/// `number` as it travels, from the end whose numbers begin behind `first`.
fn travels(first: u64, number: u64) -> u64 {
    first.wrapping_add(number.wrapping_sub(ORIGIN))
}

/// The same backwards, next to `near` where only the low half travels. `None`: farther away than anything can be.
fn count(first: u64, number: Number, near: u64) -> Option<u64> {
    let counted = match number {
        Number::Long(number) => ORIGIN.wrapping_add(number.wrapping_sub(first)),
        Number::Short(number) => {
            let ahead = number.wrapping_sub(truncate(travels(first, near))) as i32;
            near.saturating_add_signed(ahead.into())
        }
    };
    (counted < 1 << 62).then_some(counted)
}
