//! Every rival as a row of choices, so that what a comparison varies can be read off a table.

use crate::sctp::SctpParameters;
use crate::tcp::TcpParameters;
use restp_services::ack::Detail;
use restp_services::recovery::RecoveryChoice;

/// What one comparison protocol is made of. Names are those of the files in `restp-services`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rival {
    /// Name in a scenario's `transport`.
    pub name: String,
    /// Codec.
    pub wire: &'static str,
    /// Connection management.
    pub set_up: &'static str,
    /// Acknowledgement.
    pub ack: &'static str,
    /// How losses are found and repaired.
    pub recovery: &'static str,
    /// What a loss is taken for.
    pub cause: &'static str,
    /// Congestion window.
    pub window: &'static str,
    /// Path management and schedule.
    pub paths: &'static str,
}

/// All rivals that can be run: UDP; a current and a classic TCP for every congestion control that is built; a classic one
/// for every detail of acknowledgements; a current and a classic MPTCP for every congestion control; SCTP; a CMT for every policy of
/// retransmission; the schemes of SMT; and ITP with its baseline, NDN.
pub fn rivals() -> Vec<Rival> {
    let udp = Rival {
        name: "udp".into(),
        wire: "udp",
        set_up: "connectionless",
        ack: "none",
        recovery: "none",
        cause: "none",
        window: "none",
        paths: "single",
    };
    let current = TcpParameters::names().map(|name| ("tcp", name, TcpParameters::from_pairs(name, &[])));
    let classic = TcpParameters::classic_names()
        .map(|name| ("classic-tcp", name, TcpParameters::classic_from_pairs(name, &[])));
    let tcp = current.chain(classic).filter_map(|(family, name, parameters)| {
        let parameters = parameters.ok()?;
        Some(Rival {
            name: format!("{family}:{name}"),
            wire: "tcp",
            set_up: "three_way",
            ack: acknowledgement_of(&parameters),
            recovery: recovery_of(&parameters),
            cause: "congestion",
            window: parameters.congestion.name(),
            paths: "single",
        })
    });
    let unnamed = || std::iter::once(None);
    let current = unnamed().chain(TcpParameters::names_of_several().map(Some));
    let current = current.map(|name| ("mptcp", name, TcpParameters::of_several_from_pairs(name, &[])));
    let classic = unnamed().chain(TcpParameters::classic_names_of_several().map(Some));
    let classic = classic.map(|name| {
        let parameters = TcpParameters::classic_of_several_from_pairs(name, &[]);
        ("classic-mptcp", name, parameters)
    });
    let mptcp = current.chain(classic).filter_map(|(family, name, parameters)| {
        let parameters = parameters.ok()?;
        Some(Rival {
            name: name.map_or(family.into(), |name| format!("{family}:{name}")),
            wire: "tcp, mptcp",
            set_up: "three_way, join",
            ack: acknowledgement_of(&parameters),
            recovery: recovery_of(&parameters),
            cause: "congestion",
            window: parameters.congestion.name(),
            paths: "spreading, fastest-rtt",
        })
    });
    let sctp = Rival {
        name: "sctp".into(),
        wire: "sctp",
        set_up: "four_way",
        ack: "sack",
        recovery: "missing_reports",
        cause: "congestion",
        window: "byte-counting",
        paths: "hot_standby",
    };
    let cmt = SctpParameters::policies().map(|policy| Rival {
        name: format!("cmt:{policy}"),
        ack: "sack, dac",
        recovery: "missing_reports, cuc",
        paths: "spreading, round-robin",
        ..sctp.clone()
    });
    let smt = SctpParameters::schemes().map(|scheme| {
        let (recovery, paths) = match scheme {
            "nmt" => ("missing_reports", "spreading, packet by packet"),
            "smos" => ("missing_reports, cuc", "spreading, smos"),
            "amfr" => ("missing_reports, interpath, amfr, cuc", "spreading, round-robin"),
            _ => ("missing_reports, interpath, cuc", "spreading, round-robin"),
        };
        Rival {
            name: format!("smt:{scheme}"),
            recovery,
            paths,
            ..sctp.clone()
        }
    });
    let itp = Rival {
        name: "itp".into(),
        wire: "itp over udp",
        set_up: "none: a manifest names what there is",
        ack: "none: data answers an Interest",
        recovery: "receiver_driven",
        cause: "congestion",
        window: "interest-window",
        paths: "single",
    };
    let ndn = Rival {
        name: "ndn".into(),
        recovery: "receiver_driven, timeouts alone",
        ..itp.clone()
    };
    let several: Vec<_> = cmt.chain(smt).chain([itp, ndn]).collect();
    let several = mptcp.chain(std::iter::once(sctp)).chain(several);
    std::iter::once(udp).chain(tcp).chain(several).collect()
}

fn acknowledgement_of(parameters: &TcpParameters) -> &'static str {
    match parameters.detail {
        Detail::Pointer => "positive",
        Detail::Nak => "positive, nak",
        Detail::Sack { .. } if parameters.dsack => "positive, sack, dsack",
        Detail::Sack { .. } => "positive, sack",
        Detail::Snack => "positive, snack",
    }
}

fn recovery_of(parameters: &TcpParameters) -> &'static str {
    match parameters.recovery {
        RecoveryChoice::Pipe if parameters.tail_loss_probe => "pipe, rack, tail loss probe",
        RecoveryChoice::Pipe => "pipe",
        _ => "duplicate_ack",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_for_one_rival() {
        let rivals = rivals();
        for (i, rival) in rivals.iter().enumerate() {
            assert!(
                rivals[..i].iter().all(|other| other.name != rival.name),
                "{}",
                rival.name
            );
        }
    }

    #[test]
    fn every_policy_of_cmt_and_scheme_of_smt_is_in_the_table_under_its_published_name() {
        let names: Vec<_> = rivals()
            .into_iter()
            .filter(|rival| rival.wire == "sctp")
            .map(|rival| rival.name)
            .collect();
        let expected = [
            "sctp",
            "cmt:same",
            "cmt:asap",
            "cmt:cwnd",
            "cmt:ssthresh",
            "cmt:lossrate",
            "smt:mfr1",
            "smt:mfr2",
            "smt:amfr",
            "smt:nmt",
            "smt:smos",
        ];
        assert_eq!(names, expected);
        for name in names.iter().filter_map(|name| name.strip_prefix("cmt:")) {
            let set = [("loss-rates", "0.01, 0.02")];
            let parameters = SctpParameters::concurrent_from_pairs(name, &set).expect("a name of the table");
            assert!(parameters.concurrent, "{name}");
        }
    }

    #[test]
    fn every_mptcp_of_the_table_is_a_tcp_of_several_paths() {
        let mptcps: Vec<_> = rivals()
            .into_iter()
            .filter(|rival| rival.wire == "tcp, mptcp")
            .collect();
        for name in [
            "mptcp",
            "mptcp:cubic",
            "mptcp:lia",
            "mptcp:olia",
            "classic-mptcp:wvegas",
        ] {
            assert!(mptcps.iter().any(|rival| rival.name == name), "{name}");
        }
        for rival in mptcps {
            let (family, name) = match rival.name.split_once(':') {
                Some((family, name)) => (family, Some(name)),
                None => (&*rival.name, None),
            };
            let parameters = match family {
                "mptcp" => TcpParameters::of_several_from_pairs(name, &[]),
                _ => TcpParameters::classic_of_several_from_pairs(name, &[]),
            };
            let parameters = parameters.expect("a name of the table");
            assert_eq!(parameters.congestion.name(), rival.window, "{}", rival.name);
            let scheduling = parameters.multipath.map(|scheduling| scheduling.name());
            assert_eq!(scheduling, Some("fastest-rtt"), "{}", rival.name);
        }
    }

    #[test]
    fn every_tcp_of_the_table_can_be_made() {
        let tcps: Vec<_> = rivals().into_iter().filter(|rival| rival.wire == "tcp").collect();
        assert!(tcps.iter().any(|rival| rival.name == "tcp:newreno"));
        for rival in tcps {
            let (family, name) = rival.name.split_once(':').expect("family and name");
            let parameters = match family {
                "tcp" => TcpParameters::from_pairs(name, &[]),
                _ => TcpParameters::classic_from_pairs(name, &[]),
            };
            let parameters = parameters.expect("a name of the table");
            assert_eq!(parameters.congestion.name(), rival.window, "{name}");
            let reports = parameters.detail != Detail::Pointer;
            assert_eq!(
                (rival.recovery.starts_with("pipe"), rival.ack != "positive"),
                (reports, reports),
                "{name}"
            );
        }
    }
}
