//! A machine's place at a driver: what is for it, and what waits to leave.

use super::hosted::Hosted;
use super::{Sending, Work};
use crate::socket::{Outbox, Socket};
use restp_base::machine::{Datagram, PathAddress};
use restp_base::time::{Duration, Time};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::task::Context;

/// Full outboxes sent in one round before the sockets are read again, and before another machine has its turn: acknowledgements
/// must not wait.
const SENDS_PER_ROUND: usize = 4;

/// How long a closed endpoint answers late repetitions of its peers before its sockets go away.
const LINGER: Duration = Duration::from_millis(500);

/// A machine that joins a driver, and the first bytes of datagrams that are for it.
pub(crate) struct Joining {
    pub(crate) machine: Arc<dyn Hosted>,
    pub(crate) first_bytes: RangeInclusive<u8>,
}

/// A machine, and its outboxes.
pub(super) struct Seat {
    pub(super) machine: Arc<dyn Hosted>,
    ports: Vec<Port>,
    /// How its last turn ended.
    sending: Sending,
    linger_until: Option<Time>,
}

/// A socket and what waits to leave through it.
pub(crate) struct Port {
    /// The one that is bound, which the host of the driver knows.
    bound: Arc<Socket>,
    /// The same, or another one at its address.
    socket: Arc<Socket>,
    outbox: Outbox,
    /// The kernel has no room for it; the task wakes when there is.
    blocked: bool,
}

impl Port {
    pub(super) fn has_room(&self) -> bool {
        self.blocked || self.outbox.has_room()
    }

    pub(super) fn serves(&self, path: &PathAddress) -> bool {
        self.socket.serves(path)
    }

    /// Takes `datagram`, if it has room.
    pub(super) fn push(&mut self, datagram: &Datagram) -> bool {
        let takes = self.outbox.has_room() && datagram.path.remote.port() != 0;
        if takes {
            self.outbox.push(datagram, self.socket.max_segments());
        }
        takes
    }
}

impl Seat {
    pub(super) fn new(machine: Arc<dyn Hosted>) -> Self {
        Seat {
            machine,
            ports: Vec::new(),
            sending: Sending::More,
            linger_until: None,
        }
    }

    /// Goes on with the sockets that are `bound` now; of new ones `open` says through which it sends.
    pub(super) fn follow(
        &mut self,
        bound: &[Arc<Socket>],
        mut open: impl FnMut(&Arc<Socket>) -> Arc<Socket>,
    ) {
        self.ports
            .retain(|port| bound.iter().any(|socket| Arc::ptr_eq(socket, &port.bound)));
        for socket in bound {
            if !self.ports.iter().any(|port| Arc::ptr_eq(socket, &port.bound)) {
                self.ports.push(Port {
                    bound: socket.clone(),
                    socket: open(socket),
                    outbox: Outbox::new(),
                    blocked: false,
                });
            }
        }
    }

    /// Those it sends through.
    pub(super) fn sockets(&self) -> impl Iterator<Item = &Arc<Socket>> {
        self.ports.iter().map(|port| &port.socket)
    }

    /// No handle wants anything of its machine, and that has nothing left to do, or has had a moment for it.
    pub(super) fn is_over(&mut self, now: Time) -> bool {
        if !self.machine.is_over() {
            return false;
        }
        let until = *self.linger_until.get_or_insert(now + LINGER);
        let has_sent = self.sending == Sending::Done && self.ports.iter().all(|port| port.outbox.is_empty());
        has_sent && self.machine.deadline().is_none() || now >= until
    }

    /// When to look after it.
    pub(super) fn wakes(&self) -> Option<Time> {
        [self.machine.deadline(), self.linger_until]
            .into_iter()
            .flatten()
            .min()
    }

    /// Has its turn to send.
    pub(super) fn send(&mut self, work: &mut Work, cx: &mut Context<'_>) -> Sending {
        self.sending = self.send_some(work, cx);
        self.sending
    }

    /// Takes from the machine and sends, one round of outboxes after the other. A socket without room keeps what it has,
    /// and the others go on.
    fn send_some(&mut self, work: &mut Work, cx: &mut Context<'_>) -> Sending {
        for _ in 0..SENDS_PER_ROUND {
            self.flush(work, cx);
            if !self.ports.is_empty() && self.ports.iter().all(|port| port.blocked) {
                self.machine.tell();
                return Sending::Blocked;
            }
            work.read_clock();
            if self.machine.collect(work, &mut self.ports, cx.waker()) {
                // The last datagrams. Where the kernel has no room now, its notice wakes the task.
                return match self.flush(work, cx) {
                    true => Sending::More,
                    false => Sending::Done,
                };
            }
        }
        Sending::More
    }

    /// Hands the outboxes to the kernel, and tells the machine which paths it refused. True when that may have made the
    /// machine do something.
    fn flush(&mut self, work: &mut Work, cx: &mut Context<'_>) -> bool {
        let mut refused: Vec<PathAddress> = Vec::new();
        for port in &mut self.ports {
            port.blocked = false;
            for batch in port.outbox.batches().iter_mut().filter(|batch| !batch.is_sent()) {
                port.blocked |= port.socket.poll_send(cx, batch, &mut work.stats).is_pending();
                if batch.is_refused() && !refused.contains(batch.path()) {
                    refused.push(*batch.path());
                }
            }
            if !port.blocked {
                port.outbox.clear();
            }
        }
        if refused.is_empty() {
            return false;
        }
        work.stats.refusals += refused.len() as u64;
        work.now = self.machine.refuse(work.now, refused);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use std::net::SocketAddr;

    const LOOPBACK: [u8; 4] = [127, 0, 0, 1];

    fn to(port: u16) -> Datagram {
        let mut datagram = Datagram::empty();
        datagram.path.remote = SocketAddr::from((LOOPBACK, port));
        datagram.body = Bytes::from_static(b"said");
        datagram
    }

    #[tokio::test]
    async fn a_blocked_socket_keeps_what_it_has_and_holds_up_no_other() {
        let socket = Socket::bind(SocketAddr::from((LOOPBACK, 0)), None).expect("loopback");
        let socket = Arc::new(socket);
        let mut port = Port {
            bound: socket.clone(),
            socket,
            outbox: Outbox::new(),
            blocked: false,
        };
        assert!(!port.push(&to(0)), "no answer could come");
        let pushed = (1..1000).take_while(|number| port.push(&to(*number))).count();
        assert!(pushed > 0 && pushed < 999 && !port.has_room());
        port.blocked = true;
        assert!(port.has_room(), "the machine is asked for what leaves by others");
        assert!(!port.push(&to(1)), "what leaves here is lost, as in any queue");
    }
}
