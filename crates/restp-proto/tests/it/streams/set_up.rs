//! That a flow carries streams is agreed on in the set-up: FC 2 beside FRM.

use super::*;
use restp_base::flow::CloseReason;
use restp_proto::Acceptance;
use restp_proto::composition::accept;
use restp_proto::wire::{Flags, Framing, Services, codes};

#[test]
fn whoever_serves_any_composition_takes_streams() {
    let mut pair = Pair::of(
        config("cubic", STREAMS),
        config("cubic", &[]).listen(PORT, Acceptance::Any),
    );
    let (flow, accepted) = pair.connect();
    let syn = pair
        .log
        .iter()
        .find(|seen| seen.is(Flags::SYN | Flags::ECE | Flags::CWR) || seen.is(Flags::SYN))
        .unwrap();
    assert_eq!(
        (syn.header.services.flow_control, syn.header.services.framing),
        (2, Framing::Coalesce)
    );
    let mut exchange = Exchange::new(&mut pair, flow, 3, 10_000);
    exchange.complete(&mut pair, (flow, accepted), Duration::from_secs(5));
}

#[test]
fn whoever_wants_its_own_composition_refuses_them() {
    let mut pair = Pair::of(
        config("cubic", STREAMS),
        config("cubic", &[]).listen(PORT, Acceptance::Exact),
    );
    pair.open();
    pair.run_for(MS * 100);
    assert_eq!(pair.closed(0), Some(&CloseReason::Refused));
}

#[test]
fn bits_that_fit_together_mean_streams_and_no_others() {
    let local = composition("cubic", &[]);
    let bits = Services::of(&composition("cubic", STREAMS));
    assert!(accept(bits, &local).expect("streams").framing.has_streams());
    let fixed = Services {
        framing: Framing::Fixed,
        ..bits
    };
    assert!(accept(fixed, &local).is_err(), "frames of their own");
    let ordered = Services {
        order: restp_proto::wire::Order::Full,
        ..bits
    };
    assert!(accept(ordered, &local).is_err(), "order below");
    let unknown = Services {
        flow_control: 3,
        ..bits
    };
    assert!(accept(unknown, &local).is_err());
    let plain = Services {
        flow_control: codes::FC_WINDOW,
        ..bits
    };
    assert!(!accept(plain, &local).expect("discouraged").framing.has_streams());
}

#[test]
fn data_that_are_written_before_the_set_up_is_complete_leave_with_it() {
    let mut pair = Pair::new("cubic", STREAMS);
    let flow = pair.open();
    let id = open(&mut pair, 0, flow);
    streams(&mut pair, 0, flow).write(id, text(id, 700)).unwrap();
    pair.run_for(MS * 35);
    let accepted = pair.accepted().expect("accepted");
    assert_eq!(
        read_all(&mut pair, 1, accepted, id).0,
        text(id, 700),
        "after three times the delay"
    );
}

#[test]
fn services_that_stay_cannot_be_changed_away_below_streams() {
    let (mut pair, flow, accepted) = connected(&[]);
    for (key, value) in [
        ("ordering", "ordered"),
        ("reliability", "partial"),
        ("framing", "coalesce"),
    ] {
        let set = [(key.to_owned(), value.to_owned())];
        assert!(pair.ends[0].reconfigure(pair.now, flow, &set).is_err(), "{key}");
    }
    let mut exchange = Exchange::new(&mut pair, flow, 3, 100_000);
    exchange.step(&mut pair, (flow, accepted), MS * 5);
    let set = [("reliability".to_owned(), "harq".to_owned())];
    pair.ends[0].reconfigure(pair.now, flow, &set).expect("agreed on");
    exchange.complete(&mut pair, (flow, accepted), Duration::from_secs(20));
    let now = pair.ends[1].composition(accepted).expect("a flow");
    assert_eq!(now.reliability, restp_services::reliability::Reliability::Harq);
}
