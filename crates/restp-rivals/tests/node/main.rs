//! ITP on real networks, in virtual time: what nodes publish, fetch and cache.

mod cache;
mod fetch;
mod hostile;
mod network;
