//! Whole scenarios: results against hand calculations, claims, and one seed, one run.

mod acknowledgements;
mod adaptive;
mod air;
mod causes;
mod claims;
mod common;
mod determinism;
mod fairness;
mod growth;
mod late;
mod maps;
mod measure;
mod outage;
mod own_algorithms;
mod pages;
mod paths;
mod profiles;
mod queues;
mod rates;
mod results;
mod schema;
mod schemes;
mod traces;
mod voice;
mod web;
mod witnesses;
