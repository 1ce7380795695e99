//! Position inside a header while it is read or written. Lengths are checked once, at the door.

use super::error::{Found, ParseError};

/// Reads a header from front to back. Whatever is asked of it, it returns (`make proof`).
pub(super) struct Reader<'a> {
    header: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// From byte `at` on.
    pub(super) fn new(header: &'a [u8], at: usize) -> Self {
        Reader {
            header,
            rest: header.get(at..).unwrap_or(&[]),
        }
    }
    /// Byte of the PDU that comes next.
    pub(super) fn offset(&self) -> usize {
        self.header.len().saturating_sub(self.rest.len())
    }
    /// Whole words not read yet.
    pub(super) fn words_left(&self) -> usize {
        self.rest.len() / 4
    }
    /// The next `N` bytes, which `expected` names.
    #[inline]
    pub(super) fn take<const N: usize>(&mut self, expected: &'static str) -> Result<&'a [u8; N], ParseError> {
        let Some((taken, rest)) = self.rest.split_first_chunk() else {
            return Err(self.missing(expected));
        };
        self.rest = rest;
        Ok(taken)
    }
    /// The next word, which `expected` names.
    #[inline]
    pub(super) fn word(&mut self, expected: &'static str) -> Result<u32, ParseError> {
        self.take(expected).map(|bytes| u32::from_be_bytes(*bytes))
    }
    /// The next `words` words, which `expected` names.
    pub(super) fn words(&mut self, words: usize, expected: &'static str) -> Result<&'a [u8], ParseError> {
        let Some((taken, rest)) = self.rest.split_at_checked(words.saturating_mul(4)) else {
            return Err(self.missing(expected));
        };
        self.rest = rest;
        Ok(taken)
    }
    #[cold]
    fn missing(&self, expected: &'static str) -> ParseError {
        ParseError::new(self.offset(), expected, Found::Bytes(self.rest.len()))
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
