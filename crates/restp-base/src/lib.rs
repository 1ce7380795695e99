//! The words every other crate speaks: time, units, chance, numbers, and the two seams.
//!
//! | Module | Holds |
//! |---|---|
//! | [`time`] | [`Time`](time::Time), [`Duration`](time::Duration): integer nanoseconds since zero |
//! | [`units`] | [`Rate`](units::Rate), and written quantities with their units (`"10 Mbit/s"`) |
//! | [`random`] | named random streams from one seed |
//! | [`secret`] | what no log may hold |
//! | [`sequence`] | 64-bit numbers inside, 32 bits on the wire |
//! | [`ranges`] | ordered half-open ranges |
//! | [`names`] | "did you mean": the known name nearest to a misspelt one |
//! | [`numeric`] | integer arithmetic that gives the same bits on every processor |
//! | [`slices`] | which buffers are kept in memory by parts of them that wait |
//! | [`sources`] | how much each address holds of something shared |
//! | [`wakes`] | who is woken when |
//! | [`machine`] | seam between a protocol and the world |
//! | [`flow`] | seam between a protocol and an application |
//! | [`streams`] | the same where one flow carries many streams |
//! | [`observe`] | what a driver shows of both to somebody who only looks |

mod datagram;
mod findings;
pub mod flow;
pub mod machine;
pub mod names;
pub mod numeric;
pub mod observe;
pub mod random;
pub mod ranges;
pub mod secret;
pub mod sequence;
pub mod slices;
pub mod sources;
pub mod streams;
pub mod time;
pub mod units;
pub mod wakes;
