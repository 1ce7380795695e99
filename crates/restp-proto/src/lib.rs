//! The ResTP protocol: wire, composition, connection, endpoint

pub mod wire;
