//! A link as a TOML file describes it. Whoever reads such a file (a scenario's `[[link]]`, an emulator's `[[path]]`)
//! declares its table with [`link_table!`](crate::link_table) and gets the keys below beside its own, with the same
//! units, the same meaning and the same complaints.
//!
//! | Key | Value |
//! |---|---|
//! | `rate`, `delay` | `"10 Mbit/s"`, `"45 ms"` |
//! | `rate` | or one that changes: `{ steps = [["0 s", "10 Mbit/s"], …] }`, `{ walk = { min, max, step, every } }`, `{ trace = "FILE" }` |
//! | `reverse_rate`, `reverse_delay` | the same, from the second end to the first |
//! | `queue` | `{ drop_tail = "100 packets" }`, `"64 KiB"` or `"bdp"`; `{ red = {} }`, `{ codel = {} }`, `{ fq_codel = {} }` with their parameters |
//! | `loss` | any of `rate` (with `unit`), `burst`, `gilbert_elliott`, `drop`; `during = ["20 s..30 s"]`: only then |
//! | `outage` | `["20 s..30 s"]` |
//! | `reorder`, `duplicate`, `corrupt` | `rate`, and for `reorder` the `delay` |
//! | `jitter` | the `delay`, and whether packets may `reorder` |
//! | `police` | `rate` and `burst` |
//! | `mark` | `"20 packets"` or bytes |
//! | `overhead` | bytes that each packet takes of the line beside its own |
//!
//! `loss`, `jitter`, `reorder`, `duplicate`, `corrupt` and `police` take a `direction`: `forward` (default), `reverse` or `both`.

mod exactly;
mod fault;
mod keys;
mod quantity;
mod queue;
mod rate;
#[cfg(test)]
mod tests;
mod wire;

pub use exactly::Exactly;
pub use fault::Fault;
pub use keys::{Flaw, Loss, Policing, Queue, Reordering, Shaking};
pub use quantity::{Outages, Written, positive, read};
pub use rate::{Changing, OpenFile, Speed};
pub use wire::{Wire, span};
