//! What a queue discipline does to those who share it.

use crate::common::{runs, with};
use restp_lab::run::RunResult;

const LINE: &str = r#"
id = "queues"
duration = "60 s"

[[link]]
name = "wire"
between = ["a", "b"]
rate = "10 Mbit/s"
delay = "20 ms"
queue = { drop_tail = "250 packets" }

[[flow]]
name = "bulk"
from = "a"
to = "b"
transport = "classic-tcp:cubic"
traffic = { bulk = {} }

[[flow]]
name = "voice"
from = "a"
to = "b"
transport = "udp"
traffic = { voip = {} }
"#;

fn under(queue: &str) -> RunResult {
    runs(&with(LINE, &[("link.wire.queue", queue)])).remove(0)
}

/// 250 packets of 1500 bytes are 300 ms at 10 Mbit/s. CUBIC keeps them filled under drop-tail; CoDel allows 5 ms and
/// what a sender adds until it hears of a drop, and the line stays busy.
#[test]
fn codel_keeps_the_queue_short_that_cubic_fills() {
    let [tail, codel] = ["{ drop_tail = \"250 packets\" }", "{ codel = {} }"].map(under);
    assert!(tail.links[0].queue_mean_ms > 100.0, "{:?}", tail.links[0]);
    assert!(tail.links[0].queue_median_ms > 100.0, "{:?}", tail.links[0]);
    assert!(codel.links[0].queue_mean_ms < 15.0, "{:?}", codel.links[0]);
    assert!(codel.links[0].queue_median_ms < 15.0, "{:?}", codel.links[0]);
    let goodput = |run: &RunResult| run.flows[0].goodput_bps.expect("bulk");
    assert!(
        goodput(&codel) > 0.85 * goodput(&tail),
        "{} of {}",
        goodput(&codel),
        goodput(&tail)
    );
}

/// RFC 8290 §1: a flow that sends less than its share waits for no one else's queue.
#[test]
fn fq_codel_lets_a_voice_pass_a_bulk_transfer() {
    let [codel, fair] = ["{ codel = {} }", "{ fq_codel = {} }"].map(under);
    let worst = |run: &RunResult| run.flows[1].latency_p99_ms.expect("voice");
    // 20 ms on the way, and one full packet of the other flow at most: 1.2 ms.
    assert!(worst(&fair) < 22.0, "{}", worst(&fair));
    assert!(
        worst(&codel) > worst(&fair) + 2.0,
        "{} and {}",
        worst(&codel),
        worst(&fair)
    );
    assert_eq!(fair.flows[1].lost_messages, Some(0));
}

/// RED drops early and at random: the average stays near its thresholds, far from the limit.
#[test]
fn red_keeps_the_average_between_its_thresholds() {
    let red = under("{ red = { limit = \"250 packets\" } }");
    // 15 packets of 1500 bytes are 18 ms.
    assert!(red.links[0].queue_mean_ms < 18.0, "{:?}", red.links[0]);
    assert!(red.links[0].dropped_queue > 0);
}

const MANAGED: &str = r#"
id = "managed"
duration = "60 s"

[[link]]
name = "wire"
between = ["a", "b"]
rate = "20 Mbit/s"
delay = "25 ms"

[[flow]]
name = "bulk"
from = "a"
to = "b"
transport = "restp:cubic"
traffic = { bulk = {} }
"#;

/// A managed queue is short, and after the cut for a loss it would be empty for long: a mark costs less (RFC 8511).
#[test]
fn a_flow_with_marks_gets_no_less_than_one_with_losses() {
    for queue in ["{ codel = {} }", "{ red = {} }"] {
        let goodput = |settings: &[(&str, &str)]| {
            let settings = [&[("link.wire.queue", queue)], settings].concat();
            let run = runs(&with(MANAGED, &settings)).remove(0);
            run.flows[0].goodput_bps.expect("bulk")
        };
        let marked = goodput(&[]);
        let (as_loss, lost) = (
            goodput(&[("flow.bulk.set.abe", "off")]),
            goodput(&[("flow.bulk.set.ecn", "off")]),
        );
        assert!(marked > lost, "{queue}: {marked} with marks, {lost} with losses");
        assert!(
            marked > 1.04 * as_loss,
            "{queue}: {marked}, {as_loss} where both cost the same"
        );
    }
}
