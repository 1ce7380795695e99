//! The two ends of `bench/soak.py`: a server that sends back what it gets, and clients whose connections of every kind come
//! and go. Both check every byte. One JSON line every five seconds, and one for each connection that broke.
//!
//! usage: soak server KEY LISTEN...
//!        soak client KEY FIRST-PORT SEED CONNECTIONS LIFE PEER...
//!
//! KEY is a number that makes a name which lasts beyond the process; PEER is the number of a server and its addresses, as in
//! 1@127.0.0.1:7001,127.0.0.1:7002; LIFE is how many seconds a connection lasts on average.

#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program of its own that lives in real time"
)]

mod client;
mod kind;
mod pattern;
mod report;
mod server;

use report::Report;
use restp::{Identity, SecretKey, Security, Trust};
use std::error::Error;
use std::sync::Arc;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    // One thread: what a process holds then depends on what it does, not on which thread did it.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let report = Arc::new(Report::default());
        tokio::spawn(report::print(report.clone()));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["server", key, listen @ ..] if !listen.is_empty() => {
                server::run(key.parse()?, listen, report).await
            }
            ["client", key, port, seed, connections, life, peers @ ..] if !peers.is_empty() => {
                let plan = client::Plan {
                    key: key.parse()?,
                    first_port: port.parse()?,
                    seed: seed.parse()?,
                    connections: connections.parse()?,
                    life_s: life.parse()?,
                };
                client::run(plan, peers, report).await
            }
            _ => Err(
                "usage: soak server KEY LISTEN... | soak client KEY FIRST-PORT SEED CONNECTIONS LIFE PEER..."
                    .into(),
            ),
        }
    })
}

/// The name that a number makes: nobody's secret.
fn secret(number: u8) -> SecretKey {
    SecretKey::from_chance([number; 32])
}

/// Sealed under that name.
fn security(number: u8) -> Security {
    Security::Sealed(Identity {
        trust: Trust::Anybody, // for the peers whose key is not told
        ..Identity::of(secret(number))
    })
}
