//! Sets `cfg(avx512)` on rustc 1.89 and later, the first release with stable AVX-512 intrinsics (the MSRV is 1.81).

use std::{env, process::Command};

fn main() {
    println!("cargo:rustc-check-cfg=cfg(avx512)");
    println!("cargo:rerun-if-changed=build.rs");
    if minor_version().is_some_and(|minor| minor >= 89) {
        println!("cargo:rustc-cfg=avx512");
    }
}

/// 95 of `rustc 1.95.0 (…)`.
fn minor_version() -> Option<u32> {
    let output = Command::new(env::var_os("RUSTC")?).arg("--version").output().ok()?;
    String::from_utf8(output.stdout).ok()?.split('.').nth(1)?.parse().ok()
}
