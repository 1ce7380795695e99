//! Claims that could not fail.

use super::checks::{claim_about, text};
use restp_lab::Scenario;

/// A claim about what no point has would hold whatever happens.
#[test]
fn what_no_point_has_is_refused() {
    let rate = "axis = \"link.wire.loss.rate\"";
    let pair = "of = 0, over = 0.7";
    for check in [
        "where = { \"link.wire.loss.rate\" = [0.7] }\nexpect = { bound = { relation = \"at_least\", value = \"0\" } }".to_owned(),
        format!("expect = {{ compare = {{ {rate}, left = 0, relation = \"equal\", right = 0.7 }} }}"),
        format!("expect = {{ compare = {{ {rate}, left = {{ sum = [0, 0.7] }}, relation = \"equal\", right = 0 }} }}"),
        format!("expect = {{ rank = {{ {rate}, are = [0.7], place = \"lowest\" }} }}"),
        format!("expect = {{ premium = {{ {rate}, {pair}, value = \"1\", points = 1 }} }}"),
        format!("expect = {{ premiums = {{ {rate}, larger = {{ {pair} }}, smaller = {{ of = 0, over = 0.3 }} }} }}"),
        format!("expect = {{ gain = {{ {rate}, {pair}, along = \"link.wire.delay\", direction = \"falling\" }} }}"),
    ] {
        let error = claim_about("delivered_messages", &check).expect_err("refused").to_string();
        assert!(error.contains("no point with the value \"0.7\"; write one of: 0, 0.3, 0.6"), "{error}");
    }
    let apart = text(
        "delivered_messages",
        "where = { \"link.wire.loss.rate\" = [0.3], \"link.wire.delay\" = [\"2 ms\"] }\nexpect = { bound = { relation = \"at_least\", value = \"0\" } }",
    );
    assert!(Scenario::parse(&apart).is_ok());
    let together = apart.replace(
        "\"link.wire.loss.rate\" = [0, 0.3, 0.6]\n\"link.wire.delay\" = [\"1 ms\", \"2 ms\"]",
        "\"link.wire\" = [{ loss = { rate = 0.3 }, delay = \"1 ms\" }, { loss = { rate = 0.6 }, delay = \"2 ms\" }]",
    );
    let error = Scenario::parse(&together)
        .expect_err("no point has both")
        .to_string();
    assert!(error.contains("no point has all of these at once"), "{error}");
}
