//! The other commands: what they print, as text and as JSON, and how they complain.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

use crate::common::{Running, emulate, restp, write};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::io::Write as _;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

pub(super) fn lines(stdout: &str) -> Vec<Value> {
    stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn usage_errors_exit_with_2_and_help_with_0() {
    for arguments in [
        &["fly"][..],
        &[],
        &["send"],
        &["send", "x"],
        &["sim"],
        &["decode"],
        &["recv", "--listen", "x/y"],
    ] {
        let ended = restp(arguments);
        assert_eq!(ended.code, Some(2), "{arguments:?}: {ended:?}");
        assert!(ended.stdout.is_empty() && !ended.stderr.is_empty(), "{ended:?}");
    }
    assert!(restp(&["--version"]).stdout.starts_with("restp 0."));
    for command in [
        "recv", "send", "emulate", "sim", "report", "profiles", "decode", "bench",
    ] {
        let help = restp(&[command, "--help"]);
        assert_eq!(help.code, Some(0));
        assert!(help.stdout.contains("Examples:"), "{command}");
    }
    let nonsense = restp(&[
        "send",
        concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"),
        "non/sense",
    ]);
    assert_eq!(nonsense.code, Some(2));
    assert!(
        nonsense.stderr.contains("is no address") && nonsense.stderr.contains("ticket:"),
        "{nonsense:?}"
    );
}

#[test]
fn complaints_name_the_value_the_rule_and_the_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "a", b"a");
    let nothing = write(folder.path(), "nothing", b"");
    let (file, nothing) = (file.to_str().unwrap(), nothing.to_str().unwrap());
    let address = "write HOST:PORT, HOST, [IPV6]:PORT or PORT";
    for (arguments, value, way_out) in [
        (&["recv", "--listen", "fo o"][..], "\"fo o\"", address),
        (&["send", file, "127.0.0.1:0"], "127.0.0.1:0", address),
        (&["send", file, "fo/o"], "\"fo/o\"", address),
        (
            &["send", file, "1", "--address", "127.0.0.1:0"],
            "port 0",
            address,
        ),
        (
            &["send", file, "b", "127.0.0.1:9"],
            "b: No such file",
            "files and folders that you may read",
        ),
        (&["recv", "--dir", file], file, "name a folder"),
        (&["decode", ""], "the input is empty", "hexadecimal digits"),
        (&["decode", "-"], "standard input is empty", "hexadecimal digits"),
        (&["decode", nothing], nothing, "hexadecimal digits"),
        (&["sim", "s.toml", "--seed", "-1"], "'-1'", "whole number from 0"),
        (&["sim", "s.toml", "--runs", "0"], "'0'", "at least 1"),
    ] {
        let ended = restp(arguments);
        assert_eq!(ended.code, Some(2), "{arguments:?}: {ended:?}");
        for word in [value, way_out] {
            assert!(ended.stderr.contains(word), "{word}: {ended:?}");
        }
        assert!(!ended.stderr.contains(".restp-"), "{ended:?}");
    }
}

#[test]
fn a_bad_scenario_names_file_line_and_key() {
    let folder = tempfile::tempdir().unwrap();
    let bad = write(
        folder.path(),
        "bad.toml",
        b"id = \"x\"\ntitle = \"x\"\nduration = \"10 parsecs\"\n",
    );
    let ended = restp(&["sim", bad.to_str().unwrap()]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    for word in ["bad.toml", "line 3", "duration", "parsecs"] {
        assert!(ended.stderr.contains(word), "{word}: {ended:?}");
    }
    assert_eq!(restp(&["sim", "missing.toml"]).code, Some(2));
}

#[test]
fn every_published_header_decodes() {
    let text = std::fs::read_to_string(format!("{ROOT}/vectors/headers.json")).unwrap();
    for case in serde_json::from_str::<Vec<Value>>(&text).unwrap() {
        let hex = format!(
            "{} {}",
            case["header"].as_str().unwrap(),
            case["payload"].as_str().unwrap_or("")
        );
        let ended = restp(&["decode", "--json", &hex]);
        assert_eq!(ended.code, Some(0), "{case}: {ended:?}");
        let decoded = &lines(&ended.stdout)[0];
        let fields = decoded["fields"].as_array().unwrap();
        let bits: u64 = fields
            .iter()
            .map(|field| field["length_bits"].as_u64().unwrap())
            .sum();
        assert_eq!(
            bits,
            8 * decoded["bytes"].as_u64().unwrap(),
            "fields leave no gap: {case}"
        );
        assert!(decoded["error"].is_null());
    }
}

#[test]
fn malformed_pdus_name_offset_expected_and_found() {
    let text = std::fs::read_to_string(format!("{ROOT}/vectors/malformed.json")).unwrap();
    for case in serde_json::from_str::<Vec<Value>>(&text).unwrap() {
        let ended = restp(&["decode", "--json", case["pdu"].as_str().unwrap()]);
        assert_eq!(ended.code, Some(1), "{case}: {ended:?}");
        let error = &lines(&ended.stdout)[0]["error"];
        for key in ["offset", "expected", "found"] {
            assert_eq!(error[key], case[key], "{case}");
        }
        assert!(ended.stderr.contains("expected"), "{ended:?}");
    }
    for unreadable in ["zz", "123", "/nonexistent/file"] {
        assert_eq!(restp(&["decode", unreadable]).code, Some(2));
    }
}

#[test]
fn a_capture_is_decoded_datagram_by_datagram() {
    let folder = tempfile::tempdir().unwrap();
    let pdu = [3, 0, 0, 0, 0, 1, 0, 0, 0xc3, 0x50, 0, 0x50];
    let mut packet = vec![
        0x45, 0, 0, 40, 0, 0, 0, 0, 64, 17, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1, 0, 7, 0, 9, 0, 20, 0, 0,
    ];
    packet.extend_from_slice(&pdu);
    let words = [0xa1b2_c3d4, 0x0002_0004, 0, 0, 65535, 101];
    let mut capture: Vec<u8> = words.into_iter().flat_map(u32::to_be_bytes).collect();
    for _ in 0..2 {
        capture.extend([0, 0, 40, 40].into_iter().flat_map(u32::to_be_bytes));
        capture.extend_from_slice(&packet);
    }
    let file = write(folder.path(), "c.pcap", &capture);
    let binary = write(folder.path(), "pdu.bin", &pdu);
    let (file, binary) = (file.to_str().unwrap(), binary.to_str().unwrap());
    let decoded = restp(&["decode", "--json", file, "--port", "9"]);
    assert_eq!(
        (decoded.code, lines(&decoded.stdout).len()),
        (Some(0), 2),
        "{decoded:?}"
    );
    assert!(
        decoded.stdout.contains("packet 2, 127.0.0.1:7 -> 127.0.0.1:9"),
        "{decoded:?}"
    );
    assert_eq!(restp(&["decode", file, "--port", "1"]).code, Some(2));
    assert!(restp(&["decode", binary]).stdout.contains("Version"));
    let cut = write(folder.path(), "cut.pcap", &capture[..60]);
    assert_eq!(restp(&["decode", cut.to_str().unwrap()]).code, Some(2));
}

#[test]
fn profiles_are_listed_shown_and_explained() {
    let list = restp(&["profiles", "--json"]);
    assert_eq!(list.code, Some(0));
    let listed = lines(&list.stdout);
    let presets: Vec<_> = listed
        .iter()
        .filter(|line| line.get("preset").is_some())
        .collect();
    assert!(presets.len() >= 11, "{presets:?}");
    for preset in presets {
        let name = preset["preset"].as_str().unwrap();
        let shown = restp(&["profiles", name, "--json"]);
        if preset["refusal"].is_null() {
            assert_eq!(shown.code, Some(0), "{shown:?}");
            let shown = &lines(&shown.stdout)[0];
            assert!(shown["services"].as_array().unwrap().len() > 10);
            assert!(!shown["fields"].as_array().unwrap().is_empty());
        } else {
            assert_eq!(shown.code, Some(2), "{shown:?}");
            assert!(shown.stderr.contains("choose"), "{shown:?}");
        }
    }
    let slip = restp(&["profiles", "3wh-ark"]);
    assert!(
        slip.code == Some(2) && slip.stderr.contains("did you mean \"3wh-arq\""),
        "{slip:?}"
    );
    let invalid = restp(&["profiles", "default", "--set", "ack=none"]);
    assert!(
        invalid.code == Some(2) && invalid.stderr.contains("choose ack"),
        "{invalid:?}"
    );
    let nearest = "the nearest valid one: --set \"ack=positive+sack\"";
    assert!(invalid.stderr.contains(nearest), "{invalid:?}");
    let hinted = restp(&["profiles", "par-arq"]);
    assert!(
        hinted.stdout.contains("hint: ") && hinted.stdout.contains("choose connection = opportunistic"),
        "{hinted:?}"
    );
}

#[test]
fn needs_become_a_profile_that_can_be_used() {
    let voice = [
        "profiles",
        "--for",
        "reliability=partial",
        "--for",
        "deadline=160 ms",
    ];
    let shown = restp(&[&voice[..], &["--json"]].concat());
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let profile = &lines(&shown.stdout)[0]["profile"];
    assert_eq!(profile["paths"], 1);
    let file: Vec<_> = profile["file"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|line| line.as_str())
        .collect();
    assert_eq!(file, ["preset = \"par-arq\"", "deadline = \"160 ms\""]);
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "voice.toml", file.join("\n").as_bytes());
    let again = restp(&["profiles", file.to_str().unwrap(), "--json"]);
    assert_eq!(
        lines(&again.stdout)[0]["numbers"],
        lines(&shown.stdout)[0]["numbers"],
        "{again:?}"
    );

    let spare = restp(&["profiles", "--for", "failures=1"]);
    assert!(spare.stdout.contains("It needs 2 paths"), "{spare:?}");
    for (need, said) in [
        ("speed=high", "is no need"),
        ("reliability", "has no \"=\""),
        ("deadline=160 ms", "has no meaning here"),
    ] {
        let refused = restp(&["profiles", "--for", need]);
        assert!(
            refused.code == Some(2) && refused.stderr.contains(said),
            "{refused:?}"
        );
    }
    let contradiction = restp(&[
        "profiles",
        "--for",
        "reliability=partial",
        "--for",
        "ordering=full",
    ]);
    assert!(
        contradiction.code == Some(2) && contradiction.stderr.contains("partial-needs-partial-order"),
        "{contradiction:?}"
    );
}

/// Scripts stand in for interpreters.
#[test]
fn a_report_is_left_to_the_interpreter_that_has_the_package() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let report = |interpreter: &str, arguments: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_restp"));
        let ended = command
            .env("RESTP_PYTHON", interpreter)
            .arg("report")
            .args(arguments)
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (ended.status.code(), text(ended.stdout), text(ended.stderr))
    };
    let script = |name: &str, body: &str| {
        let path = write(folder.path(), name, format!("#!/bin/sh\n{body}\n").as_bytes());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let python = script("python", "case \"$*\" in *' -c '*) ;; *) echo \"$*\";; esac");
    assert_eq!(
        report(&python, &["loss", "-o", "x.html", "--json"]),
        (
            Some(0),
            "-P -m restp report --output x.html --json -- loss\n".into(),
            String::new()
        )
    );
    let refusing = script("refusing", "case \"$*\" in *' -c '*) ;; *) exit 2;; esac");
    assert_eq!(
        report(&refusing, &["loss"]),
        (Some(2), String::new(), String::new())
    );

    let (code, _, said) = report("/nowhere/python", &["loss"]);
    assert_eq!(code, Some(1));
    assert!(
        said.contains("/nowhere/python cannot be started") && said.contains("pip install"),
        "{said}"
    );
    let without = script(
        "without",
        "echo \"ModuleNotFoundError: No module named 'restp'\" >&2; exit 1",
    );
    let (code, _, said) = report(&without, &["loss"]);
    assert_eq!(code, Some(1));
    assert!(
        said.contains("No module named 'restp'") && said.contains("RESTP_PYTHON"),
        "{said}"
    );
}

#[test]
fn an_emulator_says_when_it_is_ready_and_once_what_it_did() {
    let path = emulate("127.0.0.1:9", "rate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n");
    path.running.signal(Signal::SIGINT);
    let ended = path.running.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.json()["paths"][0]["forward"]["offered_packets"], 0);

    let folder = tempfile::tempdir().unwrap();
    let net = b"[[path]]\nname = \"p\"\nlisten = \"127.0.0.1:0\"\nto = \"127.0.0.1:9\"\n";
    let net = write(folder.path(), "good.toml", net);
    let (running, mut commands) = Running::start_listening(&["emulate", "--control", net.to_str().unwrap()]);
    commands.write_all(b"quit\n").expect("it reads");
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let counters = "p forward: in 0, out 0, ";
    assert_eq!(ended.stdout.matches(counters).count(), 1, "once: {ended:?}");
    assert!(
        ended.stdout.contains("in the queue 0.0 ms, late by "),
        "{ended:?}"
    );

    let bad = write(
        folder.path(),
        "net.toml",
        b"[[path]]\nname = \"p\"\nrate = \"fast\"\n",
    );
    let ended = restp(&["emulate", bad.to_str().unwrap()]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(
        ended.stderr.contains("net.toml") && ended.stderr.contains("line 3"),
        "{ended:?}"
    );
}

#[test]
fn a_benchmark_measures_both_ends() {
    let ended = restp(&["bench", "--json", "--rounds", "1", "--seconds", "0.3"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let lines = lines(&ended.stdout);
    assert_eq!(lines.len(), 4);
    for (line, carrier) in lines.iter().zip(["restp", "udp"]) {
        assert_eq!(line["carrier"], carrier);
        for key in [
            "goodput_bps",
            "packets_per_second",
            "cpu_sender_s_per_gb",
            "cpu_receiver_s_per_gb",
        ] {
            assert!(line[key].as_f64().unwrap() > 0.0, "{key}: {line}");
        }
    }
    assert!(lines[3]["summary"]["share_of_udp"].as_f64().unwrap() == 1.0);
}

#[test]
fn each_end_of_a_benchmark_speaks_as_the_comparison_expects() {
    let mut server = Running::start(&["bench", "--role", "server", "--listen", "127.0.0.1:0"]);
    let ready = server.json();
    assert!(ready["client_args"].as_array().unwrap().is_empty());
    let to = ready["listening"].as_str().unwrap();
    let client = restp(&["bench", "--role", "client", "--to", to, "--seconds", "0.2"]);
    assert_eq!(client.code, Some(0), "{client:?}");
    let (sent, received) = (client.json(), server.json());
    for (tally, role) in [(&sent, "client"), (&received, "server")] {
        assert_eq!((&tally["name"], &tally["role"]), (&"restp".into(), &role.into()));
        assert!(tally["seconds"].as_f64().unwrap() > 0.0 && tally["goodput_bps"].as_f64().unwrap() > 0.0);
    }
    assert_eq!(sent["bytes"], received["bytes"]);
}

#[test]
fn a_model_is_solved() {
    let solved = restp(&["model", "smt", "--missing", "0.05"]).stdout;
    for line in [
        "CMT     0.05     0.812",
        "MFR     0.05     0.853",
        "AMFR    0.05     0.924",
    ] {
        assert!(solved.contains(line), "{solved}");
    }
    let refused = restp(&["model", "smt", "--missing", "2"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("missing is 2") && refused.stdout.is_empty());
    assert_eq!(restp(&["model", "smt", "--missing", "5%"]).stdout, solved);
    for (words, says) in [
        (["--missing", "-0.1"], "missing is -0.1"),
        (["--missing", "many"], "0.05, or 5%"),
        (["--draw", "0s"], "no time"),
    ] {
        let refused = restp(&["model", "smt", words[0], words[1]]);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(says), "{refused:?}");
    }
}
