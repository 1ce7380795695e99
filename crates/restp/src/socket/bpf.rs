//! Programs for the kernel (classic BPF; Linux `Documentation/networking/filter.rst`): instructions, and their codes.

use socket2::SockFilter;

// Of linux/bpf_common.h and linux/filter.h.
pub(super) const LOAD: u16 = 0x00;
pub(super) const LOAD_WORD: u16 = 0x20;
pub(super) const LOAD_HALF: u16 = 0x28;
pub(super) const LOAD_BYTE: u16 = 0x30;
pub(super) const LOAD_KEPT: u16 = 0x60;
pub(super) const LOAD_INDEX_KEPT: u16 = 0x61;
pub(super) const LOAD_LENGTH: u16 = 0x80;
pub(super) const KEEP: u16 = 0x02;
pub(super) const INDEX: u16 = 0x07;
pub(super) const ADD: u16 = 0x0C;
pub(super) const SUBTRACT: u16 = 0x14;
pub(super) const OR: u16 = 0x4C;
pub(super) const OR_WITH: u16 = 0x44;
pub(super) const AND: u16 = 0x54;
pub(super) const LEFT: u16 = 0x64;
pub(super) const RIGHT: u16 = 0x74;
pub(super) const XOR: u16 = 0xAC;
pub(super) const XOR_WITH: u16 = 0xA4;
pub(super) const JUMP: u16 = 0x05;
pub(super) const JUMP_IF_EQUAL: u16 = 0x15;
pub(super) const JUMP_IF_NOT_LESS: u16 = 0x35;
pub(super) const JUMP_IF_SET: u16 = 0x45;
pub(super) const RETURN: u16 = 0x06;

/// An instruction: code, jumps if true and if false, operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step(pub(super) u16, pub(super) u8, pub(super) u8, pub(super) u32);

impl From<Step> for SockFilter {
    fn from(Step(code, if_true, if_false, operand): Step) -> Self {
        SockFilter::new(code, if_true, if_false, operand)
    }
}
