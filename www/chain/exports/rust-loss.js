// The loss step of the Rust program.

import { klInLoss } from "./batch.js";
import { groups } from "./rust-advantage.js";
import { config, number, variant } from "./rust-program.js";

/** @typedef {import("./rust-program.js").Program} Program */

/** @param {Program} p */
export function policyLoss(p) {
  const { loss, aggregate } = p.state.choices;
  p.line(`// the loss: ${loss}, aggregated by ${aggregate}; its gradient by each log-probability`);
  aggregation(p);
  p.use("loss::PolicyLossInput");
  const [now, old] = [p.rowInput("logProb"), p.rowInput("oldLogProb")];
  const rows = `log_probs: &${now}, old_log_probs: &${old}, advantages: &${p.weight}`;
  p.line(`let input = PolicyLossInput { ${rows}, weights: None };`);
  p.zeros(klInLoss(p.state) ? "policy_gradient" : "gradient");
  losses[loss](p, `&mut ${klInLoss(p.state) ? "policy_gradient" : "gradient"}`);
  if (klInLoss(p.state)) priceOfKl(p);
  p.show("gradient");
}

/** @type {Record<string, string>} */
const MODES = {
  "token-mean": "TokenMean",
  "token-sum": "TokenSum",
  "seq-mean-token-sum": "SequenceMeanTokenSum",
  "seq-mean-token-mean": "SequenceMeanTokenMean",
};

/** @param {Program} p */
function aggregation(p) {
  const { choices, parameters } = p.state;
  const aggregate = /** @type {{ emptyRows: string, divisor: string }} */ (p.result.settings.aggregate);
  p.use("loss::Aggregate", "loss::AggregateMode", "loss::EmptyRows", "Divisor");
  let mode = MODES[choices.aggregate];
  let counts = "";
  if (choices.aggregate === "prompt-mean") {
    groups(p);
    p.use("loss::group_tokens");
    p.line("let mut prompt_tokens = vec![0; groups.count()];");
    p.line("group_tokens(&batch, &groups, &mut prompt_tokens)?;");
    mode = "PromptMean { groups, tokens: &prompt_tokens }";
  } else if (mode === undefined) mode = `SequenceMeanTokenSumNorm { scale: ${number(parameters.scale)} }`;
  if (choices.aggregate === "token-sum-norm") {
    p.use("loss::Counts", "loss::GlobalCounts");
    counts = " counts: Counts::Global(GlobalCounts { sequences: 1, ..Default::default() }),";
  }
  const [emptyRows, divisor] = [variant(aggregate.emptyRows), variant(aggregate.divisor)];
  const rest = `empty_rows: EmptyRows::${emptyRows}, divisor: Divisor::${divisor}`;
  p.line(
    `let by = Aggregate { mode: AggregateMode::${mode},${counts} ${rest}${counts ? "" : ", ..Default::default()"} };`,
  );
}

/** @param {number | null} value */
const option = (value) => (value === null ? "None" : `Some(${number(value)})`);

/** @type {Record<string, (p: Program, grad: string) => void>} */
const losses = {
  ppo: (p, grad) => {
    const { dual, dualClip, logRatioBound } = p.result.settings;
    const { clipLow, clipHigh } = p.state.parameters;
    const second = dual === "off" ? "Off" : `${dual === "both" ? "BothSigns" : "NegativeOnly"}(${number(dualClip)})`;
    p.use("loss::ppo_clip", "loss::PpoConfig", "loss::DualClip");
    const settings = {
      clip_low: number(clipLow),
      clip_high: number(clipHigh),
      dual_clip: `DualClip::${second}`,
      log_ratio_bound: option(logRatioBound),
      aggregate: "by",
    };
    p.line(`let clip = ${config("PpoConfig", settings)};`);
    p.line(`let outcome = ppo_clip(&batch, input, &clip, ${grad})?;`);
    told(p);
  },
  gspo: (p, grad) => {
    const { form, logRatioCap } = p.result.settings.gspo;
    const { clipLow, clipHigh } = p.state.parameters;
    p.use("loss::gspo", "loss::GspoConfig", "loss::GspoForm");
    const settings = {
      clip_low: number(clipLow),
      clip_high: number(clipHigh),
      form: `GspoForm::${variant(form)}`,
      log_ratio_cap: option(logRatioCap),
      aggregate: "by",
    };
    p.line(`let clip = ${config("GspoConfig", settings)};`);
    p.line(`let outcome = gspo(&batch, input, &clip, ${grad})?;`);
    told(p);
  },
  cispo: (p, grad) => {
    const { cispo, logRatioBound } = p.result.settings;
    const bounds =
      cispo.kind === "absolute"
        ? `Absolute { high: ${number(cispo.high)} }`
        : `Relative { low: ${number(cispo.low)}, high: ${number(cispo.high)} }`;
    p.use("loss::cispo", "loss::CispoConfig", "loss::CispoBounds");
    const settings = {
      bounds: `CispoBounds::${bounds}`,
      log_ratio_bound: option(logRatioBound),
      aggregate: "by",
    };
    p.line(`let clip = ${config("CispoConfig", settings)};`);
    p.line(`let outcome = cispo(&batch, input, &clip, ${grad})?;`);
    told(p);
  },
  surrogate: (p, grad) => {
    p.use("loss::surrogate", "loss::SurrogateConfig");
    p.line(`let loss = surrogate(&batch, input, &SurrogateConfig { aggregate: by, ..Default::default() }, ${grad})?;`);
    p.line('println!("loss: {loss:?}");');
  },
  reinforce: (p, grad) => {
    p.use("loss::reinforce", "loss::ReinforceConfig");
    p.line(
      `let outcome = reinforce(&batch, input, &ReinforceConfig { aggregate: by, ..Default::default() }, ${grad})?;`,
    );
    p.line('println!("loss: {:?}", outcome.loss);');
  },
};

/** @param {Program} p */
function told(p) {
  p.line('println!("loss: {:?}", outcome.loss);');
  p.line('println!("clip_fraction: {:?}", outcome.clip_fraction);');
}

/**
 * β·KL as a part of the loss, and its own gradient beside the policy's.
 * @param {Program} p
 */
function priceOfKl(p) {
  const { choices, parameters } = p.state;
  const beta = number(parameters.beta);
  p.use("loss::aggregate");
  p.line("// β·KL as a part of the loss, with a gradient of its own");
  p.line(`let kl_term: Vec<f64> = (0..n).map(|i| if mask[i] { ${beta} * kl[i] } else { 0.0 }).collect();`);
  p.zeros("token_weight");
  p.line('println!("kl_loss: {:?}", aggregate(&batch, &kl_term, &by, &mut token_weight)?);');
  if (choices.kl === "given") {
    p.line("let gradient = policy_gradient; // a KL that is given is a constant");
    return;
  }
  const [now, ref] = [p.rowInput("logProb"), p.rowInput("refLogProb")];
  p.line(`let pulled: Vec<f64> = token_weight.iter().map(|weight| ${beta} * weight).collect();`);
  if (choices.placement === "loss-weighted") {
    const old = p.rowInput("oldLogProb");
    p.use("divergence::kl_importance_weighted_gradient", "divergence::KlWeightedGradientInput");
    p.zeros("kl_gradient");
    const rows = `log_probs: &${now}, ref_log_probs: &${ref}, old_log_probs: &${old}`;
    p.line(`let drawn = KlWeightedGradientInput { ${rows}, grad_kl: &pulled };`);
    p.line("kl_importance_weighted_gradient(&batch, drawn, &weighted, &mut kl_gradient)?;");
    p.show("kl_gradient");
    p.line("let gradient: Vec<f64> = (0..n).map(|i| policy_gradient[i] + kl_gradient[i]).collect();");
    return;
  }
  p.use("divergence::kl_gradient");
  p.zeros("slope");
  p.line(`kl_gradient(&batch, KlInput { log_probs: &${now}, ref_log_probs: &${ref} }, &kl_config, &mut slope)?;`);
  p.line("let gradient: Vec<f64> = (0..n).map(|i| policy_gradient[i] + slope[i] * pulled[i]).collect();");
}
