//! Prints one line per formula and type: its name and its fingerprint. With a number, of other inputs than the record's.

use std::{env, fmt::Write};

fn main() {
    if let Some(variation) = env::args().nth(1) {
        let Ok(variation) = variation.parse() else {
            eprintln!("{variation} is not a number from 0 to {}", u32::MAX);
            std::process::exit(2);
        };
        tokenwise_fingerprint::vary(variation);
    }
    let mut text = String::new();
    tokenwise_fingerprint::fingerprints(&mut |name, fingerprint| {
        // writing to a String cannot fail
        let _ = writeln!(text, "{name} {fingerprint:016x}");
    });
    print!("{text}");
}
