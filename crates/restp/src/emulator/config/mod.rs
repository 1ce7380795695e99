//! `NET.toml`: the paths to emulate. The keys of a path, their units and their meaning are those of a scenario's
//! `[[link]]`; errors name the line, the key and what may stand there.

mod raw;

use raw::RawNet;
use restp_sim::DirectionSpec;
use restp_sim::config::Fault;
use serde::Deserialize;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use thiserror::Error;
use toml::de::{DeTable, Deserializer};

/// Why a file is not a network.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// It cannot be read.
    #[error("{}: cannot be read ({source}); name a network file (TOML with [[path]] tables)", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A key or a value is wrong.
    #[error("{}{message}", file.as_ref().map(|file| format!("{}: ", file.display())).unwrap_or_default())]
    Content {
        /// The file, when there is one.
        file: Option<PathBuf>,
        /// Line, key, value, rule and way out.
        message: String,
    },
}

/// A validated network.
#[derive(Clone, Debug, PartialEq)]
pub struct NetConfig {
    /// Names all random streams: one seed loses the same packets, by their number on each path.
    pub seed: u64,
    /// The namespaces the TUN devices stand in: the first sends forward.
    pub namespaces: Option<[String; 2]>,
    /// The paths, independent of each other.
    pub paths: Vec<PathConfig>,
}

/// One path.
#[derive(Clone, Debug, PartialEq)]
pub struct PathConfig {
    /// Unique name; it also names the path's random streams and TUN devices.
    pub name: String,
    /// Where datagrams are taken in UDP mode.
    pub listen: Option<SocketAddr>,
    /// Where they go.
    pub to: Option<SocketAddr>,
    /// Addresses of the two TUN devices, with the length of their prefix.
    pub addresses: Option<[(Ipv4Addr, u8); 2]>,
    /// From `listen` to `to`, or from the first namespace to the second.
    pub forward: DirectionSpec,
    /// Back.
    pub reverse: DirectionSpec,
}

impl NetConfig {
    /// Reads a file. Names of files in it start at its own folder.
    ///
    /// # Errors
    /// When it cannot be read or is not a network.
    pub fn read(file: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(file);
        let text = text.map_err(|source| ConfigError::File {
            file: file.into(),
            source,
        })?;
        let dir = file.parent().unwrap_or(Path::new(""));
        Self::written(&text, dir).map_err(|error| match error {
            ConfigError::Content { message, .. } => ConfigError::Content {
                file: Some(file.into()),
                message,
            },
            other => other,
        })
    }

    /// Reads the text of a file. Names of files in it start at the current directory.
    ///
    /// # Errors
    /// When it is not a network.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        Self::written(text, Path::new(""))
    }

    fn written(text: &str, dir: &Path) -> Result<Self, ConfigError> {
        let explain = |fault: Fault, root: &DeTable<'_>| {
            let (line, key) = (fault.line(text), fault.key(root));
            let key = if key.is_empty() { key } else { key + ": " };
            let message = format!("line {line}: {key}{}", fault.message);
            ConfigError::Content { file: None, message }
        };
        let root = DeTable::parse(text).map_err(|error| explain(error.into(), &DeTable::new()))?;
        let raw = RawNet::deserialize(Deserializer::from(root.clone())).map_err(Fault::from);
        raw.and_then(|raw| NetConfig::validated(raw, dir))
            .map_err(|fault| explain(fault, root.get_ref()))
    }

    fn validated(raw: RawNet, dir: &Path) -> Result<Self, Fault> {
        if raw.path.is_empty() {
            return Err(Fault {
                span: 0..0,
                message: "there is no path; write at least one [[path]] with a name".into(),
            });
        }
        let mut paths: Vec<PathConfig> = Vec::with_capacity(raw.path.len());
        for written in &raw.path {
            let path = written.validate(dir)?;
            if paths.iter().any(|other| other.name == path.name) {
                let message = format!(
                    "two paths are called \"{}\"; commands and counters need one name each",
                    path.name
                );
                return Err(Fault::at(&written.name, message));
            }
            paths.push(path);
        }
        Ok(NetConfig {
            seed: raw.seed.unwrap_or(1),
            namespaces: raw.tun.map(|tun| tun.namespaces),
            paths,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use restp_base::units::Rate;
    use restp_sim::QueueLimit;

    const FULL: &str = r#"
        seed = 7
        [tun]
        namespaces = ["left", "right"]
        [[path]]
        name = "a"
        listen = "127.0.0.1:7001"
        to = "127.0.0.1:7002"
        addresses = ["10.9.0.1/24", "10.9.0.2/24"]
        rate = "50 Mbit/s"
        delay = "10 ms"
        reverse_rate = "5 Mbit/s"
        reverse_delay = "30 ms"
        queue = { drop_tail = "bdp" }
        loss = { rate = 0.01, direction = "both" }
        outage = ["20 s..30 s"]
        reorder = { rate = 0.1, delay = "2 ms" }
        duplicate = { rate = 0.2, direction = "reverse" }
        corrupt = { rate = 0.3 }
        mark = "20 packets"
        [[path]]
        name = "b"
    "#;

    #[test]
    fn the_keys_of_a_path_and_of_its_link() {
        let config = NetConfig::parse(FULL).unwrap();
        let [a, b] = &config.paths[..] else {
            panic!("two paths")
        };
        assert_eq!(
            (config.seed, config.namespaces.as_ref().unwrap()[1].as_str()),
            (7, "right")
        );
        let text = |address: Option<SocketAddr>| address.unwrap().to_string();
        assert_eq!([text(a.listen), text(a.to)], ["127.0.0.1:7001", "127.0.0.1:7002"]);
        let addresses = [1, 2].map(|host| (Ipv4Addr::new(10, 9, 0, host), 24));
        assert_eq!(a.addresses, Some(addresses));
        assert_eq!(
            (a.forward.rate.clone(), a.reverse.rate.clone()),
            (
                Some(Rate::from_bps(50_000_000).into()),
                Some(Rate::from_bps(5_000_000).into())
            )
        );
        // 50 Mbit/s over 40 ms; 5 Mbit/s over 40 ms would be 25 kB, below the least.
        assert_eq!(
            (a.forward.queue, a.reverse.queue),
            (
                QueueLimit::Bytes(250_000).into(),
                QueueLimit::Bytes(48_000).into()
            )
        );
        assert_eq!((a.forward.loss.len(), a.reverse.loss.len()), (1, 1));
        assert_eq!(b.forward.rate, None);
    }

    /// In the long run the recording sends 12 Mbit/s and the steps 40.
    #[test]
    fn a_recording_lies_beside_the_file_and_a_queue_follows_the_mean() {
        let dir = std::env::temp_dir().join(format!("restp-emulator-recording-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("lte.down"), "1\n2\n3\n").unwrap();
        let net = dir.join("net.toml");
        let text = "[[path]]\nname = \"a\"\nrate = { trace = \"lte.down\" }\ndelay = \"40 ms\"\n\
                    reverse_rate = { steps = [[\"0 s\", \"1 Mbit/s\"], [\"1 s\", \"40 Mbit/s\"]] }\n";
        std::fs::write(&net, text).unwrap();
        let config = NetConfig::read(&net).unwrap();
        let queues = [&config.paths[0].forward, &config.paths[0].reverse].map(|direction| direction.queue);
        let bytes = queues.map(|queue| match queue.limit() {
            QueueLimit::Bytes(bytes) => bytes,
            other => panic!("{other:?}"),
        });
        assert_eq!(bytes[0], 120_000);
        assert!((399_000..=400_000).contains(&bytes[1]), "{bytes:?}");
        let missing = NetConfig::parse(&text.replace("lte.down", "no such file")).unwrap_err();
        assert!(
            missing.to_string().contains("line 3: path.a.rate.trace"),
            "{missing}"
        );
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn errors_name_line_key_value_and_way_out() {
        let wrong = |line: &str| {
            let text = format!("[[path]]\nname = \"a\"\n{line}\n");
            NetConfig::parse(&text).expect_err(line).to_string()
        };
        for (line, parts) in [
            ("rate = \"10\"", ["line 3", "no unit", "Mbit/s"]),
            (
                "dealy = \"10 ms\"",
                ["line 3", "path.a.dealy", "did you mean \"delay\"?"],
            ),
            (
                "queue = { drop_tail = \"long\" }",
                ["line 3", "\"long\"", "100 packets"],
            ),
            ("outage = [\"30 s..20 s\"]", ["line 3", "30 s..20 s", "earlier"]),
            (
                "loss = { rate = 1.5 }",
                ["path.a.loss.rate", "1.5", "from 0 to 1"],
            ),
            (
                "loss = { direction = \"both\" }",
                ["path.a.loss", "nothing", "burst"],
            ),
            ("listen = \"localhost\"", ["line 3", "listen", "socket address"]),
            (
                "listen = \"127.0.0.1:7001\"\nto = \"127.0.0.1:7001\"",
                ["line 4: path.a.to", "listens", "come back"],
            ),
            (
                "listen = \"0.0.0.0:7001\"\nto = \"127.0.0.1:7001\"",
                ["line 4: path.a.to", "0.0.0.0:7001", "receiver"],
            ),
            ("rate = 50", ["path.a.rate", "\"50\" has no unit", "10 Mbit/s"]),
            ("outage = 20", ["path.a.outage", "\"20\"", "20 s..30 s"]),
            ("[[path]]\nname = \"a\"", ["line 4", "two paths", "\"a\""]),
            (
                "addresses = [\"10.1.0.1\", \"10.1.0.2\"]",
                ["line 3", "10.1.0.1", "/24"],
            ),
        ] {
            let sentence = wrong(line);
            for part in parts {
                assert!(
                    sentence.contains(part),
                    "{line}: \"{part}\" missing in:\n{sentence}"
                );
            }
        }
        let sentence = NetConfig::parse("seed = 1").unwrap_err().to_string();
        assert!(sentence.starts_with("line 1: there is no path") && sentence.contains("[[path]]"));
        let sentence = NetConfig::read(Path::new("/does/not/exist.toml"))
            .unwrap_err()
            .to_string();
        assert!(
            sentence.starts_with("/does/not/exist.toml: cannot be read") && sentence.contains("[[path]]"),
            "{sentence}"
        );
    }

    #[test]
    fn a_path_may_listen_on_any_port_and_on_one_of_another_address() {
        for ends in [
            "listen = \"127.0.0.1:0\"\nto = \"127.0.0.1:7002\"",
            "listen = \"127.0.0.1:7001\"\nto = \"127.0.0.2:7001\"",
        ] {
            let text = format!("[[path]]\nname = \"a\"\n{ends}\n");
            assert!(NetConfig::parse(&text).is_ok(), "{ends}");
        }
    }
}
