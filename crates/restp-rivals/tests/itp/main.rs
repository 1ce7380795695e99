//! ITP between hosts in virtual time: losses, disorder, silence, wrong bytes, several sources, caches.

mod hostile;
mod many;
mod network;
mod several;
mod sources;
mod transfer;
