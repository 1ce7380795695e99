//! The file as written, and what each path stands for in the simulator's terms.

use super::PathConfig;
use restp_base::time::Duration;
use restp_sim::config::Fault;
use serde::Deserialize;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use toml::Spanned;

/// A queue of one bandwidth-delay product holds at least this: 32 packets of 1500 bytes. Below, a short path at
/// a low rate could not hold one burst of a window.
const LEAST_BDP_BYTES: u64 = 32 * 1500;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawNet {
    pub(super) seed: Option<u64>,
    pub(super) tun: Option<RawTun>,
    #[serde(default)]
    pub(super) path: Vec<RawPath>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawTun {
    pub(super) namespaces: [String; 2],
}

restp_sim::link_table! {
    pub(super) struct RawPath {
        pub(super) name: Spanned<String>,
        listen: Option<Spanned<SocketAddr>>,
        to: Option<Spanned<SocketAddr>>,
        addresses: Option<[Spanned<String>; 2]>,
    }
}

impl RawPath {
    /// The path this table describes; names of files start at `dir`.
    pub(super) fn validate(&self, dir: &Path) -> Result<PathConfig, Fault> {
        let name = self.name.get_ref();
        if name.is_empty() || name.contains(char::is_whitespace) {
            let sentence = format!("\"{name}\" is no name; it is one word, and commands name paths");
            return Err(Fault::at(&self.name, sentence));
        }
        let [listen, to] = [&self.listen, &self.to].map(|end| end.as_ref().map(|address| *address.get_ref()));
        if let (Some(listen), Some(to), Some(written)) = (listen, to, &self.to)
            && reaches(listen, to)
        {
            let sentence = format!(
                "\"{to}\" is where this path listens (\"{listen}\"): every datagram would come back to it \
                for ever; write the address of the receiver"
            );
            return Err(Fault::at(written, sentence));
        }
        let addresses = match &self.addresses {
            Some([near, far]) => Some([address(near)?, address(far)?]),
            None => None,
        };
        let [mut forward, mut reverse] = self
            .wire()
            .directions(&|name| Ok(Box::new(File::open(dir.join(name))?)))?;
        let rtt = forward.delay + reverse.delay;
        for direction in [&mut forward, &mut reverse] {
            let bdp_bytes = direction
                .rate
                .as_ref()
                .map_or(0, |rate| rate.mean(Duration::MAX).bytes_in(rtt));
            let limit = direction.queue.limit().resolve(bdp_bytes.max(LEAST_BDP_BYTES));
            direction.queue = direction.queue.with_limit(limit);
        }
        Ok(PathConfig {
            name: name.clone(),
            listen,
            to,
            addresses,
            forward,
            reverse,
        })
    }
}

/// Whether what is sent to `to` arrives at `listen`. Port 0 is any free port, so no one sends there.
fn reaches(listen: SocketAddr, to: SocketAddr) -> bool {
    let everywhere = listen.ip().is_unspecified() && to.ip().is_loopback();
    // The system takes "no address" as a destination for the loopback.
    let nowhere = to.ip().is_unspecified() && (listen.ip().is_loopback() || listen.ip().is_unspecified());
    let same = listen.ip() == to.ip() || everywhere || nowhere;
    same && listen.port() == to.port() && to.port() != 0
}

/// Reads `10.1.0.1/24`.
fn address(written: &Spanned<String>) -> Result<(Ipv4Addr, u8), Fault> {
    let text = written.get_ref();
    let parts = text.split_once('/');
    let pair = parts.and_then(|(ip, length)| Some((ip.parse().ok()?, length.parse::<u8>().ok()?)));
    pair.filter(|(_, length)| *length <= 32).ok_or_else(|| {
        Fault::at(
            written,
            format!("\"{text}\" is no IPv4 address with its prefix; write \"10.1.0.1/24\""),
        )
    })
}
