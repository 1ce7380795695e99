//! The receiver of one stream of numbers: what becomes of an arrival, when an acknowledgement is due and what it may say,
//! and what the peer may send. A protocol adds a codec, addresses, set-up and release.
//!
//! | Door | Asked | File |
//! |---|---|---|
//! | [`Receiver::on_segment`], [`Receiver::on_bytes`] | numbered data has arrived | `arrival` |
//! | [`Receiver::on_encoded`] | something that repairs has arrived | `repair` |
//! | [`Receiver::read`] | the application reads | here |
//! | [`Receiver::advertise`] | what may the peer send (ResTP §3.5.4)? | `credit` |
//! | [`Receiver::acknowledgement`] | is one due (ResTP §3.5.9)? | here |
//! | [`Receiver::turn_at`] | other services from a number on | `turn` |
//! | [`Receiver::skip_holes`] | what is missing comes too late (ResTP §3.5.7) | `arrival` |

mod arrival;
mod credit;
mod pace;
mod repair;
mod store;
mod turn;

pub use arrival::Contradiction;
pub use repair::Repair;

use crate::ack::{AckTimer, NakReporter, Uncarried};
use crate::flow_control::{ReceiveWindow, WindowParameters};
use crate::ordering::{Arrived, HoldParameters, Inbox, Ordering, Reassembly};
use crate::reliability::FecDecoder;
use bytes::Bytes;
use pace::Pace;
use repair::Repairs;
use restp_base::flow::Read;
use restp_base::sequence;
pub(crate) use store::Store;
use turn::Turn;

/// Receive limits where no window is advertised: memory stays bounded all the same.
pub const UNADVERTISED_WINDOW: WindowParameters = WindowParameters { segments: 8192 };

/// Pieces of a byte stream that may wait to be read: tiny segments cost more memory than the window counts.
pub(crate) const MAX_PIECES: usize = 16_384;

/// One end's receiver.
#[derive(Debug)]
pub struct Receiver {
    store: Store,
    window: ReceiveWindow,
    /// Payload bytes of a full segment of ours: what memory the window promises.
    segment_bytes: u32,
    /// The same by itself, where credit counts bytes of segments of any size.
    buffer_bytes: Option<usize>,
    ack: AckTimer,
    nak: NakReporter,
    inbox: Inbox,
    repairs: Option<Box<Repairs>>,
    /// How many were rebuilt.
    rebuilt: u64,
    /// What was rebuilt or given up lately.
    uncarried: Uncarried,
    /// What holds from a number on that is not reached yet.
    turn: Option<Box<Turn>>,
    /// How long a hole may hold up what came after it, where holes may stay.
    hold: Option<HoldParameters>,
    pace: Pace,
    /// Number of the peer's FIN, once seen.
    fin: Option<u64>,
    /// The application does not read any more.
    discards: bool,
    /// Bytes and pieces read.
    delivered: (u64, u64),
}

impl Receiver {
    /// Nothing is known of the peer's numbers yet. `window` is what is granted all the same, `nak` names gaps, and `hold` says
    /// how long one may stay.
    pub fn new(
        segment_bytes: u32,
        window: WindowParameters,
        ack: AckTimer,
        nak: NakReporter,
        hold: Option<HoldParameters>,
    ) -> Self {
        Receiver {
            store: Store::Unknown,
            window: ReceiveWindow::new(sequence::ORIGIN, window),
            segment_bytes,
            buffer_bytes: None,
            ack,
            nak,
            inbox: Inbox::default(),
            repairs: None,
            rebuilt: 0,
            uncarried: Uncarried::default(),
            turn: None,
            hold,
            pace: Pace::default(),
            fin: None,
            discards: false,
            delivered: (0, 0),
        }
    }

    /// The peer numbers segments, the first is `next`, and `window` of them are taken.
    pub fn begin_segments(
        &mut self,
        next: u64,
        ordering: Ordering,
        window: WindowParameters,
        nak: NakReporter,
    ) {
        self.store = Store::Segments(Reassembly::new(ordering, next));
        self.window = ReceiveWindow::new(next, window);
        self.nak = nak;
    }

    /// The peer numbers segments of any size, the first is `next`, and `bytes` of them are held: what is free is for them
    /// ([`Receiver::free_bytes`]).
    pub fn begin_messages(&mut self, next: u64, bytes: usize, nak: NakReporter) {
        let window = WindowParameters { segments: u32::MAX };
        self.begin_segments(next, Ordering::Ordered, window, nak);
        self.buffer_bytes = Some(bytes);
    }

    /// The peer numbers bytes, the first is `next`, and `units` of `1 << shift` are taken, in at most `pieces` out of order.
    pub fn begin_bytes(&mut self, next: u64, shift: u8, units: u32, pieces: usize, nak: NakReporter) {
        self.store = Store::bytes(next, shift, pieces);
        self.window = ReceiveWindow::new(next >> shift, WindowParameters { segments: units });
        self.nak = nak;
    }

    /// From now on what arrives may be repaired by encoded packets. With `reports`, what is beyond repair is reported.
    pub fn repair_by(&mut self, decoder: FecDecoder, reports: bool) {
        self.repairs = Some(Box::new(Repairs::new(decoder, reports)));
    }

    /// How many blocks an acknowledgement names, where the composition has so many.
    pub fn blocks(&self, composed: u8) -> u8 {
        self.ack.blocks(composed)
    }

    /// From now on acknowledgements are due by `ack`, and the next one leaves at once.
    pub fn acknowledge_by(&mut self, ack: AckTimer) {
        self.ack = ack;
        self.ack.on_urgent_once();
    }

    /// From now on a hole stays for `hold`.
    pub fn hold_for(&mut self, hold: Option<HoldParameters>) {
        self.hold = hold;
    }

    /// RCV.NXT: nothing below it is needed any more. None before the peer's first number is known.
    pub fn next(&self) -> Option<u64> {
        self.store.next()
    }
    /// What has arrived beyond RCV.NXT; none while nothing is missing.
    pub fn beyond_hole(&self) -> Option<&Arrived> {
        self.store
            .arrived()
            .filter(|arrived| !arrived.ranges().is_empty())
    }
    /// The gap that the next acknowledgement names, where one is named at a time.
    pub fn next_gap(&mut self) -> Option<std::ops::Range<u64>> {
        let arrived = self.store.arrived()?.ranges();
        self.nak.next_report(self.store.next()?, arrived)
    }
    /// When acknowledgements are due: what the protocol itself knows of them is told here.
    pub fn acknowledgement(&mut self) -> &mut AckTimer {
        &mut self.ack
    }
    /// The same, to look at.
    pub fn ack_timer(&self) -> &AckTimer {
        &self.ack
    }

    /// Takes the next data for the reader; there is no more when `ended` and nothing waits. With `offers` a sender that
    /// believes there is no room is told when reading has made some.
    pub fn read(&mut self, ended: bool, offers: bool) -> Read {
        let Some(data) = self.inbox.pop() else {
            return if ended { Read::End } else { Read::Empty };
        };
        self.delivered.0 += data.len() as u64;
        self.delivered.1 += 1;
        if offers {
            self.offer_window();
        }
        Read::Data(data)
    }
    /// What was read so far: bytes, and pieces.
    pub fn delivered(&self) -> (u64, u64) {
        self.delivered
    }
    /// Everything that waits, for somebody else who tells the reader.
    pub fn drain(&mut self) -> impl Iterator<Item = Bytes> {
        self.inbox.drain()
    }
    /// To be called whenever something arrived or `ended`: true when the reader has to be told.
    pub fn has_news(&mut self, ended: bool) -> bool {
        if self.discards {
            self.inbox.clear();
        }
        self.inbox.has_news(ended)
    }
    /// The application has lost interest: what is unread is dropped, and with `from_now_on` what comes as well.
    pub fn discard(&mut self, from_now_on: bool) {
        self.inbox.clear();
        self.discards |= from_now_on;
    }
    /// The connection is over: nothing is repaired any more.
    pub fn stop(&mut self) {
        (self.repairs, self.turn) = (None, None);
    }

    /// Payload bytes held back or unread.
    pub fn held_bytes(&self) -> usize {
        self.store.held_bytes() + self.inbox.bytes()
    }
    /// Bytes of memory that it keeps.
    pub fn memory(&self) -> usize {
        let later = self.turn.as_ref().and_then(|turn| turn.repairs.as_ref());
        let repairs = self.repairs.iter().chain(later);
        self.held_bytes() + repairs.map(|repairs| repairs.memory()).sum::<usize>()
    }
}

#[cfg(test)]
mod tests;
