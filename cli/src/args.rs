//! Command-line arguments.

use std::path::PathBuf;

use clap::{
    builder::{PossibleValuesParser, TypedValueParser},
    Args, Parser, Subcommand, ValueEnum,
};
use clap_complete::Shell;
use tokenwise::Profile;
use tokenwise_reader::Budget;

const CODES: &str = "\
Exit codes:
  0  done, nothing found
  1  `lint` or `entropy check` found problems
  2  the arguments are invalid or do not match the files
  3  a file cannot be read, has the wrong format, or needs more than --memory
  4  a result cannot be written";

/// Token-level reinforcement learning on the command line: entropy plots, metrics and lint of rollout files, one chain
/// explained
#[derive(Debug, Parser)]
#[command(name = "tokenwise", version, after_help = CODES, max_term_width = 80, term_width = 80)]
pub(crate) struct Arguments {
    /// How much memory a file may take, such as 512MiB or 4GiB
    #[arg(long, global = true, value_name = "SIZE", default_value = "2GiB", value_parser = memory)]
    pub(crate) memory: Budget,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Draw entropy histories, or any metric over the steps of a run
    #[command(subcommand)]
    Entropy(Entropy),
    /// Print the metrics a trainer would log for rollout files
    Metrics(Metrics),
    /// Print the chain of a small example token by token, and how a value is computed
    Explain(Explain),
    /// Check rollout files for common faults
    Lint(Lint),
    /// Write rollout files as one HTML page: tokens coloured by any quantity, findings, histograms
    Report(Report),
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
    /// Plot every entropy_history_*.json and metrics_*.jsonl below a folder in one picture
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
    /// The output: .png, .svg or .pdf
    #[arg(long, short, default_value = "entropy.png")]
    pub(crate) output: PathBuf,
    /// The metric to read from a metrics file (JSON Lines, CSV, TensorBoard); default: the entropy
    #[arg(long)]
    pub(crate) key: Option<String>,
    /// Draw runs that differ only in their seed (`…_seed1`, `…-s2`) as one mean with a band from minimum to maximum
    #[arg(long)]
    pub(crate) seeds: bool,
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
    #[arg(long, allow_negative_numbers = true, value_name = "SHARE")]
    pub(crate) collapse: Option<f64>,
    /// Width of the picture in points; text keeps its size
    #[arg(long, default_value_t = 720, value_parser = clap::value_parser!(u32).range(320..=4000))]
    pub(crate) width: u32,
    /// Pixels per point of a .png
    #[arg(long, allow_negative_numbers = true, default_value_t = 2.0)]
    pub(crate) scale: f32,
    /// Print the statistics as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Options of the commands that read rollouts.
#[derive(Args, Debug)]
pub(crate) struct Reading {
    /// The rollouts: .json, .jsonl, .csv, .parquet or .safetensors, also .gz and .zst; several files, patterns such as
    /// 'step_*/rank_*.jsonl', folders, or - for standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Read a field under another name, e.g. score=accuracy_reward; with an empty name it is not read
    #[arg(long = "field", value_name = "FIELD=NAME")]
    pub(crate) fields: Vec<String>,
    /// For files without steps: split into batches of at most this many tokens
    #[arg(long, value_name = "TOKENS")]
    #[arg(default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=1 << 31))]
    pub(crate) batch_tokens: u64,
    /// Wait for more when the file ends, and report each step when it is complete
    #[arg(long)]
    pub(crate) follow: bool,
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
    /// Lower clip range (1 − ε)
    #[arg(long, allow_negative_numbers = true, default_value_t = 0.2)]
    pub(crate) clip_low: f64,
    /// Upper clip range (1 + ε)
    #[arg(long, allow_negative_numbers = true, default_value_t = 0.2)]
    pub(crate) clip_high: f64,
    /// Coefficient of the KL loss in verl's actor/loss; default: verl's own
    #[arg(long, allow_negative_numbers = true, value_name = "NUMBER")]
    pub(crate) kl_coefficient: Option<f64>,
    /// Coefficient of the entropy bonus; default: none
    #[arg(long, allow_negative_numbers = true, value_name = "NUMBER")]
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
    /// Only these metrics, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "KEY")]
    pub(crate) keys: Vec<String>,
    /// Print one row per step instead of one number for all
    #[arg(long, conflicts_with_all = ["json", "csv", "diff"])]
    pub(crate) steps: bool,
    /// Print a CSV table with one row per step
    #[arg(long, conflicts_with_all = ["json", "diff"])]
    pub(crate) csv: bool,
    /// Draw the metrics over the steps: .png, .svg or .pdf
    #[arg(long, value_name = "FILE", conflicts_with = "diff")]
    pub(crate) plot: Option<PathBuf>,
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
    #[arg(long, allow_negative_numbers = true, default_value_t = 1e-4)]
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
pub(crate) struct Report {
    #[command(flatten)]
    pub(crate) reading: Reading,
    /// The page
    #[arg(long, short, default_value = "report.html")]
    pub(crate) output: PathBuf,
    /// Show at most this many sequences; all are checked
    #[arg(long, default_value_t = 200)]
    pub(crate) sequences: usize,
    /// Language in which the page opens; it holds both
    #[arg(long, value_enum, default_value_t = Language::En)]
    pub(crate) lang: Language,
}

#[derive(Args, Debug)]
pub(crate) struct Explain {
    /// A JSON object with tokens, scores, kl, values and optionally mask, beta, gamma, lambda, or a rollout file with
    /// --row; default: 1+1=2
    pub(crate) file: Option<PathBuf>,
    /// Explain this line, row or record of a rollout file, counted from 1
    #[arg(long, requires = "file")]
    pub(crate) row: Option<u64>,
    /// Read a field of the rollout file under another name
    #[arg(long = "field", value_name = "FIELD=NAME", requires = "row")]
    pub(crate) fields: Vec<String>,
    /// Coefficient of the KL penalty
    #[arg(long, allow_negative_numbers = true, requires = "row", default_value_t = 0.1)]
    pub(crate) beta: f64,
    /// Discount γ
    #[arg(long, allow_negative_numbers = true, requires = "row", default_value_t = 1.0)]
    pub(crate) gamma: f64,
    /// λ of GAE
    #[arg(long, allow_negative_numbers = true, requires = "row", default_value_t = 0.95)]
    pub(crate) lambda: f64,
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

/// A size in bytes: `512MiB`, `4GiB`, `2G`, `1000000`.
fn memory(text: &str) -> Result<Budget, String> {
    const LEAST: u64 = 1 << 20;
    let wrong = || format!("expected a size of at least 1MiB, such as 512MiB or 4GiB, got {text:?}");
    let split = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let scale: u64 = match unit.trim().to_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        "t" | "tb" | "tib" => 1 << 40,
        _ => return Err(wrong()),
    };
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(scale)).ok_or_else(wrong)?;
    if bytes < LEAST {
        return Err(wrong());
    }
    Ok(Budget::new(bytes))
}
