// The advantage step of the Rust program.

import { number, variant } from "./rust-program.js";

/** @typedef {import("./rust-program.js").Program} Program */

/** @param {Program} p */
export function advantages(p) {
  discounted(p);
  p.line(`// advantages: ${p.state.choices.advantage}`);
  (estimators[p.state.choices.advantage] ?? ofGroup)(p);
  p.show("advantage");
}

/** @param {Program} p */
function discounted(p) {
  const { settings } = p.result;
  p.use("advantage::discounted_returns", "advantage::ReturnsInput", "advantage::ReturnsConfig", "advantage::Across");
  p.line("// the rewards still to come, discounted");
  const [gamma, across] = [number(p.state.parameters.gamma), variant(settings.across)];
  p.line(`let discount = ReturnsConfig { gamma: ${gamma}, across: Across::${across} };`);
  p.zeros("discounted_return");
  const input = `ReturnsInput { rewards: &reward, bootstrap: &${p.bootstrap()} }`;
  p.line(`discounted_returns(&batch, ${input}, &discount, &mut discounted_return)?;`);
  p.show("discounted_return");
}

/** @type {Record<string, (p: Program) => void>} */
const estimators = {
  given: (p) => {
    p.input("advantage", p.flat.rows.advantage, "advantages, given");
    const values = p.rowInput("value");
    p.line(
      `let returns: Vec<f64> = (0..n).map(|i| if mask[i] { advantage[i] + ${values}[i] } else { 0.0 }).collect();`,
    );
    p.line('show("return", &returns);');
  },
  gae: (p) => {
    const { gamma, lambda } = p.state.parameters;
    const across = `Across::${variant(p.result.settings.across)}`;
    p.use("advantage::gae", "advantage::GaeInput", "advantage::GaeConfig", "advantage::GaeOutput");
    p.line(
      `let critic = GaeInput { rewards: &reward, values: &${p.rowInput("value")}, bootstrap: &${p.bootstrap()} };`,
    );
    p.line("let (mut delta, mut advantage, mut returns) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);");
    p.line("// with λ = 0 the estimate is the TD error itself");
    p.line(`let config = GaeConfig { gamma: ${number(gamma)}, lambda: 0.0, across: ${across} };`);
    p.line("gae(&batch, critic, &config, GaeOutput { advantages: &mut delta, returns: &mut returns })?;");
    p.line(`let config = GaeConfig { lambda: ${number(lambda)}, ..config };`);
    p.line("gae(&batch, critic, &config, GaeOutput { advantages: &mut advantage, returns: &mut returns })?;");
    p.show("delta");
    p.line('show("return", &returns);');
  },
  "monte-carlo": (p) => {
    p.use("advantage::monte_carlo_advantage", "advantage::GaeInput", "advantage::GaeOutput");
    p.line("let (mut advantage, mut returns) = (vec![0.0; n], vec![0.0; n]);");
    const [values, bootstrap] = [p.rowInput("value"), p.bootstrap()];
    p.line(`let critic = GaeInput { rewards: &reward, values: &${values}, bootstrap: &${bootstrap} };`);
    const output = "GaeOutput { advantages: &mut advantage, returns: &mut returns }";
    p.line(`monte_carlo_advantage(&batch, critic, &discount, ${output})?;`);
    p.line('show("return", &returns);');
  },
  "reinforce-plus-plus": (p) => p.line("let advantage = discounted_return.clone();"),
  uniform: (p) => {
    p.use("advantage::uniform_credit");
    p.zeros("advantage");
    p.line("uniform_credit(&batch, &sequence_score, &mut advantage)?;");
  },
  "last-k": (p) => {
    p.use("advantage::last_k_credit", "advantage::LastKConfig");
    p.zeros("advantage");
    const k = Math.max(0, Math.trunc(p.state.parameters.lastK) || 0);
    p.line(`last_k_credit(&batch, &sequence_score, &LastKConfig { k: ${k} }, &mut advantage)?;`);
  },
  attention: (p) => {
    p.use("advantage::attention_credit", "advantage::AttentionInput");
    p.zeros("advantage");
    const input = `AttentionInput { scores: &sequence_score, weights: &${p.rowInput("attention")} }`;
    p.line(`attention_credit(&batch, ${input}, &mut advantage)?;`);
  },
};

/** @param {Program} p */
export function groups(p) {
  if (p.lines.some((line) => line.startsWith("let groups ="))) return;
  p.use("Groups");
  p.line(`let groups = Groups::from_ids(&[${p.flat.groups.join(", ")}])?;`);
}

/**
 * Estimators that compare the scores of one prompt's sequences.
 * @param {Program} p
 */
function ofGroup(p) {
  const { group, baselineSingleton } = p.result.settings;
  p.use("advantage::broadcast", "advantage::Singleton");
  groups(p);
  const alone = `Singleton::${variant(group.singleton)}`;
  const baseline = `Singleton::${variant(baselineSingleton)}`;
  const spread = `Spread::${variant(group.spread)}`;
  const epsilon = number(group.epsilon);
  p.line("let mut group_advantage = vec![0.0; batch.sequences()];");
  const call = (/** @type {string} */ name, /** @type {string} */ config, first = "&groups", scratch = "Moments") => {
    p.use(
      `advantage::${name}`,
      `advantage::${config.split(" ")[0]}`,
      scratch === "Moments" ? "Moments" : `advantage::${scratch}`,
    );
    p.line(`let mut scratch = vec![${scratch}::default(); groups.count()];`);
    p.line(`${name}(${first}, &sequence_score, &${config}, &mut scratch, &mut group_advantage)?;`);
  };
  /** @type {Record<string, () => void>} */
  const calls = {
    grpo: () => {
      p.use("Spread");
      call(
        "group_relative",
        `GroupConfig { spread: ${spread}, epsilon: ${epsilon}, singleton: ${alone}, ..Default::default() }`,
      );
    },
    "dr-grpo": () => {
      p.use("advantage::GroupScale");
      call("group_relative", `GroupConfig { scale: GroupScale::Unit, singleton: ${alone}, ..Default::default() }`);
    },
    rloo: () => call("leave_one_out", `LeaveOneOutConfig { singleton: ${alone} }`),
    "reinforce-baseline": () => {
      p.use("advantage::GroupScale");
      call("group_relative", `GroupConfig { scale: GroupScale::Unit, singleton: ${baseline}, ..Default::default() }`);
    },
    opo: () =>
      call(
        "length_weighted_baseline",
        `LengthWeightedConfig { singleton: ${baseline} }`,
        "&batch, &groups",
        "WeightedSum",
      ),
    "max-rl": () => call("max_rl", `MaxRlConfig { epsilon: ${epsilon}, singleton: ${alone}, ..Default::default() }`),
    "best-of-group": () => {
      p.used.delete("advantage::Singleton");
      p.use(
        "advantage::best_of_group",
        "advantage::BestOfGroupConfig",
        "advantage::BestOfGroupScratch",
        "advantage::TopTwo",
        "Moments",
        "Spread",
      );
      p.line(
        "let (mut moments, mut top) = " +
          "(vec![Moments::default(); groups.count()], vec![TopTwo::default(); groups.count()]);",
      );
      p.line("let scratch = BestOfGroupScratch { moments: &mut moments, top: &mut top };");
      p.line(`let config = BestOfGroupConfig { spread: ${spread}, epsilon: ${epsilon}, ..Default::default() };`);
      p.line("best_of_group(&groups, &sequence_score, &config, scratch, &mut group_advantage)?;");
    },
  };
  calls[p.state.choices.advantage]();
  p.show("group_advantage");
  p.zeros("advantage");
  p.line("broadcast(&batch, &group_advantage, &mut advantage)?;");
}
