// The chain as a Rust program that prints the numbers of the page, bit for bit.

import { countsAll, flatten, isClipped, klInLoss, tokensOf } from "./batch.js";
import { advantages } from "./rust-advantage.js";
import { policyLoss } from "./rust-loss.js";
import { array, config, number, Program, variant } from "./rust-program.js";

/** @typedef {import("../state.js").State} State */
/** @typedef {import("../compute/compute.js").Result} Result */

/**
 * @param {State} state
 * @param {Result} result
 * @returns {string}
 */
export function rust(state, result) {
  const flat = flatten(state);
  const program = new Program(flat, state, result);
  kl(program);
  rewards(program);
  advantages(program);
  whitened(program);
  ratios(program);
  policyLoss(program);
  analysis(program);
  return text(program);
}

/** @param {Program} p */
function kl(p) {
  const { choices } = p.state;
  if (choices.kl === "given") {
    p.input("kl", p.flat.rows.kl, "KL of each token, given");
    p.show("kl");
    return;
  }
  p.use("divergence::KlConfig", "divergence::KlEstimator", "divergence::KlBounds");
  p.line(`// KL of each token, estimated from log-probabilities`);
  const settings = {
    estimator: `KlEstimator::${variant(choices.kl)}`,
    bounds: `KlBounds::${variant(p.result.settings.klBounds)}`,
  };
  p.line(`let kl_config = ${config("KlConfig", settings)};`);
  const of = p.rowInput(klInLoss(p.state) ? "logProb" : "oldLogProb");
  const ref = p.rowInput("refLogProb");
  p.zeros("kl");
  if (choices.placement === "loss-weighted") {
    const old = p.rowInput("oldLogProb");
    p.use("divergence::kl_importance_weighted", "divergence::KlWeightedInput", "divergence::KlWeightedConfig");
    p.line("let weighted = KlWeightedConfig { kl: kl_config, ..Default::default() };");
    const input = `KlWeightedInput { log_probs: &${of}, ref_log_probs: &${ref}, old_log_probs: &${old} }`;
    p.line(`kl_importance_weighted(&batch, ${input}, &weighted, &mut kl)?;`);
  } else {
    p.use("divergence::kl_estimate", "divergence::KlInput");
    p.line(`kl_estimate(&batch, KlInput { log_probs: &${of}, ref_log_probs: &${ref} }, &kl_config, &mut kl)?;`);
  }
  p.show("kl");
}

/** @param {Program} p */
function rewards(p) {
  const { choices, parameters } = p.state;
  const priced = choices.placement === "reward";
  const bound = p.result.settings.rewardClip;
  let scores = p.rowInput("score");
  p.line(priced ? "// token rewards: the score, less the price of KL" : "// token rewards: the score alone");
  if (isClipped(p.flat, bound)) {
    p.use("reward::reward_scale_clip", "reward::RewardScaleConfig");
    const kept = `${scores}.iter().zip(&mask).map(|(score, keep)| if *keep { *score } else { 0.0 })`;
    p.line(`let mut held: Vec<f64> = ${kept}.collect();`);
    p.line("let before = held.clone();");
    p.line(`let clip = RewardScaleConfig::Clip { low: ${number(-bound)}, high: ${number(bound)} };`);
    p.line("reward_scale_clip(&before, &clip, &mut held)?;");
    if (countsAll(p.flat, p.result)) {
      p.line("// only kept slots are clipped");
      p.line(`for ((held, score), keep) in held.iter_mut().zip(&${scores}).zip(&mask) {`);
      p.line("    if !*keep {");
      p.line("        *held = *score;");
      p.line("    }");
      p.line("}");
    }
    scores = "held";
  }
  p.use("reward::shape_rewards", "reward::ShapeConfig", "reward::ShapeInput");
  if (!priced) p.line("let no_kl = vec![0.0; n];");
  p.zeros("reward");
  const input = `ShapeInput { scores: &${scores}, kl: &${priced ? "kl" : "no_kl"} }`;
  const price = `&ShapeConfig { beta: ${number(priced ? parameters.beta : 0)} }`;
  p.line(`shape_rewards(&batch, ${input}, ${price}, &mut reward)?;`);
  p.show("reward");
  p.use("advantage::sequence_sums");
  if (countsAll(p.flat, p.result)) {
    p.line("// the score of a sequence counts its dropped slots too");
    p.line("let every = vec![true; n];");
    p.line("let everything = Batch::new(Layout::packed(&offsets)?, Mask::new(&every))?;");
    p.zeros("all_rewards");
    p.line(`shape_rewards(&everything, ${input}, ${price}, &mut all_rewards)?;`);
    p.line("let mut sequence_score = vec![0.0; batch.sequences()];");
    p.line("sequence_sums(&everything, &all_rewards, &mut sequence_score)?;");
  } else {
    p.line("let mut sequence_score = vec![0.0; batch.sequences()];");
    p.line("sequence_sums(&batch, &reward, &mut sequence_score)?;");
  }
  p.show("sequence_score");
}

/** @param {Program} p */
function whitened(p) {
  const { spread, place, epsilon, divisor } = p.result.settings.whiten;
  p.use(
    "Spread",
    "Divisor",
    "MeanConfig",
    "metric::mean",
    "metric::variance",
    "metric::VarianceConfig",
    "advantage::whiten",
    "advantage::WhitenConfig",
    "advantage::EpsilonPlace",
  );
  p.line("// advantages with mean 0 and deviation 1 over all kept tokens");
  const [s, d] = [`Spread::${variant(spread)}`, `Divisor::${variant(divisor)}`];
  p.line(`println!("mean: {:?}", mean(&batch, &advantage, &MeanConfig { divisor: ${d} })?);`);
  p.line(`let config = VarianceConfig { spread: ${s}, divisor: ${d} };`);
  p.line('println!("variance: {:?}", variance(&batch, &advantage, &config)?);');
  p.zeros("whitened");
  const settings = {
    spread: s,
    place: `EpsilonPlace::${variant(place)}`,
    epsilon: number(epsilon),
    divisor: d,
  };
  p.line(`let whitening = ${config("WhitenConfig", settings)};`);
  p.line("whiten(&batch, &advantage, &whitening, &mut whitened)?;");
  p.show("whitened");
}

/** @param {Program} p */
function ratios(p) {
  const [now, old] = [p.rowInput("logProb"), p.rowInput("oldLogProb")];
  p.use("math");
  p.line("// how much more likely each token has become");
  p.line(
    `let ratio: Vec<f64> = (0..n).map(|i| if mask[i] { math::exp(${now}[i] - ${old}[i]) } else { 0.0 }).collect();`,
  );
  p.show("ratio");
}

/** @param {Program} p */
function analysis(p) {
  const old = p.rowInput("oldLogProb");
  p.use("metric::analysis", "metric::AnalysisInput");
  p.line("// what a trainer logs");
  const input = `AnalysisInput { old_log_probs: &${old}, advantages: &${p.weight}, rewards: &reward }`;
  p.line(`let numbers = analysis(&batch, ${input})?;`);
  p.line("for (name, value) in numbers.entries() {");
  p.line('    println!("{name}: {value:?}");');
  p.line("}");
}

/** @param {Program} p */
function text(p) {
  const { flat, state } = p;
  p.use("Batch", "Layout", "Mask");
  const sequences = state.sequences.map(
    (sequence, s) => `    // sequence ${s}, prompt ${flat.groups[s]}: ${tokensOf(sequence)}`,
  );
  return `${[
    "//! The chain of the tokenwise playground as a program: the library's own formulas, the same numbers.",
    '//! In Cargo.toml: tokenwise = "0.1".',
    "",
    p.imports(),
    "",
    "fn show(name: &str, row: &[f64]) {",
    '    println!("{name}: {row:?}");',
    "}",
    "",
    "fn main() -> Result<(), tokenwise::Error> {",
    ...sequences,
    `    let offsets = ${array(flat.offsets, String)};`,
    `    let mask = ${array(flat.mask.map(Number), (keep) => String(keep === 1))};`,
    "    let batch = Batch::new(Layout::packed(&offsets)?, Mask::new(&mask))?;",
    "    let n = batch.tokens();",
    ...p.declarations(),
    ...p.lines.map((line) => (line === "" ? "" : `    ${line}`)),
    "    Ok(())",
    "}",
  ].join("\n")}\n`;
}
