//! Two SCTP hosts over up to three paths, in virtual time.

mod cmt;
mod ending;
mod hostile;
mod interop;
mod network;
mod paths;
mod set_up;
mod smt;
mod transfer;
