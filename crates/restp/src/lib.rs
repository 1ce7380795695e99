//! ResTP on real networks: tokio, UDP, many connections
