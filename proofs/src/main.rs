//! Every parser of datagrams, for every input: it returns. Nobody runs this; that it links is the proof (`make proof`).
//!
//! Each parser is called under a guard whose destructor calls a function that nobody defines. Where the optimizer shows that
//! the parser cannot panic, the destructor is unreachable and its call is gone; otherwise the linker misses the function,
//! whose name says which parser it was (the technique of the crate `no-panic` by David Tolnay). A panic is how Rust ends an
//! access out of bounds, an overflow (checked in this profile) and an `unwrap` of nothing, and the parsers' crates have no
//! `unsafe` code. So each of them reads within its input and computes without overflow, whatever the bytes, however many.
//!
//! Bytes come from a file that is named when the program runs: nothing about them is known when it is linked.

#![allow(
    unsafe_code,
    reason = "a function that nobody defines, and an allocator that gives or aborts"
)]

use restp_base::machine::Datagram;
use restp_proto::wire::{Header, Tail, sack, verify_header, verify_payload};
use restp_seal::PublicKey;
use restp_seal::packet::{Grant, NUMBERS, Packet, Pattern, Request};
use restp_seal::replay::Window;
use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;

/// Memory that is not there is no question of a parser: it is given, or the process ends.
struct Given;

unsafe impl GlobalAlloc for Given {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        given(unsafe { System.alloc(layout) })
    }
    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        unsafe { System.dealloc(place, layout) }
    }
    unsafe fn realloc(&self, place: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        given(unsafe { System.realloc(place, layout, bytes) })
    }
}

fn given(place: *mut u8) -> *mut u8 {
    if place.is_null() {
        std::process::abort();
    }
    place
}

#[global_allocator]
static MEMORY: Given = Given;

/// `fn name(arguments) { body }`, and that it does not panic.
macro_rules! total {
    ($($(#[$attribute:meta])* fn $name:ident($($argument:ident: $kind:ty),*) $body:block)+) => {
        $(
            $(#[$attribute])*
            #[inline(never)]
            fn $name($($argument: $kind),*) {
                struct Guard;
                impl Drop for Guard {
                    fn drop(&mut self) {
                        #[cfg(feature = "linker")]
                        {
                            unsafe extern "C" {
                                #[link_name = concat!("may_panic_in_", stringify!($name))]
                                fn panics();
                            }
                            unsafe { panics() }
                        }
                    }
                }
                let guard = Guard;
                $body
                std::mem::forget(guard);
            }
        )+
    };
}

total! {
    fn header_parse(head: &[u8], pdu_len: usize) {
        black_box(Header::parse(head, pdu_len).is_ok());
    }
    fn header_check_sum(head: &[u8]) {
        black_box(verify_header(head));
    }
    fn payload_check_sum(head: &[u8], payload: &[u8]) {
        black_box(verify_payload(head, payload));
    }
    fn bare_request(datagram: &Datagram) {
        black_box(restp_proto::wire::bare_request(datagram));
    }
    // Numbers of a connection begin at 2^32 and are counted one by one: they stay below 2^62.
    fn received_blocks(header: &Header, number: u64) {
        if let Tail::Sack(blocks) = &header.tail {
            sack::ranges(blocks, number >> 2).map(black_box).for_each(|_| {});
        }
    }
    fn missing_segments(header: &Header, number: u64) {
        if let Tail::Snack(snack) = &header.tail {
            snack.missing(number >> 2).map(black_box).for_each(|_| {});
            snack.received(number >> 2).map(black_box).for_each(|_| {});
        }
    }
    fn sealed_packet(bytes: &[u8]) {
        black_box(Packet::parse(bytes));
    }
    fn sealed_request(bytes: &[u8]) {
        for pattern in [Pattern::Ik, Pattern::Ix, Pattern::Resumed] {
            black_box(Request::parse(pattern, bytes));
        }
    }
    fn sealed_grant(bytes: &[u8]) {
        black_box(Grant::parse(bytes, &PublicKey([7; 32])));
    }
    // Six bytes of a packet's header.
    fn packet_number(window: &mut Window, number: u64) {
        if window.is_new(number % NUMBERS) {
            window.note(number % NUMBERS);
        }
    }
}

#[cfg(feature = "flawed")]
total! {
    fn flawed(bytes: &[u8]) {
        black_box(bytes[0]);
    }
}

fn main() {
    let Some(bytes) = std::env::args().nth(1).and_then(|file| std::fs::read(file).ok()) else {
        return eprintln!("usage: restp-proofs FILE");
    };
    let bytes = black_box(&bytes[..]);
    let (head, payload) = bytes.split_at(black_box(0));
    header_parse(bytes, black_box(bytes.len()));
    header_check_sum(bytes);
    payload_check_sum(head, payload);
    sealed_packet(bytes);
    sealed_request(bytes);
    sealed_grant(bytes);
    packet_number(black_box(&mut Window::default()), black_box(7));
    bare_request(&Datagram {
        head: bytes.into(),
        ..Datagram::empty()
    });
    if let Ok((header, _)) = Header::parse(bytes, bytes.len()) {
        let number = black_box(1 << 32);
        received_blocks(&header, number);
        missing_segments(&header, number);
    }
    #[cfg(feature = "flawed")]
    flawed(bytes);
}
