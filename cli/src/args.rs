//! Command-line arguments.

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
  1  `lint` or `entropy check` found problems
  2  the arguments are invalid or do not match the files
  3  a file cannot be read or has the wrong format
  4  a result cannot be written";

/// Token-level reinforcement learning on the command line: entropy plots, metrics and lint of rollout files, one chain
/// explained
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
    /// Print the chain of a small example token by token, and how a value is computed
    Explain(Explain),
    /// Check a rollout file for common faults
    Lint(Lint),
    /// Print a completion script for a shell
    Completions {
        /// bash, zsh, fish, …
        shell: Shell,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Entropy {
    /// Plot one history
    Plot {
        /// The history
        file: PathBuf,
        /// Label of the curve; by default the experiment in the file name
        #[arg(long)]
        label: Option<String>,
        #[command(flatten)]
        drawing: Drawing,
    },
    /// Plot several histories in one picture
    Compare {
        /// The histories
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Labels, one per file in the same order
        #[arg(long, num_args = 1..)]
        labels: Vec<String>,
        #[command(flatten)]
        drawing: Drawing,
    },
    /// Plot every entropy_history_*.json below a folder in one picture
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
    /// The output: .png or .svg
    #[arg(long, short, default_value = "entropy.png")]
    pub(crate) output: PathBuf,
    /// Also draw mean, maximum and minimum entropy of each run
    #[arg(long, alias = "with_stats")]
    pub(crate) with_stats: bool,
    /// Title of the picture
    #[arg(long)]
    pub(crate) title: Option<String>,
    /// Moving average over this many steps; the raw curve stays visible behind it
    #[arg(long, default_value_t = 1, value_name = "STEPS", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) smooth: u32,
    /// Mark the step from which the entropy stays below this share of its first value, between 0 and 1
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
    /// Read a field under another name, e.g. score=accuracy_reward
    #[arg(long = "field", value_name = "FIELD=NAME")]
    pub(crate) fields: Vec<String>,
    /// For files without steps: split into batches of at most this many tokens
    #[arg(long, value_name = "TOKENS")]
    #[arg(default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=1 << 31))]
    pub(crate) batch_tokens: u64,
}

#[derive(Args, Debug)]
pub(crate) struct Metrics {
    #[command(flatten)]
    pub(crate) reading: Reading,
    /// The framework whose metrics and conventions to use
    #[arg(long, default_value = "verl-0.9.1", value_parser = profile())]
    pub(crate) profile: Profile,
    /// Also report what differs under this profile, by how much, where and why
    #[arg(long, value_name = "PROFILE", value_parser = profile())]
    pub(crate) diff: Option<Profile>,
    /// Clip range ε below 1
    #[arg(long, default_value_t = 0.2)]
    pub(crate) clip_low: f64,
    /// Clip range ε above 1
    #[arg(long, default_value_t = 0.2)]
    pub(crate) clip_high: f64,
    /// Coefficient of the KL loss in verl's actor/loss; default: verl's own
    #[arg(long, value_name = "NUMBER")]
    pub(crate) kl_coefficient: Option<f64>,
    /// Coefficient of the entropy bonus; default: none
    #[arg(long, value_name = "NUMBER")]
    pub(crate) entropy_coefficient: Option<f64>,
    /// Correct for the sampler (needs rollout_log_probs); TRL always does
    #[arg(long)]
    pub(crate) correct: bool,
    /// Maximum response length; prints the share of truncated responses
    #[arg(long, value_name = "TOKENS")]
    pub(crate) max_response: Option<u32>,
    /// Maximum prompt length; prints the share of truncated prompts
    #[arg(long, value_name = "TOKENS")]
    pub(crate) max_prompt: Option<u32>,
    /// Who computes the losses; what the GPU does not answer, the core does, in f64. Says on stderr who computed what
    #[arg(long, value_enum, default_value_t = EngineChoice::Cpu)]
    pub(crate) engine: EngineChoice,
    /// Print one JSON object per batch, and one for all batches if there are several
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineChoice {
    /// The core, in f64
    Cpu,
    /// The GPU, in f32; needs a build with `--features gpu-shim`
    Gpu,
    /// The GPU where there is one and the batch is large enough
    Auto,
}

#[derive(Args, Debug)]
pub(crate) struct Lint {
    #[command(flatten)]
    pub(crate) reading: Reading,
    /// Largest difference at which two values count as equal
    #[arg(long, default_value_t = 1e-4)]
    pub(crate) tolerance: f64,
    /// The file holds the first update after sampling: every ratio must be 1
    #[arg(long)]
    pub(crate) first_step: bool,
    /// Print at most this many findings; all are counted
    #[arg(long, default_value_t = 50)]
    pub(crate) limit: usize,
    /// Print one JSON object per finding
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Explain {
    /// A JSON object with tokens, scores, kl, values and optionally mask, beta, gamma, lambda; default: 1+1=2
    pub(crate) file: Option<PathBuf>,
    /// The value to explain: a row and a token counted from 1, e.g. advantage:3
    #[arg(long, value_name = "ROW:TOKEN")]
    pub(crate) cell: Option<String>,
    /// Language of the output
    #[arg(long, value_enum, default_value_t = Language::En)]
    pub(crate) lang: Language,
    /// Print the rows as one JSON object
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
