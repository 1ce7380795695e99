//! The five properties of several paths (ResTP §2.3.1), on links that drop what is too much: every round trip each flow
//! sends its windows, and a link that is offered more than it carries drops the difference by chance. Equal round trips,
//! no queues: what is left is the law of increase and decrease.

use super::super::conformance::{acked, path};
use super::super::{CommonParams, CongestionChoice as Choice, Controller};
use super::*;
use crate::view::Sibling;
use restp_base::random::Stream;

const SEGMENT: u64 = 1000;
const RTT: Duration = Duration::from_millis(100);

/// A flow: one controller per path, and the link each path leads over.
struct Several {
    paths: Vec<(Controller, usize)>,
}

impl Several {
    fn new(choice: Choice, links: &[usize]) -> Self {
        let mut choice = choice;
        if let Some(common) = choice.common() {
            common.initial_threshold_bytes = 10 * SEGMENT; // avoidance is what is compared
        }
        let paths = links.iter().map(|link| (choice.build(SEGMENT), *link));
        Several {
            paths: paths.collect(),
        }
    }
}

/// Mean segments per round trip of every path of every flow, over the second half of `rounds`; `capacity` tells what a
/// link carries in a round.
fn run(flows: &mut [Several], rounds: u64, capacity: impl Fn(usize, u64) -> f64) -> Vec<Vec<f64>> {
    let mut stream = Stream::named(1, "links");
    let mut sums: Vec<Vec<f64>> = flows.iter().map(|flow| vec![0.0; flow.paths.len()]).collect();
    for round in 0..rounds {
        let mut offered = [0.0; 3];
        for (controller, link) in flows.iter().flat_map(|flow| &flow.paths) {
            offered[*link] += (controller.window_bytes() / SEGMENT) as f64;
        }
        for (flow, sums) in flows.iter_mut().zip(&mut sums) {
            for (at, sum) in sums.iter_mut().enumerate() {
                let siblings: Vec<Sibling> = flow.siblings(at);
                let (controller, link) = &mut flow.paths[at];
                let carried = (capacity(*link, round) / offered[*link].max(1.0)).min(1.0);
                let sent = controller.window_bytes() / SEGMENT;
                let lost = (0..sent).filter(|_| stream.chance(1.0 - carried)).count() as u64;
                let view = PathView {
                    in_flight_bytes: sent * SEGMENT,
                    smoothed_rtt: Some(RTT),
                    min_rtt: Some(RTT),
                    siblings: &siblings,
                    ..path(SEGMENT)
                };
                if lost > 0 {
                    let bytes = lost * SEGMENT;
                    controller.on(&CongestionEvent::Lost { bytes }, &view);
                }
                for _ in 0..sent - lost {
                    controller.on(&acked(SEGMENT), &view);
                }
                if round >= rounds / 2 {
                    *sum += (sent - lost) as f64 / (rounds - rounds / 2) as f64;
                }
            }
        }
    }
    sums
}

impl Several {
    fn siblings(&self, of: usize) -> Vec<Sibling> {
        let others = self.paths.iter().enumerate().filter(|(at, _)| *at != of);
        others
            .map(|(_, (controller, _))| Sibling {
                window_bytes: controller.window_bytes(),
                smoothed_rtt: RTT,
                loss_interval_bytes: controller.loss_interval_bytes(),
                ..Sibling::default()
            })
            .collect()
    }
}

fn common() -> CommonParams {
    CommonParams::default()
}

/// The coupled laws by loss, without EWTCP, which does not look at its siblings' windows.
fn linked() -> [Choice; 5] {
    [
        Choice::Coupled(common()),
        Choice::Semicoupled(common()),
        Choice::Lia(common()),
        Choice::Olia(common()),
        Choice::Balia(common()),
    ]
}

fn total(flow: &[f64]) -> f64 {
    flow.iter().sum()
}

const ROUNDS: u64 = 10_000;

/// A flow on paths of its own, of 100 and 30 segments, against NewReno on the better of them.
#[test]
fn at_least_the_best_single_path() {
    let capacity = |link: usize, _| [100.0, 30.0, 0.0][link];
    let single = run(
        &mut [Several::new(Choice::NewReno(common()), &[0])],
        ROUNDS,
        capacity,
    );
    for choice in linked() {
        let several = run(&mut [Several::new(choice.clone(), &[0, 1])], ROUNDS, capacity);
        let ratio = total(&several[0]) / total(&single[0]);
        // COUPLED leaves room on purpose: it takes from all when one path loses.
        let least = if matches!(choice, Choice::Coupled(_)) {
            0.7
        } else {
            1.0
        };
        assert!(ratio >= least, "{}: {ratio:.2} of NewReno", choice.name());
    }
}

/// Two paths over one link, against one NewReno flow on it.
#[test]
fn no_more_harm_than_one_flow_on_a_shared_link() {
    let capacity = |_: usize, _| 200.0;
    let share = |choice: Choice, paths: usize| {
        let mut flows = [
            Several::new(choice, &vec![0; paths]),
            Several::new(Choice::NewReno(common()), &[0]),
        ];
        let rates = run(&mut flows, ROUNDS, capacity);
        total(&rates[0]) / total(&rates[1])
    };
    for paths in [2, 3] {
        let uncoupled = share(Choice::NewReno(common()), paths);
        let expected = paths as f64;
        assert!(
            (uncoupled / expected - 1.0).abs() < 0.15,
            "uncoupled: {uncoupled:.2} with {paths}"
        );
        for choice in linked().into_iter().chain([Choice::Ewtcp(common())]) {
            let coupled = share(choice.clone(), paths);
            // With a = 1 SEMICOUPLED takes √n; LIA's α corrects that.
            let most = if matches!(choice, Choice::Semicoupled(_)) {
                1.1 * expected.sqrt()
            } else {
                1.3
            };
            assert!(
                coupled < most,
                "{}: {coupled:.2} with {paths} paths",
                choice.name()
            );
        }
        let lia = share(Choice::Lia(common()), paths);
        assert!((0.75..1.25).contains(&lia), "LIA: {lia:.2} with {paths} paths");
    }
}

/// Link 0 is shared with three NewReno flows, link 1 with one; both carry the same. What a flow of two paths puts on the
/// congested link, against one that does not look.
#[test]
fn traffic_moves_off_congested_paths() {
    let capacity = |_: usize, _| 100.0;
    let congested_share = |choice: Choice| {
        let mut flows = vec![Several::new(choice, &[0, 1])];
        flows.extend([0, 0, 0, 1].map(|link| Several::new(Choice::NewReno(common()), &[link])));
        let rates = run(&mut flows, ROUNDS, capacity);
        rates[0][0] / total(&rates[0])
    };
    let uncoupled = congested_share(Choice::NewReno(common()));
    for choice in linked() {
        let share = congested_share(choice.clone());
        assert!(
            share < 0.8 * uncoupled,
            "{}: {share:.2} against {uncoupled:.2} uncoupled",
            choice.name()
        );
    }
}

/// Link 1 carries next to nothing until round 2000 and 100 segments from then on: what is its window 200 round trips
/// later? OLIA takes longer, because a path counts as good only after a run without losses.
#[test]
fn a_path_that_recovers_is_used_again_soon() {
    for choice in linked() {
        let mut flow = [Several::new(choice.clone(), &[0, 1])];
        let capacity = |link: usize, round| match (link, round) {
            (0, _) => 50.0,
            (_, ..2_000) => 2.0,
            _ => 100.0,
        };
        let later = if matches!(choice, Choice::Olia(_)) {
            800
        } else {
            200
        };
        run(&mut flow, 2_000 + later, capacity);
        let window = flow[0].paths[1].0.window_bytes() / SEGMENT;
        assert!(window >= 20, "{}: {window} segments", choice.name());
    }
}

/// Scenario C of Khalili and others: ten flows over a link of theirs (0) and another (1), where ten flows of one path
/// live. Whatever the former take from link 1 they do not need to be served as well. OLIA leaves more of it to the others
/// than LIA does.
#[test]
fn olia_leaves_more_to_others_than_lia() {
    let flows = 10;
    let capacity = |link: usize, _| [400.0, 400.0, 0.0][link];
    let outcome = |choice: Choice| {
        let mut all: Vec<_> = (0..flows)
            .map(|_| Several::new(choice.clone(), &[0, 1]))
            .collect();
        all.extend((0..flows).map(|_| Several::new(Choice::NewReno(common()), &[1])));
        let rates = run(&mut all, 4_000, capacity);
        let sum = |flows: &[Vec<f64>]| flows.iter().map(|flow| total(flow)).sum::<f64>();
        (sum(&rates[..flows]), sum(&rates[flows..]))
    };
    let (lia, olia) = (outcome(Choice::Lia(common())), outcome(Choice::Olia(common())));
    let uncoupled = outcome(Choice::NewReno(common()));
    assert!(
        uncoupled.1 < lia.1 && lia.1 < olia.1,
        "{uncoupled:?} {lia:?} {olia:?}"
    );
}
