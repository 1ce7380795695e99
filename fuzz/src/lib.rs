//! What peers and files control, fed with anything: one function per target. `fuzz_targets/` hands them to libFuzzer,
//! `main.rs` runs them for a while on [`inputs`] made without a fuzzer, `tests/smoke.rs` on the first of these.
//!
//! | Target | An input is |
//! |---|---|
//! | [`wire`] | a PDU |
//! | [`connection`] | a story of two endpoints and a hostile network |
//! | [`streams`] | a story of two ends with streams, segments in any order and made-up ones |
//! | [`packet`] | a sealed datagram, and payloads of handshakes |
//! | [`sealed`] | a story of two sealed endpoints that have met, a stranger and a hostile network |
//! | [`composition`] | keys and values of compositions and needs |
//! | [`itp`] | a message or manifest of ITP, and what a hostile network does to a fetch |
//! | [`scenario`] | a scenario file, or a case of chaos |
//! | [`files`] | tickets, keys, cookies, passes, known peers, messages of a file transfer |

pub mod composition;
pub mod connection;
pub mod files;
pub mod inputs;
pub mod itp;
pub mod packet;
pub mod scenario;
pub mod sealed;
pub mod streams;
pub mod wire;
mod world;

/// Takes one input; panics where something is wrong.
pub type Target = fn(&[u8]);

/// Name and function of each.
pub const TARGETS: [(&str, Target); 9] = [
    ("wire", wire::run),
    ("connection", connection::run),
    ("streams", streams::run),
    ("packet", packet::run),
    ("sealed", sealed::run),
    ("composition", composition::run),
    ("itp", itp::run),
    ("scenario", scenario::run),
    ("files", files::run),
];
