//! Every rival as a row of choices, so that what a comparison varies can be read off a table.

/// What one comparison protocol is made of. Names are those of the files in `restp-services`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rival {
    /// Name in a scenario's `transport`.
    pub name: &'static str,
    /// Codec.
    pub wire: &'static str,
    /// Connection management.
    pub set_up: &'static str,
    /// Acknowledgement.
    pub ack: &'static str,
    /// How losses are found and repaired.
    pub recovery: &'static str,
    /// What a loss is taken for.
    pub cause: &'static str,
    /// Congestion window.
    pub window: &'static str,
    /// Path management and schedule.
    pub paths: &'static str,
}

/// All rivals that can be run.
pub const RIVALS: &[Rival] = &[Rival {
    name: "udp",
    wire: "udp",
    set_up: "connectionless",
    ack: "none",
    recovery: "none",
    cause: "none",
    window: "none",
    paths: "single",
}];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_for_one_rival() {
        for (i, rival) in RIVALS.iter().enumerate() {
            assert!(
                RIVALS[..i].iter().all(|other| other.name != rival.name),
                "{}",
                rival.name
            );
        }
    }
}
