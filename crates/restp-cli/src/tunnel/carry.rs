//! Packets both ways between a device and a connection.

use super::mss::clamp;
use super::outlet::Outlet;
use super::pieces::{Assembly, Pieces, REST, is_packet};
use crate::datagrams::{Message, Open};
use crate::pipe::Answer;
use crate::subnet::Subnet;
use restp::Connection;
use restp::tun::{Tun, TunConfig};
use std::io;

/// Packets that the device holds until they are read, which is at once: a host sends all that its window allows in one burst.
const BURST_PACKETS: u32 = 5_000;

/// Why nothing is carried any more.
#[derive(Debug)]
pub enum End {
    /// The connection is over.
    Connection,
    /// The peer wants no more.
    Refused(String),
    /// The device is gone.
    Device(io::Error),
}

/// Bytes of a device's name on Linux, less the zero behind it (IFNAMSIZ).
const MOST_NAME_BYTES: usize = 15;

/// A name that a device can have.
///
/// # Errors
/// With a sentence, when none can have it.
pub fn device_name(word: &str) -> Result<String, String> {
    let is_no_name = |byte: u8| byte.is_ascii_whitespace() || b"/:%".contains(&byte);
    if word.is_empty()
        || word.len() > MOST_NAME_BYTES
        || word.bytes().any(is_no_name)
        || matches!(word, "." | "..")
    {
        return Err(format!(
            "no device can have this name; write up to {MOST_NAME_BYTES} bytes without spaces, /, : and %, such as tun0"
        ));
    }
    Ok(word.to_owned())
}

/// The device of a tunnel with `address` here, for what `connection` carries.
///
/// # Errors
/// With a sentence, when the system refuses.
pub fn device(name: Option<String>, address: Subnet, connection: &Connection) -> Result<Tun, String> {
    let config = TunConfig {
        name: name.clone(),
        mtu: pieces(connection).mtu(),
        address: (address.address, address.prefix),
        queue_packets: Some(BURST_PACKETS),
    };
    Tun::open(&config).map_err(|error| {
        let name = name.map(|name| format!(" {name:?}")).unwrap_or_default();
        format!(
            "cannot make a TUN device{name} with {address}: {error}; {}",
            way_out(&error)
        )
    })
}

/// What to do about an error when a device is made.
fn way_out(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound => {
            "it takes the right CAP_NET_ADMIN, which root has, and /dev/net/tun"
        }
        _ => "`ip address` shows the devices and addresses that are there",
    }
}

/// How packets fit into what `connection` carries at a time.
fn pieces(connection: &Connection) -> Pieces {
    let composition = connection.composition();
    Pieces::of(composition.map_or(0, |composition| composition.payload_bytes()))
}

/// Carries packets until one of both ends. Whoever asks again is given `answer` again.
pub async fn carry(connection: &Connection, device: &Tun, answer: Option<&Answer>) -> End {
    tokio::select! {
        end = outward(connection, device) => end,
        end = inward(connection, device, answer) => end,
    }
}

async fn outward(connection: &Connection, device: &Tun) -> End {
    let mut buffer = vec![0; usize::from(u16::MAX)];
    let pieces = pieces(connection);
    let mut outlet = Outlet::of(connection, pieces, usize::from(device.mtu()));
    loop {
        let received = tokio::select! {
            received = device.recv(&mut buffer) => received,
            () = outlet.run(connection) => return End::Connection,
        };
        let packet = match received {
            Ok(length) => &mut buffer[..length],
            Err(error) => return End::Device(error),
        };
        if is_packet(packet) {
            clamp(packet, pieces, device.mtu());
            outlet.push(packet);
        }
    }
}

async fn inward(connection: &Connection, device: &Tun, answer: Option<&Answer>) -> End {
    let (pieces, mut assembly) = (pieces(connection), Assembly::default());
    while let Some(message) = connection.recv().await {
        let whole = match message.first() {
            Some(&REST) => assembly.add(&message[1..]),
            _ if is_packet(&message) => assembly.begin(&message),
            _ => None,
        };
        if let Some(mut packet) = whole {
            clamp(&mut packet, pieces, device.mtu());
            // One that this host does not take is lost; whether the device is gone shows when it is read.
            let _ = device.send(&packet).await;
            continue;
        }
        match Message::decode(&message) {
            Some(Message::Open(Open { .. })) => {
                if let Some(answer) = answer {
                    let _ = connection.send(Message::Answer(answer.clone()).encode()).await;
                }
            }
            Some(Message::Answer(Answer::Refused(refusal))) => return End::Refused(refusal.sentence),
            _ => {}
        }
    }
    End::Connection
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_no_device_can_have_are_refused() {
        for word in ["tun0", "fifteen-bytes-x", "äöü"] {
            assert_eq!(device_name(word).as_deref(), Ok(word));
        }
        for word in ["", ".", "..", "sixteen-bytes-xx", "a b", "a/b", "a:b", "tun%d"] {
            assert!(device_name(word).is_err(), "{word}");
        }
    }

    #[test]
    fn what_to_do_is_said_of_the_error_at_hand() {
        let way_out = |kind: io::ErrorKind| way_out(&kind.into());
        assert!(way_out(io::ErrorKind::PermissionDenied).contains("CAP_NET_ADMIN"));
        assert!(way_out(io::ErrorKind::AlreadyExists).contains("ip address"));
    }
}
