//! How an algorithm from outside this crate gets into a choice (ResTP §3.5: components are pluggable).

use std::fmt;
use std::sync::Arc;

/// A function that builds an algorithm, known by its name: two of one name are equal.
pub struct Factory<Build: ?Sized> {
    name: &'static str,
    build: Arc<Build>,
}

impl<Build: ?Sized> Factory<Build> {
    /// A factory of what is called `name`.
    pub(crate) fn new(name: &'static str, build: Arc<Build>) -> Self {
        Factory { name, build }
    }

    /// What its algorithm is called in results.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The function.
    pub(crate) fn build(&self) -> &Build {
        &self.build
    }
}

impl<Build: ?Sized> Clone for Factory<Build> {
    fn clone(&self) -> Self {
        Factory::new(self.name, Arc::clone(&self.build))
    }
}

impl<Build: ?Sized> PartialEq for Factory<Build> {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl<Build: ?Sized> Eq for Factory<Build> {}

impl<Build: ?Sized> fmt::Debug for Factory<Build> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Factory({:?})", self.name)
    }
}
