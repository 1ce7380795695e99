//! MPTCP whose addresses come and go: announced by the server, or away for a while.

use crate::common::{runs, with};

/// Two links of 10 Mbit/s between the same nodes; the second is away for a minute.
const AWAY: &str = r#"
id = "away"
duration = "120 s"

[[link]]
name = "a"
between = ["source", "sink"]
rate = "10 Mbit/s"
delay = "10 ms"
queue = { drop_tail = "50 packets" }

[[link]]
name = "b"
between = ["source", "sink"]
rate = "10 Mbit/s"
delay = "10 ms"
queue = { drop_tail = "50 packets" }
outage = ["5 s..65 s"]

[[flow]]
name = "bulk"
from = "source"
to = "sink"
transport = "mptcp"
paths = [["a"], ["b"]]
traffic = { bulk = {} }
"#;

#[test]
fn paths_that_the_server_announces_are_used_as_those_that_are_known() {
    let sent = |addresses: &str| {
        let settings = [("flow.bulk.set.addresses", addresses), ("duration", "5 s")];
        let flow = runs(&with(AWAY, &settings)).swap_remove(0).flows.swap_remove(0);
        assert_eq!(flow.wrong_bytes, Some(0));
        assert!(
            flow.goodput_bps > Some(17e6),
            "{addresses}: {:?}",
            flow.goodput_bps
        );
        flow.paths[1].bytes_sent
    };
    let (announced, known) = (sent("announced"), sent("known"));
    assert!(announced > 4_000_000 && known > 4_000_000, "{announced}, {known}");
}

/// Of 120 s the second path is there for 60, 55 of them behind its outage. With a notice it is dialled when its address is back;
/// without one its subflow dies within 13 s, and a SYN meets the path some time later.
#[test]
fn a_path_that_is_away_for_a_minute_comes_back() {
    let sent = |notice: &str, redial: &str| {
        let settings = [
            ("flow.bulk.notice", notice),
            ("flow.bulk.set.redial", redial),
            ("flow.bulk.set.data-attempts", "6"),
        ];
        let flow = runs(&with(AWAY, &settings)).swap_remove(0).flows.swap_remove(0);
        assert_eq!(flow.wrong_bytes, Some(0));
        flow.paths[1].bytes_sent
    };
    let (told, dialled, left) = (sent("true", "off"), sent("false", "on"), sent("false", "off"));
    let second = 1_250_000; // bytes of the link
    assert!(told > 57 * second, "{told}");
    assert!(dialled > 8 * second && dialled < told, "{dialled}");
    assert!(left < 6 * second, "{left}");
}
