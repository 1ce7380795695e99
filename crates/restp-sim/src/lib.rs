//! A deterministic network of elements that knows no protocol.
//!
//! | Module | Holds |
//! |---|---|
//! | [`spec`] | [`LinkSpec`], [`DirectionSpec`]: a network as its user describes it, and what can be wrong with that |
//! | [`direction`] | [`Direction`]: one way of one link; also usable alone, in real time, by an emulator |
//! | [`discipline`] | who may wait in the queue, and who leaves it: [`Queue`]: drop-tail, RED, CoDel, FQ-CoDel |
//! | [`error_model`] | what a wire does to packets: loss, corruption, jitter, reordering, duplication, outages |
//! | [`police`] | what may enter at all |
//! | [`medium`] | a channel of 802.11 that stations share: contention, collisions, retries |
//! | [`rate`] | how fast a direction sends: always the same, in steps, at random, or as recorded |
//! | [`rule`] | scripted faults for tests |
//! | [`topology`] | nodes, routes, delays; constructors of common shapes; maps, geodiverse paths, regional challenges |
//! | [`world`] | [`World`]: nodes, links, hosts, and the only loop |
//! | [`trace`] | every step of every packet, for a sink of the caller |
//! | [`config`] | a link as a TOML file describes it, for every file that describes one |
//!
//! One seed gives one run: every random choice comes from a stream named after its link, direction and model,
//! and of simultaneous events timers come first, then arrivals in an order drawn from the stream `"ties"`.

pub mod config;
mod counters;
pub mod direction;
pub mod discipline;
pub mod error_model;
mod host_id;
mod mark;
pub mod medium;
mod parcel;
pub mod police;
mod queue;
pub mod rate;
pub mod rule;
pub mod spec;
mod spec_error;
pub mod topology;
pub mod trace;
mod waits;
pub mod world;

pub use direction::{Counters, Direction, DropReason, Parcel, Verdict};
pub use discipline::{Codel, FairQueue, FqCodel, Queue, QueueLimit, Red};
pub use error_model::ErrorModel;
pub use rate::LinkRate;
pub use spec::{DirectionSpec, LinkSpec, MarkThreshold, NetworkError, SpecError, Way};
pub use topology::{NodeId, Route, RouteError, Topology};
pub use world::{HostEvent, HostId, LinkStats, LostSegment, Totals, World};
