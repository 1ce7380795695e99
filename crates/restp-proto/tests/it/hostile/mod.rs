//! Everything a peer, the network or an application may do wrong, each with its outcome: a counted drop or a clear
//! end; never a panic, a hang, unbounded memory, or data that nobody wrote.

mod application;
mod encoded;
mod ends;
mod floods;
mod joins;
mod moves;
mod numbers;
mod packets;
mod paths;

/// What a receiver takes at most beyond what it has, where nothing else is chosen.
const WINDOW: u32 = 32_768;
