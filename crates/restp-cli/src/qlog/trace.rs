//! What of the things seen becomes an event: every datagram, every loss, and estimates when they change.

use super::record::{Name, Schema, event};
use restp_base::flow::{FlowId, FlowStats};
use restp_base::machine::{Datagram, PathAddress};
use restp_base::observe::{Changed, Seen};
use restp_base::time::{Duration, Time};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::SocketAddr;

/// The trace of one end.
pub(super) struct Trace<W: Write> {
    out: W,
    schema: Schema,
    /// Pairs of addresses in the order they were first used; a tuple is named by its place.
    tuples: Vec<PathAddress>,
    /// Datagrams sent.
    sent: u64,
    flows: BTreeMap<FlowId, Known>,
}

/// What was last written of a flow.
#[derive(Default)]
struct Known {
    metrics: Metrics,
    /// Of each tuple.
    smoothed: BTreeMap<usize, Duration>,
    lost: BTreeMap<usize, u64>,
}

/// Estimates of a flow as a whole.
#[derive(Default, PartialEq, Eq)]
struct Metrics {
    window: u64,
    in_flight: u64,
    smoothed: Option<Duration>,
}

impl<W: Write> Trace<W> {
    pub fn new(out: W, schema: Schema) -> Self {
        Trace {
            out,
            schema,
            tuples: Vec::new(),
            sent: 0,
            flows: BTreeMap::new(),
        }
    }

    /// Writes through what is buffered.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    pub fn see(&mut self, now: Time, seen: Seen<'_>) -> io::Result<()> {
        match seen {
            Seen::Sent(datagram) => {
                let header = json!({ "packet_type": "1RTT", "packet_number": self.sent });
                self.sent += 1;
                self.packet(now, Name::PacketSent, header, datagram)
            }
            Seen::Received(datagram) => {
                // Under the seal nobody but the peer knows its number.
                let header = json!({ "packet_type": "1RTT" });
                self.packet(now, Name::PacketReceived, header, datagram)
            }
            Seen::Lost(..) => Ok(()), // counters tell of all losses, also those of engines that do not say which
            Seen::Changed(_, changed) => self.changed(now, changed),
            Seen::Measured(flow, stats) => {
                let mut known = self.flows.remove(&flow).unwrap_or_default();
                let written = self.measured(now, &mut known, stats);
                self.flows.insert(flow, known);
                written
            }
        }
    }

    /// When it is written, because times do not fall in a file.
    fn changed(&mut self, now: Time, changed: &Changed) -> io::Result<()> {
        let Changed {
            key, from, to, why, ..
        } = changed;
        let (name, data) = if *key == "mode" {
            (Name::CongestionStateUpdated, json!({ "old": from, "new": to }))
        } else {
            let message = format!("{key}: {from} to {to} ({})", why.name());
            (Name::Info, json!({ "message": message }))
        };
        event(&mut self.out, self.schema, now, name, None, data)
    }

    fn packet(&mut self, now: Time, name: Name, header: Value, datagram: &Datagram) -> io::Result<()> {
        let tuple = self.tuple(now, datagram.path)?;
        let data = json!({ "header": header, "raw": { "length": datagram.len() } });
        event(&mut self.out, self.schema, now, name, Some(tuple), data)
    }

    /// The name of this pair of addresses; a new one is introduced.
    fn tuple(&mut self, now: Time, path: PathAddress) -> io::Result<usize> {
        if let Some(known) = self.tuples.iter().position(|known| *known == path) {
            return Ok(known);
        }
        self.tuples.push(path);
        let tuple = self.tuples.len() - 1;
        let (local, remote) = (path.local, path.remote);
        let data = match self.schema {
            Schema::Current => json!({
                "tuple_id": tuple.to_string(),
                "tuple_remote": end(remote),
                "tuple_local": end(local),
            }),
            Schema::Version03 => json!({
                "src_ip": local.ip().to_string(),
                "src_port": local.port(),
                "dst_ip": remote.ip().to_string(),
                "dst_port": remote.port(),
            }),
        };
        event(
            &mut self.out,
            self.schema,
            now,
            Name::TupleAssigned,
            Some(tuple),
            data,
        )?;
        Ok(tuple)
    }

    fn measured(&mut self, now: Time, known: &mut Known, stats: &FlowStats) -> io::Result<()> {
        for path in &stats.paths {
            let Some(tuple) = self.tuples.iter().position(|known| *known == path.path) else {
                continue; // nothing has left or come there yet
            };
            self.losses(now, known, Some(tuple), path.lost_packets)?;
            if let Some(smoothed) = path.srtt
                && known.smoothed.insert(tuple, smoothed) != Some(smoothed)
                && stats.paths.len() > 1
            {
                let data = json!({ "smoothed_rtt": millis(smoothed) });
                event(
                    &mut self.out,
                    self.schema,
                    now,
                    Name::MetricsUpdated,
                    Some(tuple),
                    data,
                )?;
            }
        }
        if stats.paths.is_empty() {
            self.losses(now, known, None, stats.lost_packets)?;
        }
        let metrics = Metrics {
            window: stats.congestion_window_bytes,
            in_flight: stats.in_flight_segments,
            smoothed: stats.srtt,
        };
        if metrics == known.metrics {
            return Ok(());
        }
        let mut data = Map::new();
        let before = &known.metrics;
        if metrics.smoothed != before.smoothed
            && let Some(smoothed) = metrics.smoothed
        {
            data.insert("smoothed_rtt".into(), millis(smoothed).into());
        }
        if metrics.window != before.window {
            data.insert("congestion_window".into(), metrics.window.into());
        }
        if metrics.in_flight != before.in_flight {
            data.insert("packets_in_flight".into(), metrics.in_flight.into());
        }
        known.metrics = metrics;
        if data.is_empty() {
            return Ok(());
        }
        event(
            &mut self.out,
            self.schema,
            now,
            Name::MetricsUpdated,
            None,
            Value::Object(data),
        )
    }

    /// One event for each segment taken for lost since the last look. Counters do not say which ones.
    fn losses(&mut self, now: Time, known: &mut Known, tuple: Option<usize>, lost: u64) -> io::Result<()> {
        let before = known.lost.insert(tuple.unwrap_or(0), lost).unwrap_or(0);
        for _ in before..lost {
            let data = json!({ "header": { "packet_type": "1RTT" } });
            event(&mut self.out, self.schema, now, Name::PacketLost, tuple, data)?;
        }
        Ok(())
    }
}

fn end(address: SocketAddr) -> Value {
    match address {
        SocketAddr::V4(v4) => json!({ "ip_v4": v4.ip().to_string(), "port_v4": v4.port() }),
        SocketAddr::V6(v6) => json!({ "ip_v6": v6.ip().to_string(), "port_v6": v6.port() }),
    }
}

fn millis(span: Duration) -> f64 {
    span.as_nanos() as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::super::record::{Vantage, header};
    use super::*;
    use restp_base::flow::PathStats;
    use restp_base::observe::Why;

    fn at(host: u8) -> PathAddress {
        PathAddress {
            local: SocketAddr::from(([10, 0, 0, host], 0)),
            remote: SocketAddr::from(([10, 0, 1, host], 0)),
        }
    }

    fn datagram(host: u8, bytes: usize) -> Datagram {
        Datagram {
            path: at(host),
            body: vec![0; bytes].into(),
            ..Datagram::empty()
        }
    }

    fn stats(lost: u64, window: u64) -> FlowStats {
        let path = |host, lost_packets| PathStats {
            lost_packets,
            srtt: Some(Duration::from_millis(20 + u64::from(host))),
            ..PathStats::new(at(host))
        };
        FlowStats {
            congestion_window_bytes: window,
            in_flight_segments: 3,
            paths: vec![path(1, lost), path(2, 0)],
            ..FlowStats::default()
        }
    }

    /// Two datagrams out on two paths, one in, two segments lost on the first path, a window that shrinks.
    fn written(schema: Schema) -> Vec<Value> {
        let mut bytes = Vec::new();
        header(&mut bytes, schema, "a", Vantage::Client).expect("memory");
        let mut trace = Trace::new(&mut bytes, schema);
        let now = |ms| Time::ZERO + Duration::from_millis(ms);
        let flow = FlowId(1);
        for (ms, seen) in [
            (0, Seen::Sent(&datagram(1, 40))),
            (1, Seen::Sent(&datagram(2, 1400))),
            (21, Seen::Received(&datagram(1, 44))),
            (21, Seen::Measured(flow, &stats(0, 14000))),
            (22, Seen::Measured(flow, &stats(0, 14000))),
            (30, Seen::Measured(flow, &stats(2, 7000))),
        ] {
            trace.see(now(ms), seen).expect("memory");
        }
        let text = String::from_utf8(bytes).expect("UTF-8");
        assert!(text.starts_with('\u{1e}') && text.ends_with('\n'));
        let records = text.split('\u{1e}').skip(1);
        records
            .map(|record| serde_json::from_str(record).expect("JSON"))
            .collect()
    }

    fn names(records: &[Value]) -> Vec<String> {
        let name = |record: &Value| {
            let tuple = record.get("tuple").or(record.get("path")).and_then(Value::as_str);
            format!(
                "{} {}",
                record["name"].as_str().unwrap_or("header"),
                tuple.unwrap_or("-")
            )
        };
        records.iter().skip(1).map(name).collect()
    }

    #[test]
    fn what_was_seen_is_what_is_read_back() {
        let records = written(Schema::Current);
        assert_eq!(
            names(&records),
            [
                "quic:tuple_assigned 0",
                "quic:packet_sent 0",
                "quic:tuple_assigned 1",
                "quic:packet_sent 1",
                "quic:packet_received 0",
                "quic:recovery_metrics_updated 0",
                "quic:recovery_metrics_updated 1",
                "quic:recovery_metrics_updated -",
                "quic:packet_lost 0",
                "quic:packet_lost 0",
                "quic:recovery_metrics_updated -",
            ]
        );
        assert_eq!(records[4]["data"]["raw"]["length"], 1400);
        assert_eq!(records[4]["data"]["header"]["packet_number"], 1);
        assert_eq!(records[4]["time"], 1.0);
        assert_eq!(records[6]["data"]["smoothed_rtt"], 21.0);
        assert_eq!(
            records[11]["data"],
            json!({ "congestion_window": 7000 }),
            "only what has changed"
        );
    }

    #[test]
    fn changes_of_services_are_written_and_the_mode_is_a_congestion_state() {
        let mut bytes = Vec::new();
        let mut trace = Trace::new(&mut bytes, Schema::Current);
        for (key, from, to, why) in [
            ("mode", "alone", "competing", Why::Path),
            ("ordering", "ordered", "unordered", Why::Application),
        ] {
            let changed = Changed {
                at: Time::ZERO,
                key,
                from: from.into(),
                to: to.into(),
                why,
            };
            let now = Time::ZERO + Duration::from_millis(7);
            trace
                .see(now, Seen::Changed(FlowId(1), &changed))
                .expect("memory");
        }
        let text = String::from_utf8(bytes).expect("UTF-8");
        let records: Vec<Value> = text
            .split('\u{1e}')
            .skip(1)
            .map(|record| serde_json::from_str(record).expect("JSON"))
            .collect();
        assert_eq!(
            records[0],
            json!({ "time": 7.0, "name": "quic:congestion_state_updated", "data": { "old": "alone", "new": "competing" } })
        );
        assert_eq!(
            records[1],
            json!({ "time": 7.0, "name": "loglevel:info", "data": { "message": "ordering: ordered to unordered (application)" } })
        );
    }

    /// draft-ietf-quic-qlog-main-schema-13: QlogFileSeq, TraceSeq and Event have these fields, and no others here.
    #[test]
    fn records_have_the_fields_of_the_schema() {
        let records = written(Schema::Current);
        let keys = |value: &Value| -> Vec<String> {
            value.as_object().expect("an object").keys().cloned().collect()
        };
        let head = &records[0];
        assert_eq!(
            keys(head),
            ["file_schema", "serialization_format", "title", "trace"]
        );
        assert_eq!(head["file_schema"], "urn:ietf:params:qlog:file:sequential");
        assert_eq!(head["serialization_format"], "application/qlog+json-seq");
        assert_eq!(
            keys(&head["trace"]),
            ["vantage_point", "common_fields", "event_schemas"]
        );
        assert_eq!(head["trace"]["vantage_point"]["type"], "client");
        assert_eq!(head["trace"]["common_fields"]["time_format"], "relative_to_epoch");
        let reference = &head["trace"]["common_fields"]["reference_time"];
        assert_eq!(
            (&reference["clock_type"], &reference["epoch"]),
            (&json!("monotonic"), &json!("unknown"))
        );
        for event in &records[1..] {
            assert!(event["time"].is_f64() && event["data"].is_object(), "{event}");
            let name = event["name"].as_str().expect("a name");
            assert!(name.starts_with("quic:"), "{event}");
            let known = ["time", "name", "tuple", "data"];
            assert!(
                keys(event).iter().all(|key| known.contains(&key.as_str())),
                "{event}"
            );
            assert!(event.get("tuple").is_none_or(Value::is_string), "{event}");
        }
        let ends = &records[1]["data"];
        assert_eq!(keys(ends), ["tuple_id", "tuple_remote", "tuple_local"]);
        assert_eq!(ends["tuple_remote"], json!({ "ip_v4": "10.0.1.1", "port_v4": 0 }));
    }

    /// qvis takes a text sequence when the header has both keys, the version is one of those it knows, and times do not
    /// fall.
    #[test]
    fn version_0_3_has_what_qvis_asks_for() {
        let records = written(Schema::Version03);
        let head = &records[0];
        assert_eq!(
            (&head["qlog_version"], &head["qlog_format"]),
            (&json!("0.3"), &json!("JSON-SEQ"))
        );
        assert_eq!(head["trace"]["title"], "a", "what qvis calls the connection");
        assert_eq!(names(&records)[1], "transport:packet_sent 0");
        assert!(
            records[1..]
                .iter()
                .all(|event| event["name"].as_str().is_some_and(|name| name.contains(':')))
        );
        assert!(
            records[1..]
                .iter()
                .map(|event| event["time"].as_f64())
                .is_sorted()
        );
    }
}
