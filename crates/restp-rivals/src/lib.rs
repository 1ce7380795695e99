//! Comparison protocols: codecs and glue over shared services.
//!
//! | Module | Holds |
//! |---|---|
//! | [`compositions`] | one record per rival: which service does what |
//! | [`host`] | the machine of a host that speaks [`tcp`] and [`mptcp`] |
//! | [`itp`] | ITP, data by name without connections, and NDN as it is compared with; a node for real networks |
//! | [`mptcp`] | MPTCP (RFC 8684) over subflows of [`tcp`] |
//! | [`sctp`] | SCTP (RFC 9260), and CMT over its paths |
//! | [`tcp`] | TCP (RFC 9293) with every congestion control that is built |
//! | [`udp`] | UDP (RFC 768): ports, a check sum, nothing else |

mod checksum;
pub mod compositions;
pub mod host;
pub mod itp;
pub mod mptcp;
pub mod sctp;
mod subflow;
pub mod tcp;
pub mod udp;
