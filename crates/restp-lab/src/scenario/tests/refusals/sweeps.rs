//! Sweeps whose points would not be what their names say.

use super::*;

/// The later of two would win at every point, and points of the other differ in name only.
#[test]
fn two_axes_that_set_the_same_key() {
    let parse = |axes: &str| Scenario::parse(&format!("{VALID}\n[sweep]\n{axes}\n"));
    let two = "\"flow.a.transport\" = [\"udp\", \"tcp:cubic\"]";
    for other in [
        "\"flow.*.transport\" = [\"udp\"]",
        "\"flow.*\" = [{ label = \"x\", transport = \"udp\" }, { label = \"y\" }]",
    ] {
        let sentence = parse(&format!("{two}\n{other}"))
            .expect_err("refused")
            .to_string();
        assert!(
            sentence.contains("line 34") && sentence.contains("\"flow.a.transport\""),
            "{sentence}"
        );
    }
    let rates = "\"link.access.loss.rate\" = [0.1, 0.2]\n\"link.access\" = [{ loss = { rate = 0.3 } }]";
    assert!(
        parse(rates).is_err(),
        "a table takes the place of what is below it"
    );
    let sets = |key: &str| format!("{{ set = {{ {key} = \"off\" }} }}");
    let (one, other) = (sets("dsack"), sets("timestamps"));
    let apart = format!(
        "\"flow.a\" = [{one}, {{ start = \"1 s\" }}]\n\"flow.*\" = [{other}]\n\"flow.a.transport\" = [\"tcp:cubic\"]"
    );
    assert_eq!(parse(&apart).expect("they do not touch").points().len(), 2);
    let labelled = "\"flow.a.transport\" = [\"tcp:cubic\"]\n\"flow.*\" = [{ label = \"x\" }, { label = \"y\", start = \"1 s\" }]\n\"flow.a\" = [{ label = \"u\" }, { label = \"v\", set = { dsack = \"off\" } }]";
    assert_eq!(
        parse(labelled).expect("labels name values").points().len(),
        4,
        "a label sets nothing"
    );
    let refused = parse(two)
        .expect("an axis")
        .with("flow.*.transport", "udp")
        .expect_err("refused");
    assert!(
        refused.to_string().contains("sweep over \"flow.a.transport\""),
        "{refused}"
    );
    let table = "\"link.access\" = [{ rate = \"1 Mbit/s\", delay = \"1 ms\" }, { rate = \"2 Mbit/s\", delay = \"1 ms\" }]";
    let one = parse(table)
        .expect("an axis")
        .with("link.access.rate", "9 Mbit/s")
        .expect("in its place");
    assert_eq!(one.points().len(), 1, "no point twice");
}

#[test]
fn a_value_that_is_there_already() {
    let axis = "\"flow.a.start\" = [\"1 s\", \"2 s\", \"1 s\"]";
    let sentence = Scenario::parse(&format!("{VALID}\n[sweep]\n{axis}\n"))
        .expect_err("refused")
        .to_string();
    assert!(
        sentence.contains("line 33") && sentence.contains("already"),
        "{sentence}"
    );
}
