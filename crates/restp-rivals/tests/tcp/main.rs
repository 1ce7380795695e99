//! Stories of two TCPs in virtual time: how a connection begins, loses, waits and ends (RFC 9293).

mod current;
mod dsack;
mod fast_open;
mod hostile;
mod network;
mod reports;
mod set_up_and_end;
mod transfer;
