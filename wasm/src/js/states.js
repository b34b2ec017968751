
// the objects that go on from one call to the next
const report = "lambda,budget,budgetPerToken,whPerToken,usageRatio,warmUpFinished:flag,plateau:flag,collapse:flag";

/** Runs a method on what is behind an object. */
function on(object, method, row, given, single = false) {
  const { state } = held("this", object, Machine, `a ${object.constructor.name}`);
  return perform(single, row, given, () => void state.run(method, single));
}

/** An object with a state in the module. */
class Machine {
  constructor(kind, row, given) {
    inside.set(this, { state: perform(false, row, given, () => State.make(kind)), handles: 1 });
  }
  free() {
    const it = inside.get(this);
    inside.set(this, null);
    if (it && --it.handles === 0) it.state.free();
  }
  /** A clone goes its own way. */
  clone() {
    const { state } = held("this", this, Machine, `a ${this.constructor.name}`);
    return shared(this, { state: state.copy(), handles: 1 });
  }
}
if (Symbol.dispose) Machine.prototype[Symbol.dispose] = Machine.prototype.free;

/** One whose clones are second handles to the same state. */
class Shared extends Machine {
  clone() {
    const it = held("this", this, Machine, `a ${this.constructor.name}`);
    it.handles++;
    return shared(this, it);
  }
}

export class RoleBaselines extends Shared {
  constructor(roles, decay) {
    super(0, "roles:size,decay:number>", [roles, decay]);
  }
  get values() {
    return on(this, 0, ">", []);
  }
}

function baseline(single, baselines, input) {
  const { state } = held("baselines", baselines, RoleBaselines, "a RoleBaselines");
  return perform(single, "input{roles:words,scores}>:F", [input], () => void state.run(1, single));
}
export function roleBaseline(baselines, input) {
  return baseline(true, baselines, input);
}
export function roleBaselineF64(baselines, input) {
  return baseline(false, baselines, input);
}

export class Histogram extends Shared {
  constructor() {
    super(1, ">", []);
  }
  add(batch, values) {
    on(this, 0, "batch:batch,values>", [batch, values], values instanceof Float32Array);
  }
  merge(other) {
    const { state } = held("other", other, Histogram, "a Histogram");
    held("this", this, Machine, "a Histogram").state.merge(state);
  }
  get count() {
    return on(this, 1, ">", []);
  }
  quantile(level) {
    return on(this, 2, "level:number>", [level]);
  }
}

export class RunningMoments extends Machine {
  constructor() {
    super(2, ">", []);
  }
  update(values) {
    return on(this, 0, "values>mean,std", [values], values instanceof Float32Array);
  }
}

export class LinearKl extends Machine {
  constructor(config) {
    super(3, "config:LinearKlConfig>", [config]);
  }
  update(kl) {
    return on(this, 0, "kl:number>", [kl]);
  }
}

export class EntropyBudget extends Machine {
  constructor(config) {
    super(4, "config:EntropyBudgetConfig>", [config]);
  }
  update(observation) {
    const fields = "step:count,whSum:number,tokenCount:count,rewardStd?:number,rewardSumMean?:number";
    return on(this, 0, `observation{${fields}}>${report}`, [observation]);
  }
}

export class DualGame extends Machine {
  constructor(config) {
    super(5, "config:DualGameRules>", [config]);
  }
  step(batch, input) {
    const fields = "weight:tokenWeight,refLogProbs?,oldLogProbs,advantages,rewards";
    const row = `batch:batch,input{${fields}}>lambda,beta,budget{${report}},entries*`;
    return on(this, 0, row, [batch, input], input?.oldLogProbs instanceof Float32Array);
  }
}

/** Numbers that a state tells when asked, all at once. */
for (const [Class, names] of [
  [RunningMoments, ["count", "mean", "variance", "std"]],
  [LinearKl, ["beta", "target"]],
  [EntropyBudget, ["lambda"]],
  [DualGame, ["lambda", "beta"]],
]) {
  for (const name of names) {
    Object.defineProperty(Class.prototype, name, { get() { return on(this, 1, `>${names}`, [])[name]; }, configurable: true });
  }
}
