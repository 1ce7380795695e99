//! ITP between hosts in virtual time: losses, disorder, silence, wrong bytes, several sources, caches.

mod hostile;
mod network;
mod sources;
mod transfer;
