export default {
  "groups.lead":
    "One prompt, several answers, one score each: how much better was an answer than the others? Twenty estimators use the same scores. Look at the first three lines: the same formula, only ε differs. Then try the nearly tied group.",
  "groups.keys":
    "Scores and lengths can be edited; choose any number to see how it is computed. Arrow keys move, Enter edits.",
  "groups.preset.winner": "One winner: 1, 0, 0, 0",
  "groups.preset.near-tied": "Nearly tied: .5, .5, .5, .5001",
  "groups.preset.equal": "All equal",
  "groups.preset.single": "A group of one",
  "groups.preset.outlier": "One outlier",
  "groups.preset.unequal": "Two groups of unequal size",
  "groups.preset.lengths": "Long failures, short successes",
  "groups.preset.two-sources": "Two sources of reward",
  "groups.second": "second source of reward",
  "groups.weight": "its weight",
  "groups.finite": "A finite number is needed. Still {old}.",
  "groups.addPrompt": "Add a prompt",
  "groups.removePrompt": "Remove the last prompt",
  "groups.prompt": "prompt {number}",
  "groups.addSample": "+ sample",
  "groups.addSample.aria": "Add a sample to prompt {number}",
  "groups.removeSample": "− sample",
  "groups.removeSample.aria": "Remove the last sample of prompt {number}",
  "groups.greedy": "greedy answer scored",
  "groups.kept": "Dynamic sampling (DAPO) keeps this prompt.",
  "groups.dropped": "Dynamic sampling (DAPO) drops this prompt: its scores are all equal.",
  "groups.table": "Advantages of the samples by every estimator",
  "groups.corner": "prompt",
  "groups.sample": "sample",
  "groups.sums": "sums",
  "groups.nothing": "no result",
  "groups.cell": "{row}, prompt {prompt}, sample {sample}: {value}",
  "groups.cell.sum": "{row}, sum of prompt {prompt}: {value}",
  "groups.row.score": "score",
  "groups.row.format": "second source",
  "groups.row.length": "length in tokens",
  "groups.row.total": "score of both",
  "groups.input.score": "What the task gave the whole answer. Enter edits it.",
  "groups.input.format":
    "What a second source gave, such as one for the format. All estimators but the two of GDPO read the sum of both.",
  "groups.input.length":
    "How many tokens the answer has. It matters where tokens, not samples, are averaged: OPO, REINFORCE++, GDPO and token baselines.",
  "groups.input.total": "The score plus the weighted second source: what the estimators read.",
  "groups.name.grpo-verl": "GRPO (verl)",
  "groups.name.grpo-trl": "GRPO (TRL)",
  "groups.name.grpo-openrlhf": "GRPO (OpenRLHF)",
  "groups.name.grpo-population": "GRPO, divisor n",
  "groups.name.grpo-batch": "GRPO, batch σ",
  "groups.name.areal": "GRPO (AReaL)",
  "groups.name.nemo": "GRPO (NeMo)",
  "groups.name.dr-grpo": "Dr. GRPO",
  "groups.name.rloo": "RLOO",
  "groups.name.max-rl": "MaxRL",
  "groups.name.gpg": "GPG",
  "groups.name.opo": "OPO",
  "groups.name.pass-k": "pass@k",
  "groups.name.remax": "ReMax",
  "groups.name.flash": "batch mean",
  "groups.name.rf-baseline": "REINFORCE++-baseline",
  "groups.name.rf": "REINFORCE++",
  "groups.name.decoupled": "GDPO, before whitening",
  "groups.name.gdpo": "GDPO",
  "groups.name.token-baseline": "token baseline, mean",
  "groups.meaning.grpo-verl":
    "Distance from the group's mean in units of its deviation (divisor n − 1). ε only prevents a division by 0. A group with a tiny spread is scaled up to the same size as one with a large spread.",
  "groups.meaning.grpo-trl":
    "The same with ε = 1e-4: a hundred times verl's. For scores of 0 and 1 nothing changes; where scores are close together ε shrinks the advantage.",
  "groups.meaning.grpo-openrlhf":
    "The same with ε = 1e-9: even differences of a millionth are scaled up to full size. OpenRLHF clips to ±10 afterwards.",
  "groups.meaning.grpo-population":
    "The deviation with divisor n instead of n − 1, as NumPy does by default: advantages are larger by √(n / (n − 1)).",
  "groups.meaning.grpo-batch":
    "The mean of the group, but the deviation of all raw scores of the batch: easy and hard prompts keep their different sizes.",
  "groups.meaning.areal":
    "Mean and deviation of the group with ε = 1e-5. AReaL lets each be taken over the group, the batch, or not at all.",
  "groups.meaning.nemo":
    "Mean and deviation of the other samples only: a sample does not dilute its own difference. Where the others are all equal, nothing is divided.",
  "groups.meaning.dr-grpo":
    "Only the mean is subtracted. Dividing by the deviation would favour prompts that are nearly always or nearly never solved.",
  "groups.meaning.rloo":
    "The score against the mean of the others: an unbiased baseline. It is n / (n − 1) times Dr. GRPO.",
  "groups.meaning.max-rl": "In units of the mean score: with scores of 0 and 1, rare successes count most.",
  "groups.meaning.gpg":
    "Distance from the mean, scaled up by α = samples / samples with a score other than 0, over the whole batch: compensates for groups without any signal.",
  "groups.meaning.opo":
    "The baseline is the mean score per token, not per sample: it has the least variance when long answers have larger gradients. With equal lengths it is Dr. GRPO.",
  "groups.meaning.pass-k":
    "Only the best sample of the group counts, by its lead over the second best: for training on pass@k. If two share the best score, all get 0.",
  "groups.meaning.remax":
    "The score against that of the greedy answer to the same prompt. Needs one more answer per prompt, but no other samples.",
  "groups.meaning.flash":
    "The score against the mean of the whole batch: no groups, no deviation. A hard prompt then looks like bad answers.",
  "groups.meaning.rf-baseline":
    "Distance from the group's mean, assigned to the tokens, then whitened over all tokens of the batch: long answers count more in mean and deviation.",
  "groups.meaning.rf":
    "The return of every token, whitened over all tokens of the batch. No groups: an easy prompt lifts all its samples.",
  "groups.meaning.decoupled":
    "Each source of reward is compared within its group first, then they are added up by weight: a source with small numbers is not drowned out by one with large numbers. With one source it is GRPO (TRL).",
  "groups.meaning.gdpo": "The sum of the compared sources, assigned to the tokens and whitened over the batch.",
  "groups.meaning.token-baseline":
    "Every column of tokens has its own baseline: the return of the answers still running there. Shown is the mean over an answer's tokens, for tokens that are all equally uncertain; the tail of the longest answer has no baseline.",
  "groups.why": "Why {value}? {name}",
  "groups.where": "Prompt {prompt}, sample {sample}. Computed this way by: {peers}.",
  "groups.place": "Prompt {prompt}, sample {sample}.",
  "groups.formula": "Formula",
  "groups.digits": "Full precision",
  "groups.statistics":
    "The group: n = {count}, mean {mean}, deviation {sample} (divisor n − 1), {population} (divisor n).",
  "groups.whitening": "Over all tokens: mean {mean}, variance {variance}.",
  "groups.equal": "All scores of the group are equal: there is nothing to learn from a comparison.",
  "groups.tied":
    "Compared with the deviation {sample}, ε = {epsilon} is not small: ε alone removes {share} % of the advantage.",
  "groups.single": "A group of one has nothing to be compared with; frameworks disagree on what to do.",
  "groups.single.zero": "Here it gets 0: no comparison, no signal.",
  "groups.single.raw":
    "Here it gets its raw score, as if the mean were 0: verl's rule (divided by 1 + ε where GRPO scales). A positive score is then always pushed up. TRL gives 0, OpenRLHF NaN.",
  "groups.single.undefined": "Here it gets NaN, the sample deviation of one number: it spreads to the loss.",
  "groups.single.refused": "Here the result cannot be computed: there is no second best.",
  "groups.single.own": "This estimator does not compare within the group, so nothing special happens.",
  "groups.sum": "Σ = {value}, prompt {prompt}. {name}",
  "groups.rule.group":
    "The advantages of a group must add up to 0: a comparison within the group cannot lift the whole group.",
  "groups.rule.length":
    "The advantages of a group add up to 0 when each is weighted by the length of its answer, not otherwise.",
  "groups.rule.batch": "Only the advantages of the whole batch add up to 0; those of one group need not.",
  "groups.rule.tokens": "Only the advantages of all tokens of the batch add up to 0; those of one group need not.",
  "groups.rule.none": "Nothing has to add up to 0 here.",
  "groups.zero": "They do, up to rounding.",
  "groups.off": "They do not.",
  "groups.off.single": "They do not: a group of one gets no comparison here.",
  "groups.free": "So this sum is shown only for information.",
  "groups.sumNote": "✓ the advantages of the group add up to 0, as they must; ✗ they do not. No mark: they need not.",
  "groups.inputsNote":
    "ReMax reads the greedy score; OPO, REINFORCE++, GDPO and the token baseline read the lengths; estimators with an answer's tokens show the one number that all its tokens get.",
  "groups.plot.aria": "Advantages of all samples by some estimators.",
  "groups.plot.sample": "sample",
  "groups.plot.advantage": "advantage",
};
