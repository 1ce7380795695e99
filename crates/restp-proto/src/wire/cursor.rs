//! Position inside a header while it is read or written. Lengths are checked once, at the door.

use super::error::{Found, ParseError};

/// Reads a header from front to back.
pub(super) struct Reader<'a> {
    header: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(header: &'a [u8], at: usize) -> Self {
        Reader { header, at }
    }
    /// Byte of the PDU that comes next.
    pub(super) fn offset(&self) -> usize {
        self.at
    }
    /// Whole words not read yet.
    pub(super) fn words_left(&self) -> usize {
        (self.header.len() - self.at) / 4
    }
    /// The next `N` bytes, which `expected` names.
    #[inline]
    pub(super) fn take<const N: usize>(&mut self, expected: &'static str) -> Result<&'a [u8; N], ParseError> {
        let rest = &self.header[self.at..];
        let Some(taken) = rest.first_chunk() else {
            return Err(ParseError::new(self.at, expected, Found::Bytes(rest.len())));
        };
        self.at += N;
        Ok(taken)
    }
    /// The next word, which `expected` names.
    #[inline]
    pub(super) fn word(&mut self, expected: &'static str) -> Result<u32, ParseError> {
        self.take(expected).map(|bytes| u32::from_be_bytes(*bytes))
    }
    /// The next `words` words, which `expected` names.
    pub(super) fn words(&mut self, words: usize, expected: &'static str) -> Result<&'a [u8], ParseError> {
        let rest = &self.header[self.at..];
        let Some(taken) = rest.get(..4 * words) else {
            return Err(ParseError::new(self.at, expected, Found::Bytes(rest.len())));
        };
        self.at += taken.len();
        Ok(taken)
    }
}

/// Writes a header from front to back into a buffer of exactly its length, filled with zeros.
pub(super) struct Writer<'a> {
    header: &'a mut [u8],
    at: usize,
}

impl<'a> Writer<'a> {
    pub(super) fn new(header: &'a mut [u8]) -> Self {
        Writer { header, at: 0 }
    }
    /// Leaves `count` bytes as they are.
    pub(super) fn skip(&mut self, count: usize) {
        self.at += count;
    }
    /// Writes `bytes`.
    #[inline]
    pub(super) fn put(&mut self, bytes: &[u8]) {
        let end = self.at + bytes.len();
        self.header[self.at..end].copy_from_slice(bytes);
        self.at = end;
    }
    /// Writes one word.
    #[inline]
    pub(super) fn word(&mut self, word: u32) {
        self.put(&word.to_be_bytes());
    }
}
