//! Names two cases: `avx512` where the compiler can write it, since 1.89, later than the oldest compiler that this crate is for;
//! `compact` where the module has to be small, so that what exists once is called rather than inlined.

use std::{env, process::Command};

fn main() {
    println!("cargo:rustc-check-cfg=cfg(avx512)");
    println!("cargo:rustc-check-cfg=cfg(compact)");
    println!("cargo:rerun-if-changed=build.rs");
    if env::var_os("CARGO_FEATURE_SMALL").is_some()
        && env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "wasm32")
    {
        println!("cargo:rustc-cfg=compact");
    }
    if minor_version().is_some_and(|minor| minor >= 89) {
        println!("cargo:rustc-cfg=avx512");
    }
}

/// 95 of `rustc 1.95.0 (…)`.
fn minor_version() -> Option<u32> {
    let output = Command::new(env::var_os("RUSTC")?).arg("--version").output().ok()?;
    String::from_utf8(output.stdout).ok()?.split('.').nth(1)?.parse().ok()
}
