//! The applications of one side: they open, write, read, finish and break off as the case says, and put everything
//! they do and see on record.

use super::changes::Wish;
use super::faults::Fault;
use super::paths::{address, at};
use super::trace::{End, Trace, What};
use super::{Case, Side};
use crate::traffic::PORT;
use restp_base::flow::{FlowId, Read, WriteError};
use restp_base::machine::{Event, Machine};
use restp_base::time::{Duration, Time};
use std::collections::VecDeque;
use std::ops::Range;

/// Everything that uses the machine of one side.
pub struct Application<'a> {
    case: &'a Case,
    side: Side,
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
    /// Paths to add and to remove, and when.
    chores: VecDeque<(Time, Chore)>,
}

/// What an application does with the path of this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chore {
    Add(usize),
    Remove(usize),
    /// Asks for the services of this wish.
    Change(usize),
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
    pub fn new(case: &'a Case, side: Side) -> Self {
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

    /// The end of a flow.
    pub fn end(&self, flow: FlowId) -> Option<usize> {
        let found = self.flows.iter().find(|(_, of)| *of == flow);
        found.map(|(end, _)| *end)
    }

    /// Every end of the present machine, with its flow.
    pub fn flows(&self) -> &[(usize, FlowId)] {
        &self.flows
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
        let chores = self.talks.iter().filter_map(|talk| talk.chores.front());
        writes
            .chain(chores.map(|(at, _)| *at))
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
            talk.tend_paths(stage, self.side, self.case);
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

    /// Breaks off what is not over; which ends these are.
    pub fn let_go(&mut self, stage: &mut Stage<'_>) -> Vec<usize> {
        let open = self.talks.iter_mut().filter(|talk| !talk.closed);
        open.map(|talk| {
            talk.interrupt(Act::Abort, stage);
            talk.end
        })
        .collect()
    }

    fn open(&mut self, stage: &mut Stage<'_>) {
        match stage.machine.open(stage.clock, address(self.side, 0), PORT) {
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
            chores: chores(self.case, side, stage.now),
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
            Event::Connected(_) | Event::Readable(_) | Event::Stream(..) | Event::Path(..) => {}
        }
    }

    fn talk(&mut self, flow: FlowId) -> Option<&mut Talk> {
        self.talks.iter_mut().find(|talk| talk.flow == flow)
    }
}

/// The path that the write after `done` others is for.
fn pinned(case: &Case, done: u64) -> Option<usize> {
    let round = done.checked_div(case.pin_every)?;
    done.is_multiple_of(case.pin_every)
        .then_some((round % case.paths() as u64) as usize)
}

/// What a side whose conversation begins at `now` does with its further paths, and with its services.
fn chores(case: &Case, side: Side, now: Time) -> VecDeque<(Time, Chore)> {
    let mut chores = Vec::new();
    for (path, further) in (1..).zip(&case.further).filter(|_| side == Side::Client) {
        let after = |millis| now + Duration::from_millis(millis);
        chores.push((after(further.joins_ms), Chore::Add(path)));
        chores.extend(
            further
                .leaves_ms
                .map(|millis| (after(millis), Chore::Remove(path))),
        );
    }
    for (index, wish) in case.changes.iter().enumerate() {
        if wish.side == side {
            chores.push((now + Duration::from_millis(wish.after_ms), Chore::Change(index)));
        }
    }
    chores.sort_by_key(|(at, _)| *at);
    chores.into()
}

impl Talk {
    /// Adds and removes the paths whose time has come.
    fn tend_paths(&mut self, stage: &mut Stage<'_>, side: Side, case: &Case) {
        while let Some((_, chore)) = self.chores.pop_front_if(|(at, _)| *at <= stage.now) {
            if self.closed {
                continue;
            }
            let done = match chore {
                Chore::Add(path) => {
                    let backup = case.further[path - 1].backup;
                    stage
                        .machine
                        .add_path(stage.clock, self.flow, address(side, path), backup)
                }
                Chore::Remove(path) => stage
                    .machine
                    .remove_path(stage.clock, self.flow, address(side, path)),
                Chore::Change(wish) => {
                    self.wish(stage, &case.changes[wish]);
                    continue;
                }
            };
            // The last path that works is not removed, and the application keeps it.
            if let (Chore::Add(_), Err(error)) = (chore, done) {
                let what = format!("a path could not be added: {error}");
                stage.trace.add(stage.now, What::Unexpected { side, what });
            }
        }
    }

    /// Asks for other services, and goes on with those it has where they are refused.
    fn wish(&self, stage: &mut Stage<'_>, wish: &Wish) {
        let set: Vec<_> = wish.set.clone().into_iter().collect();
        let answer = stage.machine.reconfigure(stage.clock, self.flow, &set);
        let asked = What::Asked {
            end: self.end,
            set: format!("{set:?}"),
            answer: format!("{answer:?}"),
        };
        stage.trace.add(stage.now, asked);
    }

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
            let taken = match pinned(case, self.writes) {
                None => stage.machine.write(stage.clock, self.flow, data.clone()),
                Some(path) => {
                    let path = address(side, path);
                    stage.machine.write_on(stage.clock, self.flow, data.clone(), path)
                }
            };
            match taken {
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
