//! Comparison protocols: codecs and glue over shared services.
//!
//! | Module | Holds |
//! |---|---|
//! | [`compositions`] | one record per rival: which service does what |
//! | [`udp`] | UDP (RFC 768): ports, a check sum, nothing else |

pub mod compositions;
pub mod udp;
