//! Which packet numbers of a path were here (RFC 4303 §3.4.3): a packet is taken once, and one that is too old to tell
//! is not taken.

/// Packets that may be overtaken: a batch of every path, and the reordering of a fast network.
const WORDS: usize = 32;
const SPAN: u64 = WORDS as u64 * 64;

/// The numbers below `next` that were here, for the last 2048 of them.
#[derive(Clone, Debug)]
pub struct Window {
    next: u64,
    seen: [u64; WORDS],
}

impl Default for Window {
    fn default() -> Self {
        Window {
            next: 0,
            seen: [0; WORDS],
        }
    }
}

impl Window {
    /// Is `number` new?
    pub fn is_new(&self, number: u64) -> bool {
        number >= self.next || (self.next - number <= SPAN && !self.bit(number))
    }

    /// `number` is genuine and was here now.
    pub fn note(&mut self, number: u64) {
        if number >= self.next {
            if number - self.next >= SPAN {
                self.seen = [0; WORDS];
            } else {
                (self.next..number).for_each(|skipped| self.set(skipped, false));
            }
            self.next = number + 1;
        }
        self.set(number, true);
    }

    fn bit(&self, number: u64) -> bool {
        self.seen[(number / 64) as usize % WORDS] >> (number % 64) & 1 == 1
    }

    fn set(&mut self, number: u64, seen: bool) {
        let word = &mut self.seen[(number / 64) as usize % WORDS];
        *word = *word & !(1 << (number % 64)) | u64::from(seen) << (number % 64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_new_once_in_whatever_order() {
        let mut window = Window::default();
        for number in [0, 5, 3, 4, 1, 2, 2047, 2048, 6] {
            assert!(window.is_new(number), "{number}");
            window.note(number);
            assert!(!window.is_new(number), "{number}");
        }
    }

    #[test]
    fn what_is_too_old_to_tell_is_not_new() {
        let mut window = Window::default();
        window.note(SPAN + 9);
        assert!(!window.is_new(9) && window.is_new(10));
        window.note(10 * SPAN);
        assert!(window.is_new(10 * SPAN - 1) && !window.is_new(9 * SPAN));
    }

    #[test]
    fn it_agrees_with_a_set_of_all_numbers() {
        let mut stream = restp_base::random::Stream::named(3, "window");
        let (mut window, mut all, mut highest) = (Window::default(), std::collections::BTreeSet::new(), 0);
        for _ in 0..20_000 {
            let number = (highest + stream.below(60)).saturating_sub(stream.below(2500));
            let told = window.is_new(number);
            let old = highest + 1 > number + SPAN;
            assert_eq!(told, !all.contains(&number) && !old, "{number} of {highest}");
            if told {
                window.note(number);
                all.insert(number);
                highest = highest.max(number);
            }
        }
    }
}
