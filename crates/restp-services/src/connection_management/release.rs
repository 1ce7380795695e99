//! Four-way release (ResTP §3.5.5, as TCP's): each direction ends with a FIN that takes one number and is
//! acknowledged like data. Who finished first waits two segment lifetimes before the ports may be used again
//! (OP-61).

use restp_base::time::Duration;

/// Two maximum segment lifetimes of 30 s each (OP-61).
pub const TIME_WAIT: Duration = Duration::from_secs(60);

/// How far the release of a connection has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Release {
    /// The application will write no more.
    wanted: bool,
    /// Number of our FIN, once it has one.
    local: Option<u64>,
    local_acknowledged: bool,
    /// Number of the peer's FIN, once everything before it has arrived.
    remote: Option<u64>,
    initiated_here: bool,
}

impl Release {
    /// The application will write no more.
    pub fn finish(&mut self) {
        self.wanted = true;
    }
    /// True once the application has finished writing.
    pub fn is_wanted(&self) -> bool {
        self.wanted
    }
    /// True when the FIN should be sent for the first time, once all data has been sent.
    pub fn must_send_fin(&self) -> bool {
        self.wanted && self.local.is_none()
    }
    /// Our FIN took `number`.
    pub fn fin_sent(&mut self, number: u64) {
        self.initiated_here = self.remote.is_none();
        self.local = Some(number);
    }
    /// Number of our FIN.
    pub fn local_fin(&self) -> Option<u64> {
        self.local
    }
    /// The same, until it is acknowledged.
    pub fn unacknowledged_fin(&self) -> Option<u64> {
        self.local.filter(|_| !self.local_acknowledged)
    }
    /// Everything below `next` is acknowledged.
    pub fn acknowledged(&mut self, next: u64) {
        self.local_acknowledged |= self.local.is_some_and(|fin| fin < next);
    }
    /// The peer's FIN is in order at `number`.
    pub fn fin_received(&mut self, number: u64) {
        self.remote.get_or_insert(number);
    }
    /// The peer has finished, and all its data is here.
    pub fn remote_finished(&self) -> bool {
        self.remote.is_some()
    }
    /// Both directions are over and acknowledged.
    pub fn is_complete(&self) -> bool {
        self.local_acknowledged && self.remote.is_some()
    }
    /// After completion: must this end wait for delayed retransmissions? True for the side that finished first, and
    /// for both when the FINs crossed.
    pub fn must_linger(&self) -> bool {
        self.initiated_here
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_initiator_lingers_and_the_other_side_does_not() {
        let mut first = Release::default();
        first.finish();
        assert!(first.must_send_fin());
        first.fin_sent(9);
        first.acknowledged(9);
        assert!(!first.is_complete());
        first.acknowledged(10);
        first.fin_received(4);
        assert!(first.is_complete() && first.must_linger());

        let mut second = Release::default();
        second.fin_received(9);
        second.finish();
        second.fin_sent(4);
        second.acknowledged(5);
        assert!(second.is_complete() && !second.must_linger());
    }

    #[test]
    fn crossing_fins_make_both_sides_linger() {
        let mut side = Release::default();
        side.finish();
        side.fin_sent(9);
        side.fin_received(4);
        side.acknowledged(10);
        assert!(side.is_complete() && side.must_linger());
    }
}
