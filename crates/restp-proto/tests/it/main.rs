//! One program for all stories of the protocol in virtual time: they compile and run together. Each module tells of one part.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/orders.rs"]
mod orders;

mod ack_return;
mod ack_schedule;
mod acknowledgement;
mod changes;
mod cookies;
mod era_peers;
mod era_wishes;
mod eras;
mod exploration;
mod failure_bound;
mod fec;
mod handshake;
mod hostile;
mod in_time;
mod mtu;
mod multipath;
mod multipath_failure;
mod multipath_window;
mod opportunistic;
mod outage;
mod own_algorithms;
mod partial;
mod reliability;
mod rlc;
mod secrets;
mod shared_joins;
mod shared_numbers;
mod shared_set_up;
mod spreading;
mod streams;
mod voice_paths;
mod wire_laws;
mod wire_timing;
mod wire_vectors;
