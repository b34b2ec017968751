//! Prints the fingerprints of all formulas, for comparison with other machines.
//!
//! The formulas are called by name, with columns that the catalogue allocates; `training_step` shows that the formulas
//! themselves need no allocator.
#![no_std]
#![no_main]

use core::{mem::MaybeUninit, panic::PanicInfo, ptr::addr_of_mut};

use cortex_m as _; // the critical section of the allocator
use cortex_m_rt::entry;
use embedded_alloc::LlffHeap;
use semihosting::{println, process};

#[global_allocator]
static HEAP: LlffHeap = LlffHeap::empty();

const HEAP_SIZE: usize = 8 << 20;

#[link_section = ".heap"]
static mut MEMORY: [MaybeUninit<u8>; HEAP_SIZE] = [MaybeUninit::uninit(); HEAP_SIZE];

#[entry]
fn main() -> ! {
    // SAFETY: called once, before the first allocation; nothing else refers to MEMORY
    unsafe { HEAP.init(addr_of_mut!(MEMORY) as usize, HEAP_SIZE) };
    tokenwise_fingerprint::fingerprints(&mut |name, fingerprint| println!("{name} {fingerprint:016x}"));
    process::exit(0)
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    println!("{info}");
    process::exit(1)
}
