//! Recursions from the last token to the first as a segmented scan: a [`ScanKernel`] is the step of one slot.

use tokenwise::advantage::Across;

use crate::{
    column::Column,
    error::GpuError,
    kernel::{Access, Kernel, BLOCK, THREADS},
    pool::WORD,
    recording::{Record, Recording},
};

/// Words of a composed map.
const MAP_WORDS: u64 = 5;

/// A recursion: WGSL that defines `scan_step`, `scan_start`, `scan_write` and `scan_zero` and binds its columns from 4
/// on, the inputs before the outputs, those per token before those per sequence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScanKernel {
    pub(crate) label: &'static str,
    pub(crate) steps: &'static str,
    pub(crate) inputs: usize,
    /// How many of the inputs have one entry per sequence.
    pub(crate) per_sequence: usize,
    pub(crate) outputs: usize,
}

/// The factors of a recursion `A' = decay·A + gamma·V + constant`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Factors {
    pub(crate) gamma: f32,
    pub(crate) decay: f32,
    pub(crate) across: Across,
}

/// The passes of `shaders/prelude/scan.wgsl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    Fold,
    /// For the maps of the threads only.
    FoldAgain,
    Carry,
    Apply,
}

impl Pass {
    const fn index(self) -> usize {
        match self {
            Self::Fold | Self::FoldAgain => 0,
            Self::Carry => 1,
            Self::Apply => 2,
        }
    }
}

impl Recording<'_> {
    /// Runs a recursion over the slots that `slots` describes; lengths must have been checked.
    pub(crate) fn scan<const N: usize>(
        &mut self,
        kernel: &ScanKernel,
        slots: &Column,
        inputs: &[&Column],
        factors: Factors,
    ) -> Result<([Column; N], Record), GpuError> {
        debug_assert_eq!((inputs.len(), N), (kernel.inputs, kernel.outputs), "{}", kernel.label);
        let tokens = slots.len();
        let blocks = tokens.div_ceil(BLOCK);
        let record = self.record(0, 0)?;
        // whole blocks, so that every piece starts at an aligned offset
        let most = (self.gpu.max_buffer_bytes() / WORD / BLOCK).max(1);
        let maps = blocks + most.min(blocks) * u64::from(THREADS);
        let carries = self.scratch(maps.max(1) * MAP_WORDS)?;
        let mut outputs = Vec::with_capacity(N);
        for _ in 0..N {
            outputs.push(self.scratch(tokens)?);
        }
        let pipelines = self.pipelines(kernel.label, || kernel.describe())?;
        let (per_token, per_sequence) = inputs.split_at(kernel.inputs - kernel.per_sequence);
        let zero_step = u32::from(factors.across == Across::ZeroStep);
        let mut run = |pass: Pass, first: u64| -> Result<(), GpuError> {
            let count = if pass == Pass::Carry { blocks } else { most.min(blocks - first) };
            let len = (count * BLOCK).min(tokens - first * BLOCK);
            // reads only the carries: a part of the others, as long as they are, fits the binding
            let len_bound = if pass == Pass::Carry { len.min(BLOCK) } else { len };
            let part = |column: &Column| column.part(first * BLOCK, len_bound);
            let mut bound = vec![part(slots), record.column.clone(), carries.clone()];
            bound.extend(per_token.iter().copied().map(part));
            bound.extend(per_sequence.iter().copied().cloned());
            bound.extend(outputs.iter().map(part));
            // all are at most the number of words of a buffer, which fits into u32
            let params = [
                len as u32,
                count as u32,
                (blocks - first - count) as u32,
                blocks as u32,
                factors.gamma.to_bits(),
                factors.decay.to_bits(),
                zero_step,
                u32::from(pass == Pass::FoldAgain),
            ];
            let bound: Vec<&Column> = bound.iter().collect();
            self.dispatch(&pipelines, pass.index(), &params, &bound, if pass == Pass::Carry { 1 } else { count })
        };
        let pieces = || (0..blocks).step_by(most as usize);
        pieces().try_for_each(|first| run(Pass::Fold, first))?;
        if blocks > 0 {
            run(Pass::Carry, 0)?;
        }
        for first in pieces() {
            if blocks > most {
                run(Pass::FoldAgain, first)?;
            }
            run(Pass::Apply, first)?;
        }
        let outputs = outputs
            .try_into()
            .map_err(|_| GpuError::Unsupported("a kernel was called with another number of outputs"))?;
        Ok((outputs, record))
    }
}

impl ScanKernel {
    fn describe(&self) -> Kernel {
        let mut bindings = vec![Access::Read, Access::Write, Access::Write];
        bindings.extend((0..self.inputs).map(|_| Access::Read));
        bindings.extend((0..self.outputs).map(|_| Access::Write));
        let wgsl = [
            include_str!("../shaders/prelude/grid.wgsl"),
            include_str!("../shaders/prelude/slots.wgsl"),
            include_str!("../shaders/prelude/special.wgsl"),
            include_str!("../shaders/prelude/scan.wgsl"),
            self.steps,
        ];
        Kernel { label: self.label.into(), wgsl: wgsl.concat(), bindings, passes: &["fold", "carry", "apply"] }
    }
}
