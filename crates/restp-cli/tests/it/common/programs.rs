//! Programs at both ends of `restp forward` and `restp serve`.

#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "every test file uses a part of it; in a test a failed unwrap is a failed test"
)]

use super::Running;
use socket2::SockRef;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::spawn;
use std::time::Duration;

/// A server that allows `places`, and its ticket and address.
pub struct Server {
    pub running: Running,
    pub ticket: String,
    pub address: String,
}

pub fn serve(places: &[&str], options: &[&str]) -> Server {
    serve_at("127.0.0.1:0", places, options)
}

pub fn serve_at(listen: &str, places: &[&str], options: &[&str]) -> Server {
    let allow = places.iter().flat_map(|place| ["--allow", place]);
    let words: Vec<&str> = ["serve", "--json", "--listen", listen]
        .into_iter()
        .chain(allow)
        .collect();
    let mut running = Running::start(&[&words, options].concat());
    let invitation = running.json();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    Server {
        ticket: text(&invitation["ticket"]),
        address: text(&invitation["addresses"][0]),
        running,
    }
}

/// A running `restp forward`, and where it listens.
pub struct Forward {
    pub running: Running,
    pub listens: Vec<SocketAddr>,
}

pub fn forward(ticket: &str, options: &[&str]) -> Forward {
    let mut running = Running::start(&[&["forward", "--json", ticket], options].concat());
    let ready = running.json();
    let listens = ready["forwards"].as_array().unwrap().iter();
    let listens = listens.map(|told| told["listen"].as_str().unwrap().parse().unwrap());
    Forward {
        listens: listens.collect(),
        running,
    }
}

/// A target that lets `act` serve each connection, and its address.
pub fn target(act: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let act = Arc::new(act);
    spawn(move || {
        for stream in listener.incoming() {
            let act = act.clone();
            spawn(move || act(stream.unwrap()));
        }
    });
    address
}

/// Sends `bytes` and then the end, while it reads to the end.
pub fn exchange(mut stream: TcpStream, bytes: Vec<u8>) -> Vec<u8> {
    let mut reading = stream.try_clone().unwrap();
    let read = spawn(move || {
        let mut read = Vec::new();
        reading.read_to_end(&mut read).unwrap();
        read
    });
    stream.write_all(&bytes).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    read.join().unwrap()
}

/// Sends the end back behind what came.
pub fn echo(mut stream: TcpStream) {
    let mut buffer = [0; 65_536];
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        if stream.write_all(&buffer[..read]).is_err() {
            return;
        }
    }
    let _ = stream.shutdown(Shutdown::Write);
}

pub fn reset(stream: TcpStream) {
    SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
}

pub fn rule(listen: &str, target: SocketAddr) -> String {
    format!("{listen}:{target}")
}

pub fn tcp(target: SocketAddr) -> String {
    format!("tcp:{target}")
}
