//! How files and folders are one object: the bytes of all files in the order of the list, then the list, then its length in four bytes.
//! So one file is an object that begins with it, and what was fetched of it becomes the file by being cut.

use crate::transfer::Manifest;
use std::io;

/// Bytes of the length at the end.
const TAIL_BYTES: u64 = 4;

/// The list and its length, as they end an object.
///
/// # Errors
/// When there are too many entries.
pub fn tail(list: &Manifest) -> Result<Vec<u8>, crate::transfer::manifest::ManifestError> {
    let mut tail = list.encode()?;
    tail.extend((tail.len() as u32).to_be_bytes());
    Ok(tail)
}

/// The list at the end of an object of `length` bytes, which `read_at` reads.
///
/// # Errors
/// When there is none, or it is not that of such an object.
pub fn list_of(length: u64, read_at: impl Fn(u64, &mut [u8]) -> io::Result<()>) -> io::Result<Manifest> {
    let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidData, format!("the list of files {what}"));
    let end = length
        .checked_sub(TAIL_BYTES)
        .ok_or_else(|| wrong("is missing"))?;
    let mut bytes = [0; TAIL_BYTES as usize];
    read_at(end, &mut bytes)?;
    let list_bytes = u64::from(u32::from_be_bytes(bytes));
    if list_bytes > crate::transfer::manifest::MAX_BYTES as u64 {
        return Err(wrong("is too long"));
    }
    let start = end
        .checked_sub(list_bytes)
        .ok_or_else(|| wrong("is longer than the object"))?;
    let mut list = vec![0; list_bytes as usize];
    read_at(start, &mut list)?;
    let list = Manifest::decode(&list).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    match list.bytes() == Some(start) && list.files().all(|(_, bytes)| bytes.is_some()) {
        true => Ok(list),
        false => Err(wrong("does not fit the object")),
    }
}
