export default {
  "preset.mask-leak": "Mask leak: padding with a value",
  "preset.tool-tokens": "Tool tokens in the recursion",
  "preset.masked-reward": "Reward on a dropped token",
  "preset.dr-grpo-factor": "Dr. GRPO's missing factor",
  "preset.k3-in-loss": "k3 in the loss",
  "preset.group-of-one": "Group of one",
  "preset.one-winner": "One winner, four frameworks",
  "preset.near-tie": "A near tie, four frameworks",
  "preset.note.mask-leak": "Two tokens and one slot of padding, on which the critic happened to say 100.",
  "preset.note.tool-tokens":
    "The policy calls a tool, the tool answers with two tokens, the policy goes on. The critic says 0.5 everywhere.",
  "preset.note.masked-reward": "Two answers. The reward of the first sits on a token that was dropped.",
  "preset.note.dr-grpo-factor": "Five tokens with loss 2, one token with loss 10, constant length L = 10.",
  "preset.note.k3-in-loss":
    "Three actions as three tokens, p = 0.6652, 0.2447, 0.0900 against a reference of 0.2, 0.3, 0.5. Every advantage is 0: only the KL pushes.",
  "preset.note.group-of-one": "Three answers to one prompt, a single answer to another.",
  "preset.note.one-winner": "Four answers, scores 1 0 0 0: the same group through the conventions of each framework.",
  "preset.note.near-tie": "Four answers, scores 0.5 0.5 0.5 0.5001: here ε is as large as the deviation.",
  "trap.title": "The trap",
  "trap.happens": "What happens",
  "trap.right": "What is right",
  "trap.why": "Why",
  "trap.links": "Discussed in",
  "trap.show": "Show",
  "trap.verdict.wrong": "wrong",
  "trap.verdict.right": "right",
  "trap.verdict.other": "also seen",
  "trap.happens.mask-leak":
    "The value 100 on the padding becomes the “next value” of the last real token, and the padding's own TD error of −100 flows back through it: 5.7 and 6.0.",
  "trap.right.mask-leak":
    "The recursion ends at the last kept token: 0.95 and 1.0. The number on the padding changes nothing; try NaN.",
  "trap.why.mask-leak":
    "Multiplying by the mask after the recursion is too late: what was read inside it has already spread. Dropped slots must not be read at all.",
  "trap.happens.tool-tokens":
    "If the tool's tokens are treated as the policy's, each of them multiplies by γλ once more: the tokens before the call get 0.387 and 0.407. If they are set to zero, the value falls to 0 in the middle and comes back: 0.341 and 0.359.",
  "trap.right.tool-tokens":
    "Stepped over, the policy's next token comes right after its last one: 0.429 and 0.451. verl has done this since #2337.",
  "trap.why.tool-tokens": "The policy chose nothing while the tool was writing, so no credit should be lost there.",
  "trap.happens.masked-reward":
    "The score of a sequence is the sum over all slots, so the dropped reward still makes the first answer the winner: 0.7071 on its kept token.",
  "trap.right.masked-reward": "Added up over kept tokens both answers have 0, and neither has an advantage.",
  "trap.why.masked-reward":
    "If a token is rejected, its reward should go with it. If the reward is meant to count, it belongs on a kept token.",
  "trap.happens.dr-grpo-factor":
    "One framework divided the sum of losses by L alone: 2.0. The same batch twice as large gives twice the step.",
  "trap.right.dr-grpo-factor": "Divided by the number of sequences B and by L: 1.0, as in TRL.",
  "trap.why.dr-grpo-factor":
    "“Dr. GRPO” names a constant in place of the length, not the absence of the mean over sequences. The other modes give 3.33, 6.0 and 10.0 on these six tokens.",
  "trap.happens.k3-in-loss":
    "Differentiated, k3 pushes by 1 − π_ref/π: 0.699, −0.226, −4.56. Averaged with p this is p − π_ref, the gradient of the other KL, KL(ref‖π). And k1 pushes every token by 1, which averages to nothing.",
  "trap.right.k3-in-loss":
    "k2 pushes by d = log π − log π_ref, which averages to the gradient of KL(π‖ref). So does k3 times the ratio, which TRL has used since #6503.",
  "trap.why.k3-in-loss":
    "An unbiased estimate of a value need not have an unbiased gradient: the tokens were drawn from π, and that dependence must be differentiated too.",
  "trap.happens.group-of-one":
    "verl keeps the raw score 0.7, as if the mean were 0 and the deviation 1. OpenRLHF takes the deviation of one number: NaN, which spreads to the whole batch.",
  "trap.right.group-of-one": "0: the only answer cannot be better than others that do not exist.",
  "trap.why.group-of-one":
    "n − 1 is 0, so each framework has to define a result; sampling at least two answers per prompt avoids the question.",
  "trap.happens.one-winner":
    "The winner gets 1.499997 (verl), 1.4997 (TRL), 1.5 (OpenRLHF), 1.73205 with divisor n, 0.75 without the deviation.",
  "trap.right.one-winner": "None is wrong: they are different conventions under one name.",
  "trap.why.one-winner": "ε is 1e−6, 1e−4 or 1e−9, the divisor n − 1 or n, the deviation used or not.",
  "trap.happens.near-tie":
    "A lead of 0.0001 becomes an advantage of 1.4706 in verl, 0.5 in TRL, 1.49997 in OpenRLHF, 1.73205 with divisor n; without the deviation it stays 0.000075.",
  "trap.right.near-tie":
    "If such a lead is noise, every division by the deviation amplifies it. Dr. GRPO leaves it small.",
  "trap.why.near-tie":
    "The deviation is 0.00005 here; TRL's ε of 0.0001 is larger than that, the ε of the others is much smaller.",
  "case.leaks": "padding read",
  "case.masked": "padding dropped",
  "case.naive": "tool tokens read",
  "case.zeroed": "zeroed",
  "case.stepped": "stepped over",
  "case.allSlots": "all slots added up",
  "case.keptSlots": "kept slots added up",
  "case.withoutB": "Σ / L",
  "case.drGrpo": "Σ / (B·L)",
  "case.tokenMean": "mean over tokens",
  "case.sequenceMean": "mean of sequence means",
  "case.sequenceSum": "mean of sequence sums",
  "case.k3": "k3 in the loss",
  "case.k1": "k1 in the loss",
  "case.k2": "k2 in the loss",
  "case.k3weighted": "ratio · k3 in the loss",
  "case.verl": "verl 0.9.1",
  "case.trl": "TRL 1.16",
  "case.openrlhf": "OpenRLHF 0.11",
  "case.paper": "this library",
  "case.population": "divisor n",
  "case.noDeviation": "no deviation",
};
