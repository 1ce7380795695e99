//! MPTCP (RFC 8684, version 1) as a comparison protocol: TCP connections as subflows, and what they share. Which path takes
//! the next bytes, what the windows do and which segments are lost is decided by the same services that ResTP uses.
//!
//! | File | Holds |
//! |---|---|
//! | `subflow` of this crate | what one TCP says and hears for the connection above: [`options`], keys, joins |
//! | `connection` | the connection: data numbers, one window, schedule, reinjection, addresses, end |
//! | `parameters` | names, and keys beside those of TCP |
//!
//! The [`Machine`](restp_base::machine::Machine) is that of TCP, [`Tcp`](crate::host::Tcp). Where the RFC leaves a choice, it
//! is Linux's: the path with the least round-trip time that has room; what a subflow carries is given to another one when
//! its timer runs out, and until something comes back it gets nothing new; numbers of 64 bits, no check sums.
//!
//! Who opened a connection dials; the other end announces its addresses (ADD_ADDR), again until their echo as Linux does. The
//! path manager dials again what was reset or went silent, after 1 s and twice as long each time, up to 60 s. Linux's own
//! (`net/mptcp/pm_kernel.c`) does so only when an endpoint is taken away and added, as network managers do with an address
//! that goes and returns (that is a notice of the lower layer here); what fails otherwise is dialled again there by daemons
//! that listen to the kernel's events. `redial = "off"` leaves that out. A connection whose last subflow went silent
//! waits 60 s for another one (`net.mptcp.close_timeout`).
//!
//! Left out, because no comparison here turns on it: changes of priority (MP_PRIO), MP_FASTCLOSE (every subflow is reset
//! instead), check sums, and falling back to one path after the set-up (MP_FAIL, infinite mappings): bytes without a mapping
//! are dropped.

pub(crate) mod connection;
mod parameters;

pub use crate::subflow::options;
