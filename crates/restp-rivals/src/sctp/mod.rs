//! SCTP (RFC 9260), CMT, its concurrent multipath transfer (Iyengar, Amer, Stewart, ToN 14(5), 2006), and SMT, which tells what is
//! lost on a path from what is only late there (SMT §3), as comparison protocols: a codec, states and the order of calls. Which chunks are lost, what happens to the windows, when to acknowledge and where to
//! send again is decided by the same services that ResTP uses; the paths of an association are lanes of one sender.
//!
//! | File | Holds |
//! |---|---|
//! | [`wire`], [`chunk`] | every byte of a packet |
//! | `messages` | messages, fragments, numbers |
//! | `state_cookie` | what a server knows of a peer until it shows that it receives |
//! | [`parameters`] | what a user sets, by key |
//! | `association` | one association: intake, outlet, states, health of its paths |
//! | [`host`] | the [`Machine`](restp_base::machine::Machine) of a host |
//!
//! A path is a pair of addresses, as the opener's application gives them ([`Flow::open`](restp_base::flow::Flow::open),
//! [`Flow::add_path`](restp_base::flow::Flow::add_path)): interface i of one end speaks with interface i of the other (CMT §1.1).
//! INIT lists the opener's addresses; the server learns which of its own belongs to each by the heartbeat that comes there.
//!
//! What a peer does wrong is told in ERROR, or in the ABORT that ends the association ([`chunk::Cause`]); a peer that starts again, and two
//! ends that open at once, are told apart by the tags of their cookies (RFC 9260 §5.2.4).
//!
//! Left out, because no comparison here turns on it: bundling, addresses that come and go (RFC 5061), partial reliability (RFC 3758).

mod association;
pub mod chunk;
pub mod host;
mod messages;
pub mod parameters;
mod state_cookie;
pub mod wire;

pub use host::{Sctp, SctpConfig};
pub use parameters::SctpParameters;

/// Streams that are taken of a peer, and given to one at most.
const STREAMS: u16 = 16;
