//! Transport services: each folder answers one question, each file in it is one answer.
//!
//! | Folder | Question | Called by a connection when | ResTP |
//! |---|---|---|---|
//! | [`connection_management`] | How does a connection begin and end? | SYN, FIN, timers | §3.5.5 |
//! | [`framing`] | How do application frames become segments? | the application writes | §3.5.3 |
//! | [`flow_control`] | May the peer take more? | before sending, on reading | §3.5.4 |
//! | [`ordering`] | When is a segment handed up? | a segment arrives | §3.5.7 |
//! | [`reliability`] | How long is sent data kept? | a segment is sent or acknowledged | §3.5.8 |
//! | [`ack`] | What does the feedback say, and when is it sent? | a segment arrives | §3.5.9 |
//! | [`recovery`] | Which packets are lost, and how do we know? | feedback arrives, a timer runs out | §3.5.8 |
//! | [`loss_handling`] | What was the cause, so does it count as congestion? | losses were found | §3.6 |
//! | [`congestion`] | What happens to the window? | feedback or losses | §3.5.6 |
//! | [`path_management`] | What do we know of a path? | always | §3.3 |
//! | [`scheduling`] | Which path takes the next segment? | before sending, on several paths | §3.5.10 |
//!
//! [`sender`] and [`receiver`] put them together: what leaves next, what feedback and silence mean for it; what becomes of an
//! arrival, and when to acknowledge it. [`multipath`] does the same for a connection over several paths, each of which has a
//! sender and a receiver of its own.
//!
//! Services never see bytes of a header, a connection, a clock or a socket: values go in, decisions come out.

pub mod ack;
pub mod congestion;
pub mod connection_management;
mod factory;
pub mod flow_control;
pub mod framing;
pub mod loss_handling;
pub mod multipath;
pub mod ordering;
pub mod path_management;
pub mod receiver;
mod recent;
pub mod recovery;
pub mod reliability;
pub mod scheduling;
pub mod sender;
pub mod view;
