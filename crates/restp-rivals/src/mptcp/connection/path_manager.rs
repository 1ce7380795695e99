//! Which pairs of addresses are to have a subflow, and what both ends are told of addresses (RFC 8684 §3.4). The end that
//! opened the connection dials, the other one announces its addresses: clients are often behind NATs, and Linux servers do
//! not dial either. It knows no subflow; who does tells it what became of them.

use crate::subflow::options::{AddAddress, Addresses, Multipath};
use restp_base::flow::CloseReason;
use restp_base::machine::PathAddress;
use restp_base::time::{Duration, Time};
use restp_services::connection_management::Keys;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

/// Addresses of either end that are known at once (Linux: MPTCP_PM_ADDR_MAX), and answers that wait.
const MAX_ADDRESSES: usize = 8;
/// Identifiers that are given in the life of a connection: those that fit into the option's byte.
const MAX_IDS: usize = 256;
/// An announcement leaves so often again while no echo comes (Linux: ADD_ADDR_RETRANS_MAX).
const RETRANSMISSIONS: u32 = 3;
/// Longest wait for an echo (Linux: net.mptcp.add_addr_timeout).
const LONGEST_WAIT: Duration = Duration::from_secs(120);
/// The first wait until a pair is dialled again: that of a first SYN (RFC 6298 (2.1)). Each failure doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest one. A subflow that worked for longer begins afresh.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// A pair to dial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dial {
    pub(crate) path: PathAddress,
    pub(crate) backup: bool,
    /// Port at the peer.
    pub(crate) port: u16,
    /// It had a subflow before, whose ports the peer may still hold.
    pub(crate) again: bool,
}

/// How a subflow has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// Reset, refused, or silent for too long: it may work again.
    Failed,
    /// One of the ends wanted it.
    Wanted,
}

impl Ending {
    pub(super) fn of(reason: &CloseReason) -> Self {
        match reason {
            CloseReason::Refused | CloseReason::Reset | CloseReason::TimedOut(_) => Ending::Failed,
            CloseReason::Finished | CloseReason::Aborted => Ending::Wanted,
        }
    }
}

/// A pair that this end uses as soon as it can.
#[derive(Debug)]
struct CandidatePath {
    dial: Dial,
    /// Our address works.
    is_up: bool,
    /// The peer has this address, as far as is known.
    is_known: bool,
    stage: Stage,
    failures: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// To be dialled, from then on where a time is given.
    Idle(Option<Time>),
    Dialled,
    /// It carries data since then.
    Up(Time),
    /// The peer has ended it.
    Ended,
}

impl CandidatePath {
    fn is_dialable(&self, now: Time) -> bool {
        let due = matches!(self.stage, Stage::Idle(at) if at.is_none_or(|at| at <= now));
        due && self.is_up && self.is_known
    }
    /// Whatever ended it does not count any more.
    fn revive(&mut self) {
        if matches!(self.stage, Stage::Idle(_) | Stage::Ended) {
            (self.stage, self.failures) = (Stage::Idle(None), 0);
        }
    }
}

/// One of our addresses that the peer is told.
#[derive(Debug)]
struct Announcement {
    ip: IpAddr,
    sent: u32,
    /// When it leaves next; none: it was echoed, or is given up.
    due: Option<Time>,
}

/// An address of the peer that joins may go to.
#[derive(Debug)]
struct Remote {
    id: u8,
    ip: IpAddr,
    port: u16,
}

/// What one end knows of addresses.
#[derive(Debug, Default)]
pub(super) struct PathManager {
    candidates: Vec<CandidatePath>,
    /// Our addresses; the place of each is its identifier.
    own: Vec<IpAddr>,
    announcements: Vec<Announcement>,
    /// The peer's addresses: the one that the connection was opened with, and those that it has announced.
    announced: Vec<Remote>,
    /// The connection's port at the peer.
    service: u16,
    /// To be said on any subflow.
    notices: VecDeque<Multipath>,
    /// This end dials; the other one announces.
    opened_here: bool,
    /// What fails is dialled again.
    redials: bool,
}

impl PathManager {
    /// `redials`: what fails is dialled again.
    pub(super) fn new(opened_here: bool, redials: bool) -> Self {
        PathManager {
            opened_here,
            redials,
            ..PathManager::default()
        }
    }
    pub(super) fn redials(&self) -> bool {
        self.redials
    }
    /// Pairs that have a subflow or wait for one.
    pub(super) fn candidates(&self) -> usize {
        self.candidates.len()
    }

    /// The identifier of our address `local`: 0 is the one that opened the connection. None: all are given.
    pub(super) fn id_of(&mut self, local: SocketAddr) -> Option<u8> {
        let ip = local.ip();
        let known = self.own.iter().position(|own| *own == ip);
        let place = known.unwrap_or(self.own.len());
        if place >= MAX_IDS {
            return None;
        }
        if known.is_none() {
            self.own.push(ip);
        }
        Some(place as u8)
    }

    /// The pair that opened the connection: both addresses have the identifier 0.
    pub(super) fn begin(&mut self, path: PathAddress, service: u16) {
        self.own.push(path.local.ip());
        self.service = service;
        self.announced.push(Remote {
            id: 0,
            ip: path.remote.ip(),
            port: service,
        });
        if self.opened_here {
            self.add(path, false, true);
            self.candidates[0].stage = Stage::Dialled;
        }
    }

    /// One more pair to dial: at once, or when the peer has announced its address. False when it is used already.
    pub(super) fn add(&mut self, path: PathAddress, backup: bool, at_once: bool) -> bool {
        if self.uses(path) {
            return false;
        }
        let announced = port_at(&self.announced, path.remote.ip());
        self.candidates.push(CandidatePath {
            dial: Dial {
                path,
                backup,
                port: announced.unwrap_or(self.service),
                again: false,
            },
            is_up: true,
            is_known: at_once || announced.is_some(),
            stage: Stage::Idle(None),
            failures: 0,
        });
        true
    }

    /// The pair has a subflow, or waits for one.
    pub(super) fn uses(&self, path: PathAddress) -> bool {
        self.candidates
            .iter()
            .any(|candidate| candidate.dial.path == path)
    }

    /// The pair is not to be used any more. The peer hears that our address is gone, unless another pair has it, or a subflow
    /// that the peer dialled (`in_use`).
    pub(super) fn drop_line(&mut self, path: PathAddress, in_use: bool) {
        self.candidates.retain(|candidate| candidate.dial.path != path);
        let ip = path.local.ip();
        if !in_use
            && self
                .candidates
                .iter()
                .all(|candidate| candidate.dial.path.local.ip() != ip)
        {
            self.withdraw(ip);
        }
    }

    /// The next pair to dial now.
    pub(super) fn take_dial(&mut self, now: Time) -> Option<Dial> {
        let candidate = self
            .candidates
            .iter_mut()
            .find(|candidate| candidate.is_dialable(now))?;
        candidate.stage = Stage::Dialled;
        Some(candidate.dial)
    }

    /// The subflow of a pair carries data.
    pub(super) fn on_up(&mut self, now: Time, path: PathAddress) {
        if let Some(candidate) = self.candidate(path) {
            candidate.stage = Stage::Up(now);
        }
    }

    /// The subflow of a pair is over, or could not be dialled.
    pub(super) fn on_end(&mut self, now: Time, path: PathAddress, ending: Ending) {
        let redials = self.redials;
        let Some(candidate) = self.candidate(path) else {
            return;
        };
        let worked = matches!(candidate.stage, Stage::Up(since) if now.since(since) >= LONGEST_PAUSE);
        candidate.dial.again = true;
        if ending == Ending::Wanted || !redials {
            candidate.stage = Stage::Ended;
            return;
        }
        candidate.failures = if worked { 1 } else { candidate.failures + 1 };
        let pause = FIRST_PAUSE.scaled(1 << (candidate.failures - 1).min(6), 1);
        candidate.stage = Stage::Idle(Some(now + pause.min(LONGEST_PAUSE)));
    }

    /// Our address works from now on, or no longer does.
    pub(super) fn on_local(&mut self, now: Time, local: SocketAddr, up: bool) {
        let ip = local.ip();
        for candidate in &mut self.candidates {
            if candidate.dial.path.local.ip() == ip {
                candidate.is_up = up;
                candidate.revive();
            }
        }
        if !up {
            self.withdraw(ip);
        } else if !self.opened_here && self.own.contains(&ip) {
            self.announce(now, local);
        }
    }

    /// The peer hears that an address of ours is gone.
    fn withdraw(&mut self, ip: IpAddr) {
        self.announcements.retain(|announcement| announcement.ip != ip);
        if let Some(id) = self.own.iter().position(|own| *own == ip) {
            self.say(Multipath::RemoveAddresses(Addresses::one(id as u8)));
        }
    }

    /// The peer is told that we have the address `local`. False when that are too many.
    pub(super) fn announce(&mut self, now: Time, local: SocketAddr) -> bool {
        let ip = local.ip();
        self.announcements.retain(|known| known.ip != ip);
        let room = self.announcements.len() < MAX_ADDRESSES;
        if !room || self.id_of(local).is_none() {
            return false;
        }
        self.announcements.push(Announcement {
            ip,
            sent: 0,
            due: Some(now),
        });
        true
    }

    /// Announcements that are due wait to be said; each one waits twice as long as the last for its echo, beginning with
    /// `timeout`, as Linux since 6.18.
    pub(super) fn on_deadline(&mut self, now: Time, timeout: Duration, keys: Keys) {
        let mut due = Vec::new();
        for announcement in &mut self.announcements {
            if announcement.due.is_some_and(|due| due <= now) {
                due.push(announcement.ip);
                let wait = timeout.scaled(1 << announcement.sent, 1).min(LONGEST_WAIT);
                announcement.sent += 1;
                announcement.due = (announcement.sent <= RETRANSMISSIONS).then_some(now + wait);
            }
        }
        for ip in due {
            if let Some(id) = self.own.iter().position(|own| *own == ip) {
                self.say(Multipath::AddAddress(AddAddress::new(id as u8, ip, keys)));
            }
        }
    }

    /// The peer has this address; the proof is good. It is echoed, be it known or too many, so that the peer rests. One that is
    /// announced again, perhaps at another port, is to be dialled again (RFC 8684 §3.4.1).
    pub(super) fn on_announced(&mut self, added: AddAddress) {
        self.say(Multipath::AddAddress(added.echo()));
        let AddAddress { id, ip, .. } = added;
        let port = added.port.filter(|port| *port != 0).unwrap_or(self.service);
        let is_full = self.announced.len() > MAX_ADDRESSES;
        match self.announced.iter_mut().find(|known| known.id == id) {
            Some(known) if known.ip != ip => return, // an identifier keeps its address
            Some(known) => known.port = port,
            None if is_full => return,
            None => self.announced.push(Remote { id, ip, port }),
        }
        for candidate in &mut self.candidates {
            if candidate.dial.path.remote.ip() == ip {
                (candidate.is_known, candidate.dial.port) = (true, port);
                candidate.revive();
            }
        }
    }

    /// The peer has heard of our address.
    pub(super) fn on_echo(&mut self, added: AddAddress) {
        let own = self.own.get(usize::from(added.id)) == Some(&added.ip);
        let echoed = self.announcements.iter_mut().find(|said| said.ip == added.ip);
        if let Some(echoed) = echoed.filter(|_| own) {
            echoed.due = None;
        }
    }

    /// The peer has the addresses of these identifiers no longer: pairs with them wait until it announces them again, unless
    /// it has one under another identifier. `ips` are those of its subflows.
    pub(super) fn on_removed(&mut self, removed: &Addresses, ips: &[IpAddr]) {
        let is_gone = |remote: &Remote| removed.ids().contains(&remote.id);
        let gone = self.announced.iter().filter(|remote| is_gone(remote));
        let gone: Vec<IpAddr> = gone.map(|remote| remote.ip).chain(ips.iter().copied()).collect();
        self.announced.retain(|remote| !is_gone(remote));
        for candidate in &mut self.candidates {
            let ip = candidate.dial.path.remote.ip();
            if gone.contains(&ip) {
                let left = port_at(&self.announced, ip);
                candidate.is_known = left.is_some();
                candidate.dial.port = left.unwrap_or(self.service);
            }
        }
    }

    /// What waits to be said. The peer's answers are the only ones that it can make us owe, so they are bounded.
    /// Of an address that comes and goes meanwhile the last word is said last.
    fn say(&mut self, notice: Multipath) {
        self.notices.retain(|said| *said != notice);
        if self.notices.len() < 3 * MAX_ADDRESSES {
            self.notices.push_back(notice);
        }
    }
    pub(super) fn next_notice(&self) -> Option<Multipath> {
        self.notices.front().copied()
    }
    pub(super) fn notice_taken(&mut self) {
        self.notices.pop_front();
    }

    /// When a pair may be dialled again, or an announcement leaves.
    pub(super) fn deadline(&self) -> Option<Time> {
        let dialable = self
            .candidates
            .iter()
            .filter(|candidate| candidate.is_up && candidate.is_known);
        let again = dialable.filter_map(|candidate| match candidate.stage {
            Stage::Idle(at) => at,
            _ => None,
        });
        let announcements = self.announcements.iter().filter_map(|said| said.due);
        again.chain(announcements).min()
    }

    /// The connection is over: nothing is dialled or said any more.
    pub(super) fn stop(&mut self) {
        self.candidates.clear();
        self.announcements.clear();
        self.notices.clear();
    }

    fn candidate(&mut self, path: PathAddress) -> Option<&mut CandidatePath> {
        self.candidates
            .iter_mut()
            .find(|candidate| candidate.dial.path == path)
    }
}

/// The port that joins to this address go to, if the peer has it.
fn port_at(announced: &[Remote], ip: IpAddr) -> Option<u16> {
    let remote = announced.iter().find(|remote| remote.ip == ip)?;
    Some(remote.port)
}

#[cfg(test)]
mod tests;
