//! The `restp` command: arguments as typed (`args`), validated (`plan`), one file per command (`commands`). Results
//! go to standard output, everything else to standard error (`output`); `transfer` is the protocol of send and recv,
//! `content` what is published, fetched and cached, `qlog` the format of traces, `pcapng` that of captures; `monitor` shows running
//! commands to others.
//!
//! A library, so that what reads files and words of others ([`cookies`], [`keys`], [`transfer`]) can be fuzzed.

mod address;
mod args;
mod backlog;
mod commands;
pub mod content;
pub mod cookies;
mod datagrams;
mod failure;
mod interrupt;
pub mod keys;
mod links;
mod log;
mod monitor;
mod output;
mod pcapng;
mod pipe;
mod plan;
mod progress;
mod qlog;
mod socks;
mod stdin;
mod subnet;
mod toml_file;
pub mod transfer;
mod tunnel;
mod user_timeout;

use args::{Arguments, Command};
use clap::Parser;
use output::Output;
use std::ffi::OsString;

/// The whole command, of these words, the first of which is its name. 0 done, 1 failed in operation, 2 bad usage or bad
/// input file (clap uses 2 as well).
pub fn run(words: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments = match Arguments::try_parse_from(words) {
        Ok(arguments) => arguments,
        Err(usage) => {
            let _ = usage.print(); // nobody reads it
            return usage.exit_code() as u8;
        }
    };
    let output = Output { json: arguments.json };
    output::set_quiet(arguments.log.quiet);
    log::begin(arguments.log);
    let result = match &arguments.command {
        Command::Recv(recv) => commands::recv::execute(recv, output),
        Command::Send(send) => commands::send::execute(send, output),
        Command::Publish(publish) => commands::publish::execute(publish, output),
        Command::Fetch(fetch) => commands::fetch::execute(fetch, output),
        Command::Cache(cache) => commands::cache::execute(cache, output),
        Command::Serve(serve) => commands::serve::execute(serve, output),
        Command::Pipe(pipe) => commands::pipe::execute(pipe),
        Command::Forward(forward) => commands::forward::execute(forward, output),
        Command::Tunnel(tunnel) => commands::tunnel::execute(tunnel, output),
        Command::Bench(bench) => commands::bench::execute(bench, output),
        Command::Decode(decode) => commands::decode::execute(decode, output),
        Command::Emulate(emulate) => commands::emulate::execute(emulate, output),
        Command::Paths => commands::paths::execute(output),
        Command::Relay(relay) => commands::relay::execute(relay, output),
        Command::Top(top) => commands::top::execute(top, output),
        Command::Keygen(keygen) => commands::keygen::execute(keygen, output),
        Command::Sim(sim) => commands::sim::execute(sim, output),
        Command::Report(report) => commands::report::execute(report, output),
        Command::Reproduce(reproduce) => commands::reproduce::execute(reproduce, output),
        Command::Chaos(chaos) => commands::chaos::execute(chaos, output),
        Command::Profiles(profiles) => commands::profiles::execute(profiles, output),
        Command::Model(model) => commands::model::execute(model, output),
        Command::Completions(completions) => commands::manual::complete(completions),
        Command::Man(man) => commands::manual::execute(man),
    };
    match result {
        Ok(()) => 0,
        Err(failure) => {
            if !failure.message().is_empty() {
                output::error(failure.message());
            }
            failure.code()
        }
    }
}
