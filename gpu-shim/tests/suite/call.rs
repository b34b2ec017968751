//! Every covered formula by its name, against the core in `f64`.

use tokenwise::{Batch, Groups, Layout, Mask};
use tokenwise_catalogue::{entries, find, Array, Call, Columns, Element, Entry, Kind, Refusal, Value};
use tokenwise_gpu::{
    coverage,
    tolerance::{self, Tolerance},
    Gpu, GpuError, Ran, Reason, Report,
};
use tokenwise_gpu_golden::random::{inputs, Random};

use crate::{adapter::gpu, configs};

/// A mask with holes, in one of the two layouts.
pub(crate) struct Tokens {
    pub(crate) offsets: Vec<u32>,
    pub(crate) width: Option<usize>,
    pub(crate) keep: Vec<bool>,
    pub(crate) groups: Vec<u32>,
}

impl Tokens {
    pub(crate) fn packed(random: &mut Random, lengths: &[usize]) -> Self {
        let mut offsets = vec![0];
        for len in lengths {
            offsets.push(offsets.last().unwrap() + *len as u32);
        }
        let keep = random.mask(*offsets.last().unwrap() as usize, 70);
        let groups = (0..lengths.len() as u32).map(|sequence| sequence / 2).collect();
        Self { offsets, width: None, keep, groups }
    }

    fn padded(random: &mut Random, rows: usize, width: usize) -> Self {
        Self { width: Some(width), ..Self::packed(random, &vec![width; rows]) }
    }

    pub(crate) fn batch(&self) -> Batch<'_> {
        let layout = match self.width {
            Some(width) => Layout::padded(self.offsets.len() - 1, width),
            None => Layout::packed(&self.offsets),
        };
        Batch::new(layout.unwrap(), Mask::new(&self.keep)).unwrap()
    }

    pub(crate) fn groups(&self) -> Groups<'_> {
        Groups::from_ids(&self.groups).unwrap()
    }

    pub(crate) fn inputs(&self, random: &mut Random, entry: &Entry) -> Columns<f32> {
        inputs(random, entry, &self.batch(), &self.groups()).unwrap()
    }
}

pub(crate) fn wide(columns: &Columns<f32>) -> Columns<f64> {
    tokenwise_gpu_golden::wide(columns).unwrap()
}

fn wide_array(array: &Array<f64>) -> Array<f32> {
    match array {
        Array::Flag(flags) => flags.clone().into(),
        other => panic!("{other:?}"),
    }
}

pub(crate) type Found<R> = (Columns<R>, Vec<(String, f64)>);

pub(crate) fn on_gpu(
    gpu: &Gpu,
    entry: &Entry,
    tokens: &Tokens,
    inputs: &Columns<f32>,
    config: &Value,
) -> Result<(Found<f32>, Report), GpuError> {
    let (batch, groups) = (tokens.batch(), tokens.groups());
    let mut outputs = entry.outputs_for(Some(&batch), Some(&groups), inputs);
    let mut call = Call::new(Some(batch), Some(groups), inputs, config, &mut outputs);
    let report = pollster::block_on(gpu.call(entry, &mut call))?;
    let numbers = call.numbers.iter().map(|(name, number)| (name.to_string(), *number)).collect();
    Ok(((outputs, numbers), report))
}

pub(crate) fn on_core<R: tokenwise_catalogue::Number>(
    entry: &Entry,
    tokens: &Tokens,
    inputs: &Columns<R>,
    config: &Value,
) -> Result<Found<R>, Refusal> {
    let (batch, groups) = (tokens.batch(), tokens.groups());
    let mut outputs = entry.outputs_for(Some(&batch), Some(&groups), inputs);
    let mut call = Call::new(Some(batch), Some(groups), inputs, config, &mut outputs);
    entry.call(&mut call)?;
    let numbers = call.numbers.iter().map(|(name, number)| (name.to_string(), *number)).collect();
    Ok((outputs, numbers))
}

/// The sum of the magnitudes of all kept inputs, which bounds those of any recursion over them.
pub(crate) fn magnitude(tokens: &Tokens, inputs: &Columns<f32>) -> f64 {
    let mut sum = 0.0;
    for (_, array) in inputs.iter() {
        if let Array::Real(numbers) = array {
            let kept = |slot: usize| numbers.len() != tokens.keep.len() || tokens.keep[slot];
            for (_, x) in numbers.iter().enumerate().filter(|(slot, _)| kept(*slot)) {
                sum += f64::from(x.abs());
            }
        }
    }
    sum
}

/// The magnitudes of each token's inputs, aggregated as the config of a loss says.
fn loss_scale(tokens: &Tokens, inputs: &Columns<f32>, config: &str) -> f64 {
    let config: serde_json::Value = serde_json::from_str(config).unwrap();
    let aggregate = config.get("aggregate").unwrap_or(&serde_json::json!({})).to_string();
    let mut losses = vec![0.0; tokens.keep.len()];
    for (_, array) in inputs.iter() {
        match array {
            Array::Real(numbers) if numbers.len() == losses.len() => {
                losses.iter_mut().zip(numbers).for_each(|(loss, x)| *loss += f64::from(x.abs()));
            }
            _ => {}
        }
    }
    let mut columns = Columns::<f64>::new().with("losses", Array::Real(losses));
    if let Some(Array::Count(counts)) = inputs.get("group_tokens") {
        columns.set("group_tokens", counts.clone());
    }
    let aggregate = serde_json::from_str(&aggregate).unwrap();
    let (_, numbers) = on_core(find("aggregate").unwrap(), tokens, &columns, &aggregate).unwrap();
    numbers[0].1
}

#[track_caller]
pub(crate) fn near(case: &str, tolerance: Tolerance, scale: f64, got: f64, exact: f64) {
    let allowed = tolerance.at(scale.max(exact.abs()));
    assert!(is_near(tolerance, scale, got, exact), "{case}: got {got}, exact {exact}, allowed {allowed}");
}

pub(crate) fn is_near(tolerance: Tolerance, scale: f64, got: f64, exact: f64) -> bool {
    let same = got == exact || (got.is_nan() && exact.is_nan());
    same || (got - exact).abs() <= tolerance.at(scale.max(exact.abs()))
}

/// Columns that a formula checks but does not read.
const UNREAD: &[(&str, &str)] = &[("gvpo", "weights")];

/// The inputs with every choice of a formula that has some beside its config.
fn choices(entry: &Entry, inputs: &Columns<f32>) -> Vec<Columns<f32>> {
    let Some(text) = entry.inputs.iter().find(|column| column.element == Element::Text) else {
        return vec![inputs.clone()];
    };
    let names = ["structural", "kl-gated", "plain"];
    names.iter().map(|name| inputs.clone().with(text.name, Array::Text((*name).into()))).collect()
}

pub(crate) fn covered() -> impl Iterator<Item = &'static Entry> {
    coverage::table().filter(|(_, why)| why.is_none()).filter_map(|(name, _)| find(name))
}

#[test]
fn covered_formulas_agree_with_the_core() {
    let Some(gpu) = gpu() else { return };
    let mut random = Random::new(40);
    let batches = [
        Tokens::padded(&mut random, 6, 11),
        Tokens::packed(&mut random, &[1, 0, 30, 7, 0, 100, 2]),
        Tokens::packed(&mut random, &[2500, 3, 1900, 4000]),
    ];
    let mut answered = std::collections::BTreeSet::new();
    for entry in covered() {
        for tokens in &batches {
            let inputs = tokens.inputs(&mut random, entry);
            let tolerance = tolerance::of(entry.name);
            let recursion = tolerance == tolerance::GAE || tolerance == tolerance::SUM;
            let scale = if recursion { magnitude(tokens, &inputs) } else { 0.0 };
            let configs = configs::of(entry);
            for (inputs, text) in
                choices(entry, &inputs).iter().flat_map(|inputs| configs.iter().map(move |text| (inputs, text)))
            {
                let case = format!("{} {text}", entry.name);
                let config: &Value = &serde_json::from_str(text).unwrap();
                let (exact_outputs, exact_numbers) = match on_core(entry, tokens, &wide(inputs), config) {
                    Ok(exact) => exact,
                    Err(refusal) => {
                        let refused = on_gpu(gpu, entry, tokens, inputs, config).map(|(_, report)| report);
                        assert_eq!(refused, Err(refusal.into()), "{case}");
                        continue;
                    }
                };
                answered.insert(entry.name);
                let ((outputs, numbers), report) = on_gpu(gpu, entry, tokens, inputs, config).unwrap();
                assert_eq!(report.ran, Ran::Gpu, "{case}");
                assert!(report.dispatches > 0 && report.bytes_up > 0 && report.bytes_down > 0);
                for (name, exact) in exact_outputs.iter() {
                    if let Array::Flag(_) = exact {
                        let (got, exact) = (outputs.get(name), wide_array(exact));
                        assert!(got == Some(&exact), "{case}: {name} {got:?}, {exact:?}");
                        continue;
                    }
                    let (Array::Real(exact), Some(Array::Real(got))) = (exact, outputs.get(name)) else {
                        panic!("{case}: {name}")
                    };
                    for (slot, (&got, &exact)) in got.iter().zip(exact).enumerate() {
                        near(&format!("{case}: {name}[{slot}]"), tolerance, scale, got.into(), exact);
                    }
                }
                assert_eq!(numbers.len(), exact_numbers.len(), "{case}");
                for ((name, got), (exact_name, exact)) in numbers.iter().zip(&exact_numbers) {
                    assert_eq!(name, exact_name, "{case}");
                    let mut allowed = tolerance;
                    if entry.stage == "loss" {
                        allowed.absolute += tolerance::SHARED * loss_scale(tokens, inputs, text);
                    }
                    if name.starts_with("clip_fraction") {
                        // one token within rounding of a bound
                        allowed.absolute += 1.0 / tokens.batch().kept() as f64;
                    }
                    near(&format!("{case}: {name}"), allowed, scale, *got, *exact);
                }
                let (again, _) = on_gpu(gpu, entry, tokens, inputs, config).unwrap();
                assert!(again == (outputs, numbers), "{case}: another result on the second run");
            }
        }
    }
    assert!(covered().all(|entry| answered.contains(entry.name)), "a formula was refused for every batch");
}

fn poison(inputs: &mut Columns<f32>, entry: &Entry, keep: &[bool], which: bool, value: f32) {
    for column in entry.inputs {
        let width = if column.kind == Kind::Logit { 13 } else { 1 };
        if !matches!(column.kind, Kind::Token | Kind::Logit) {
            continue;
        }
        if let Some(Array::Real(numbers)) = inputs.get_mut(column.name) {
            for (slot, row) in numbers.chunks_mut(width).enumerate() {
                if keep[slot] == which {
                    row.fill(value);
                }
            }
        }
    }
}

#[test]
fn dropped_slots_change_no_bit() {
    let Some(gpu) = gpu() else { return };
    let mut random = Random::new(41);
    let tokens = Tokens::packed(&mut random, &[40, 3, 0, 90]);
    for entry in covered() {
        let mut inputs = tokens.inputs(&mut random, entry);
        let config: Value = serde_json::from_str(configs::first(entry.name)).unwrap();
        let (clean, _) = on_gpu(gpu, entry, &tokens, &inputs, &config).unwrap();
        for value in [f32::NAN, f32::INFINITY, f32::MIN] {
            poison(&mut inputs, entry, &tokens.keep, false, value);
            let (found, report) = on_gpu(gpu, entry, &tokens, &inputs, &config).unwrap();
            assert!(found == clean && report.ran == Ran::Gpu, "{} with {value}: {report:?}", entry.name);
        }
    }
}

#[test]
fn special_values_are_the_cores() {
    let Some(gpu) = gpu() else { return };
    let mut random = Random::new(42);
    let tokens = Tokens::packed(&mut random, &[40, 3, 0, 90]);
    let kept = (0..tokens.keep.len()).find(|&slot| tokens.keep[slot]).unwrap();
    for entry in covered() {
        let config: Value = serde_json::from_str(configs::first(entry.name)).unwrap();
        for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            for column in entry.inputs {
                if UNREAD.contains(&(entry.name, column.name)) {
                    continue;
                }
                let mut inputs = tokens.inputs(&mut random, entry);
                let at = match column.kind {
                    Kind::Logit => 13 * kept,
                    Kind::Token => kept,
                    // the first sequence has a kept token
                    _ => 0,
                };
                match inputs.get_mut(column.name) {
                    Some(Array::Real(numbers)) => numbers[at] = value,
                    _ => continue,
                }
                let case = format!("{}, {value} in {}", entry.name, column.name);
                let found = on_gpu(gpu, entry, &tokens, &inputs, &config);
                let core = on_core(entry, &tokens, &inputs, &config);
                let (core_outputs, core_numbers) = match core {
                    Ok(core) => core,
                    Err(refusal) => {
                        assert_eq!(found.map(|(_, report)| report), Err(refusal.into()), "{case}");
                        continue;
                    }
                };
                let ((outputs, numbers), report) = found.unwrap();
                // logits have their own special cases; everything else is left to the core
                if column.kind != Kind::Logit {
                    assert_eq!(report.ran, Ran::Core(Reason::Special), "{case}");
                }
                for (name, core) in core_outputs.iter() {
                    let (Array::Real(core), Some(Array::Real(got))) = (core, outputs.get(name)) else { continue };
                    for (&got, &core) in got.iter().zip(core) {
                        match core.is_finite() {
                            true => near(&case, tolerance::of(entry.name), 100.0, got.into(), core.into()),
                            false => assert!(got == core || (got.is_nan() && core.is_nan()), "{case}: {got}, {core}"),
                        }
                    }
                }
                for ((name, got), (_, core)) in numbers.iter().zip(&core_numbers) {
                    assert!(got == core || (got.is_nan() && core.is_nan()), "{case}: {name} {got}, {core}");
                }
            }
        }
    }
}

#[test]
fn refused_calls_get_the_cores_error_and_write_nothing() {
    let Some(gpu) = gpu() else { return };
    let mut random = Random::new(43);
    let tokens = Tokens::padded(&mut random, 2, 4);
    for entry in covered() {
        let inputs = tokens.inputs(&mut random, entry);
        let config: Value = serde_json::from_str(configs::first(entry.name)).unwrap();
        for column in entry.inputs.iter().filter(|column| column.kind == Kind::Token && !column.optional) {
            let mut short = inputs.clone();
            match short.get_mut(column.name) {
                Some(Array::Real(numbers)) => drop(numbers.pop()),
                Some(Array::Index(numbers)) => drop(numbers.pop()),
                _ => continue,
            }
            let refused = on_gpu(gpu, entry, &tokens, &short, &config).unwrap_err();
            let expected = tokenwise::Error::Length { what: column.name, expected: 8, got: 7 };
            assert_eq!(refused, GpuError::Core(expected), "{}", entry.name);
        }
        let refused = on_gpu(gpu, entry, &tokens, &inputs, &serde_json::from_str(r#"{"unknown": 1}"#).unwrap());
        assert!(entry.config.is_none() || matches!(refused, Err(GpuError::Refused(_))), "{}", entry.name);
    }
}

#[test]
fn formulas_without_a_kernel_run_on_the_core() {
    let Some(gpu) = gpu() else { return };
    let mut random = Random::new(44);
    let tokens = Tokens::padded(&mut random, 2, 4);
    let Some(entry) = entries().find(|entry| entry.name == "high_entropy_mask") else { panic!("no such formula") };
    let inputs = tokens.inputs(&mut random, entry);
    let (_, report) = on_gpu(gpu, entry, &tokens, &inputs, &Value::EMPTY).unwrap();
    assert!(matches!(report.ran, Ran::Core(Reason::NoKernel(_))));
}
