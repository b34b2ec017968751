export default {
  "tour.next": "Next",
  "tour.back": "Back",
  "tour.skip": "Skip",
  "tour.end": "Leave the tour",
  "tour.finish": "Finish",
  "tour.done": "done",
  "tour.keys": "Page Down and Page Up work too.",
  "tour.start": "Start the three-minute tour",
  "tour.name.story": "1+1=2, from score to gradient",
  "tour.name.slips": "Find the document's mistakes",
  "tour.name.dr-grpo": "Dr. GRPO in five minutes",
  "tour.name.frameworks": "One group, three frameworks",
  "tour.story.1":
    "Six tokens answer “1+1=2?”. Above them are the states s₁ … s₇: the state before a token is what the policy saw when it chose that token. Numbers on a token belong to the token, numbers between two tokens to the state.",
  "tour.story.2": "The task gives nothing until the end, then 1. Which of the six tokens earned it?",
  "tour.story.3":
    "Each token also has a distance to the reference policy. This one is −0.05: a single sample of the KL may be negative, only its mean cannot.",
  "tour.story.4": "The score minus β times the KL is the token reward. On the last token that is 1 − 0.1·0.05 = 0.995.",
  "tour.story.5":
    "The critic's values are between the tokens: V₃ = 0.3 is what it expects before “，” is chosen. There is one more value than tokens: after the end it is 0.",
  "tour.story.6":
    "The TD error of one step: the reward, plus the new expectation, minus the old one. The first token earned 0.04 because the value rose from 0.20 to 0.25.",
  "tour.story.7": "The recursion starts at the end: nothing comes after the last token, so A₆ = δ₆ = 0.395.",
  "tour.story.8":
    "Going back, every token keeps its own TD error and adds γλ = 0.95 of what comes after: the first one has 0.621. It gets credit although its own score is 0.",
  "tour.story.9":
    "Now change V₃: press Enter on the cell, type 0.5, press Enter. Watch: δ₂, δ₃ and the advantages up to the third token change; the later advantages stay. All whitened advantages change, because the mean and the deviation do.",
  "tour.story.10":
    "The return is the advantage plus the value, before whitening. It is the critic's target and belongs to the state, so it also stands between the tokens.",
  "tour.story.11":
    "Whitening subtracts the mean and divides by the deviation. The last token, although it was good, is now below the mean: −1.79.",
  "tour.story.12":
    "The policy has not moved yet, so every ratio is 1. Make “2” less likely: press Enter, type −0.4 in place of −0.05, press Enter. Its ratio falls to 0.705, below 1 − 0.2.",
  "tour.story.13":
    "Gradient descent moves against this sign. “2” is below the mean, so it should become less likely. Once its ratio is below 0.8 it is clipped: the gradient is 0, and this token is not pushed any further.",
  "tour.slips.1":
    "The document's tables were computed by hand. Here it has A₃ = 0.597 instead of 0.596488, because it rounded at every step. Harmless.",
  "tour.slips.2":
    "The document says A₁ = 0.27; the exact value is 0.607069. It computed r + 0.95·A and left the values out. The credit of a step is its whole TD error, r + γV(next) − V, and the values rise along the way.",
  "tour.slips.3":
    "The document says δ₁ = 0.075; the exact value is −0.01 + 0.25 − 0.20 = 0.04. It also lists five tokens for six positions.",
  "tour.slips.4":
    "The document says A₂ = 0.582; its own recursion gives 0.592901. The wrong δ₁ then makes its A₁ = 0.615 instead of 0.603256.",
  "tour.slips.5":
    "The document calls both this and V + A “the return”. The discounted return is 0.955 here, V + A is 0.821081: they agree only if λ = 1.",
  "tour.slips.6":
    "The document says 1.46; the exact value is 1.252823. It rounded the deviation to 0.13. The deviation is 0.151658 with n − 1, as in verl, and 0.135647 with n.",
  "tour.slips.7":
    "The document gives the last three tokens 0.33, 0.33 and 0.34, so that they add up to 1. The exact value is 1/3 each.",
  "tour.slips.8":
    "The document says 0.13; its own formula gives 0.1786. Its advantages and returns are illustrations that no γ and λ produce.",
  "tour.slips.9":
    "The document calls −p·log p of the chosen token its entropy. It is not: for a uniform choice among 1000 tokens the entropy is 6.9, this number 0.0069. It is kept here as a proxy, under its own name.",
  "tour.dr-grpo.1":
    "Four answers to one prompt, scores 1, 0, 0, 0. There is no critic: the answers are compared with each other.",
  "tour.dr-grpo.2":
    "GRPO subtracts the group's mean, 0.25, and divides by its deviation, 0.5: the winner gets 1.5, the others −0.5.",
  "tour.dr-grpo.3":
    "Here the scores are 0.5, 0.5, 0.5 and 0.5001. The division turns a lead of 0.0001 into 1.5: a prompt that teaches nothing pushes as hard as one that teaches much.",
  "tour.dr-grpo.4": "Dr. GRPO does not divide: the lead stays 0.000075.",
  "tour.dr-grpo.5":
    "Back to one winner: 0.75 and three times −0.25. Change the first score to 0.9 and see all four answers move.",
  "tour.dr-grpo.6":
    "The second point is how losses are averaged. If every sequence is averaged by itself, a token of the five-token answer has weight 0.1 and the token of the one-token answer 0.5: long wrong answers are punished less per token.",
  "tour.dr-grpo.7":
    "Dr. GRPO divides every sequence by the same constant L = 10 and by the number of sequences: each token has weight 0.05, in whichever answer it is.",
  "tour.dr-grpo.8":
    "Without the number of sequences the weight would be 0.1, and the loss 2.0 instead of 1.0: one framework did this for a while.",
  "tour.frameworks.1":
    "The same four scores, 0.5 0.5 0.5 0.5001, with the formula of the GRPO paper: the winner gets 1.5.",
  "tour.frameworks.2":
    "verl adds 1e−6 to the deviation of 0.00005: 1.47059. Cells that differ are marked ≠; the convention that causes it is named below the grid.",
  "tour.frameworks.3": "TRL adds 1e−4, twice the deviation itself: 0.5. In the chart the outline is verl.",
  "tour.frameworks.4":
    "Another difference: two tool tokens in the middle. TRL's recursion takes a step of 0 on each, verl steps over them: 0.358503 and 0.45125.",
};
