//! What the Python package expects of results is what they are: `python/restp/schema.json` names every field in order.

use crate::common::{runs, with};
use serde_json::Value;

/// Everything a result can hold is in it: bins, an outage, a timer that ran out in it, a service that changed, a window, a path, a host.
const FULL: &str = r#"
id = "full"
duration = "5 s"

[[link]]
name = "only"
between = ["source", "sink"]
rate = "1 Mbit/s"
delay = "10 ms"
outage = ["1 s..2 s"]

[[group]]
name = "all"
flows = ["*"]

[[host]]
name = "server"
node = "sink"
transport = "restp:default"

[[flow]]
name = "a"
from = "source"
to = "server"
sawtooth = true
traffic = { bulk = {} }
bins = "1 s"
"#;

#[test]
fn the_schema_of_python_names_every_field_in_its_order() {
    let run = &runs(&with(FULL, &[]))[0];
    let Ok(Value::Object(mut result)) = serde_json::to_value(run) else {
        panic!("a result is a record");
    };
    for absent in ["scenario", "wall_seconds"] {
        assert!(result.shift_remove(absent).is_some());
    }
    let schema: Value =
        serde_json::from_str(include_str!("../../../../python/restp/schema.json")).expect("JSON");
    same_fields("result", &schema, &Value::Object(result));
}

#[track_caller]
fn same_fields(place: &str, schema: &Value, value: &Value) {
    match (schema, value) {
        (Value::Object(known), Value::Object(fields)) => {
            let names = |record: &serde_json::Map<String, Value>| record.keys().cloned().collect::<Vec<_>>();
            assert_eq!(
                names(known),
                names(fields),
                "{place}: write the fields of results into python/restp/schema.json"
            );
            for (name, field) in fields {
                same_fields(&format!("{place}.{name}"), &known[name], field);
            }
        }
        (Value::Array(known), Value::Array(elements)) => {
            let first = elements
                .first()
                .unwrap_or_else(|| panic!("{place} is not empty here"));
            same_fields(place, &known[0], first);
        }
        // In the lab the point says where it lies; Python gets its number.
        (Value::String(kind), Value::Object(_)) if kind == "integer" && place == "result.point" => {}
        (Value::String(kind), value) => {
            let fits = match value {
                Value::Null => true,
                Value::String(_) => kind == "text",
                Value::Bool(_) => kind == "flag",
                Value::Number(number) if number.is_f64() => kind == "number",
                Value::Number(_) => ["integer", "seed"].contains(&kind.as_str()),
                _ => false,
            };
            assert!(fits, "{place}: {value} is no {kind}");
        }
        _ => panic!("{place}: {value} where the schema has {schema}"),
    }
}
