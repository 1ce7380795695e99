//! MPTCP (RFC 8684, version 1) as a comparison protocol: TCP connections as subflows, and what they share. Which path takes
//! the next bytes, what the windows do and which segments are lost is decided by the same services that ResTP uses.
//!
//! | File | Holds |
//! |---|---|
//! | [`options`], `dss` | every byte of the option |
//! | `set_up` | who a subflow is: keys, joins |
//! | `subflow` | what one TCP says and hears for the connection above |
//! | `connection` | the connection: data numbers, one window, schedule, reinjection, end |
//! | `parameters` | names, and keys beside those of TCP |
//!
//! The [`Machine`](restp_base::machine::Machine) is that of TCP, [`Tcp`](crate::tcp::Tcp). Where the RFC leaves a choice, it
//! is Linux's: the path with the least round-trip time that has room; what a subflow carries is given to another one when
//! its timer runs out, and until something comes back it gets nothing new; numbers of 64 bits, no check sums.
//!
//! Left out, because no comparison here turns on it: addresses that are announced or withdrawn (ADD_ADDR, REMOVE_ADDR; the
//! opener knows all paths), changes of priority (MP_PRIO), MP_FASTCLOSE (every subflow is reset instead), check sums, and
//! falling back to one path after the set-up (MP_FAIL, infinite mappings): bytes without a mapping are dropped.

pub(crate) mod connection;
pub(crate) mod dss;
pub mod options;
mod parameters;
pub(crate) mod set_up;
pub(crate) mod subflow;
