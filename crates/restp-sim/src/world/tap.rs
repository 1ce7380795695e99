//! Boxes on the way: a host that is shown every packet that passes its node, and decides whether it goes on.

use super::{HostEvent, HostId, World};
use crate::topology::NodeId;
use crate::trace::Step;
use restp_base::machine::Datagram;
use restp_base::time::Time;

/// All taps, and the packet that one of them was shown last.
#[derive(Debug, Default)]
pub(super) struct Taps {
    /// Each with its node.
    all: Vec<(u32, HostId)>,
    /// The packet, and who was shown it.
    shown: Option<(u32, HostId)>,
}

impl Taps {
    /// The tap of `node`, unless it is the `sender` itself.
    #[inline]
    pub(super) fn at(&self, node: u32, sender: u32) -> Option<HostId> {
        let (_, tap) = self.all.iter().find(|(tapped, _)| *tapped == node)?;
        (tap.0 != sender).then_some(*tap)
    }
}

impl World {
    /// Puts a host on a node that is shown every packet that passes: one whose way leads on. It arrives there as
    /// [`HostEvent::Arrival`]. What is not passed on with [`World::pass_on`] before the next event is the tap's to keep. Packets for
    /// other hosts of this node, and from them, are not shown. A node has one tap, the first.
    pub fn tap(&mut self, node: NodeId) -> HostId {
        let tap = self.attach(node);
        self.taps.all.push((node.0, tap));
        tap
    }

    /// The packet that a tap was shown last goes on, with the contents of `datagram`. Nothing happens without one.
    pub fn pass_on(&mut self, now: Time, datagram: &mut Box<Datagram>) {
        if let Some((packet, tap)) = self.taps.shown.take() {
            self.now = self.now.max(now);
            self.pool.swap(packet, datagram);
            self.offer(packet, self.hosts[tap.index()].node);
        }
    }

    /// A packet on its way is shown to `tap`.
    pub(super) fn show(&mut self, packet: u32, tap: HostId, arrived: &mut Box<Datagram>) -> HostEvent {
        self.pool.swap(packet, arrived);
        arrived.ecn = self.pool.packet(packet).ecn;
        self.taps.shown = Some((packet, tap));
        HostEvent::Arrival { host: tap }
    }

    /// What was shown and did not go on has arrived there.
    #[inline]
    pub(super) fn keep_shown(&mut self) {
        if let Some((packet, to)) = self.taps.shown.take() {
            self.observe(packet, |_| Step::Delivered { to });
            self.totals.delivered += 1;
            self.pool.discard(packet);
        }
    }
}
