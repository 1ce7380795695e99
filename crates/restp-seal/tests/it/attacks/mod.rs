//! What an attacker can do, each with its outcome: at most the network he already is. Nobody reads, ends, moves or names what is
//! not his.

mod asking;
mod claims;
mod identity;
mod moves;
mod packets;
mod resets;
mod set_up;
