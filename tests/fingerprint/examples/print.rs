//! Prints one line per formula and type: its name and its fingerprint.

use std::fmt::Write;

fn main() {
    let mut text = String::new();
    tokenwise_fingerprint::fingerprints(&mut |name, fingerprint| {
        // writing to a String cannot fail
        let _ = writeln!(text, "{name} {fingerprint:016x}");
    });
    print!("{text}");
}
