//! What an MPTCP is made of: a TCP whose connections use several paths, and how they choose among them.

use crate::tcp::TcpParameters;
use crate::tcp::parameters::{
    ParameterError, SWITCH, controls, current_controls, dashed, error, named, which_bbr,
};
use restp_services::ack::{Acknowledgement, Detail};
use restp_services::congestion::CongestionChoice;
use restp_services::recovery::RecoveryChoice;
use restp_services::scheduling::{Scheduling, Weights};

/// Keys beside those of TCP.
const KEYS: [&str; 4] = ["scheduling", "weights", "addresses", "redial"];
/// The congestion control of one without a name, as with Linux.
const DEFAULT: &str = "cubic";
/// Values of `addresses`: does the opener wait for announcements?
const ADDRESSES: [(&str, bool); 2] = [("known", false), ("announced", true)];

impl TcpParameters {
    /// The same over several paths: the fastest one with room carries what comes next, as in Linux.
    fn over_several(self) -> Self {
        TcpParameters {
            multipath: Some(Scheduling::FastestRtt),
            ..self
        }
    }

    /// SACK and the pipe rule, and otherwise the TCP of the published studies.
    fn classic_of_several(congestion: CongestionChoice) -> Self {
        TcpParameters {
            detail: Detail::Sack {
                max_blocks: Acknowledgement::SACK_BLOCKS,
            },
            recovery: RecoveryChoice::Pipe,
            ..TcpParameters::classic(congestion).over_several()
        }
    }

    /// Names of all current MPTCPs: those of the congestion controls, coupled ones among them.
    pub fn names_of_several() -> impl Iterator<Item = &'static str> {
        current_controls(true).map(|(name, _)| name)
    }

    /// The same of classic ones.
    pub fn classic_names_of_several() -> impl Iterator<Item = &'static str> {
        controls(true).map(|(name, _)| name)
    }

    /// The MPTCP called `name`, such as `lia`, whose subflows are TCPs as Linux 6 sends, with every pair of `set`: keys of TCP,
    /// `scheduling`, `weights`, `addresses`, `redial`. Without a name each subflow has a CUBIC of its own, as with Linux.
    ///
    /// # Errors
    /// When a name, key, value or unit is not understood, or the result makes no sense.
    pub fn of_several_from_pairs(name: Option<&str>, set: &[(&str, &str)]) -> Result<Self, ParameterError> {
        let choices: Vec<_> = current_controls(true)
            .map(|(name, choice)| (name, TcpParameters::current(choice).over_several()))
            .collect();
        let name = name.unwrap_or(DEFAULT);
        named("transport", name, &choices)
            .map_err(|error| which_bbr("mptcp", name, error))?
            .with_several(set)
    }

    /// The MPTCP called `name` over subflows of the TCP of the published studies, with SACK, in the same way.
    ///
    /// # Errors
    /// When a name, key, value or unit is not understood, or the result makes no sense.
    pub fn classic_of_several_from_pairs(
        name: Option<&str>,
        set: &[(&str, &str)],
    ) -> Result<Self, ParameterError> {
        let choices: Vec<_> = controls(true)
            .map(|(name, choice)| (name, TcpParameters::classic_of_several(choice)))
            .collect();
        named("transport", name.unwrap_or(DEFAULT), &choices)?.with_several(set)
    }

    fn with_several(self, set: &[(&str, &str)]) -> Result<Self, ParameterError> {
        let is_own = |key: &str| KEYS.contains(&dashed(key).as_str());
        let (own, common): (Vec<(&str, &str)>, Vec<_>) = set.iter().partition(|(key, _)| is_own(key));
        let mut parameters = self.with(&common)?;
        let value_of = |wanted: &str| own.iter().find(|(key, _)| dashed(key) == wanted);
        if let Some((key, value)) = value_of("scheduling") {
            parameters.multipath = Some(named(&dashed(key), value.trim(), &Scheduling::ALL)?);
        }
        if let Some((key, value)) = value_of("weights") {
            let Some(Scheduling::Weighted(weights)) = &mut parameters.multipath else {
                let message = "weights belong to scheduling = \"weighted\"; choose that";
                return Err(error(&dashed(key), message.into()));
            };
            *weights = Weights::parse(value).ok_or_else(|| {
                let message = format!(
                    "weights: \"{value}\" are no shares of paths; write 1 to 255 for each, as \"3:1\""
                );
                error(&dashed(key), message)
            })?;
        }
        if let Some((key, value)) = value_of("addresses") {
            parameters.announced_addresses = named(&dashed(key), value.trim(), &ADDRESSES)?;
        }
        if let Some((key, value)) = value_of("redial") {
            parameters.redial = named(&dashed(key), value.trim(), &SWITCH)?;
        }
        Ok(parameters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_congestion_control_and_keys_are_those_of_tcp_and_two_more() {
        for name in TcpParameters::names_of_several() {
            let parameters = TcpParameters::of_several_from_pairs(Some(name), &[]).unwrap();
            assert_eq!(parameters.congestion.name(), name.replace("bbr3", "bbr"));
            assert_eq!(parameters.multipath, Some(Scheduling::FastestRtt));
        }
        for name in TcpParameters::classic_names_of_several() {
            let parameters = TcpParameters::classic_of_several_from_pairs(Some(name), &[]).unwrap();
            assert_eq!(parameters.congestion.name(), name);
            assert_eq!(parameters.multipath, Some(Scheduling::FastestRtt));
        }
        let set = [
            ("weights", "3:1"),
            ("scheduling", "weighted"),
            ("congestion", "olia"),
            ("window", "100 segments"),
            ("addresses", "announced"),
            ("redial", "off"),
        ];
        let all = TcpParameters::of_several_from_pairs(None, &set).unwrap();
        let Some(Scheduling::Weighted(weights)) = all.multipath else {
            panic!("not weighted")
        };
        assert_eq!((weights.of(0), weights.of(1)), (3, 1));
        assert_eq!((all.congestion.name(), all.window.segments), ("olia", 100));
        assert_eq!((all.announced_addresses, all.redial), (true, false));
        let plain = TcpParameters::of_several_from_pairs(None, &[]).unwrap();
        assert_eq!(
            (plain.congestion.name(), plain.recovery),
            ("cubic", RecoveryChoice::Pipe)
        );
        assert_eq!((plain.announced_addresses, plain.redial), (false, true));
        let classic = TcpParameters::classic_of_several_from_pairs(None, &[]).unwrap();
        assert_eq!(
            (classic.congestion.name(), classic.recovery),
            ("cubic", RecoveryChoice::Pipe)
        );
    }

    /// What a subflow is differs in its paths alone from what the TCP of the same name is.
    #[test]
    fn subflows_are_as_today_s_tcp() {
        for name in ["cubic", "newreno", "bbr1", "bbr3"] {
            let several = TcpParameters::of_several_from_pairs(Some(name), &[]).unwrap();
            let single = TcpParameters::from_pairs(name, &[]).unwrap();
            assert_eq!(several, single.clone().over_several(), "{name}");
            let set = TcpParameters::of_several_from_pairs(None, &[("congestion", name)]).unwrap();
            assert_eq!(set, several, "{name} as a key");
            let set = TcpParameters::from_pairs("newreno", &[("congestion", name)]).unwrap();
            assert_eq!(set, single, "{name} as a key");
        }
    }

    #[test]
    fn errors_name_the_key_and_the_way_out() {
        for (name, set, key, says) in [
            (Some("lla"), [("window", "9 segments")], "transport", "lia, olia"),
            (None, [("scheduling", "minrtt")], "scheduling", "fastest-rtt"),
            (None, [("weights", "3:1")], "weights", "weighted"),
            (None, [("addresses", "all")], "addresses", "known, announced"),
            (None, [("redial", "1 s")], "redial", "on, off"),
            (None, [("paths", "spreading")], "paths", "congestion, ack"),
            (Some("bbr"), [("window", "9 segments")], "transport", "mptcp:bbr1"),
        ] {
            let error = TcpParameters::of_several_from_pairs(name, &set).expect_err("refused");
            assert_eq!(error.key, key, "{error}");
            assert!(error.message.contains(says), "{error}");
        }
        let weighted = [("scheduling", "weighted"), ("weights", "0:1")];
        let error = TcpParameters::of_several_from_pairs(None, &weighted).expect_err("refused");
        assert!(error.message.contains("3:1"), "{error}");
        let coupled =
            TcpParameters::classic_from_pairs("newreno", &[("congestion", "lia")]).expect_err("refused");
        assert_eq!(coupled.key, "congestion", "one path has no siblings");
    }
}
