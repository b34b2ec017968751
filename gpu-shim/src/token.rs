//! Formulas of one token, as shaders: a [`TokenKernel`] is a WGSL function and the names of its columns.
//!
//! The template around the function loads the columns of each kept token by their bits, so that the formula sees finite
//! numbers only; writes the outputs, 0 for dropped slots; and sums the terms in a fixed order. Batches beyond the size
//! of a binding are dispatched in pieces.

use std::fmt::Write;

use crate::{
    batch::Segmented,
    column::Column,
    error::GpuError,
    kernel::{Access, Kernel, BLOCK},
    pool::WORD,
    recording::{Record, Recording, RECORD_FLAGS},
};

/// What the entries of an input belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Per {
    /// One per token slot; a field of `Inputs`.
    Token,
    /// One per sequence; a field of `Inputs`.
    Sequence,
    /// Any number; the formula reads the array of `u32` by its name.
    Whole,
}

/// An input of a formula.
#[derive(Clone, Copy, Debug)]
pub(crate) struct In {
    pub(crate) name: &'static str,
    pub(crate) per: Per,
    /// The number in place of an input that a call omits; must have a decimal point.
    pub(crate) default: &'static str,
}

pub(crate) const fn token(name: &'static str) -> In {
    In { name, per: Per::Token, default: "0.0" }
}

/// A token's number, 1 if the call omits it.
pub(crate) const fn weight(name: &'static str) -> In {
    In { name, per: Per::Token, default: "1.0" }
}

/// A sequence's number, 1 if the call omits it.
pub(crate) const fn sequence(name: &'static str) -> In {
    In { name, per: Per::Sequence, default: "1.0" }
}

/// An array of words that the formula indexes itself, such as the record of an earlier kernel.
pub(crate) const fn whole(name: &'static str) -> In {
    In { name, per: Per::Whole, default: "0.0" }
}

/// A term that is summed over the kept tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Term {
    /// NaN where an input of the token is NaN.
    Number(&'static str),
    /// 0 where an input of the token is NaN: comparisons with NaN are false.
    Count(&'static str),
}

impl Term {
    const fn name(self) -> &'static str {
        match self {
            Self::Number(name) | Self::Count(name) => name,
        }
    }
}

/// A config field of the shader.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Setting {
    F32(&'static str),
    U32(&'static str),
}

/// The bits of a config number. Infinities, which mean "no bound", become the largest finite number.
pub(crate) fn bits(number: f64) -> u32 {
    (number as f32).clamp(f32::MIN, f32::MAX).to_bits()
}

/// A formula of one token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenKernel {
    /// Stage and formula; unique.
    pub(crate) label: &'static str,
    /// WGSL that defines `fn formula(token: Inputs) -> Outputs`. `Inputs` has the inputs per token and sequence, then
    /// `last: bool` for the last kept token of its sequence, and `at: u32` and `sequence: u32`, the slot and the sequence,
    /// which index whole arrays; `Outputs` has the outputs, then the terms, all `f32`. It may read `params.<setting>` and
    /// use everything in `shaders/prelude`.
    pub(crate) formula: &'static str,
    pub(crate) inputs: &'static [In],
    pub(crate) outputs: &'static [&'static str],
    /// At most ten.
    pub(crate) terms: &'static [Term],
    pub(crate) settings: &'static [Setting],
    /// Whether only the last kept token of each sequence is computed; the others get 0.
    pub(crate) last_only: bool,
}

/// A formula of all kept tokens.
pub(crate) const fn kernel(
    label: &'static str,
    formula: &'static str,
    inputs: &'static [In],
    outputs: &'static [&'static str],
    terms: &'static [Term],
    settings: &'static [Setting],
) -> TokenKernel {
    TokenKernel { label, formula, inputs, outputs, terms, settings, last_only: false }
}

impl TokenKernel {
    /// The name of the variant with these inputs.
    fn variant(&self, given: &[Option<&Column>]) -> String {
        let mut label = self.label.to_string();
        for (input, given) in self.inputs.iter().zip(given) {
            if given.is_none() {
                label.push_str(" without ");
                label.push_str(input.name);
            }
        }
        label
    }

    fn describe(&self, label: &str, given: &[Option<&Column>]) -> Kernel {
        let bound = || self.inputs.iter().zip(given).filter(|(_, given)| given.is_some()).map(|(input, _)| input);
        let mut bindings = vec![Access::Read, Access::Write];
        bindings.extend(bound().map(|_| Access::Read));
        bindings.extend(self.outputs.iter().map(|_| Access::Write));
        let passes: &[_] = if self.terms.is_empty() { &["tokens"] } else { &["tokens", "finish"] };
        Kernel { label: label.into(), wgsl: self.wgsl(given), bindings, passes }
    }

    fn wgsl(&self, given: &[Option<&Column>]) -> String {
        let mut wgsl = String::from(concat!(
            include_str!("../shaders/prelude/grid.wgsl"),
            include_str!("../shaders/prelude/slots.wgsl"),
            include_str!("../shaders/prelude/special.wgsl"),
            include_str!("../shaders/prelude/math.wgsl"),
            include_str!("../shaders/prelude/sum.wgsl"),
        ));
        self.write(given, &mut wgsl).unwrap_or_default();
        wgsl
    }

    fn write(&self, given: &[Option<&Column>], wgsl: &mut String) -> std::fmt::Result {
        let inputs = || self.inputs.iter().zip(given).map(|(input, given)| (input, given.is_some()));
        let fields = || inputs().filter(|(input, _)| input.per != Per::Whole);
        writeln!(
            wgsl,
            "struct Params {{\n    tokens: u32,\n    blocks: u32,\n    first_block: u32,\n    all_blocks: u32,"
        )?;
        for setting in self.settings {
            match setting {
                Setting::F32(name) => writeln!(wgsl, "    {name}: f32,")?,
                Setting::U32(name) => writeln!(wgsl, "    {name}: u32,")?,
            }
        }
        writeln!(wgsl, "}}\nstruct Inputs {{")?;
        for (input, _) in fields() {
            writeln!(wgsl, "    {}: f32,", input.name)?;
        }
        writeln!(wgsl, "    last: bool,\n    at: u32,\n    sequence: u32,\n}}\nstruct Outputs {{")?;
        for name in self.outputs.iter().copied().chain(self.terms.iter().map(|term| term.name())) {
            writeln!(wgsl, "    {name}: f32,")?;
        }
        writeln!(wgsl, "}}\n@group(0) @binding(0) var<uniform> params: Params;")?;
        writeln!(wgsl, "@group(0) @binding(1) var<storage, read> slots: array<u32>;")?;
        writeln!(wgsl, "@group(0) @binding(2) var<storage, read_write> record: array<atomic<u32>>;")?;
        let names = inputs().filter(|(_, given)| *given).map(|(input, _)| input.name);
        let mut binding = 3;
        for name in names {
            writeln!(wgsl, "@group(0) @binding({binding}) var<storage, read> {name}: array<u32>;")?;
            binding += 1;
        }
        for name in self.outputs {
            writeln!(wgsl, "@group(0) @binding({binding}) var<storage, read_write> {name}: array<u32>;")?;
            binding += 1;
        }
        writeln!(wgsl, "const TERMS: u32 = {}u;", self.terms.len())?;
        writeln!(wgsl, "{}", self.formula)?;
        wgsl.push_str(
            "@compute @workgroup_size(THREADS)
fn tokens(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    if (flat_group(group, groups) >= params.blocks) { return; }
    let block = flat_group(group, groups);
    var flags = 0u;
    var term_bits = 0u;
",
        );
        for term in 0..self.terms.len() {
            writeln!(wgsl, "    var sum_{term} = Pair(0.0, 0.0);")?;
        }
        wgsl.push_str(
            "    for (var item = 0u; item < ITEMS; item++) {
        let at = item_slot(block, item, thread);
        if (at >= params.tokens) { continue; }
        let word = slots[at];
        let kind = word & 3u;
        let sequence = word >> 2u;
",
        );
        let computed = if self.last_only { "kind == SLOT_LAST_KEPT" } else { "kind >= SLOT_KEPT" };
        writeln!(wgsl, "        if ({computed}) {{\n            var special = false;\n            var nan = false;")?;
        for (input, given) in fields() {
            let name = input.name;
            if given {
                let index = if input.per == Per::Token { "at" } else { "sequence" };
                writeln!(wgsl, "            let bits_{name} = {name}[{index}];")?;
                writeln!(wgsl, "            special = special || is_special_bits(bits_{name});")?;
                writeln!(wgsl, "            nan = nan || is_nan_bits(bits_{name});")?;
            }
        }
        wgsl.push_str(
            "            out_of_range = false;\n            poisoned = false;\n            let results = formula(Inputs(",
        );
        for (input, given) in fields() {
            match given {
                true => write!(wgsl, "finite(bits_{}), ", input.name)?,
                false => write!(wgsl, "{}, ", input.default)?,
            }
        }
        wgsl.push_str(
            "kind == SLOT_LAST_KEPT, params.first_block * ITEMS * THREADS + at, sequence));
            nan = nan || poisoned;
            if (special) { flags |= FLAG_SPECIAL; }
            if (out_of_range) { flags |= FLAG_RANGE; }
",
        );
        for name in self.outputs {
            writeln!(wgsl, "            let out_{name} = bitcast<u32>(results.{name});")?;
            writeln!(wgsl, "            if (is_special_bits(out_{name})) {{ flags |= FLAG_RANGE; }}")?;
            writeln!(wgsl, "            {name}[at] = select(out_{name}, NAN_BITS, nan);")?;
        }
        for (index, term) in self.terms.iter().enumerate() {
            let name = term.name();
            let flags = match term {
                Term::Number(_) => format!("select(term_flags(term_{name}), FLAG_NAN, nan)"),
                Term::Count(_) => format!("term_flags(term_{name})"),
            };
            let skip = if matches!(term, Term::Count(_)) { " && !nan" } else { "" };
            writeln!(wgsl, "            let term_{name} = bitcast<u32>(results.{name});")?;
            writeln!(wgsl, "            let flags_{name} = {flags};")?;
            writeln!(wgsl, "            term_bits |= flags_{name} << {}u;", 3 * index)?;
            writeln!(wgsl, "            if (flags_{name} != 0u) {{ flags |= FLAG_RANGE; }}")?;
            writeln!(wgsl, "            if (flags_{name} == 0u{skip}) {{")?;
            writeln!(wgsl, "                sum_{index} = pair_plus(sum_{index}, results.{name});\n            }}")?;
        }
        wgsl.push_str("        } else {\n");
        for name in self.outputs {
            writeln!(wgsl, "            {name}[at] = 0u;")?;
        }
        wgsl.push_str(
            "        }
    }
    if (flags != 0u) { atomicOr(&record[0], flags); }
    if (term_bits != 0u) { atomicOr(&record[1], term_bits); }
",
        );
        if !self.terms.is_empty() {
            for term in 0..self.terms.len() {
                writeln!(wgsl, "    shared_pairs[{term}u * THREADS + thread] = sum_{term};")?;
            }
            wgsl.push_str("    store_totals(thread, params.first_block + block + 1u);\n");
        }
        wgsl.push_str("}\n");
        if !self.terms.is_empty() {
            wgsl.push_str(include_str!("../shaders/prelude/totals.wgsl"));
        }
        Ok(())
    }
}

impl Recording<'_> {
    /// Runs a formula over the tokens of a batch, or over the sequences of groups. `given` are the inputs in the order of the kernel, `settings` the
    /// words of its settings; lengths and config must have been checked.
    pub(crate) fn tokens<const N: usize>(
        &mut self,
        kernel: &TokenKernel,
        over: &dyn Segmented,
        given: &[Option<&Column>],
        settings: &[u32],
    ) -> Result<([Column; N], Record), GpuError> {
        debug_assert_eq!((given.len(), N), (kernel.inputs.len(), kernel.outputs.len()), "{}", kernel.label);
        debug_assert_eq!(settings.len(), kernel.settings.len(), "settings of {}", kernel.label);
        for (input, column) in kernel.inputs.iter().zip(given) {
            let expected = match input.per {
                Per::Token => over.entries(),
                Per::Sequence => over.segments(),
                Per::Whole => continue,
            };
            let fits = column.is_none_or(|column| column.len() == expected as u64);
            debug_assert!(fits, "{} of {} does not fit", input.name, kernel.label);
        }
        let tokens = over.entries() as u64;
        let slots = over.slots(self)?;
        let blocks = tokens.div_ceil(BLOCK);
        let terms = kernel.terms.len() as u64;
        let record = self.record(terms, 2 * terms * blocks)?;
        let mut outputs = Vec::with_capacity(N);
        for _ in 0..N {
            outputs.push(self.scratch(tokens)?);
        }
        let label = kernel.variant(given);
        let pipelines = self.pipelines(&label, || kernel.describe(&label, given))?;
        // whole blocks, so that every piece starts at an aligned offset
        let piece = (self.gpu.max_buffer_bytes() / WORD / BLOCK).max(1) * BLOCK;
        let mut first = 0;
        while first < tokens {
            let len = piece.min(tokens - first);
            let of = |column: &Column| column.part(first, len);
            let mut bound = vec![of(&slots), record.column.clone()];
            for (input, column) in kernel.inputs.iter().zip(given) {
                bound.extend(column.map(|column| if input.per == Per::Token { of(column) } else { column.clone() }));
            }
            bound.extend(outputs.iter().map(of));
            let bound: Vec<&Column> = bound.iter().collect();
            // all are at most the number of words of a buffer, which fits into u32
            let mut params = vec![len as u32, len.div_ceil(BLOCK) as u32, (first / BLOCK) as u32, blocks as u32];
            params.extend(settings);
            self.dispatch(&pipelines, 0, &params, &bound, len.div_ceil(BLOCK))?;
            first += len;
            if first == tokens && terms > 0 {
                self.dispatch(&pipelines, 1, &params, &bound, 1)?;
            }
        }
        let outputs = outputs
            .try_into()
            .map_err(|_| GpuError::Unsupported("a kernel was called with another number of outputs"))?;
        Ok((outputs, record))
    }
}

/// Words of the flags before the sums, for kernels that read a record.
const _: () = assert!(RECORD_FLAGS == 2);
