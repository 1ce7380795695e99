//! One random run: what is drawn, and the story every run tells. The world breaks for a while, then it heals; then
//! everything has to come to its end.

mod application;
mod composition;
mod laws;
mod network;

use super::common::web::{cookie_of, keep};
use super::common::{PORT, Pair};
use application::Application;
use laws::Laws;
use restp_base::random::Stream;
use restp_base::time::Duration;
use restp_proto::{Acceptance, EndpointConfig, ValidComposition};

/// How long the network misbehaves.
pub const BROKEN: Duration = Duration::from_secs(20);
/// By when everything has ended after that: a few backed-off timers, and TIME-WAIT.
const HEALED: Duration = Duration::from_secs(400);
const TICK: Duration = Duration::from_millis(10);

pub struct Run {
    seed: u64,
    composition: ValidComposition,
    pair: Pair,
    applications: [Application; 2],
}

impl Run {
    pub fn new(seed: u64) -> Self {
        let mut draw = Stream::named(seed, "run");
        let composition = composition::draw(&mut draw);
        let acceptor = EndpointConfig::new(composition.clone()).listen(PORT, Acceptance::Any);
        let mut pair = Pair::of(EndpointConfig::new(composition.clone()), acceptor);
        pair.delay = Duration::from_micros(100 + draw.below(80_000));
        pair.rule = network::rule(seed, composition.crc);
        if Stream::named(seed, "cookie").chance(0.7) {
            let cookie = cookie_of(&EndpointConfig::new(composition.clone()), &pair);
            keep(&mut pair, cookie); // has a meaning where the set-up is opportunistic
        }
        let applications = [0, 1].map(|side| Application::draw(side, &composition, &mut draw));
        Run {
            seed,
            composition,
            pair,
            applications,
        }
    }

    pub fn play(mut self) {
        let choices = self.composition.services();
        let names: Vec<_> = choices.iter().map(|(_, value, _)| value.as_str()).collect();
        eprintln!("seed {}: {}", self.seed, names.join(" "));
        let mut laws = Laws::new(&self.composition);
        self.applications[0].flow = Some(self.pair.open());
        let broken = self.pair.now + BROKEN;
        while self.pair.now < broken {
            self.step(&mut laws, TICK);
        }
        self.pair.rule = Box::new(|_| super::common::Verdict::Pass);
        let healed = self.pair.now + HEALED;
        while self.pair.now < healed && !self.is_over() {
            let calm = self.applications.iter().all(Application::is_quiet);
            self.step(&mut laws, if calm { TICK * 50 } else { TICK });
        }
        laws.at_the_end(&self.pair, &self.applications);
        self.pair.run_for(Duration::from_secs(130));
        let held = self.pair.ends.each_ref().map(|end| end.connections());
        assert_eq!(held, [0, 0], "everything that ended is forgotten");
    }

    fn step(&mut self, laws: &mut Laws, span: Duration) {
        self.pair.run_for(span);
        for side in 0..2 {
            self.applications[side].act(side, &mut self.pair);
        }
        laws.at_every_step(&self.pair, &self.applications);
    }

    fn is_over(&self) -> bool {
        self.applications.iter().all(|application| application.is_over())
    }
}
