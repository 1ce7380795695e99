//! The built command as a user starts it. One program for all of it: each further one would be linked by itself.

mod attacks;
mod commands;
mod common;
mod content;
mod cookies;
mod endings;
mod folders;
mod forward;
mod key_files;
mod links;
mod monitor;
mod multipath;
mod multipath_tun;
mod pipe;
mod qlog;
mod relay;
mod resume;
mod rights;
mod seal;
mod serve;
mod shared_port;
mod socks;
mod streams;
mod transfer;
mod tunnel;
mod udp;
