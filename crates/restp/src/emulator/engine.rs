//! The emulator's loop: one thread, all paths. It sleeps until the earliest packet is due or something arrives,
//! with timers to the nanosecond; a late wake-up delays packets but never changes a rate, since the model's own
//! clock runs on.

use super::command::{Answer, Command, CommandError, Request, Requests};
use super::line::Line;
use super::report::{PathPorts, PathReport, Report};
#[cfg(target_os = "linux")]
use super::tun::TunEnds;
use super::udp::{Client, UdpEnds};
use super::{ConfigError, EmulatorError, PathConfig};
use crate::clock::Clock;
use restp_base::time::Time;
use restp_sim::{ErrorModel, Way};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// Where a path's packets come from and go to.
pub(super) enum Ends {
    Udp(UdpEnds),
    #[cfg(target_os = "linux")]
    Tun(TunEnds),
}

/// One path, attached.
pub(super) struct Route {
    name: String,
    /// Forward and reverse.
    lines: [Line<Option<Arc<Client>>>; 2],
    ends: Ends,
}

impl Route {
    pub(super) fn new(seed: u64, path: &PathConfig, ends: Ends) -> Result<Self, EmulatorError> {
        let line = |way, spec| {
            Line::new(spec, seed, &format!("path/{}/{way}", path.name)).map_err(|error| {
                ConfigError::Content {
                    file: None,
                    message: format!("path \"{}\": {way}: {error}", path.name),
                }
            })
        };
        let lines = [
            line(Way::Forward, &path.forward)?,
            line(Way::Reverse, &path.reverse)?,
        ];
        Ok(Route {
            name: path.name.clone(),
            lines,
            ends,
        })
    }

    pub(super) fn ports(&self) -> PathPorts {
        match &self.ends {
            Ends::Udp(ends) => ends.ports(&self.name),
            #[cfg(target_os = "linux")]
            Ends::Tun(ends) => ends.ports(&self.name),
        }
    }

    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        match &self.ends {
            Ends::Udp(ends) => ends.fds().collect(),
            #[cfg(target_os = "linux")]
            Ends::Tun(ends) => ends.fds().collect(),
        }
    }

    fn receive(&mut self, now: impl Fn() -> Time) {
        match &mut self.ends {
            Ends::Udp(ends) => ends.receive(now, &mut self.lines),
            #[cfg(target_os = "linux")]
            Ends::Tun(ends) => ends.receive(now, &mut self.lines),
        }
    }

    fn release(&mut self, now: Time) {
        let [forward, reverse] = &mut self.lines;
        match &self.ends {
            Ends::Udp(ends) => {
                forward.release(now, |packet| ends.send_forward(packet));
                reverse.release(now, |packet| ends.send_reverse(packet));
            }
            #[cfg(target_os = "linux")]
            Ends::Tun(ends) => {
                forward.release(now, |packet| ends.send(1, packet));
                reverse.release(now, |packet| ends.send(0, packet));
            }
        }
    }

    fn set_loss(&mut self, index: usize, model: Option<ErrorModel>) -> Result<(), CommandError> {
        let Some(model) = model else {
            return Ok(());
        };
        self.lines[index]
            .set_loss(&[model])
            .map_err(|error| CommandError::Value(error.to_string()))
    }

    fn report(&self, now: Time) -> PathReport {
        let [forward, reverse] = [0, 1].map(|index| self.lines[index].report(now));
        PathReport {
            path: self.name.clone(),
            forward,
            reverse,
        }
    }
}

/// All paths and the channel for commands.
pub(super) struct Engine {
    routes: Vec<Route>,
    requests: Requests,
}

impl Engine {
    pub(super) fn new(routes: Vec<Route>, requests: Requests) -> Self {
        Engine { routes, requests }
    }

    /// Runs on the calling thread until told to quit.
    pub(super) fn run(mut self) -> Report {
        #[cfg(target_os = "linux")]
        {
            // The kernel may otherwise add 50 us to every sleep. Refused, the emulator is only less exact.
            let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        }
        let clock = Clock::start();
        loop {
            for index in self.wait(clock.now()) {
                self.routes[index].receive(|| clock.now());
            }
            while let Some(Request { command, answer }) = self.requests.next() {
                let quit = command == Command::Quit;
                // A caller that did not wait for the answer does not want it.
                let _ = answer.send(self.execute(command, clock.now()));
                if quit {
                    return self.report(clock.now());
                }
            }
            for route in &mut self.routes {
                route.release(clock.now());
            }
        }
    }

    /// Sleeps until a packet is due or something arrives; returns the routes where something did.
    fn wait(&self, now: Time) -> Vec<usize> {
        let due = self
            .routes
            .iter()
            .flat_map(|route| &route.lines)
            .filter_map(Line::due)
            .min();
        let timeout = due.map(|due| {
            let nanos = due.since(now).as_nanos();
            Timespec {
                tv_sec: (nanos / 1_000_000_000) as i64,
                tv_nsec: (nanos % 1_000_000_000) as i64,
            }
        });
        let requests = self.requests.as_fd();
        let mut owners = vec![None];
        let mut fds = vec![PollFd::from_borrowed_fd(requests, PollFlags::IN)];
        for (index, route) in self.routes.iter().enumerate() {
            for fd in route.fds() {
                owners.push(Some(index));
                fds.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
            }
        }
        // Interrupted by a signal: nothing has arrived, and the loop looks again.
        let _ = poll(&mut fds, timeout.as_ref());
        let mut ready: Vec<usize> = fds
            .iter()
            .zip(owners)
            .filter(|(fd, _)| !fd.revents().is_empty())
            .filter_map(|(_, owner)| owner)
            .collect();
        ready.dedup();
        ready
    }

    fn execute(&mut self, command: Command, now: Time) -> Result<Answer, CommandError> {
        match command {
            Command::Stats | Command::Quit => return Ok(Answer::Stats(self.report(now))),
            Command::Down(name) => self
                .route(&name)?
                .lines
                .iter_mut()
                .for_each(|line| line.set_up(false)),
            Command::Up(name) => self
                .route(&name)?
                .lines
                .iter_mut()
                .for_each(|line| line.set_up(true)),
            Command::SetLoss {
                path,
                forward,
                reverse,
            } => {
                let route = self.route(&path)?;
                route.set_loss(0, forward)?;
                route.set_loss(1, reverse)?;
            }
        }
        Ok(Answer::Done(now.as_secs_f64()))
    }

    fn route(&mut self, name: &str) -> Result<&mut Route, CommandError> {
        let known: Vec<&str> = self.routes.iter().map(|route| route.name.as_str()).collect();
        let missing = CommandError::NoPath {
            name: name.into(),
            known: known.join(", "),
        };
        self.routes
            .iter_mut()
            .find(|route| route.name == name)
            .ok_or(missing)
    }

    fn report(&self, now: Time) -> Report {
        Report {
            seconds: now.as_secs_f64(),
            paths: self.routes.iter().map(|route| route.report(now)).collect(),
        }
    }
}
