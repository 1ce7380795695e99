//! Simultaneous events have no order that anybody guarantees: in half of the runs it is drawn.

use super::Case;
use restp_sim::World;

/// Shuffles what happens at one instant, if the case says so.
pub fn shuffle(case: &Case, world: &mut World) {
    if case.shuffle_ties {
        world.shuffle_ties(case.seed);
    }
}
