//! One receive buffer, one bottleneck: what subflows share (RFC 8684 §3.3.5, RFC 6356).

use crate::network::{Line, Net, line, mptcp, noise};
use restp_base::flow::Flow;
use restp_base::time::Duration;

const MS: fn(u64) -> Duration = Duration::from_millis;

#[test]
fn a_reader_that_stops_holds_all_subflows_back_and_goes_on() {
    let set = [("window", "64 segments"), ("send-buffer", "1 MiB")];
    let mut net = Net::pair(&set, &[line(20, 0), line(20, 1)]);
    let flow = net.open(0);
    let data = noise(600_000);
    net.write(0, flow, &data);
    net.run_for(Duration::from_secs(20));
    let accepted = net.accepted()[0];
    let held = net.hosts[1].stats(accepted).unwrap().memory_bytes;
    assert!(
        (80_000..200_000).contains(&held),
        "64 segments and bookkeeping, not {held}"
    );
    assert!(net.closed(0).is_none(), "a peer that answers is waited for");
    let mut got = Vec::new();
    while got.len() < data.len() && net.now.as_nanos() < 60_000_000_000 {
        got.extend(net.read_all(1, accepted));
        net.run_for(MS(5));
    }
    assert!(got == data, "{} of {}", got.len(), data.len());
}

/// Two subflows and a plain TCP over one bottleneck of 20 Mbit/s: coupled by LIA the two take about what the one takes,
/// uncoupled two of three.
#[test]
fn coupled_subflows_take_about_the_share_of_one_tcp() {
    let share = |congestion: &str| {
        let several = mptcp(Some(congestion), &[]);
        let single = restp_rivals::tcp::TcpParameters::from_pairs("newreno", &[]).unwrap();
        let bottleneck = line(20, 0);
        // A little longer, so that nothing keeps in step.
        let neighbour = Line {
            delay: Duration::from_micros(10_300),
            ..bottleneck
        };
        let lines = vec![(0, bottleneck), (0, bottleneck), (1, neighbour)];
        let mut net = Net::new(vec![several.clone(), single], several, lines);
        let flows = [(0, net.open(0)), (1, net.open(1))];
        net.bulk(&flows, Duration::from_secs(5));
        let read = net.bulk(&flows, Duration::from_secs(60));
        read[0] as f64 / (read[0] + read[1]) as f64
    };
    let (lia, uncoupled) = (share("lia"), share("newreno"));
    assert!((0.38..0.52).contains(&lia), "LIA takes {lia:.2}");
    assert!(uncoupled > 0.57, "uncoupled takes {uncoupled:.2}");
}
