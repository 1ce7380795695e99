//! Experiments in virtual time: a scenario file in, measured results and verdicts on claims out.
//!
//! | Module | Holds |
//! |---|---|
//! | [`scenario`] | what a file says is simulated: sweeps, validated points |
//! | [`registry`] | names of transports and the machines behind them |
//! | [`traffic`] | what applications do |
//! | [`host`] | drives a machine from the event queue |
//! | [`run`](mod@run) | one point and seed to one result; many of them on all cores, in order |
//! | [`metrics`] | what is reported of flows and links, and over several runs |
//! | [`model`] | a Markov chain of SMT, without packets |
//! | [`chaos`] | random cases, and laws that hold whatever happens |
//! | [`checker`] | claims of a scenario held against its results |
//! | [`page`] | the page of an experiment, with its figures |
//! | [`experiment`] | [`Scenario`]: a file as a whole, and one run of it |
//! | [`report`] | tables for people, CSV for other tools |
//!
//! Nothing here reads a clock: a run's wall time comes from a stopwatch the caller lends.

pub mod chaos;
pub mod checker;
pub mod experiment;
pub mod host;
pub mod metrics;
pub mod model;
pub mod one_stream;
pub mod page;
pub mod registry;
pub mod report;
pub mod run;
pub mod scenario;
pub mod traffic;
mod unknown;

pub use experiment::{Line, Scenario, run};
pub use restp_sim::{DropReason, Way, medium};
pub use run::{Job, Options, RunError, RunResult, Summary};
pub use scenario::ScenarioError;
