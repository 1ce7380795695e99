//! Memory for opened packets, one behind the other in blocks that serve again when all in them was let go. With new blocks
//! every time, half of a receiver's time can go into pages that the system takes and gives back. Regions as of D. R. Hanson,
//! "Fast allocation and deallocation of memory based on object lifetimes", Software: Practice and Experience 20(1), 1990.

use bytes::BytesMut;
use std::collections::VecDeque;

/// Bytes of a block; the last packet in it that is kept holds all of it.
const BLOCK: usize = 32 << 10;

/// Blocks in use that are remembered (16 MiB): the widest window of a preset, and half as much again. One that is let go only
/// after so many others is the allocator's.
const MAX_USED: usize = 512;

/// Used blocks looked at for each that is taken.
const LOOKS: usize = 4;

/// Blocks taken between two counts of what was not needed: twice what a driver receives before readers have their turn.
const PERIOD: u32 = 256;

#[derive(Debug, Default)]
pub(crate) struct Arena {
    /// Somebody may hold a part of them. Packets come into the last one; the one that was not looked at for longest is first.
    used: VecDeque<BytesMut>,
    /// Nobody holds anything of them. The one that was found last is last, and still warm.
    free: Vec<BytesMut>,
    /// Fewest free ones since the last count, which the traffic since did without.
    surplus: usize,
    taken: u32,
}

impl Arena {
    /// A place of `len` bytes, with whatever was there before.
    pub(crate) fn place(&mut self, len: usize) -> BytesMut {
        if let Some(block) = self.used.back_mut()
            && block.len() >= len
        {
            return block.split_to(len);
        }
        self.look();
        let mut block = self.free.pop().unwrap_or_default();
        self.count();
        block.resize(len.max(BLOCK), 0);
        let place = block.split_to(len);
        self.used.push_back(block);
        place
    }

    /// Finds blocks that nobody holds any more. One that somebody holds for long does not stand in the way of the others.
    fn look(&mut self) {
        for _ in 0..LOOKS.min(self.used.len()) {
            let Some(mut block) = self.used.pop_front() else {
                return;
            };
            block.clear();
            if block.try_reclaim(BLOCK) {
                self.free.push(block);
            } else if self.used.len() < MAX_USED {
                self.used.push_back(block);
            }
        }
    }

    /// Gives back what was not needed for a while.
    fn count(&mut self) {
        self.surplus = self.surplus.min(self.free.len());
        self.taken = self.taken.wrapping_add(1);
        if self.taken.is_multiple_of(PERIOD) {
            self.free.drain(..self.surplus);
            self.surplus = self.free.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Places that fill one block.
    const PLACES: usize = 16;
    const LEN: usize = BLOCK / PLACES;

    fn blocks(arena: &Arena) -> usize {
        arena.used.len() + arena.free.len()
    }

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
    fn what_comes_in_waves_is_served_from_the_blocks_of_the_first_ones() {
        let mut arena = Arena::default();
        let wave = PERIOD as usize / 2;
        for _ in 0..4 {
            drop(places(&mut arena, wave));
        }
        let begin = blocks(&arena);
        assert!(begin <= wave + wave / 2, "{begin}");
        for _ in 0..100 {
            drop(places(&mut arena, wave));
            assert!(begin.abs_diff(blocks(&arena)) <= LOOKS);
        }
    }

    #[test]
    fn what_a_burst_took_is_given_back_soon() {
        let mut arena = Arena::default();
        let burst = places(&mut arena, 300);
        assert_eq!(blocks(&arena), 300);
        drop(burst);
        for _ in 0..3 * PERIOD {
            drop(places(&mut arena, 1));
        }
        assert!(blocks(&arena) <= LOOKS, "{}", blocks(&arena));
    }

    #[test]
    fn packets_held_for_long_do_not_make_others_take_more_memory() {
        let mut arena = Arena::default();
        let mut held = Vec::new();
        for turn in 0..20 * PERIOD as usize {
            held.extend(places(&mut arena, 1).pop().filter(|_| turn % 64 == 0));
            let (all, kept) = (blocks(&arena), held.len());
            assert!(
                all <= kept + kept / (LOOKS - 1) + LOOKS,
                "{all} for {kept}, {turn}"
            );
        }
        drop(held);
        for _ in 0..3 * PERIOD {
            drop(places(&mut arena, 1));
        }
        assert!(blocks(&arena) <= LOOKS, "{}", blocks(&arena));
    }

    #[test]
    fn where_all_is_held_for_ever_few_are_remembered() {
        let mut arena = Arena::default();
        let held: Vec<_> = (0..4 * MAX_USED).flat_map(|_| places(&mut arena, 1)).collect();
        assert!(blocks(&arena) <= MAX_USED + 1);
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
