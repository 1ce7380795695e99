//! Algorithms from outside the workspace, and algorithms without a header code, between two ends (ResTP §3.1.1; OP-6).

use crate::common::lines::*;
use crate::common::*;
use restp_base::flow::{Flow, FlowId};
use restp_base::random::Stream;
use restp_base::units::Rate;
use restp_proto::wire::Services;
use restp_proto::{Acceptance, Composition, EndpointConfig, EndpointStats};
use restp_services::congestion::{
    Congestion, CongestionChoice, CongestionEvent, CongestionSnapshot, CustomCongestion,
};
use restp_services::scheduling::{
    Candidate, CustomScheduling, Placement, Queue, RoundRobin, Schedule, Scheduling,
};
use restp_services::view::PathView;
use std::sync::{Arc, Mutex};

/// What controllers of one factory were told.
#[derive(Debug, Default)]
struct Told {
    built: usize,
    sent: usize,
    acknowledged_bytes: u64,
    losses: usize,
    most_in_flight_bytes: u64,
}

/// A constant window that keeps account of its events.
#[derive(Debug)]
struct Constant {
    window_bytes: u64,
    told: Arc<Mutex<Told>>,
}

impl Congestion for Constant {
    fn on(&mut self, event: &CongestionEvent, view: &PathView<'_>) {
        let mut told = self.told.lock().expect("no panic while noting");
        told.most_in_flight_bytes = told.most_in_flight_bytes.max(view.in_flight_bytes);
        match event {
            CongestionEvent::Sent { .. } => told.sent += 1,
            CongestionEvent::Acked { bytes, .. } => told.acknowledged_bytes += bytes,
            CongestionEvent::Lost { .. } => told.losses += 1,
            _ => {}
        }
    }
    fn window_bytes(&self) -> u64 {
        self.window_bytes
    }
    fn pacing(&self) -> Option<Rate> {
        None
    }
    fn snapshot(&self) -> CongestionSnapshot {
        CongestionSnapshot {
            window_bytes: self.window_bytes,
            threshold_bytes: None,
            state: "constant",
        }
    }
}

/// An algorithm with a window of `segments`, and what its controllers are told.
fn constant(segments: u64) -> (CongestionChoice, Arc<Mutex<Told>>) {
    let told = Arc::<Mutex<Told>>::default();
    let account = Arc::clone(&told);
    let custom = CustomCongestion::new("constant", move |segment_bytes| {
        account.lock().expect("no panic while noting").built += 1;
        Constant {
            window_bytes: segments * segment_bytes,
            told: Arc::clone(&account),
        }
    });
    (CongestionChoice::Custom(custom), told)
}

/// The preset `default` with this congestion control.
fn controlled(congestion: CongestionChoice) -> EndpointConfig {
    valid(Composition {
        congestion,
        ..composition("cubic", &[])
    })
}

fn valid(composition: Composition) -> EndpointConfig {
    EndpointConfig::new(composition.check().expect("a valid composition"))
}

/// What each end controls its own data by.
fn names(pair: &Pair, flows: (FlowId, FlowId)) -> [&'static str; 2] {
    [(0, flows.0), (1, flows.1)].map(|(side, flow)| {
        let agreed = pair.ends[side].composition(flow).expect("open");
        agreed.congestion.name()
    })
}

/// A flow over both lines, and what the other side calls it.
fn connect_over_both(pair: &mut Pair) -> (FlowId, FlowId) {
    let (first, second) = (line(pair, 1), line(pair, 2));
    let flow = pair.ends[0].open(pair.now, first, PORT).expect("a free port");
    let added = pair.ends[0].add_path(pair.now, flow, second, false);
    added.expect("several paths");
    (flow, both_up(pair))
}

#[test]
fn a_controller_from_outside_sees_what_happens_and_its_window_binds() {
    let (congestion, told) = constant(3);
    let mut pair = Pair::of(
        controlled(congestion),
        config("cubic", &[]).listen(PORT, Acceptance::Any),
    );
    pair.rule = lose_segments(&[20, 50]);
    let flows = pair.connect();
    assert!(pair.transfer(0, flows, &noise(200_000), secs(20)));
    pair.run_for(secs(1)); // the last acknowledgement
    let told = told.lock().unwrap();
    assert_eq!(told.built, 1);
    assert!(told.sent >= 142, "{told:?}");
    assert_eq!(told.acknowledged_bytes, 200_000, "{told:?}");
    assert_eq!(told.losses, 2, "{told:?}");
    assert_eq!(told.most_in_flight_bytes, 3 * 1400, "{told:?}");
}

/// The peer sees the code of NewReno: it does what it does beside NewReno, and drops nothing.
#[test]
fn an_algorithm_without_a_code_travels_as_newreno() {
    let (congestion, _) = constant(3);
    let local = controlled(congestion);
    for (peer, answers_with) in [("newreno", "newreno"), ("cubic", "newreno")] {
        let mut pair = Pair::of(
            local.clone(),
            config("cubic", &[("congestion", peer)]).listen(PORT, Acceptance::Any),
        );
        let flows = pair.connect();
        assert!(pair.transfer(0, flows, &noise(50_000), secs(20)));
        assert!(pair.transfer(1, flows, &noise(50_000), secs(20)));
        assert_eq!(names(&pair, flows), ["constant", answers_with]);
        assert!(pair.log.iter().all(|seen| seen.header.services.congestion == 1));
        for end in &pair.ends {
            assert_eq!(end.endpoint_stats(), EndpointStats::default());
        }
        for (side, flow) in [(0, flows.0), (1, flows.1)] {
            let stats = pair.ends[side].stats(flow).expect("open");
            assert_eq!(stats.retransmitted_packets, 0, "nothing is dropped");
        }
    }
}

/// Which algorithm a host without a code for it uses is its own business, also where the peer opens.
#[test]
fn who_has_an_algorithm_without_a_code_keeps_it_when_newreno_is_asked_for() {
    let (congestion, told) = constant(3);
    let mut pair = Pair::of(
        config("cubic", &[("congestion", "newreno")]),
        controlled(congestion.clone()).listen(PORT, Acceptance::Exact),
    );
    let flows = pair.connect();
    assert!(pair.transfer(1, flows, &noise(50_000), secs(20)));
    assert_eq!(names(&pair, flows), ["newreno", "constant"]);
    assert_eq!(told.lock().unwrap().most_in_flight_bytes, 3 * 1400);
    // Any other code names the algorithm that the peer wants, as between all of them.
    let mut pair = Pair::of(
        config("cubic", &[]),
        controlled(congestion).listen(PORT, Acceptance::Any),
    );
    let flows = pair.connect();
    assert_eq!(names(&pair, flows), ["cubic", "cubic"]);
}

#[test]
fn on_several_paths_it_is_the_same() {
    let listening = valid(composition(
        "geo-spread",
        &[SPREAD, &[("congestion", "tahoe")]].concat(),
    ));
    let mut pair = Pair::of(
        config("geo-spread", SPREAD),
        listening.listen(PORT, Acceptance::Exact),
    );
    let flows = connect_over_both(&mut pair);
    assert!(pair.transfer(0, flows, &noise(50_000), secs(20)));
    assert_eq!(names(&pair, flows), ["newreno", "tahoe"]);
}

/// Coupled windows on one path would be no answer to anybody.
#[test]
fn coupled_windows_are_not_kept_where_one_path_is_asked_for() {
    let local = composition("geo-spread", &[("congestion", "lia")]);
    let bits = Services::of(&composition("3wh-arq", &[]));
    let answer = restp_proto::composition::accept(bits, &local).expect("served");
    assert_eq!(answer.congestion.name(), "newreno");
}

/// Everything on the second path.
#[derive(Debug)]
struct Second;

impl Schedule for Second {
    fn choose(&mut self, paths: &[Candidate], _: &Queue) -> Placement {
        let second = paths.iter().filter(|path| path.path == 1 && path.has_room);
        second.map(|path| path.path).collect()
    }
}

/// Names paths that do not exist, that are full, and one several times.
#[derive(Debug)]
struct Careless {
    chance: Stream,
    sound: RoundRobin,
}

impl Schedule for Careless {
    fn choose(&mut self, paths: &[Candidate], queue: &Queue) -> Placement {
        let mut chosen = self.sound.choose(paths, queue);
        let any: Placement = (0..4).map(|_| self.chance.below(9) as usize).collect();
        chosen.extend(any.iter().chain(&any).copied());
        chosen
    }
}

/// Two paths under this scheduler, at both ends.
fn scheduled(scheduling: CustomScheduling) -> Pair {
    let config = valid(Composition {
        scheduling: Some(Scheduling::Custom(scheduling)),
        ..composition("geo-spread", SPREAD)
    });
    let mut pair = Pair::of(config.clone(), config.listen(PORT, Acceptance::Exact));
    pair.delays.insert(client(2), MS * 20);
    pair
}

#[test]
fn a_scheduler_from_outside_places_every_segment() {
    let mut pair = scheduled(CustomScheduling::new("second", || Second));
    let flows = connect_over_both(&mut pair);
    let from = pair.now;
    assert!(pair.transfer(0, flows, &noise(300_000), secs(20)));
    assert_eq!(carried(&pair, 1, from), 0);
    assert!(carried(&pair, 2, from) >= 300_000);
    let agreed = pair.ends[1].composition(flows.1).expect("open");
    assert_eq!(agreed.scheduling.as_ref().map(Scheduling::name), Some("second"));
}

#[test]
fn a_scheduler_from_outside_that_names_wrong_paths_breaks_nothing() {
    let mut pair = scheduled(CustomScheduling::new("careless", || Careless {
        chance: Stream::named(1, "careless"),
        sound: RoundRobin::default(),
    }));
    let flows = connect_over_both(&mut pair);
    assert!(pair.transfer(0, flows, &noise(300_000), secs(20)));
}
