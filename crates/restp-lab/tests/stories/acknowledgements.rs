//! What acknowledgements take from a way back that is much slower than the way there.

use crate::common::{runs, with};

/// 20 Mbit/s there, 100 kbit/s back; the forward queue holds a round trip.
const THIN: &str = r#"
id = "thin"
duration = "30 s"

[[link]]
name = "left-{i}"
count = 2
between = ["sender-{i}", "west"]
rate = "100 Mbit/s"
delay = "0.1 ms"

[[link]]
name = "wire"
between = ["west", "east"]
rate = "20 Mbit/s"
reverse_rate = "100 kbit/s"
delay = "25 ms"
queue = { drop_tail = "83 packets" }

[[link]]
name = "right-{i}"
count = 2
between = ["east", "receiver-{i}"]
rate = "100 Mbit/s"
delay = "0.1 ms"

[[flow]]
name = "restp"
from = "sender-1"
to = "receiver-1"
transport = "restp:default"
traffic = { bulk = {} }
"#;

const NEIGHBOUR: &str = r#"
[[flow]]
name = "tcp"
from = "sender-2"
to = "receiver-2"
transport = "tcp:cubic"
traffic = { bulk = {} }
"#;

/// Goodput of the flows in Mbit/s.
fn goodput(text: &str, settings: &[(&str, &str)]) -> Vec<f64> {
    let run = runs(&with(text, settings)).remove(0);
    let flows = run.flows.iter();
    flows.map(|flow| flow.goodput_bps.expect("bulk") / 1e6).collect()
}
