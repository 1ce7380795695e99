//! The screen as a program for the kernel (classic BPF; Linux `Documentation/networking/filter.rst`): what is kept out neither
//! takes room in the socket's buffer from packets of established peers nor a processor from their host. About 700 instructions
//! without a loop, most of them the hash of [`restp_seal::gate`].

use super::ring::{Arc, BELOW, PLACES};
use crate::socket::bpf::*;
use restp_seal::gate::{GateKeys, INITIAL, LAST, LENGTH, PARITY, ROUNDS, TOKEN_AT};
use restp_seal::packet::{FIRST_OF_A_SESSION, SEALED};
use std::ops::RangeInclusive;

/// The program sees a datagram from its UDP header on, which begins with the source's port.
const UDP_HEADER: u32 = 8;
/// Where the network's header is.
const NETWORK: u32 = 0xFFF0_0000;
const WHOLE: u32 = u32::MAX;

/// Words that are kept: the state of the hash, its input, the tag that is shown.
const STATE: u32 = 0;
const INPUT: u32 = 4;
const SHOWN: u32 = 7;

/// Lets in what begins with one of `passing` and packets of sessions, drops what else is not sealed, and lets in of the rest those
/// whose turn it is: `tagged` where they show the tag of their source, else `others`.
pub(super) fn program(
    passing: &[RangeInclusive<u8>],
    keys: &GateKeys,
    tagged: Arc,
    others: Arc,
) -> Vec<Step> {
    let mut steps = vec![Step(LOAD_BYTE, 0, 0, UDP_HEADER)];
    steps.extend(passing.iter().flat_map(passes));
    steps.extend(kinds());
    if tagged.length < PLACES || others.length < PLACES {
        steps.extend(input());
        steps.extend(hash(keys));
        steps.extend(turns(tagged, others));
    } else {
        steps.push(Step(RETURN, 0, 0, WHOLE));
    }
    steps
}

/// Lets in what begins with one of these, the first byte being in the accumulator.
fn passes(first_bytes: &RangeInclusive<u8>) -> [Step; 3] {
    let behind = u32::from(*first_bytes.end()) + 1;
    [
        Step(JUMP_IF_NOT_LESS, 0, 2, u32::from(*first_bytes.start())),
        Step(JUMP_IF_NOT_LESS, 1, 0, behind),
        Step(RETURN, 0, 0, WHOLE),
    ]
}

/// What the first byte in the accumulator tells (docs/protocol/first-bytes.md).
fn kinds() -> [Step; 4] {
    [
        Step(JUMP_IF_NOT_LESS, 0, 1, FIRST_OF_A_SESSION.into()),
        Step(RETURN, 0, 0, WHOLE),
        Step(JUMP_IF_NOT_LESS, 1, 0, SEALED.into()),
        Step(RETURN, 0, 0, 0),
    ]
}

/// Keeps what is hashed, and the tag; zero for a datagram that is too short to show one.
fn input() -> Vec<Step> {
    const SOURCE_IPV4: u32 = NETWORK + 12;
    const SOURCE_IPV6: u32 = NETWORK + 8;
    const TAG: u32 = UDP_HEADER + TOKEN_AT as u32;
    vec![
        Step(LOAD_BYTE, 0, 0, NETWORK), // the version is in its upper half
        Step(JUMP_IF_NOT_LESS, 5, 0, 0x60),
        Step(LOAD, 0, 0, 0xFFFF),
        Step(KEEP, 0, 0, INPUT),
        Step(LOAD_WORD, 0, 0, SOURCE_IPV4),
        Step(KEEP, 0, 0, INPUT + 1),
        Step(JUMP, 0, 0, 4),
        Step(LOAD_WORD, 0, 0, SOURCE_IPV6),
        Step(KEEP, 0, 0, INPUT),
        Step(LOAD_WORD, 0, 0, SOURCE_IPV6 + 4),
        Step(KEEP, 0, 0, INPUT + 1),
        Step(LOAD_HALF, 0, 0, 0),
        Step(OR_WITH, 0, 0, LENGTH),
        Step(KEEP, 0, 0, INPUT + 2),
        Step(LOAD_LENGTH, 0, 0, 0),
        Step(JUMP_IF_NOT_LESS, 2, 0, TAG + 4),
        Step(LOAD, 0, 0, 0),
        Step(JUMP, 0, 0, 1),
        Step(LOAD_WORD, 0, 0, TAG),
        Step(KEEP, 0, 0, SHOWN),
    ]
}

/// Leaves the hash of the source in the accumulator, and the tag that is shown in the index.
fn hash(keys: &GateKeys) -> Vec<Step> {
    let begun = |parity: u32| {
        let key = keys.of_parity(parity);
        let word = move |n: u32| INITIAL[n as usize] ^ key[n as usize % 2];
        (0..4).flat_map(move |n| [Step(LOAD, 0, 0, word(n)), Step(KEEP, 0, 0, STATE + n)])
    };
    let mut steps = vec![Step(JUMP_IF_SET, 9, 0, PARITY)];
    steps.extend(begun(0));
    steps.push(Step(JUMP, 0, 0, 8));
    steps.extend(begun(1));
    for word in INPUT..INPUT + 3 {
        steps.extend(mixed(STATE + 3, word));
        (0..ROUNDS.0).for_each(|_| round(&mut steps));
        steps.extend(mixed(STATE, word));
    }
    steps.extend([
        Step(LOAD_KEPT, 0, 0, STATE + 2),
        Step(XOR_WITH, 0, 0, LAST),
        Step(KEEP, 0, 0, STATE + 2),
    ]);
    (0..ROUNDS.1).for_each(|_| round(&mut steps));
    steps.extend([
        Step(LOAD_KEPT, 0, 0, STATE + 1),
        Step(LOAD_INDEX_KEPT, 0, 0, STATE + 3),
        Step(XOR, 0, 0, 0),
        Step(LOAD_INDEX_KEPT, 0, 0, SHOWN),
    ]);
    steps
}

/// `place` XOR `other`.
fn mixed(place: u32, other: u32) -> [Step; 4] {
    [
        Step(LOAD_KEPT, 0, 0, place),
        Step(LOAD_INDEX_KEPT, 0, 0, other),
        Step(XOR, 0, 0, 0),
        Step(KEEP, 0, 0, place),
    ]
}

fn round(steps: &mut Vec<Step>) {
    let [a, b, c, d] = [STATE, STATE + 1, STATE + 2, STATE + 3];
    for (sum, turned, by) in [(a, b, 5), (c, d, 8), (a, d, 7), (c, b, 13)] {
        steps.extend([
            Step(LOAD_KEPT, 0, 0, sum),
            Step(LOAD_INDEX_KEPT, 0, 0, turned),
            Step(ADD, 0, 0, 0),
            Step(KEEP, 0, 0, sum),
        ]);
        steps.extend(turned_by(turned, by));
        steps.extend([
            Step(LOAD_INDEX_KEPT, 0, 0, sum),
            Step(XOR, 0, 0, 0),
            Step(KEEP, 0, 0, turned),
        ]);
        // The order is that of the hash: each half of a round ends with a turn of what it began with.
        if by == 5 || by == 13 {
            steps.extend(turned_by(sum, 16));
            steps.push(Step(KEEP, 0, 0, sum));
        }
    }
}

/// `place`, its bits turned to the left, in the accumulator.
fn turned_by(place: u32, by: u32) -> [Step; 6] {
    [
        Step(LOAD_KEPT, 0, 0, place),
        Step(RIGHT, 0, 0, u32::BITS - by),
        Step(INDEX, 0, 0, 0),
        Step(LOAD_KEPT, 0, 0, place),
        Step(LEFT, 0, 0, by),
        Step(OR, 0, 0, 0),
    ]
}

/// Whose turn it is, by the hash in the accumulator and the tag in the index.
fn turns(tagged: Arc, others: Arc) -> Vec<Step> {
    let turn = |arc: Arc| {
        [
            Step(LOAD_KEPT, 0, 0, INPUT),
            Step(RIGHT, 0, 0, BELOW),
            Step(SUBTRACT, 0, 0, arc.begin),
            Step(AND, 0, 0, PLACES - 1),
            Step(JUMP_IF_NOT_LESS, 1, 0, arc.length),
            Step(RETURN, 0, 0, WHOLE),
            Step(RETURN, 0, 0, 0),
        ]
    };
    let mut steps = vec![
        Step(KEEP, 0, 0, INPUT),
        Step(XOR, 0, 0, 0),
        Step(AND, 0, 0, !PARITY),
        Step(JUMP_IF_EQUAL, 0, 7, 0),
    ];
    steps.extend(turn(tagged));
    steps.extend(turn(others));
    steps
}

#[cfg(test)]
pub(super) mod kernel {
    use super::*;

    /// Runs the program on what the kernel shows it: the network's header, and the datagram with its UDP header. What comes in
    /// of it, in bytes.
    pub(crate) fn run(program: &[Step], network: &[u8], datagram: &[u8]) -> u32 {
        let load = |place: u32, bytes: usize| {
            let from = if place >= NETWORK { network } else { datagram };
            let place = (place - if place >= NETWORK { NETWORK } else { 0 }) as usize;
            let word = from.get(place..place + bytes)?;
            Some(word.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)))
        };
        let (mut a, mut x, mut kept, mut at) = (0_u32, 0_u32, [None; 16], 0);
        loop {
            let Step(code, if_true, if_false, k) = program[at];
            at += 1;
            let mut jump = |is: bool| at += usize::from(if is { if_true } else { if_false });
            match code {
                LOAD => a = k,
                LOAD_WORD | LOAD_HALF | LOAD_BYTE => {
                    let bytes = [4, 2, 1][usize::from(code >> 3 & 3)];
                    match load(k, bytes) {
                        Some(word) => a = word,
                        None => return 0, // as the kernel does
                    }
                }
                LOAD_KEPT => a = kept[k as usize].expect("kept before"),
                LOAD_INDEX_KEPT => x = kept[k as usize].expect("kept before"),
                LOAD_LENGTH => a = datagram.len() as u32,
                KEEP => kept[k as usize] = Some(a),
                INDEX => x = a,
                ADD => a = a.wrapping_add(x),
                SUBTRACT => a = a.wrapping_sub(k),
                OR => a |= x,
                OR_WITH => a |= k,
                AND => a &= k,
                LEFT => a <<= k,
                RIGHT => a >>= k,
                XOR => a ^= x,
                XOR_WITH => a ^= k,
                JUMP => at += k as usize,
                JUMP_IF_EQUAL => jump(a == k),
                JUMP_IF_NOT_LESS => jump(a >= k),
                JUMP_IF_SET => jump(a & k != 0),
                RETURN => return k,
                other => panic!("{other:#x} is not used"),
            }
        }
    }
}
