//! The fingerprints as text in memory, behind two plain functions: what a WebAssembly host without any glue can read.

use std::{fmt::Write, sync::OnceLock};

static TEXT: OnceLock<String> = OnceLock::new();

fn text() -> &'static str {
    TEXT.get_or_init(|| {
        let mut text = String::new();
        tokenwise_fingerprint::fingerprints(&mut |name, fingerprint| {
            // writing to a String cannot fail
            let _ = writeln!(text, "{name} {fingerprint:016x}");
        });
        text
    })
}

/// Where the text begins.
#[no_mangle]
pub extern "C" fn text_start() -> *const u8 {
    text().as_ptr()
}

/// Its length in bytes.
#[no_mangle]
pub extern "C" fn text_len() -> usize {
    text().len()
}
