//! Two SCTP hosts over up to three paths, in virtual time.

mod cmt;
mod ending;
mod errors;
mod hostile;
mod interop;
mod network;
mod paths;
mod restart;
mod set_up;
mod smt;
mod transfer;
