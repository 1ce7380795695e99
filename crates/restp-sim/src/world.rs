//! The network at work: nodes, links, hosts, and the only loop.
//!
//! A host is a place where a protocol sends and receives; several may sit on one node. [`World::next`] moves packets
//! from hop to hop by itself and returns when a host must act. Packets that different lines deliver at one instant come in
//! an order drawn for it, so that none of them is always first; packets of one line keep theirs. Timers come before them.
//!
//! ```
//! use restp_base::{machine::Datagram, time::{Duration, Time}, units::Rate};
//! use restp_sim::{DirectionSpec, HostEvent, QueueLimit, World, topology::point_to_point};
//!
//! let line = DirectionSpec::new(Rate::from_bps(10_000_000), Duration::from_millis(5), QueueLimit::Packets(100));
//! let mut world = World::new(&point_to_point(&line), 1)?;
//! let [source, sink] = ["source", "sink"].map(|name| world.node(name).expect("a node of the list"));
//! let (source, sink) = (world.attach(source), world.attach(sink));
//!
//! let mut datagram = Box::new(Datagram::empty());
//! world.send(Time::ZERO, source, sink, 1250, &mut datagram);
//! let arrival = HostEvent::Arrival { host: sink };
//! assert_eq!(world.next(Time::MAX, &mut datagram), Some((Time::from_nanos(6_000_000), arrival)));
//! # Ok::<(), restp_sim::NetworkError>(())
//! ```

mod flight;
mod pool;
mod stats;
mod tap;
mod travel;

pub use crate::host_id::HostId;
pub use stats::{LinkStats, LostSegment, Totals};

use crate::direction::{Counters, Direction};
use crate::medium::{Medium, MediumSpec};
use crate::queue::{EventQueue, Ties};
use crate::spec::{LinkSpec, NetworkError, Way};
use crate::topology::{NodeId, Route, Topology};
use crate::trace::{Capture, Captured, Sink, Step, TraceEvent};
use flight::{InFlight, Strays};
use pool::{Packet, Pool};
use restp_base::machine::Datagram;
use restp_base::random::Stream;
use restp_base::time::{Duration, Time};
use restp_base::units::Rate;
use std::collections::VecDeque;
use std::fmt;
use tap::Taps;

/// A simulated network.
pub struct World {
    now: Time,
    event_queue: EventQueue,
    lines: Vec<Line>,
    /// Lines whose queue decides on departure.
    holding: Vec<u32>,
    media: Vec<Medium>,
    /// Hops through the air; their indices follow those of the lines.
    air: Vec<Air>,
    hosts: Vec<Host>,
    taps: Taps,
    pool: Pool,
    strays: Strays,
    topology: Topology,
    labels: Vec<Label>,
    trace: Option<Sink>,
    capture: Option<Capture>,
    /// Segments lost and not yet told of, if anybody asks.
    lost: Option<Vec<LostSegment>>,
    events: u64,
    totals: Totals,
}

/// Why a host must act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostEvent {
    /// A datagram has arrived for it.
    Arrival {
        /// The host.
        host: HostId,
    },
    /// Its timer has run out.
    Wake {
        /// The host.
        host: HostId,
    },
}

/// One direction with what is on its way through it.
struct Line {
    direction: Direction,
    /// Packets in order of arrival; only the first is in the event queue.
    in_flight: VecDeque<InFlight>,
    /// Where it ends.
    far_end: u32,
    /// The source in the event queue of what its discipline decides on departure.
    departures: usize,
}

/// One direction through the air.
struct Air {
    medium: u32,
    /// Its number there.
    hop: u32,
    /// Where it ends.
    far_end: u32,
}

struct Host {
    node: u32,
    /// What its packets follow as far as it leads; then, and without one, the shortest route.
    route: Route,
    /// When it wants to wake.
    deadline: Time,
    /// When the event queue will look at it: never after `deadline`, often before, as a timer that moves to later stays
    /// where it is until then.
    scheduled: Time,
}

/// How statistics and traces call a direction.
struct Label {
    link: String,
    way: Way,
    line: String,
}

impl World {
    /// The network of `links`, whose directions draw from the streams `"link/<link>/<forward|reverse>/…"` of the run
    /// `seed`; the order of simultaneous events from `"ties"`.
    ///
    /// # Errors
    /// When the links are no network (see [`Topology::new`]) or one of them has an impossible value.
    pub fn new(links: &[LinkSpec], seed: u64) -> Result<World, NetworkError> {
        World::with_media(links, &[], seed)
    }

    /// The network of `links` and `media`, whose stations draw from the streams `"medium/<medium>/…"`.
    ///
    /// # Errors
    /// As [`World::new`], and when a medium is impossible.
    pub fn with_media(links: &[LinkSpec], media: &[MediumSpec], seed: u64) -> Result<World, NetworkError> {
        let topology = Topology::with_media(links, media)?;
        let (mut lines, mut labels, mut holding) = (Vec::new(), Vec::new(), Vec::new());
        let strays = 2 * links.len();
        for link in links {
            for way in Way::BOTH {
                let stream = format!("link/{}/{way}", link.name);
                let direction = Direction::new(link.direction(way), seed, &stream).map_err(|error| {
                    NetworkError::Spec {
                        link: link.name.clone(),
                        way,
                        error,
                    }
                })?;
                let far_end = topology.far_end(lines.len());
                let departures = strays + 1 + holding.len();
                if direction.holds() {
                    holding.push(lines.len() as u32);
                }
                lines.push(Line {
                    direction,
                    in_flight: VecDeque::new(),
                    far_end,
                    departures,
                });
                labels.push(Label::new(&link.name, way));
            }
        }
        let air = air(media, &topology, &mut labels);
        let timers = strays + 1 + holding.len() + media.len();
        Ok(World {
            now: Time::ZERO,
            // Sources: the directions, then the strays, then the departures, then the media, then the hosts.
            event_queue: EventQueue::new(timers, Ties::new(Stream::named(seed, "ties").bits(), timers)),
            lines,
            holding,
            media: media.iter().map(|spec| Medium::new(spec, seed)).collect(),
            air,
            hosts: Vec::new(),
            taps: Taps::default(),
            pool: Pool::default(),
            strays: Strays::default(),
            topology,
            labels,
            trace: None,
            capture: None,
            lost: None,
            events: 0,
            totals: Totals::default(),
        })
    }

    /// The node of this name.
    pub fn node(&self, name: &str) -> Option<NodeId> {
        self.topology.node(name)
    }

    /// Puts a host on a node.
    pub fn attach(&mut self, node: NodeId) -> HostId {
        self.attach_along(node, Route::default())
    }

    /// Puts a host on a node whose packets leave by `route`: one of several addresses, each with a way of its own.
    pub fn attach_along(&mut self, node: NodeId, route: Route) -> HostId {
        let host = HostId(self.hosts.len() as u32);
        self.hosts.push(Host {
            node: node.0,
            route,
            deadline: Time::MAX,
            scheduled: Time::MAX,
        });
        self.event_queue.grow(1);
        host
    }

    /// Sends the contents of `datagram`, which hold `wire_bytes` on the lines, lower headers included. `datagram` is
    /// left with contents of no meaning. Its addresses are neither read nor turned round; its ECN bits are obeyed.
    ///
    /// `now` is the time of the last event, or later. Between two hosts of one node a packet takes no time; between
    /// parts of a network that nothing joins it vanishes.
    pub fn send(
        &mut self,
        now: Time,
        from: HostId,
        to: HostId,
        wire_bytes: u32,
        datagram: &mut Box<Datagram>,
    ) {
        debug_assert!(
            now >= self.now,
            "time never goes back: {now:?} after {:?}",
            self.now
        );
        self.now = self.now.max(now);
        self.totals.sent += 1;
        let (node, goal) = (self.hosts[from.0 as usize].node, self.hosts[to.0 as usize].node);
        let number = self.totals.sent + self.totals.copied;
        let packet = self.pool.put(
            Packet {
                number,
                from: from.0,
                hops: 0,
                to: to.0,
                goal,
                bytes: wire_bytes,
                ecn: datagram.ecn,
                may_fragment: datagram.may_fragment,
            },
            datagram,
        );
        self.observe(packet, |_| Step::Sent { from, to });
        if node == goal {
            self.stray(packet, now, None);
        } else {
            self.offer(packet, node);
        }
    }

    /// Sets the timer of `host`, in the place of the one it had. [`Time::MAX`] stands for never. A time that has passed
    /// is now; the time it is set to already changes nothing.
    pub fn wake_at(&mut self, host: HostId, at: Time) {
        let timer = &mut self.hosts[host.0 as usize];
        let at = at.max(self.now);
        if at == timer.deadline {
            return;
        }
        timer.deadline = at;
        if at <= timer.scheduled && at != Time::MAX {
            timer.scheduled = at;
            self.event_queue.set(self.timers() + host.0 as usize, at);
        }
    }

    /// Takes back the timer of `host`.
    pub fn cancel_wake(&mut self, host: HostId) {
        self.wake_at(host, Time::MAX);
    }

    /// Goes on until a host must act, and says when and why; `None` when that is after `until`. With an arrival the
    /// datagram's contents are swapped into `arrived`.
    pub fn next(&mut self, until: Time, arrived: &mut Box<Datagram>) -> Option<(Time, HostEvent)> {
        self.keep_shown();
        while let Some((at, source)) = self.event_queue.first()
            && at <= until
        {
            self.now = at;
            let strays = self.lines.len();
            let (media, timers) = (self.first_medium(), self.timers());
            let event = if source < strays {
                self.line_due(source, arrived)
            } else if source == strays {
                self.stray_due(arrived)
            } else if source < media {
                self.departure_due(self.holding[source - strays - 1] as usize);
                None
            } else if source < timers {
                self.medium_due(source - media, arrived)
            } else {
                self.timer_due(source - timers)
            };
            if let Some(event) = event {
                return Some((at, event));
            }
        }
        if until != Time::MAX {
            self.now = self.now.max(until);
        }
        None
    }

    /// The time of the last event, or the `until` that [`World::next`] reached.
    pub const fn now(&self) -> Time {
        self.now
    }

    /// Events processed: packets at the end of a hop or decided on at its beginning, and timers.
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// Packets of the whole network.
    pub fn totals(&self) -> Totals {
        Totals {
            in_flight: self.pool.used() as u64,
            ..self.totals
        }
    }

    /// What each direction has done until now: each link's forward direction, then its reverse; then those of the
    /// pairs of each medium.
    pub fn link_stats(&self) -> Vec<LinkStats> {
        let wires = self.lines.iter().map(|line| line.direction.counters(self.now));
        let air = self
            .air
            .iter()
            .map(|air| self.media[air.medium as usize].counters(air.hop));
        let stats = |(label, counters): (&Label, Counters)| LinkStats {
            name: label.link.clone(),
            direction: label.way,
            counters,
        };
        self.labels.iter().zip(wires.chain(air)).map(stats).collect()
    }

    /// One direction of a wire, to change it during the run.
    pub fn direction_mut(&mut self, link: &str, way: Way) -> Option<&mut Direction> {
        let index = self
            .labels
            .iter()
            .position(|label| label.link == link && label.way == way)?;
        self.lines.get_mut(index).map(|line| &mut line.direction)
    }

    /// Nodes and routes.
    pub const fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Propagation along the route; see [`Topology::one_way_delay`].
    pub fn one_way_delay(&self, from: NodeId, to: NodeId) -> Duration {
        self.topology.one_way_delay(from, to)
    }

    /// Propagation there and back; see [`Topology::path_rtt`].
    pub fn path_rtt(&self, from: NodeId, to: NodeId) -> Duration {
        self.topology.path_rtt(from, to)
    }

    /// The smallest rate on the route; see [`Topology::bottleneck_rate`].
    pub fn bottleneck_rate(&self, from: NodeId, to: NodeId) -> Option<Rate> {
        self.topology.bottleneck_rate(from, to)
    }

    /// From now on every step of every packet goes to `sink`.
    pub fn trace(&mut self, sink: impl FnMut(&TraceEvent<'_>) + Send + 'static) {
        self.trace = Some(Box::new(sink));
    }

    /// From now on every packet that enters a line goes to `sink`.
    pub fn capture(&mut self, sink: impl FnMut(&Captured<'_>) + Send + 'static) {
        self.capture = Some(Box::new(sink));
    }

    /// The source in the event queue of the first medium.
    fn first_medium(&self) -> usize {
        self.lines.len() + 1 + self.holding.len()
    }

    /// That of the first host's timer.
    fn timers(&self) -> usize {
        self.first_medium() + self.media.len()
    }

    fn timer_due(&mut self, host: usize) -> Option<HostEvent> {
        let source = self.timers() + host;
        let timer = &mut self.hosts[host];
        if timer.deadline > timer.scheduled {
            // It has moved to later, or was taken back, since it was put here.
            timer.scheduled = timer.deadline;
            match timer.deadline {
                Time::MAX => self.event_queue.clear(source),
                deadline => self.event_queue.set(source, deadline),
            }
            return None;
        }
        (timer.deadline, timer.scheduled) = (Time::MAX, Time::MAX);
        self.event_queue.clear(source);
        self.events += 1;
        Some(HostEvent::Wake {
            host: HostId(host as u32),
        })
    }
}

/// The hops of all media, which get labels like lines.
fn air(media: &[MediumSpec], topology: &Topology, labels: &mut Vec<Label>) -> Vec<Air> {
    let mut air = Vec::new();
    for (medium, spec) in media.iter().enumerate() {
        for (hop, pair) in spec.pairs().iter().flat_map(|pair| [pair, pair]).enumerate() {
            air.push(Air {
                medium: medium as u32,
                hop: hop as u32,
                far_end: topology.far_end(labels.len()),
            });
            labels.push(Label::new(&pair.name, Way::BOTH[hop % 2]));
        }
    }
    air
}

impl Label {
    fn new(link: &str, way: Way) -> Self {
        Label {
            link: link.into(),
            way,
            line: format!("{link}/{way}"),
        }
    }
}

impl HostId {
    /// Hosts count from zero in the order attached.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "host{}", self.0)
    }
}
