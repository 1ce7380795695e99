//! A scheduler from outside this crate, as a choice among the others (ResTP §3.5.10).

use super::{Candidate, Placement, Queue, Schedule};
use crate::factory::Factory;
use std::sync::Arc;

/// Builds a scheduler.
type Build = dyn Fn() -> Box<dyn Schedule + Send> + Send + Sync;

/// A scheduler of the caller's own: a name and a function that builds one per association. Two of one name are equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomScheduling {
    factory: Factory<Build>,
}

impl CustomScheduling {
    /// A scheduler called `name` in results.
    pub fn new<S: Schedule + Send + 'static>(
        name: &'static str,
        build: impl Fn() -> S + Send + Sync + 'static,
    ) -> Self {
        CustomScheduling {
            factory: Factory::new(name, Arc::new(move || Box::new(build()))),
        }
    }

    pub(super) fn name(&self) -> &'static str {
        self.factory.name()
    }
    pub(super) fn build(&self) -> Checked {
        Checked((self.factory.build())())
    }
}

/// A scheduler from outside, whose answers are held to what is asked of all of them: a path is named once, and only if
/// it was offered and has room.
#[derive(Debug)]
pub struct Checked(Box<dyn Schedule + Send>);

impl Schedule for Checked {
    fn choose(&mut self, paths: &[Candidate], queue: &Queue) -> Placement {
        let chosen = self.0.choose(paths, queue);
        let fits = |path: &&Candidate| path.has_room && chosen.contains(&path.path);
        paths.iter().filter(fits).map(|path| path.path).collect()
    }
}
