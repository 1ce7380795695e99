//! Packets that come late, and are not lost.

use crate::common::{runs, with};

/// RFC 8985 §6.2: on a path that reorders, what comes late is not lost. The duplicate threshold alone takes nearly every
/// late packet for a loss, and the window with it.
#[test]
fn packets_that_come_late_cost_neither_the_window_nor_a_retransmission() {
    let goodput = |late: &str, reordering: &str| {
        let text = format!(
            r#"
            id = "late"
            duration = "20 s"
            [[link]]
            name = "path"
            between = ["a", "b"]
            rate = "50 Mbit/s"
            delay = "20 ms"
            queue = {{ drop_tail = "bdp" }}
            reorder = {late}
            [[flow]]
            name = "f"
            from = "a"
            to = "b"
            transport = "restp:cubic"
            set = {{ reordering = "{reordering}" }}
            traffic = {{ bulk = {{}} }}
            "#
        );
        let run = &runs(&with(&text, &[]))[0];
        run.flows[0].goodput_bps.expect("bulk") / 50e6
    };
    for late in [
        "{ rate = 0.05, delay = \"8 ms\" }",
        "{ rate = 0.3, delay = \"30 ms\" }",
        "{ rate = 0.001, delay = \"3 ms\" }",
    ] {
        let (adaptive, threshold) = (goodput(late, "adaptive"), goodput(late, "threshold"));
        assert!(adaptive > 0.9, "{late}: {adaptive}");
        assert!(threshold < 0.5 * adaptive, "{late}: {threshold}");
    }
}
