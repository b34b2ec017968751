//! What can be asked on the command line.

use std::path::PathBuf;

use clap::{
    builder::{PossibleValuesParser, TypedValueParser},
    Args, Parser, Subcommand, ValueEnum,
};
use clap_complete::Shell;
use tokenwise::Profile;

const CODES: &str = "\
Exit codes:
  0  done, nothing found
  1  `lint` or `entropy check` found faults
  2  the arguments are wrong, or do not fit the files
  3  a file cannot be read or is not what it should be
  4  a result cannot be written";

/// Token-level reinforcement learning on the command line: entropy plots, metrics of rollout files, their faults, one chain explained.
#[derive(Debug, Parser)]
#[command(name = "tokenwise", version, after_help = CODES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Draw entropy histories, files named entropy_history_EXPERIMENT.json
    #[command(subcommand)]
    Entropy(Entropy),
    /// Print the metrics a trainer would log for a rollout file
    Metrics(Metrics),
    /// Print the chain of a small example token by token, and how a number came about
    Explain(Explain),
    /// Search a rollout file for the usual faults
    Lint(Lint),
    /// Print a completion script for a shell
    Completions {
        /// bash, zsh, fish, …
        shell: Shell,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Entropy {
    /// One history
    Plot {
        /// The history
        file: PathBuf,
        /// What to call it; by default the experiment in its name
        #[arg(long)]
        label: Option<String>,
        #[command(flatten)]
        drawing: Drawing,
    },
    /// Several histories in one picture
    Compare {
        /// The histories
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// What to call them, one label for each file in the same order
        #[arg(long, num_args = 1..)]
        labels: Vec<String>,
        #[command(flatten)]
        drawing: Drawing,
    },
    /// Every entropy_history_*.json below a folder in one picture
    Scan {
        /// The folder
        folder: PathBuf,
        #[command(flatten)]
        drawing: Drawing,
    },
    /// Compare the entropy kernel with known values; needs no file and no GPU
    Check,
}

#[derive(Args, Debug)]
pub(crate) struct Drawing {
    /// The picture: .png or .svg
    #[arg(long, short, default_value = "entropy.png")]
    pub(crate) output: PathBuf,
    /// Also draw mean, largest and smallest entropy of each run side by side
    #[arg(long, alias = "with_stats")]
    pub(crate) with_stats: bool,
    /// What stands above the picture
    #[arg(long)]
    pub(crate) title: Option<String>,
    /// Mean over this many steps around each; the unsmoothed curve stays behind it, pale
    #[arg(long, default_value_t = 1, value_name = "STEPS", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) smooth: u32,
    /// Mark where entropy first stays below this share of its start, between 0 and 1
    #[arg(long, value_name = "SHARE")]
    pub(crate) collapse: Option<f64>,
    /// Width of the picture in points; text keeps its size
    #[arg(long, default_value_t = 720, value_parser = clap::value_parser!(u32).range(320..=4000))]
    pub(crate) width: u32,
    /// Pixels per point of a .png
    #[arg(long, default_value_t = 2.0)]
    pub(crate) scale: f32,
    /// Print the statistics as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Options of the commands that read rollouts.
#[derive(Args, Debug)]
pub(crate) struct Reading {
    /// The rollouts: .json, .jsonl, .csv, .parquet or .safetensors
    pub(crate) file: PathBuf,
    /// Where a field stands under another name, e.g. score=accuracy_reward
    #[arg(long = "field", value_name = "FIELD=NAME")]
    pub(crate) fields: Vec<String>,
    /// Without steps in the file: cut it into batches of at most so many tokens
    #[arg(long, default_value_t = 1_000_000, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..=1 << 31))]
    pub(crate) batch_tokens: u64,
}

#[derive(Args, Debug)]
pub(crate) struct Metrics {
    #[command(flatten)]
    pub(crate) reading: Reading,
    /// Whose metrics, by whose conventions
    #[arg(long, default_value = "verl-0.9.1", value_parser = profile())]
    pub(crate) profile: Profile,
    /// Also tell what comes out differently under this one, by how much, where and why
    #[arg(long, value_name = "PROFILE", value_parser = profile())]
    pub(crate) diff: Option<Profile>,
    /// The clip range ε below and above 1
    #[arg(long, default_value_t = 0.2)]
    pub(crate) clip_low: f64,
    /// The same above
    #[arg(long, default_value_t = 0.2)]
    pub(crate) clip_high: f64,
    /// The coefficient of the KL loss in verl's actor/loss; by default verl's own
    #[arg(long, value_name = "NUMBER")]
    pub(crate) kl_coefficient: Option<f64>,
    /// The coefficient of the entropy bonus; by default there is none
    #[arg(long, value_name = "NUMBER")]
    pub(crate) entropy_coefficient: Option<f64>,
    /// Correct for the sampler (needs rollout_log_probs); TRL always does
    #[arg(long)]
    pub(crate) correct: bool,
    /// The most tokens a response could have: with it the shares that were cut are printed
    #[arg(long, value_name = "TOKENS")]
    pub(crate) max_response: Option<u32>,
    /// The same of the prompt
    #[arg(long, value_name = "TOKENS")]
    pub(crate) max_prompt: Option<u32>,
    /// One JSON object a batch, and one for all of them if there are several
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Lint {
    #[command(flatten)]
    pub(crate) reading: Reading,
    /// How far two numbers may differ and still count as equal
    #[arg(long, default_value_t = 1e-4)]
    pub(crate) tolerance: f64,
    /// The file holds the first update after sampling: every ratio must be 1
    #[arg(long)]
    pub(crate) first_step: bool,
    /// Print at most so many findings; all are counted
    #[arg(long, default_value_t = 50)]
    pub(crate) limit: usize,
    /// One JSON object a finding
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Explain {
    /// A JSON object with tokens, scores, kl, values and, if wanted, mask, beta, gamma, lambda; by default 1+1=2
    pub(crate) file: Option<PathBuf>,
    /// Which number to explain: a row and a token counted from 1, e.g. advantage:3
    #[arg(long, value_name = "ROW:TOKEN")]
    pub(crate) cell: Option<String>,
    /// In which language
    #[arg(long, value_enum, default_value_t = Language::En)]
    pub(crate) lang: Language,
    /// The rows as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    /// English
    En,
    /// 中文
    Zh,
}

fn profile() -> impl TypedValueParser<Value = Profile> {
    PossibleValuesParser::new(Profile::ALL.map(Profile::name))
        .try_map(|name| Profile::from_name(&name).ok_or("no such profile"))
}
