//! Prints the fingerprints of all formulas, for comparison with other machines.
#![no_std]
#![no_main]

use core::panic::PanicInfo;

use cortex_m_rt::entry;
use semihosting::{println, process};

#[entry]
fn main() -> ! {
    tokenwise_fingerprint::fingerprints(&mut |name, fingerprint| println!("{name} {fingerprint:016x}"));
    process::exit(0)
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    println!("{info}");
    process::exit(1)
}
