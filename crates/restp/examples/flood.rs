//! Requests at a steady rate from many addresses of 127.0.0.0/8: what `bench/flood.py` lets loose on a receiver.
//! usage: flood TARGET PER_SECOND SECONDS [plain|ik|ix]

#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program of its own that keeps a rate"
)]

use restp::clock::Clock;
use restp_base::random::Stream;
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

/// Sockets, each with an address of its own.
const SOURCES: u32 = 500;

/// Bytes of a request: as long as a genuine one.
const BYTES: usize = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [target, rate, seconds, rest @ ..] = words.as_slice() else {
        return Err("usage: flood TARGET PER_SECOND SECONDS [plain|ik|ix]".into());
    };
    let (target, rate, seconds): (SocketAddr, f64, f64) = (target.parse()?, rate.parse()?, seconds.parse()?);
    // First byte: a SYN without a seal, a request for a key nobody has, or one that any bytes are.
    let first = match rest.first().map_or("ix", String::as_str) {
        "plain" => 0x00,
        "ik" => 0x80,
        _ => 0x81,
    };
    let sockets = (0..SOURCES).map(socket).collect::<Result<Vec<_>, _>>()?;
    let mut dice = Stream::named(1, "flood");
    let mut request = [0; BYTES];
    let (clock, mut sent, mut refused) = (Clock::start(), 0_u64, 0_u64);
    while clock.now().as_secs_f64() < seconds {
        let due = (clock.now().as_secs_f64() * rate) as u64;
        if sent >= due {
            std::thread::sleep(Duration::from_micros(500));
            continue;
        }
        for word in request.chunks_mut(8) {
            word.copy_from_slice(&dice.bits().to_le_bytes());
        }
        request[0] = first;
        request[9..25].fill(0); // no proof of the address
        let socket = &sockets[dice.below(SOURCES.into()) as usize];
        refused += u64::from(socket.send_to(&request, target).is_err());
        sent += 1;
    }
    let rate = sent as f64 / seconds;
    println!("{{\"sent\": {sent}, \"per_second\": {rate:.0}, \"refused\": {refused}}}");
    Ok(())
}

fn socket(number: u32) -> std::io::Result<UdpSocket> {
    // Spread over the whole network, and none of it 127.0.0.1.
    UdpSocket::bind((Ipv4Addr::from(0x7F01_0000 + number * 30_011), 0))
}
