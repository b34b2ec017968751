//! `cargo xtask size`: flash and RAM of a training step on a microcontroller.

use std::fs;

use anyhow::{bail, Context, Result};
use object::{elf::SHF_ALLOC, Object, ObjectSection, SectionFlags, SectionKind};

use crate::{
    install::Need,
    machines::{build_cortex_m, qemu_arm},
    tiers::in_ci,
    workspace::{run, Workspace},
};

const PROGRAM: &str = "training_step";
const FLASH_LIMIT: u64 = 32 * 1024;

/// Measure a training step on microcontrollers
///
/// Builds training_step of examples/cortex-m (advantages, whitening, loss and gradient), optimised for size, for
/// Cortex-M4F and Cortex-M0. Prints its flash and RAM, fails above 32 KiB of flash, and runs it in QEMU.
#[derive(clap::Args)]
pub(crate) struct Options {}

pub(crate) fn size(workspace: &Workspace, _: &Options) -> Result<()> {
    let mut too_large = Vec::new();
    for target in ["thumbv7em-none-eabihf", "thumbv6m-none-eabi"] {
        Need::Target(target).ensure(workspace)?;
        eprintln!("{target} …");
        let program = build_cortex_m(workspace, target, PROGRAM, "")?;
        let bytes = fs::read(&program).with_context(|| program.display().to_string())?;
        let sections = sections(&bytes)?;
        let (flash, ram) = flash_and_ram(&sections);
        println!("{target}: {flash} bytes of flash (limit {FLASH_LIMIT}), {ram} bytes of RAM besides the stack");
        for section in &sections {
            println!("    {:14} {:6}", section.name, section.size);
        }
        if flash > FLASH_LIMIT {
            too_large.push(target);
        }
        match Need::Program("qemu-system-arm", "qemu-system-arm").ensure(workspace) {
            Ok(()) => {
                run(&mut qemu_arm(program))?;
                println!("    runs in QEMU");
            }
            Err(reason) if in_ci() => return Err(reason),
            Err(reason) => println!("    not run: {reason:#}"),
        }
    }
    if !too_large.is_empty() {
        bail!("more than {FLASH_LIMIT} bytes of flash on {}", too_large.join(" and "));
    }
    Ok(())
}

/// Bytes of flash and of RAM.
pub(crate) fn flash_and_ram(sections: &[Section]) -> (u64, u64) {
    let sum = |kind: fn(&Section) -> bool| -> u64 {
        sections.iter().filter(|section| kind(section)).fold(0, |sum, section| sum + section.size)
    };
    (sum(|section| section.in_flash), sum(|section| section.in_ram))
}

pub(crate) struct Section {
    name: String,
    size: u64,
    in_flash: bool,
    in_ram: bool,
}

/// The sections that take memory. Initialised data takes flash and RAM: it is copied at start.
pub(crate) fn sections(bytes: &[u8]) -> Result<Vec<Section>> {
    let file = object::File::parse(bytes)?;
    let mut found = Vec::new();
    for section in file.sections() {
        let SectionFlags::Elf { sh_flags } = section.flags() else { bail!("not an ELF file") };
        if sh_flags & u64::from(SHF_ALLOC) == 0 || section.size() == 0 {
            continue;
        }
        let in_flash = section.kind() != SectionKind::UninitializedData;
        let in_ram = matches!(section.kind(), SectionKind::UninitializedData | SectionKind::Data);
        found.push(Section { name: section.name()?.into(), size: section.size(), in_flash, in_ram });
    }
    Ok(found)
}
