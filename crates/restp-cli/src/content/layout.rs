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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::manifest::{Entry, Kind, Modified};

    fn one(bytes: u64) -> Manifest {
        let entry = Entry {
            parent: None,
            name: "a".into(),
            mode: 0o600,
            modified: Modified::default(),
            kind: Kind::File(Some(bytes)),
        };
        Manifest::new(vec![entry]).unwrap()
    }

    fn read(object: &[u8]) -> io::Result<Manifest> {
        list_of(object.len() as u64, |at, into| {
            let there = object.get(at as usize..at as usize + into.len());
            into.copy_from_slice(there.ok_or(io::ErrorKind::UnexpectedEof)?);
            Ok(())
        })
    }

    #[test]
    fn the_list_is_found_at_the_end_and_fits_what_is_before_it() {
        let list = one(5);
        let object = [&b"bytes"[..], &tail(&list).unwrap()].concat();
        assert_eq!(read(&object).unwrap(), list);
        for cut in 0..object.len() {
            assert!(read(&object[..cut]).is_err(), "{cut}");
        }
        let longer = [&b"more bytes"[..], &tail(&list).unwrap()].concat();
        assert!(read(&longer).unwrap_err().to_string().contains("does not fit"));
        let far = [&object[..object.len() - 4], &u32::MAX.to_be_bytes()].concat();
        assert!(read(&far).unwrap_err().to_string().contains("too long"));
    }
}
