//! Memory for opened packets, one behind the other in blocks that serve again when all in them was let go. With new blocks
//! every time, half of a receiver's time can go into pages that the system takes and gives back. Regions as of D. R. Hanson,
//! "Fast allocation and deallocation of memory based on object lifetimes", Software: Practice and Experience 20(1), 1990.

use bytes::BytesMut;
use std::collections::VecDeque;

/// Bytes of a block; the last packet in it that is kept holds all of it.
const BLOCK: usize = 32 << 10;

/// Full blocks that are remembered (16 MiB): the widest window of a preset, and half as much again. A block that is let go only
/// after so many others is the allocator's.
const MAX_FULL: usize = 512;

/// Blocks taken for each that is given back: packets come in waves, and what the next one needs is not to be fetched anew.
const PACE: u32 = 64;

#[derive(Debug, Default)]
pub(crate) struct Arena {
    /// The one in use last, and the oldest first: readers mostly let go in the order of arrival.
    blocks: VecDeque<BytesMut>,
    taken: u32,
}

impl Arena {
    /// A place of `len` bytes, with whatever was there before.
    pub(crate) fn place(&mut self, len: usize) -> BytesMut {
        if let Some(block) = self.blocks.back_mut()
            && block.len() >= len
        {
            return block.split_to(len);
        }
        let mut block = self.next(len);
        self.give_back();
        let place = block.split_to(len);
        self.blocks.push_back(block);
        place
    }

    /// A block with room for `len` bytes: the oldest one, when nobody uses it any more.
    fn next(&mut self, len: usize) -> BytesMut {
        let bytes = len.max(BLOCK);
        match self.blocks.pop_front_if(|block| reclaim(block, bytes)) {
            Some(mut block) => {
                block.resize(bytes, 0);
                block
            }
            None => BytesMut::zeroed(bytes),
        }
    }

    /// Lets the oldest one go when they are too many, and now and then while more than half of them are not in use.
    fn give_back(&mut self) {
        self.taken = self.taken.wrapping_add(1);
        let middle = self.blocks.len() / 2;
        let is_idle = |block: &mut BytesMut| reclaim(block, BLOCK);
        let spare = self.taken.is_multiple_of(PACE) && self.blocks.get_mut(middle).is_some_and(is_idle);
        if spare || self.blocks.len() > MAX_FULL {
            self.blocks.pop_front();
        }
    }
}

/// Makes `bytes` of a block free, if nobody uses any of it.
fn reclaim(block: &mut BytesMut, bytes: usize) -> bool {
    block.clear();
    block.try_reclaim(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Places that fill one block.
    const PLACES: usize = 16;
    const LEN: usize = BLOCK / PLACES;

    fn places(arena: &mut Arena, blocks: usize) -> Vec<BytesMut> {
        (0..blocks * PLACES).map(|_| arena.place(LEN)).collect()
    }

    #[test]
    fn nothing_is_handed_out_twice_while_it_is_held() {
        let mut arena = Arena::default();
        let mut held: VecDeque<(BytesMut, u8)> = VecDeque::new();
        for turn in 0..20_000_usize {
            let mark = turn as u8;
            let mut place = arena.place(1 + turn * 37 % 3_000);
            place.fill(mark);
            held.push_back((place, mark));
            // Some are kept for long, and the rest in waves.
            for _ in 0..if turn % 900 < 450 { 0 } else { 2 } {
                let oldest = held.pop_front();
                held.extend(oldest.filter(|(_, mark)| mark % 16 == 0 && turn % 3 > 0));
            }
        }
        assert!(held.len() > 100);
        assert!(
            held.iter()
                .all(|(place, mark)| place.iter().all(|byte| byte == mark))
        );
    }

    #[test]
    fn what_comes_in_waves_is_served_from_the_blocks_of_the_first_one() {
        let mut arena = Arena::default();
        drop(places(&mut arena, 20));
        let blocks = arena.blocks.len();
        let mut highest = 0;
        for _ in 0..100 {
            drop(places(&mut arena, 20));
            highest = highest.max(arena.blocks.len());
        }
        assert!(highest <= blocks + 1, "{highest} after {blocks}");
    }

    #[test]
    fn what_a_burst_took_is_given_back_while_traffic_goes_on() {
        let mut arena = Arena::default();
        let burst = places(&mut arena, 300);
        assert!(arena.blocks.len() >= 298);
        drop(burst);
        for _ in 0..300 * PACE {
            drop(places(&mut arena, 1));
        }
        assert!(arena.blocks.len() <= 3, "{}", arena.blocks.len());
    }

    #[test]
    fn what_is_held_for_ever_neither_grows_the_queue_nor_stops_it() {
        let mut arena = Arena::default();
        let held = arena.place(LEN);
        for _ in 0..4 * MAX_FULL {
            drop(places(&mut arena, 1));
            assert!(
                arena.blocks.len() <= 2 * PACE as usize,
                "the held one leaves, and the others serve again"
            );
        }
        drop(held);
    }

    #[test]
    fn where_all_is_held_for_ever_few_are_remembered() {
        let mut arena = Arena::default();
        let held: Vec<_> = (0..4 * MAX_FULL).flat_map(|_| places(&mut arena, 1)).collect();
        assert!(arena.blocks.len() <= MAX_FULL + 1);
        drop(held);
    }

    #[test]
    fn a_packet_longer_than_a_block_gets_a_place_of_its_own_length() {
        let mut arena = Arena::default();
        assert_eq!(arena.place(10).len(), 10);
        assert_eq!(arena.place(BLOCK + 1).len(), BLOCK + 1);
        assert_eq!(arena.place(0).len(), 0);
        assert_eq!(arena.place(BLOCK).len(), BLOCK);
    }
}
