//! Experiments in virtual time: scenarios, traffic, metrics
