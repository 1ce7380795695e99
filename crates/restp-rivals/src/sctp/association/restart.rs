//! A set-up that meets an association (RFC 9260 §5.2): the peer has started again, both ends open at once, or a packet of the set-up
//! comes twice. An INIT changes nothing; what its cookie means when it comes back is told by its tags.

use super::{Association, State};
use crate::sctp::chunk::{Chunk, Init};
use crate::sctp::state_cookie::{StateCookie, TieTags};
use restp_base::flow::CloseReason;
use restp_base::machine::PathAddress;
use restp_base::time::Time;
use smallvec::SmallVec;
use std::net::IpAddr;

/// What INIT ACK says of us.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::sctp) struct Offer {
    /// Tag and first number of our own INIT; none: new ones.
    pub identity: Option<(u32, u32)>,
    /// What its cookie says of the association that there is.
    pub tie_tags: Option<TieTags>,
    /// Our addresses, where there are several.
    pub addresses: SmallVec<[IpAddr; 2]>,
}

/// How an INIT beside an association is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::sctp) enum SetUp {
    /// With INIT ACK.
    Offer(Offer),
    /// With ABORT: it names addresses that the peer does not have, and might be somebody else's.
    NewAddresses(Vec<IpAddr>),
    /// With SHUTDOWN ACK once more: the end comes first.
    Shutdown,
}

/// What a cookie that comes back means to an association (RFC 9260 §5.2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sctp) enum Meaning {
    /// The peer has started again (A).
    Restart,
    /// The same, and the end of the association comes first.
    RestartInShutdown,
    /// Both ends have opened, each unaware of the other (B).
    Collision,
    /// It is the one that opened this association, or would (D).
    Same,
    /// It is late (C), or says what cannot be.
    Nothing,
}

impl Association {
    /// How to answer `init`, which came from `address`. The association stays as it is.
    pub(in crate::sctp) fn on_init(&mut self, address: PathAddress, init: &Init) -> SetUp {
        let tie_tags = Some(self.tags());
        let own = Some((self.local_tag, self.local_tsn));
        let addresses = self.own_addresses();
        if let State::ShutdownAckSent(timer) = &mut self.state {
            timer.retransmit();
            return SetUp::Shutdown;
        }
        if let State::CookieWait(_) = self.state {
            return SetUp::Offer(Offer {
                identity: own,
                tie_tags: None,
                addresses,
            });
        }
        let new = self.new_addresses(address, init);
        if !new.is_empty() {
            return SetUp::NewAddresses(new);
        }
        let identity = own.filter(|_| self.state.is_opening());
        SetUp::Offer(Offer {
            identity,
            tie_tags,
            addresses,
        })
    }

    fn tags(&self) -> TieTags {
        TieTags {
            local: self.local_tag,
            peer: self.peer_tag,
        }
    }

    /// Addresses of an INIT that its sender did not have before (RFC 9260 §5.2.2).
    fn new_addresses(&self, address: PathAddress, init: &Init) -> Vec<IpAddr> {
        let is_known = |ip: &IpAddr| {
            self.peer_addresses.contains(ip) || self.addresses().any(|path| path.remote.ip() == *ip)
        };
        let named = std::iter::once(address.remote.ip()).chain(init.addresses.iter().copied());
        named.filter(|ip| !is_known(ip)).collect()
    }

    /// What `cookie` means here. Of a peer whose tag is not known yet none can be the same.
    pub(in crate::sctp) fn meaning_of(&self, cookie: &StateCookie) -> Meaning {
        let is_ours = cookie.local_tag == self.local_tag;
        let is_peers = cookie.peer_tag == self.peer_tag;
        match (is_ours, is_peers) {
            (true, true) => Meaning::Same,
            (true, false) => Meaning::Collision,
            (false, false) if cookie.tie_tags == Some(self.tags()) => match self.state {
                State::ShutdownAckSent(_) => Meaning::RestartInShutdown,
                _ => Meaning::Restart,
            },
            _ => Meaning::Nothing,
        }
    }

    /// The peer has brought back a cookie that is this association's.
    pub(in crate::sctp) fn on_cookie(&mut self, now: Time, index: usize, cookie: &StateCookie) {
        if self.state.is_opening() {
            self.learn_from(cookie);
            self.establish(now, None);
        } else {
            self.peer_tag = cookie.peer_tag;
        }
        self.reply(index, Chunk::CookieAck);
    }

    /// The peer has started again: it knows nothing of this association.
    pub(in crate::sctp) fn on_restart(&mut self) {
        self.end(CloseReason::Reset, State::Closed);
    }

    /// SHUTDOWN ACK leaves once more.
    pub(in crate::sctp) fn retransmit_shutdown(&mut self) {
        if let State::ShutdownAckSent(timer) = &mut self.state {
            timer.retransmit();
        }
    }
}
