//! The applications of one side: they open, write, read, finish and break off as the case says, and put everything
//! they do and see on record.

use super::faults::Fault;
use super::trace::{End, Trace, What};
use super::{Case, Side};
use crate::traffic::PORT;
use restp_base::flow::{FlowId, Read, WriteError};
use restp_base::machine::{Event, Machine, PathAddress};
use restp_base::time::{Duration, Time};
use std::collections::VecDeque;
use std::ops::Range;

/// Everything that uses the machine of one side.
pub struct Application<'a> {
    case: &'a Case,
    side: Side,
    path: PathAddress,
    /// When conversations are opened, by the client.
    opens: VecDeque<Time>,
    opened: usize,
    /// When the applications finish or break off.
    acts: VecDeque<(Time, Act)>,
    pauses: Vec<Range<Time>>,
    talks: Vec<Talk>,
    /// Every flow of this machine, with its end.
    flows: Vec<(usize, FlowId)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Finish,
    Abort,
}

/// One end of one conversation, while it lasts.
struct Talk {
    flow: FlowId,
    end: usize,
    conversation: usize,
    due: Time,
    writes: u64,
    bytes: u64,
    /// Most bytes of one write, as the machine said.
    limit: usize,
    blocked: bool,
    finished: bool,
    ended: bool,
    closed: bool,
    most_held: u64,
}

/// Time and machine while an application acts. The machine has a clock of its own.
pub struct Stage<'a> {
    /// Time of the world.
    pub now: Time,
    /// Time of this side's clock.
    pub clock: Time,
    /// Its machine.
    pub machine: &'a mut dyn Machine,
    /// Where everything is put on record.
    pub trace: &'a mut Trace,
}

/// From the restart of a server to the client's next attempt.
const AGAIN: Duration = Duration::from_secs(1);

impl<'a> Application<'a> {
    pub fn new(case: &'a Case, side: Side, path: PathAddress) -> Self {
        let at = |millis: u64| Time::ZERO + Duration::from_millis(millis);
        let (mut acts, mut pauses) = (Vec::new(), Vec::new());
        let mut opens: Vec<Time> = case.opens_ms.iter().map(|millis| at(*millis)).collect();
        for fault in &case.faults {
            match *fault {
                Fault::Restart {
                    side: Side::Client,
                    at_ms,
                } => opens.push(at(at_ms)),
                Fault::Restart {
                    side: Side::Server,
                    at_ms,
                } => opens.push(at(at_ms) + AGAIN),
                Fault::PauseReading {
                    side: of,
                    from_ms,
                    until_ms,
                } if of == side => {
                    pauses.push(at(from_ms)..at(until_ms));
                }
                Fault::Finish { side: of, at_ms } if of == side => acts.push((at(at_ms), Act::Finish)),
                Fault::Abort { side: of, at_ms } if of == side => acts.push((at(at_ms), Act::Abort)),
                _ => {}
            }
        }
        opens.sort();
        opens.dedup();
        acts.sort_by_key(|(at, _)| *at);
        if side == Side::Server {
            opens.clear();
        }
        Application {
            case,
            side,
            path,
            opens: opens.into(),
            opened: 0,
            acts: acts.into(),
            pauses,
            talks: Vec::new(),
            flows: Vec::new(),
        }
    }

    /// The machine is gone, and with it everything this side knew of its conversations.
    pub fn forget(&mut self) {
        self.talks.clear();
        self.flows.clear();
    }

    /// The flow of an end, unless its machine is gone.
    pub fn flow(&self, end: usize) -> Option<FlowId> {
        self.flows
            .iter()
            .find(|(of, _)| *of == end)
            .map(|(_, flow)| *flow)
    }

    /// When it wants to act next.
    pub fn next(&self, now: Time) -> Time {
        let writes = self
            .talks
            .iter()
            .filter(|talk| talk.may_write())
            .map(|talk| talk.due);
        let wakes = self.pauses.iter().map(|pause| pause.end).filter(|end| *end > now);
        let opens = self.opens.front().copied();
        let acts = self.acts.front().map(|(at, _)| *at);
        writes
            .chain(wakes)
            .chain(opens)
            .chain(acts)
            .min()
            .unwrap_or(Time::MAX)
    }

    /// Does what is due: opens, reads, writes, finishes, breaks off. True when it let a flow go, which leaves no
    /// record.
    pub fn act(&mut self, stage: &mut Stage<'_>) -> bool {
        while self.opens.front().is_some_and(|at| *at <= stage.now) {
            self.opens.pop_front();
            self.open(stage);
        }
        while let Some((_, act)) = self.acts.pop_front_if(|(at, _)| *at <= stage.now) {
            for talk in &mut self.talks {
                talk.interrupt(act, stage);
            }
        }
        let paused = self.pauses.iter().any(|pause| pause.contains(&stage.now));
        for talk in &mut self.talks {
            if !paused {
                talk.read(stage);
            }
            talk.write(stage, self.side, self.case);
            talk.weigh(stage);
            if talk.closed && !paused {
                stage.machine.release(stage.clock, talk.flow);
            }
        }
        let before = self.talks.len();
        self.talks.retain(|talk| !talk.closed || paused);
        self.talks.len() < before
    }

    fn open(&mut self, stage: &mut Stage<'_>) {
        match stage.machine.open(stage.clock, self.path, PORT) {
            Ok(flow) => self.begin(stage, flow, self.opened, false),
            Err(error) => {
                let what = format!("a flow could not be opened: {error}");
                stage.trace.add(
                    stage.now,
                    What::Unexpected {
                        side: self.side,
                        what,
                    },
                );
            }
        }
        self.opened += 1;
    }

    fn begin(&mut self, stage: &mut Stage<'_>, flow: FlowId, conversation: usize, again: bool) {
        let side = self.side;
        let end = stage.trace.begin(
            stage.now,
            End {
                side,
                conversation,
                again,
            },
        );
        self.flows.push((end, flow));
        self.talks.push(Talk {
            flow,
            end,
            conversation,
            due: stage.now + self.case.writes(side).start(),
            writes: 0,
            bytes: 0,
            limit: usize::MAX,
            blocked: false,
            finished: again,
            ended: false,
            closed: false,
            most_held: 0,
        });
        if again {
            stage.trace.add(stage.now, What::Aborted { end });
            stage.machine.abort(stage.clock, flow);
        }
    }

    /// Takes one event of the machine. `cause` is the conversation of the packet that brought it about.
    pub fn on(&mut self, event: &Event, cause: Option<usize>, stage: &mut Stage<'_>) {
        match event {
            Event::Accepted(flow) => match cause {
                Some(conversation) => {
                    let earlier = |end: &End| end.side == self.side && end.conversation == conversation;
                    let again = stage.trace.ends.iter().any(earlier);
                    self.begin(stage, *flow, conversation, again);
                }
                None => {
                    let what = "a flow was accepted that nobody opened".into();
                    stage.trace.add(
                        stage.now,
                        What::Unexpected {
                            side: self.side,
                            what,
                        },
                    );
                }
            },
            Event::Writable(flow) => {
                if let Some(talk) = self.talk(*flow) {
                    talk.blocked = false;
                }
            }
            Event::Closed(flow, reason) => {
                if let Some(talk) = self.talk(*flow) {
                    talk.closed = true;
                    let (end, reason) = (talk.end, reason.clone());
                    stage.trace.add(stage.now, What::Closed { end, reason });
                }
            }
            Event::Connected(_) | Event::Readable(_) | Event::Path(..) => {}
        }
    }

    fn talk(&mut self, flow: FlowId) -> Option<&mut Talk> {
        self.talks.iter_mut().find(|talk| talk.flow == flow)
    }
}

impl Talk {
    fn may_write(&self) -> bool {
        !self.blocked && !self.finished && !self.closed
    }

    fn read(&mut self, stage: &mut Stage<'_>) {
        loop {
            match stage.machine.read(stage.clock, self.flow) {
                Read::Data(data) => stage.trace.add(stage.now, What::Read { end: self.end, data }),
                Read::Empty => return,
                Read::End => {
                    if !std::mem::replace(&mut self.ended, true) {
                        stage.trace.add(stage.now, What::ReadEnd { end: self.end });
                    }
                    return;
                }
            }
        }
    }

    fn write(&mut self, stage: &mut Stage<'_>, side: Side, case: &Case) {
        let plan = case.writes(side);
        while self.may_write() && self.due <= stage.now {
            let who = (side, self.conversation);
            let Some(data) = plan.next(who, self.writes, self.bytes, self.limit) else {
                return self.interrupt(Act::Finish, stage);
            };
            match stage.machine.write(stage.clock, self.flow, data.clone()) {
                Ok(()) => {
                    self.writes += 1;
                    self.bytes += data.len() as u64;
                    self.due += plan.interval();
                    stage.trace.add(stage.now, What::Wrote { end: self.end, data });
                }
                Err(WriteError::Blocked) => self.blocked = true,
                Err(WriteError::TooLarge { limit, .. }) if limit < data.len() => self.limit = limit,
                Err(WriteError::Closed) => self.finished = true,
                Err(error) => {
                    let what = format!("{} bytes could not be written: {error}", data.len());
                    stage.trace.add(stage.now, What::Unexpected { side, what });
                    self.finished = true;
                }
            }
        }
    }

    fn interrupt(&mut self, act: Act, stage: &mut Stage<'_>) {
        if self.closed {
            return;
        }
        match act {
            Act::Finish if self.finished => {}
            Act::Finish => {
                stage.trace.add(stage.now, What::Finished { end: self.end });
                stage.machine.finish(stage.clock, self.flow);
            }
            Act::Abort => {
                stage.trace.add(stage.now, What::Aborted { end: self.end });
                stage.machine.abort(stage.clock, self.flow);
            }
        }
        self.finished = true;
    }

    /// How much the machine holds for this flow, when it is more than before.
    fn weigh(&mut self, stage: &mut Stage<'_>) {
        let held = stage
            .machine
            .stats(self.flow)
            .map_or(0, |stats| stats.memory_bytes);
        if held > self.most_held {
            self.most_held = held;
            stage.trace.add(
                stage.now,
                What::Holds {
                    end: self.end,
                    bytes: held,
                },
            );
        }
    }
}
