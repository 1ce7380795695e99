//! One program for all stories of the seal in virtual time: they compile and run together. Each module tells of one part.

#[path = "../common/mod.rs"]
mod common;
#[path = "../../../restp-proto/tests/common/orders.rs"]
mod orders;

mod addresses;
mod attacks;
mod explore;
mod explore_attacker;
mod floods;
mod resumption;
mod sessions;
mod silence;
mod vectors;
