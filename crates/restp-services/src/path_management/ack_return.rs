//! By which path an acknowledgement of several paths returns (CMT §3).

/// The rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AckReturn {
    /// The path by which data arrived last, which CMT was published with.
    #[default]
    Any,
    /// Always this one, counted from 0.
    Fixed(usize),
}

impl AckReturn {
    /// The path of an acknowledgement that is due after data arrived on `latest`. A fixed one that does not exist, or not
    /// yet, is no path.
    pub fn choose(self, latest: usize, exists: impl Fn(usize) -> bool) -> usize {
        match self {
            AckReturn::Fixed(path) if exists(path) => path,
            AckReturn::Any | AckReturn::Fixed(_) => latest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_path_is_used_as_soon_as_it_exists() {
        let two = |path| path < 2;
        assert_eq!(AckReturn::Any.choose(1, two), 1);
        assert_eq!(AckReturn::Fixed(0).choose(1, two), 0);
        assert_eq!(AckReturn::Fixed(2).choose(1, two), 1);
    }
}
