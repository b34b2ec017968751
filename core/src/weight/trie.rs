use crate::{
    error::{check_config, check_count, check_len, Result},
    groups::Groups,
    layout::Batch,
    real::Real,
    reduce::{row_total, Sum},
};

/// What [`trie_complexity`] reads.
#[derive(Clone, Copy, Debug)]
pub struct TrieInput<'a, R> {
    /// The emitted tokens.
    pub tokens: &'a [u32],
    /// Token rewards; their sum is the score of a sequence.
    pub rewards: &'a [R],
}

/// Which responses [`trie_complexity`] compares at a position.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum TriePrefix {
    /// All responses of the group, whatever their earlier tokens.
    #[default]
    Any,
    /// Only those that are kept in the same earlier slots and have the same tokens there: the exact prefix tree.
    Same,
}

/// The value of a branch, computed from the scores of the responses that chose the same token.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum BranchValue {
    /// The mean.
    #[default]
    Mean,
    /// The median; of two middle ones the lower.
    Median,
}

/// How the distance between branch values is measured.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum BranchSpread {
    /// The variance, divided by the number of branches.
    #[default]
    Variance,
    /// The upper quartile minus the lower one, each interpolated linearly.
    InterQuartileRange,
    /// The largest minus the smallest.
    Range,
}

/// How [`trie_complexity`] compares branches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct TrieConfig {
    /// Default [`TriePrefix::Any`].
    pub prefix: TriePrefix,
    /// Default [`BranchValue::Mean`].
    pub value: BranchValue,
    /// Default [`BranchSpread::Variance`].
    pub spread: BranchSpread,
    /// Branches with fewer responses are ignored; at least 1, default 1.
    pub min_branch_size: usize,
}

impl Default for TrieConfig {
    fn default() -> Self {
        Self { prefix: TriePrefix::Any, value: BranchValue::Mean, spread: BranchSpread::Variance, min_branch_size: 1 }
    }
}

/// Working memory of [`trie_complexity`]: [`trie_scratch_len`] entries; their content before a call does not matter.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TrieScratch {
    score: f64,
    /// The value of the k-th branch, stored in the k-th entry of the part.
    branch: f64,
    group: usize,
    sequence: usize,
    /// Responses with the same prefix have the same class.
    class: usize,
    token: Option<u32>,
}

impl TrieScratch {
    /// Sort key: responses to be compared become neighbours; those that have no token here come first.
    fn place(&self) -> (usize, usize, Option<u32>) {
        (self.group, self.class, self.token)
    }
}

/// Entries of the scratch of [`trie_complexity`]: one per sequence.
pub const fn trie_scratch_len(batch: &Batch<'_>) -> usize {
    batch.sequences()
}

/// How much the choice of each token decided the score, judged by the other responses to the same prompt.
///
/// ```text
/// score_i = Σ_t r_t
/// at position t of a group: branch_k = mean (or median) of the scores of the responses with token k there
/// C_t = variance (or inter-quartile range, or range) of the branches; 0 with fewer than two different tokens
/// ```
///
/// Every response of the group that is kept at `t` gets this number. Position `t` is the slot within the sequence.
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read and get 0; a response takes part at a position only if it is kept there.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice or the groups do not fit `batch`, or
/// `scratch` does not have [`trie_scratch_len`] entries; [`Error::Config`](crate::Error::Config) if `min_branch_size`
/// is 0.
///
/// **Reference.** BNTO, `docs/bnto.md` §3.4.
///
/// # Example
///
/// ```
/// use tokenwise::{weight::*, Batch, Groups, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(3, 2)?, Mask::new(&[true, true, true, true, true, false]))?;
/// let input = TrieInput { tokens: &[7, 1, 7, 2, 7, 9], rewards: &[0.0, 1.0, 0.0, 3.0, 5.0, f64::NAN] };
/// let mut out = [9.0; 6];
/// let groups = Groups::from_ids(&[0, 0, 0])?;
/// trie_complexity(&batch, &groups, input, &TrieConfig::default(), &mut [TrieScratch::default(); 3], &mut out)?;
/// assert_eq!(out, [0.0, 1.0, 0.0, 1.0, 0.0, 0.0]);   // all began with 7; then 1 gave 1 and 2 gave 3
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn trie_complexity<R: Real>(
    batch: &Batch<'_>,
    groups: &Groups<'_>,
    input: TrieInput<'_, R>,
    config: &TrieConfig,
    scratch: &mut [TrieScratch],
    out: &mut [R],
) -> Result<()> {
    check_count("groups", groups.sequences(), batch.sequences())?;
    check_len("tokens", input.tokens, batch.tokens())?;
    check_len("rewards", input.rewards, batch.tokens())?;
    check_len("scratch", scratch, trie_scratch_len(batch))?;
    check_len("out", out, batch.tokens())?;
    let size = config.min_branch_size;
    check_config("min_branch_size", "at least 1", size as f64, size > 0)?;

    out.fill(R::zero());
    let mut longest = 0;
    for (((sequence, row), group), entry) in batch.rows().enumerate().zip(groups.ids()).zip(scratch.iter_mut()) {
        let score = row_total(&row, input.rewards);
        *entry = TrieScratch { score, group, sequence, ..Default::default() };
        longest = longest.max(row.last_kept().map_or(0, |last| last + 1));
    }
    for t in 0..longest {
        for entry in scratch.iter_mut() {
            let (start, len) = batch.layout().row(entry.sequence);
            let kept = t < len && batch.mask().as_slice()[start + t];
            entry.token = kept.then(|| input.tokens[start + t]);
        }
        // scores within a branch ascend, so that its sum does not depend on the order of the sequences
        scratch.sort_unstable_by(|a, b| a.place().cmp(&b.place()).then(a.score.total_cmp(&b.score)));
        let mut begin = 0;
        while begin < scratch.len() {
            let first = scratch[begin];
            let same = |entry: &TrieScratch| {
                entry.token.is_some() == first.token.is_some()
                    && (entry.group, entry.class) == (first.group, first.class)
            };
            let end = begin + scratch[begin..].iter().take_while(|entry| same(entry)).count();
            if first.token.is_some() {
                let part = &mut scratch[begin..end];
                let complexity = R::narrow(spread(part, config));
                for entry in part {
                    out[batch.layout().row(entry.sequence).0 + t] = complexity;
                }
            }
            begin = end;
        }
        if config.prefix == TriePrefix::Same {
            let (mut class, mut before) = (0, None);
            for entry in scratch.iter_mut() {
                class += usize::from(before.is_some_and(|before| before != entry.place()));
                before = Some(entry.place());
                entry.class = class;
            }
        }
    }
    Ok(())
}

/// Compares the branches of responses sorted by token and score.
fn spread(part: &mut [TrieScratch], config: &TrieConfig) -> f64 {
    let (mut branches, mut tokens, mut begin) = (0, 0, 0);
    while begin < part.len() {
        let token = part[begin].token;
        let size = part[begin..].iter().take_while(|entry| entry.token == token).count();
        tokens += 1;
        if size >= config.min_branch_size {
            let members = &part[begin..begin + size];
            let value = match config.value {
                BranchValue::Mean => mean(members, |entry| entry.score),
                // NaN cannot be ordered
                BranchValue::Median => members
                    .iter()
                    .find(|entry| entry.score.is_nan())
                    .map_or(members[(size - 1) / 2].score, |entry| entry.score),
            };
            part[branches].branch = value;
            branches += 1;
        }
        begin += size;
    }
    if tokens < 2 || branches < 2 {
        return 0.0;
    }
    let part = &mut part[..branches];
    if let Some(entry) = part.iter().find(|entry| entry.branch.is_nan()) {
        return entry.branch;
    }
    // insertion sort: there are few branches, and only their values may move; the responses must stay in place
    for i in 1..branches {
        let mut k = i;
        while k > 0 && part[k].branch < part[k - 1].branch {
            let larger = part[k - 1].branch;
            part[k - 1].branch = part[k].branch;
            part[k].branch = larger;
            k -= 1;
        }
    }
    match config.spread {
        BranchSpread::Variance => {
            let center = mean(part, |entry| entry.branch);
            mean(part, |entry| (entry.branch - center) * (entry.branch - center))
        }
        BranchSpread::InterQuartileRange => quantile(part, 0.75) - quantile(part, 0.25),
        BranchSpread::Range => part[branches - 1].branch - part[0].branch,
    }
}

fn mean(entries: &[TrieScratch], number: impl Fn(&TrieScratch) -> f64) -> f64 {
    let mut sum = Sum::default();
    for entry in entries {
        sum.add(number(entry));
    }
    sum.value() / entries.len() as f64
}

/// Quantile of values in ascending order, interpolated linearly.
fn quantile(sorted: &[TrieScratch], level: f64) -> f64 {
    let place = level * (sorted.len() - 1) as f64;
    let (low, share) = (place as usize, place - (place as usize) as f64);
    let (here, next) = (sorted[low].branch, sorted[(low + 1).min(sorted.len() - 1)].branch);
    here + share * (next - here)
}
