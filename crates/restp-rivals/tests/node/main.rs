//! ITP on real networks, in virtual time: what nodes publish, fetch and cache.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

mod cache;
mod disk;
mod fetch;
mod forged;
mod hostile;
mod network;
mod sources;
