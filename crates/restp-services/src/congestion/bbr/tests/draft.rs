//! Each rule of the project is a parameter, and `draft` restores version 3 of draft-ietf-ccwg-bbr (Cardwell and others 2025).

use super::*;

const DRAFT: BbrParams = BbrParams {
    draft: true,
    // What the draft replaces.
    random_loss_percent: 50,
    queue_headroom_percent: 50,
    clear_margin_percent: 50,
    leap: 8,
    vain_rounds: 1,
};

fn ours() -> BbrParams {
    BbrParams::default()
}

/// §5.5.10.3: any loss of a round lowers the bounds, whether a queue is seen or not.
#[test]
fn in_the_draft_every_loss_lowers_the_short_term_bounds() {
    let bandwidth_after = |params, rtt| {
        let mut life = Life::cruising_with(params);
        life.rtt = rtt;
        life.round(LINK);
        life.lose(1);
        life.round(7_000_000);
        life.lose(1);
        life.round(7_000_000);
        life.bbr.usable_bandwidth()
    };
    assert_eq!(bandwidth_after(DRAFT, RTT), Rate::from_bps(7_000_000));
    assert_eq!(bandwidth_after(ours(), RTT), Rate::from_bps(LINK));
}

/// BBRLossThresh, 2 %: of 60 segments the second is too many.
#[test]
fn in_the_draft_two_percent_end_a_probe_with_and_without_a_queue() {
    let state_after = |params, losses| {
        let mut life = Life::cruising_with(params);
        life.probing();
        life.in_flight = 60 * SEGMENT;
        life.lose(losses);
        life.state()
    };
    assert_eq!(state_after(DRAFT, 1), "probe-bw-up");
    assert_eq!(state_after(DRAFT, 2), "probe-bw-down");
    let five = BbrParams {
        random_loss_percent: 5,
        ..ours()
    };
    assert_eq!(
        (state_after(five, 3), state_after(five, 4)),
        ("probe-bw-up", "probe-bw-down")
    );
}

/// BBRHeadroom, 0.15 of the bound, whatever stands in the queue.
#[test]
fn in_the_draft_the_headroom_is_fifteen_percent() {
    let window_beside_queue = |params| {
        let mut life = Life::cruising_with(params);
        life.bbr.upper = 60 * SEGMENT;
        life.queue();
        assert_eq!(life.state(), "probe-bw-cruise");
        life.window()
    };
    assert_eq!(window_beside_queue(DRAFT), 51 * SEGMENT);
    let tenth = BbrParams {
        queue_headroom_percent: 10,
        ..ours()
    };
    assert_eq!(
        (window_beside_queue(ours()), window_beside_queue(tenth)),
        (42 * SEGMENT, 54 * SEGMENT)
    );
}

/// BBRPacingMarginPercent, 1, always.
#[test]
fn in_the_draft_the_pace_is_one_percent_below_the_bandwidth() {
    let pace = |params| Life::cruising_with(params).pacing();
    assert_eq!((pace(DRAFT), pace(ours())), (paced(990), paced(1000)));
    let three = BbrParams {
        clear_margin_percent: 3,
        ..ours()
    };
    assert_eq!(pace(three), paced(970));
}

#[test]
fn in_the_draft_the_first_round_doubles() {
    let window_after_a_train = |params| {
        let mut life = Life::with(params);
        life.now += RTT;
        (0..10).for_each(|_| life.train(Duration::from_micros(100)));
        life.window()
    };
    assert_eq!(window_after_a_train(DRAFT), 20 * SEGMENT);
    let three = BbrParams { leap: 3, ..ours() };
    assert_eq!(window_after_a_train(three), 30 * SEGMENT);
}

/// §5.3.3.6: three rounds without growth, although a queue grew in the first.
#[test]
fn in_the_draft_only_three_rounds_without_growth_end_a_probe() {
    let rounds_up = |params| {
        let mut life = Life::cruising_with(params);
        life.probing();
        life.acks = 4;
        let mut rounds = 0;
        while life.state() == "probe-bw-up" {
            life.round(LINK);
            life.rtt = RTT * 3 / 2;
            rounds += 1;
        }
        rounds
    };
    let vain = |vain_rounds| BbrParams {
        vain_rounds,
        ..ours()
    };
    assert_eq!(
        [rounds_up(DRAFT), rounds_up(vain(2)), rounds_up(vain(9))],
        [3, 2, 3]
    );
}

/// §5.5.7.2: only a shorter round trip puts off the probe for it.
#[test]
fn in_the_draft_a_round_trip_as_short_as_the_known_one_refreshes_nothing() {
    let mut life = Life::cruising_with(DRAFT);
    for _ in 0..100 {
        life.round(LINK);
        life.in_flight = BDP;
    }
    assert_eq!(life.state(), "probe-rtt", "five seconds are over");
}

/// §5.6.2: 2.77 times the estimate, which trails a window that doubles.
#[test]
fn in_the_draft_pacing_follows_the_estimate_in_startup() {
    let pace = |params| {
        let mut life = Life::with(params);
        life.round(2_000_000);
        life.round(2_000_000);
        (life.state(), life.pacing())
    };
    assert_eq!(pace(DRAFT), ("startup", 2_000_000 * 2773 / 1000 * 99 / 100));
    // Twice the window of the first round in 50 ms: 10 segments and the 12.5 acknowledged.
    assert_eq!(pace(ours()), ("startup", 7_200_000));
}

/// §5.5.9: in the draft what waited in a queue runs ahead, too.
#[test]
fn in_the_draft_acknowledgements_from_a_queue_count_for_aggregation() {
    let window = |params| {
        let mut life = Life::with(params);
        for speed in [1, 2, 4, 8] {
            life.round(speed * 1_000_000);
        }
        life.rtt = RTT * 3 / 2;
        life.round(LINK);
        life.window()
    };
    assert!(
        window(DRAFT) > window(ours()),
        "{} and {}",
        window(DRAFT),
        window(ours())
    );
}

/// §5.6.4.4: every recovery begins with a round of packet conservation.
#[test]
fn in_the_draft_every_episode_conserves_packets() {
    let window = |params| {
        let mut life = Life::cruising_with(params);
        life.in_flight = 60 * SEGMENT;
        life.tell(CongestionEvent::Lost { bytes: SEGMENT });
        life.window()
    };
    assert_eq!(
        (window(DRAFT), window(ours()) > 60 * SEGMENT),
        (59 * SEGMENT, true)
    );
}
