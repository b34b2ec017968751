//! The machines of `cargo xtask bits`: each is a target, compiler flags and a profile, run natively, under Node or in
//! QEMU. The program run there prints one fingerprint per formula.

use std::{env, path::PathBuf, process::Command};

use anyhow::Result;

use crate::{
    fingerprints::{parse, Fingerprints},
    install::Need,
    wasm::Simd,
    workspace::{stdout_of, Workspace},
};

const QEMU_ARM: Need = Need::Program("qemu-system-arm", "qemu-system-arm");
const COMPILED_AVX2: &str = "-C target-feature=+avx2,+fma,+bmi1,+bmi2";
pub(crate) const AARCH64: &str = "aarch64-unknown-linux-musl";

/// One way to compile and run the formulas.
pub(crate) struct Machine {
    pub(crate) name: String,
    pub(crate) needs: Vec<Need>,
    run: Box<Run>,
}

/// Builds, runs, and returns what was printed.
type Run = dyn Fn(&Workspace) -> Result<String>;

impl Machine {
    pub(crate) fn fingerprints(&self, workspace: &Workspace) -> Result<Fingerprints> {
        parse(&(self.run)(workspace)?)
    }

    fn new(name: &str, needs: &[Need], run: impl Fn(&Workspace) -> Result<String> + 'static) -> Self {
        Self { name: name.into(), needs: needs.into(), run: Box::new(run) }
    }
}

/// All machines; the first is the one the record is written from.
pub(crate) fn machines() -> Vec<Machine> {
    let mut machines = native();
    for (name, simd, folder) in [("wasm32", Simd::Plain, "bits"), ("wasm32 simd128", Simd::Simd128, "bits-simd128")] {
        let needs = [Need::Target("wasm32-unknown-unknown"), Need::Program("node", "nodejs")];
        machines.push(Machine::new(name, &needs, move |workspace| wasm(workspace, simd.flags(), folder)));
    }
    for (name, target) in [("Cortex-M4F", "thumbv7em-none-eabihf"), ("Cortex-M0 soft-float", "thumbv6m-none-eabi")] {
        machines.push(Machine::new(name, &[Need::Target(target), QEMU_ARM], move |workspace| {
            let program = build_cortex_m(workspace, target, "fingerprints", "fingerprints")?;
            stdout_of(&mut qemu_arm(program))
        }));
    }
    if env::consts::ARCH != "aarch64" {
        let needs = [Need::Target(AARCH64), Need::Program("qemu-aarch64", "qemu-user")];
        machines.push(Machine::new("AArch64", &needs, aarch64));
    }
    machines
}

/// Builds that run natively: on x86-64 the baseline, AVX2 found at run time, and AVX2 with FMA allowed everywhere.
fn native() -> Vec<Machine> {
    let profiles = [("debug", ""), ("release", "--release")];
    if env::consts::ARCH != "x86_64" {
        let each = profiles.map(|(profile, flag)| {
            let name = format!("{} {profile}", env::consts::ARCH);
            Machine::new(&name, &[], move |workspace| host(workspace, &[flag], "", "bits"))
        });
        return each.into_iter().rev().collect();
    }
    let mut machines = Vec::new();
    for (profile, flag) in profiles.into_iter().rev() {
        let baseline = move |workspace: &Workspace| host(workspace, &[flag], "", "bits");
        machines.push(Machine::new(&format!("x86-64 baseline {profile}"), &[], baseline));
        if has_avx2() {
            let dispatch = move |workspace: &Workspace| host(workspace, &[flag, "--features=std"], "", "bits");
            let best = if has_avx512() { "avx512" } else { "avx2" };
            machines.push(Machine::new(&format!("x86-64 run-time {best} {profile}"), &[], dispatch));
            let compiled = move |workspace: &Workspace| host(workspace, &[flag], COMPILED_AVX2, "bits-avx2");
            machines.push(Machine::new(&format!("x86-64 compiled avx2 {profile}"), &[], compiled));
        }
    }
    if has_avx512() {
        // this processor would choose AVX-512, so one without it is emulated
        let needs = [Need::Program("qemu-x86_64", "qemu-user")];
        machines.push(Machine::new("x86-64 run-time avx2 release, emulated", &needs, |workspace| {
            let mut qemu = Command::new("qemu-x86_64");
            qemu.args(["-cpu", "Haswell"]).arg(host_program(workspace, &["--release", "--features=std"], "", "bits")?);
            stdout_of(&mut qemu)
        }));
    }
    machines
}

/// Programs that print the fingerprints of a variation, optimised: the baseline first, then what this processor adds.
pub(crate) fn native_programs(workspace: &Workspace) -> Result<Vec<(&'static str, PathBuf)>> {
    let mut programs = vec![("baseline", host_program(workspace, &["--release"], "", "bits")?)];
    if has_avx2() {
        let best = if has_avx512() { "run-time avx512" } else { "run-time avx2" };
        // the two have the same path, but for their folder
        programs.push((best, host_program(workspace, &["--release", "--features=std"], "", "bits-std")?));
        programs.push(("compiled avx2", host_program(workspace, &["--release"], COMPILED_AVX2, "bits-avx2")?));
    }
    Ok(programs)
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    // every processor with AVX2 has the other two, but a virtual machine may hide them
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("bmi2")
}

#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    // the features the library checks for
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
}

#[cfg(not(target_arch = "x86_64"))]
const fn has_avx2() -> bool {
    false
}

#[cfg(not(target_arch = "x86_64"))]
const fn has_avx512() -> bool {
    false
}

/// Builds an example of the fingerprint package and returns its folder.
fn build(mut cargo: Command, target: &str, example: &str, arguments: &[&str]) -> Result<PathBuf> {
    cargo.args(["build", "--quiet", "--package", "tokenwise-fingerprint", "--example", example, "--target", target]);
    cargo.args(arguments.iter().filter(|argument| !argument.is_empty()));
    let folder = cargo.get_envs().find(|(name, _)| *name == "CARGO_TARGET_DIR").and_then(|(_, value)| value);
    let folder = PathBuf::from(folder.unwrap_or_default());
    stdout_of(&mut cargo)?;
    let profile = if arguments.contains(&"--release") { "release" } else { "debug" };
    Ok(folder.join(target).join(profile).join("examples"))
}

fn host(workspace: &Workspace, arguments: &[&str], flags: &str, folder: &str) -> Result<String> {
    stdout_of(&mut Command::new(host_program(workspace, arguments, flags, folder)?))
}

fn host_program(workspace: &Workspace, arguments: &[&str], flags: &str, folder: &str) -> Result<PathBuf> {
    let cargo = workspace.cargo_with_flags(flags, folder);
    Ok(build(cargo, &workspace.host, "print", arguments)?.join(format!("print{}", env::consts::EXE_SUFFIX)))
}

fn wasm(workspace: &Workspace, flags: &str, folder: &str) -> Result<String> {
    let cargo = workspace.cargo_with_flags(flags, folder);
    let module = build(cargo, "wasm32-unknown-unknown", "exports", &["--release"])?.join("exports.wasm");
    stdout_of(workspace.command("node").arg("tests/fingerprint/print.mjs").arg(module))
}

fn aarch64(workspace: &Workspace) -> Result<String> {
    let mut cargo = workspace.cargo_with_flags("", "bits");
    // the linker of the Rust toolchain, so that no C cross-compiler is needed
    cargo.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER", "rust-lld");
    let program = build(cargo, AARCH64, "print", &["--release"])?.join("print");
    stdout_of(Command::new("qemu-aarch64").arg(program))
}

/// Builds a binary of `examples/cortex-m` as its profile says: for size.
pub(crate) fn build_cortex_m(workspace: &Workspace, target: &str, program: &str, features: &str) -> Result<PathBuf> {
    let mut cargo = workspace.cargo_with_flags("", "cortex-m");
    // in its own folder, for its lock file and profile
    cargo.current_dir(workspace.root.join("examples/cortex-m"));
    cargo.args(["build", "--quiet", "--locked", "--release", "--target", target, "--bin", program]);
    cargo.args(["--features", features]);
    stdout_of(&mut cargo)?;
    Ok(workspace.target.join("xtask/cortex-m").join(target).join("release").join(program))
}

/// Runs a bare-metal program on an emulated board; its output and exit code reach the host by semihosting.
pub(crate) fn qemu_arm(program: PathBuf) -> Command {
    let mut qemu = Command::new("qemu-system-arm");
    qemu.args(["-machine", "mps2-an386", "-cpu", "cortex-m4", "-nographic", "-monitor", "none", "-serial", "none"]);
    qemu.args(["-semihosting-config", "enable=on,target=native", "-kernel"]).arg(program);
    qemu
}
