//! Messages and fragments (RFC 9260 §6.5, §6.9): what is written is cut into chunks, and what arrives becomes messages again. All
//! of it travels in one ordered stream. Of a peer's further streams messages are read in the order in which they were sent,
//! which keeps that of each.

use super::chunk::Fragment;
use bytes::{Bytes, BytesMut};
use std::collections::{BTreeMap, VecDeque};

/// The stream of what is written here.
const STREAM: u16 = 0;

/// What the chunks say of their payload that are queued or outstanding, in the order of their numbers.
#[derive(Debug)]
pub(super) struct Outbound {
    /// Number of the first of them.
    first: u64,
    fragments: VecDeque<Fragment>,
    next_ssn: u16,
}

impl Outbound {
    pub fn new(first: u64) -> Self {
        Outbound {
            first,
            fragments: VecDeque::new(),
            next_ssn: 0,
        }
    }

    /// Cuts a message, which is not empty, into payloads of at most `segment` bytes.
    pub fn cut(message: &Bytes, segment: usize) -> Vec<Bytes> {
        let starts = (0..message.len()).step_by(segment);
        starts
            .map(|at| message.slice(at..message.len().min(at + segment)))
            .collect()
    }

    /// A message of so many fragments was queued.
    pub fn push(&mut self, fragments: usize) {
        for index in 0..fragments {
            self.fragments.push_back(Fragment {
                stream: STREAM,
                ssn: self.next_ssn,
                is_first: index == 0,
                is_last: index + 1 == fragments,
                ..Fragment::default()
            });
        }
        self.next_ssn = self.next_ssn.wrapping_add(1);
    }

    /// What the chunk `number` says, but for the number itself.
    pub fn fragment(&self, number: u64) -> Option<Fragment> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.fragments.get(index).copied()
    }

    /// Everything below `number` is acknowledged.
    pub fn release_below(&mut self, number: u64) {
        while self.first < number && self.fragments.pop_front().is_some() {
            self.first += 1;
        }
        if self.fragments.is_empty() && self.fragments.capacity() > 64 {
            self.fragments = VecDeque::new();
        }
    }

    pub fn memory(&self) -> usize {
        self.fragments.capacity() * size_of::<Fragment>()
    }
}

/// What is known of chunks that have arrived and were not read, and the message that is being put together.
#[derive(Debug)]
pub(super) struct Inbound {
    /// Number of the next chunk to read.
    next: u64,
    arrived: BTreeMap<u64, Fragment>,
    partial: BytesMut,
    /// A message is under way.
    open: bool,
    /// Bytes of a message above which its parts are handed up as they come.
    most: usize,
    /// Streams that were agreed on.
    streams: u16,
    messages: u64,
    bytes: u64,
    /// Nobody reads any more.
    is_discarded: bool,
}

impl Inbound {
    pub fn new(next: u64, most: usize, streams: u16) -> Self {
        Inbound {
            next,
            arrived: BTreeMap::new(),
            partial: BytesMut::new(),
            open: false,
            most,
            streams,
            messages: 0,
            bytes: 0,
            is_discarded: false,
        }
    }

    /// Nobody reads any more: nothing is kept.
    pub fn discard(&mut self) {
        self.is_discarded = true;
        self.arrived = BTreeMap::new();
        self.partial = BytesMut::new();
    }

    /// The chunk `number` has arrived, perhaps once more after it had been discarded.
    pub fn note(&mut self, number: u64, fragment: Fragment) {
        if !self.is_discarded {
            self.arrived.insert(number, fragment);
        }
    }

    /// Is this stream one that was agreed on?
    pub fn has_stream(&self, stream: u16) -> bool {
        stream < self.streams
    }

    /// Takes the next payload in order. What can be read now, if that completes a message, or begins to fill the buffer. What came by
    /// a stream that was not agreed on is dropped, and had its place in the buffer until now (RFC 9260 §6.5).
    pub fn take(&mut self, payload: Bytes) -> Option<Bytes> {
        let fragment = self.arrived.remove(&self.next).unwrap_or_default();
        self.next += 1;
        if !self.has_stream(fragment.stream) {
            return None;
        }
        let is_whole = fragment.is_first && fragment.is_last && self.partial.is_empty();
        let message = if is_whole {
            payload
        } else {
            self.partial.extend_from_slice(&payload);
            self.open = !fragment.is_last;
            if self.open && self.partial.len() < self.most {
                return None;
            }
            self.partial.split().freeze()
        };
        self.messages += 1;
        self.bytes += message.len() as u64;
        Some(message)
    }

    /// Bytes of the message under way.
    pub fn held_bytes(&self) -> usize {
        self.partial.len()
    }

    /// Bytes and messages read.
    pub fn delivered(&self) -> (u64, u64) {
        (self.bytes, self.messages)
    }

    pub fn memory(&self) -> usize {
        self.partial.len() + self.arrived.len() * size_of::<(u64, Fragment)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_cut_and_put_together_again() {
        let (mut out, mut into) = (Outbound::new(5), Inbound::new(5, 1 << 20, 1));
        let messages: Vec<_> = [1usize, 100, 101, 250]
            .map(|length| Bytes::from(vec![length as u8; length]))
            .into();
        let mut read = Vec::new();
        let mut number = 5;
        for message in &messages {
            let parts = Outbound::cut(message, 100);
            assert!(parts.iter().all(|part| (1..=100).contains(&part.len())));
            out.push(parts.len());
            for part in parts {
                into.note(number, out.fragment(number).expect("queued"));
                read.extend(into.take(part));
                number += 1;
            }
        }
        assert_eq!(read, messages);
        assert_eq!((number, into.delivered(), into.held_bytes()), (12, (452, 4), 0));
        let numbers = (5..12).map(|number| out.fragment(number).expect("outstanding").ssn);
        assert_eq!(numbers.collect::<Vec<_>>(), [0, 1, 2, 2, 3, 3, 3]);
        out.release_below(11);
        assert!(out.fragment(10).is_none() && out.fragment(11).is_some() && out.fragment(12).is_none());
    }

    #[test]
    fn what_nobody_reads_is_not_kept() {
        let mut into = Inbound::new(5, 1 << 20, 1);
        into.note(5, Fragment::default());
        into.discard();
        into.note(6, Fragment::default());
        assert!(into.arrived.is_empty());
    }

    #[test]
    fn a_message_larger_than_its_share_of_the_buffer_is_handed_up_in_parts() {
        let mut into = Inbound::new(0, 250, 1);
        let mut read = Vec::new();
        for number in 0..6 {
            into.note(
                number,
                Fragment {
                    is_first: number == 0,
                    is_last: number == 5,
                    ..Fragment::default()
                },
            );
            read.extend(into.take(Bytes::from_static(&[7; 100])).map(|part| part.len()));
            assert!(into.held_bytes() < 250);
        }
        assert_eq!(read, [300, 300]);
    }
}
