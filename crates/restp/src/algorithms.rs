//! Congestion control and schedulers of one's own (ResTP §3.5: components are pluggable).
//!
//! An algorithm implements [`Congestion`] or [`Schedule`]; a name and a function that builds it make a choice of it, which
//! stands in a [`Composition`](crate::Composition) like any other. The header has no code for it: the peer does what it
//! does beside NewReno, and schedules by its own choice.
//!
//! ```
//! use restp::algorithms::*;
//! use restp::{Acceptance, Composition, Endpoint, EndpointConfig, Trust};
//!
//! /// A segment more per round trip, a quarter less per loss.
//! #[derive(Debug)]
//! struct Gentle {
//!     window_bytes: u64,
//! }
//!
//! impl Congestion for Gentle {
//!     fn on(&mut self, event: &CongestionEvent, path: &PathView<'_>) {
//!         let window = self.window_bytes;
//!         self.window_bytes = match event {
//!             CongestionEvent::Acked { bytes, .. } if !path.in_recovery => {
//!                 window + bytes * path.segment_bytes / window
//!             }
//!             CongestionEvent::Lost { .. } | CongestionEvent::Marked { .. } => window - window / 4,
//!             CongestionEvent::Timeout { .. } => path.segment_bytes,
//!             _ => window,
//!         }
//!         .max(path.segment_bytes);
//!     }
//!     fn window_bytes(&self) -> u64 {
//!         self.window_bytes
//!     }
//!     fn pacing(&self) -> Option<Rate> {
//!         None
//!     }
//!     fn snapshot(&self) -> CongestionSnapshot {
//!         CongestionSnapshot { window_bytes: self.window_bytes, threshold_bytes: None, state: "gentle" }
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let gentle = CustomCongestion::new("gentle", |segment_bytes| Gentle { window_bytes: 10 * segment_bytes });
//! let composition = Composition {
//!     congestion: CongestionChoice::Custom(gentle),
//!     ..Composition::default()
//! };
//! let config = EndpointConfig::new(composition.check()?);
//!
//! let server = Endpoint::bind("127.0.0.1:0".parse()?, config.clone().listen(7, Acceptance::Any), Trust::Nobody)?;
//! let key = server.public_key().ok_or("sealed")?;
//! let client = Endpoint::bind("127.0.0.1:0".parse()?, config, Trust::Key(key))?;
//! let connection = client.connect(server.local_addr(), 7).await?;
//! connection.send("hello".into()).await?;
//! let accepted = server.accept().await.ok_or("closed")?;
//! assert_eq!(accepted.recv().await, Some("hello".into()));
//! assert_eq!(accepted.composition().ok_or("closed")?.congestion.name(), "gentle");
//! # Ok(())
//! # }
//! ```

pub use restp_base::time::{Duration, Time};
pub use restp_base::units::Rate;
pub use restp_services::congestion::{
    Congestion, CongestionChoice, CongestionEvent, CongestionSnapshot, Control, CustomCongestion,
    window_over_rtt,
};
pub use restp_services::recovery::{LostSegment, RateSample};
pub use restp_services::scheduling::{Candidate, CustomScheduling, Placement, Queue, Schedule, Scheduling};
pub use restp_services::view::{PathView, Sibling};
