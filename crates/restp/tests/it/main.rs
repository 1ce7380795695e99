//! Endpoints and the emulator over real sockets. One program for all of it: each further one would be linked by itself.

mod addresses;
mod algorithms;
mod attacks;
mod changes;
mod common;
mod driver;
mod early_data;
mod emulator;
mod emulator_tun;
mod guests;
mod mtu;
mod multipath;
mod parity;
mod partial;
mod sctp;
mod shared_port;
mod streams;
mod toy;
mod transfer;
mod trust;
