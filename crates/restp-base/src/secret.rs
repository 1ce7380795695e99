//! What no log may hold: a key or a cookie inside of something whose `Debug` is derived.

use std::fmt;

/// A value of which `Debug` tells nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Hidden<T>(pub T);

impl<T> fmt::Debug for Hidden<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<secret>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_told() {
        assert_eq!(format!("{:?}", Some(Hidden([0xAB; 16]))), "Some(<secret>)");
    }
}
