//! A controller from outside this crate, as a choice among the others (ResTP §3.5: components are pluggable).

use super::{Congestion, Control};
use crate::factory::Factory;
use std::sync::Arc;

/// Builds a controller for segments of so many bytes.
type Build = dyn Fn(u64) -> Box<dyn Congestion + Send> + Send + Sync;

/// An algorithm of the caller's own: a name and a function that builds one controller per path. Two of one name are
/// equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomCongestion {
    factory: Factory<Build>,
    control: Control,
}

impl CustomCongestion {
    /// An algorithm with a window of its own, called `name` in results; `build` gets the payload bytes of a full segment.
    pub fn new<C: Congestion + Send + 'static>(
        name: &'static str,
        build: impl Fn(u64) -> C + Send + Sync + 'static,
    ) -> Self {
        CustomCongestion {
            factory: Factory::new(
                name,
                Arc::new(move |segment_bytes| Box::new(build(segment_bytes))),
            ),
            control: Control::Window,
        }
    }

    /// The same where the algorithm steers by something else than its own window.
    pub fn steering_by(self, control: Control) -> Self {
        CustomCongestion { control, ..self }
    }

    pub(super) fn name(&self) -> &'static str {
        self.factory.name()
    }
    pub(super) fn control(&self) -> Control {
        self.control
    }
    pub(super) fn build(&self, segment_bytes: u64) -> Box<dyn Congestion + Send> {
        (self.factory.build())(segment_bytes)
    }
}
