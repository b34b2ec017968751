//! Flash, stack and instructions of the formulas on emulated microcontrollers. QEMU counts instructions
//! deterministically.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{bail, Context, Result};

use super::{launch::Progress, records::Records};
use crate::{
    install::Need,
    machines::{build_cortex_m, qemu_arm},
    size::{flash_and_ram, sections},
    workspace::{stdout_of, Workspace},
};

pub(super) const TARGETS: [(&str, &str); 2] =
    [("Cortex-M4F", "thumbv7em-none-eabihf"), ("Cortex-M0", "thumbv6m-none-eabi")];
pub(super) const FORMULAS: [&str; 3] = ["gae", "whiten", "ppo"];
const PROGRAM: &str = "cost";
/// With `-icount shift=0` an instruction takes a nanosecond of the emulated clock; the timer of the board runs at 25
/// MHz.
const INSTRUCTIONS_PER_TICK: f64 = 40.0;

/// The cost of a program with one formula, or with none.
struct Cost {
    flash: u64,
    ram: u64,
    stack: u64,
    instructions: f64,
}

pub(super) fn measure(workspace: &Workspace, records: &mut Records, progress: &mut Progress) -> Result<()> {
    Need::Program("qemu-system-arm", "qemu-system-arm").ensure(workspace)?;
    for (machine, target) in TARGETS {
        Need::Target(target).ensure(workspace)?;
        progress.show(&format!("embedded: {machine}"));
        let without = cost(workspace, target, "")?;
        for formula in FORMULAS {
            progress.show(&format!("embedded: {machine}, {formula}"));
            let with = cost(workspace, target, formula)?;
            let record = serde_json::json!({
                "item": formula,
                "machine": machine,
                "flash": with.flash.saturating_sub(without.flash),
                "static": with.ram.saturating_sub(without.ram),
                "stack": with.stack.saturating_sub(without.stack),
                "instructions": with.instructions - without.instructions,
            });
            records.add("embedded", record);
        }
    }
    Ok(())
}

fn cost(workspace: &Workspace, target: &str, formula: &str) -> Result<Cost> {
    let program = build_cortex_m(workspace, target, PROGRAM, formula)?;
    let bytes = fs::read(&program).with_context(|| program.display().to_string())?;
    let (flash, ram) = flash_and_ram(&sections(&bytes)?);
    let mut qemu = qemu_arm(program.clone());
    let printed = stdout_of(qemu.args(["-icount", "shift=0"]))?;
    let numbers: Vec<f64> = printed.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    let [tokens, ticks] = numbers[..] else { bail!("{PROGRAM} printed {printed:?}") };
    Ok(Cost { flash, ram, stack: stack(&program)?, instructions: ticks * INSTRUCTIONS_PER_TICK / tokens })
}

/// Stack depth: the emulator logs the registers at every branch.
fn stack(program: &Path) -> Result<u64> {
    let mut qemu: Command = qemu_arm(program.to_path_buf());
    qemu.args(["-d", "cpu,nochain"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = qemu.spawn().context("qemu-system-arm")?;
    let log = child.stderr.take().context("no pipe")?;
    let (mut least, mut most) = (u64::MAX, 0);
    for line in BufReader::new(log).lines() {
        let line = line?;
        let Some(value) = line.split("R13=").nth(1).and_then(|rest| rest.get(..8)) else { continue };
        let pointer = u64::from_str_radix(value, 16)?;
        if pointer > 0 {
            (least, most) = (least.min(pointer), most.max(pointer));
        }
    }
    child.wait()?;
    if most == 0 {
        bail!("the emulator logged no registers");
    }
    Ok(most - least)
}
