//! Data before the exchange is complete (RFC 7413): inside the SYN of an opener that shows a cookie, and at once behind the
//! answer of a server that trusts it. What may be sent and taken is decided by [`Exchange`].

use super::{Connection, State};
use crate::tcp::fast_open::FastOpen;
use crate::tcp::wire::{Flags, Header};
use bytes::Bytes;
use restp_base::sequence::expand;
use restp_base::time::Time;
use restp_services::connection_management::{Cookie, Exchange, Notice};
use restp_services::ordering::Stretch;

/// Payload of a SYN to a peer whose maximum is not known (RFC 7413 §4.1.3, RFC 9293 §3.7.1).
const SYN_BYTES: usize = 536;

impl Connection {
    /// What the opener shows to the server.
    pub(crate) fn with_exchange(mut self, exchange: Option<Exchange>) -> Self {
        self.exchange = exchange;
        self
    }

    /// The answer to a SYN that showed what `exchange` is made of, and may carry data.
    pub(crate) fn answering(mut self, now: Time, exchange: Option<Exchange>, payload: Bytes) -> Self {
        self.exchange = exchange;
        if self.trusts() {
            self.sender.start_timer();
            self.notices.push_back(Notice::Accepted);
            if !payload.is_empty() {
                let start = self.receive_next();
                self.receiver.promise_bytes(payload.len() as u64);
                let fin = false;
                self.on_data(now, Stretch { start, payload, fin });
                self.stats.early_segments += 1;
            }
        }
        self
    }

    /// The peer has proved its address: its data are taken, and ours may follow, before the exchange is complete.
    pub(super) fn trusts(&self) -> bool {
        self.exchange == Some(Exchange::Trust)
    }

    /// Payload of the SYN that is due. Only the first one has any: a retransmission says nothing of cookies, so that whatever
    /// dropped the first lets it pass (RFC 7413 §4.1.3).
    pub(super) fn early_payload(&mut self, now: Time) -> Bytes {
        let State::SynSent(handshake) = &self.state else {
            return Bytes::new();
        };
        if handshake.is_retransmitted() {
            self.exchange = None;
        }
        let may = self.exchange.is_some_and(|exchange| exchange.may_send(0, true));
        let most = SYN_BYTES.min(self.parameters.segment_bytes as usize);
        if !may {
            return Bytes::new();
        }
        let Some(payload) = self.sender.next_in_set_up(now, most) else {
            return Bytes::new();
        };
        self.numbers.push(payload.len() as u64);
        self.wake_writer();
        payload
    }

    /// Does `acknowledgement` name our SYN, and nothing that was not sent with it?
    pub(super) fn names_our_syn(&self, acknowledgement: u32) -> bool {
        let first = self.numbers.first_byte();
        (first..=self.numbers.next_byte()).contains(&expand(first, acknowledgement))
    }

    /// The server's answer to data in our SYN: what it has not taken leaves again at once, and says nothing of the path.
    pub(super) fn on_early_answer(&mut self, now: Time, answer: &Header) {
        if let Some(FastOpen::Cookie(cookie)) = answer.options.fast_open {
            self.fresh_cookie = Some(cookie);
        }
        if self.sender.is_drained() {
            return;
        }
        let _believed = self.on_feedback(now, answer, false);
        if self.sender.is_drained() {
            self.stats.early_segments += 1;
        } else {
            self.sender.retransmit_all();
        }
    }

    /// A cookie that the server has given, once.
    pub(crate) fn take_cookie(&mut self) -> Option<Cookie> {
        self.fresh_cookie.take()
    }

    /// How far the window of this header is shifted: that of a SYN is not (RFC 7323 §2.2).
    pub(super) fn shift_of(&self, header: &Header) -> u8 {
        if header.flags.has(Flags::SYN) {
            0
        } else {
            self.agreed.peer_shift
        }
    }
}
