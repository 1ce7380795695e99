//! The two settings under which published experiments are repeated (ResTP experiments, common rules): many a published
//! gap exists only because of the first, so a claim is judged under both.
//!
//! A profile speaks where the scenario is silent: a key in a flow's `set` and a link's own `queue` count more.

use crate::unknown::unknown;
use restp_sim::config::Fault;
use toml::Spanned;

/// Timers and queues of all flows and links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Profile {
    pub name: &'static str,
    /// Pairs for the `set` of every flow with a retransmission timer.
    pub set: [(&'static str, &'static str); 3],
    /// A queue of one bandwidth-delay product holds at least this many packets.
    pub least_queue_packets: u64,
}

pub(super) static PROFILES: [Profile; 2] = [
    // Timers of RFC 1122 and of the simulators in use at the time.
    Profile {
        name: "published-like",
        set: [
            ("rto-floor", "1 s"),
            ("handshake-rto", "3 s"),
            ("data-attempts", "6"),
        ],
        least_queue_packets: 1,
    },
    // What stacks of today do; the handshake timer is that of RFC 6298 (2.1).
    Profile {
        name: "sane",
        set: [
            ("rto-floor", "200 ms"),
            ("handshake-rto", "1 s"),
            ("data-attempts", "15"),
        ],
        least_queue_packets: 50,
    },
];

impl Profile {
    pub fn named(written: &Spanned<String>) -> Result<&'static Profile, Fault> {
        let name = written.get_ref();
        PROFILES
            .iter()
            .find(|profile| profile.name == name)
            .ok_or_else(|| {
                Fault::at(
                    written,
                    unknown("profile", name, PROFILES.iter().map(|profile| profile.name)),
                )
            })
    }
}
