//! Stories of two MPTCPs in virtual time (RFC 8684): how a connection gets its second path, uses both, loses one and ends.

mod addresses;
mod hostile;
mod network;
mod paths;
mod redial;
mod set_up;
mod sharing;
