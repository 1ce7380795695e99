//! The ResTP protocol: wire, composition, connection, endpoint
