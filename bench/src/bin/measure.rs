//! Times our formulas alone and prints one JSON record per line: `measure [--only ITEM] [--rows N] [--growth]
//! [--bits]`.
#![forbid(unsafe_code)]

use std::{env, process::ExitCode, time::Duration};

use tokenwise::Result;
use tokenwise_bench::{
    clock::{measure, Contestant},
    item::{LogitsItem, TokenItem},
    limit::Limit,
    logits::{Kind, Logits},
    tokens::{Form, Tokens},
};

const SHAPES: [(usize, usize); 2] = [(256, 4096), (64, 1024)];
const VOCAB: usize = 151_936;
/// The longest row of the growth curve.
const GROWTH_LEN: usize = 4096;
const GROWTH: [usize; 6] = [1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// Command-line arguments.
struct Request {
    only: Option<String>,
    /// Print hashes of the results instead of times.
    bits: bool,
    /// Rows of logits.
    rows: usize,
    budget: Duration,
}

impl Request {
    fn wants(&self, name: &str) -> bool {
        self.only.as_deref().map_or(true, |only| only == name)
    }
}

fn main() -> ExitCode {
    let mut words = env::args().skip(1);
    let mut request = Request { only: None, bits: false, rows: 512, budget: Duration::from_millis(1500) };
    let mut growth_asked = false;
    while let Some(word) = words.next() {
        match word.as_str() {
            "--only" => request.only = words.next(),
            "--rows" => request.rows = words.next().and_then(|rows| rows.parse().ok()).unwrap_or(request.rows),
            "--bits" => request.bits = true,
            "--growth" => growth_asked = true,
            _ => {
                eprintln!("unknown argument {word:?}");
                return ExitCode::FAILURE;
            }
        }
    }
    match if growth_asked { growth() } else { all(&request) } {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn all(request: &Request) -> Result<()> {
    for (sequences, len) in SHAPES {
        for form in [Form::Padded, Form::Packed] {
            let suffix = if form == Form::Packed { " packed" } else { "" };
            let shape = format!("{sequences}×{len}{suffix}");
            let mut tokens = None;
            for item in TokenItem::ALL.into_iter().filter(|item| request.wants(item.name())) {
                let tokens = match &mut tokens {
                    Some(tokens) => tokens,
                    empty => empty.insert(Tokens::new(sequences, len, form)?),
                };
                token_item(request, tokens, item, &shape)?;
            }
        }
    }
    for item in LogitsItem::ALL {
        for kind in Kind::ALL {
            let name = format!("{}-{}", item.name(), kind.name());
            if request.wants(&name) {
                logits_item(request, item, kind, &name)?;
            }
        }
    }
    Ok(())
}

fn token_item(request: &Request, tokens: &mut Tokens, item: TokenItem, shape: &str) -> Result<()> {
    if request.bits {
        bits(item.name(), shape, tokens.fingerprint(item)?);
        return Ok(());
    }
    let (read, written) = item.bytes();
    let (slots, kept) = (tokens.slots(), tokens.kept());
    let mut data = (&mut *tokens, Limit::new(slots * (read + written) / 2, slots * (read + written)));
    let contestants = [
        Contestant {
            name: "ours",
            call: |data: &mut (&mut Tokens, Limit), item| run(data.0, item),
            argument: item as usize,
        },
        Contestant { name: "copy", call: |data, bytes| data.1.copy(bytes), argument: slots * (read + written) / 2 },
        Contestant { name: "read", call: |data, bytes| _ = data.1.read(bytes), argument: slots * (read + written) },
    ];
    timed(item.name(), shape, kept, &mut data, &contestants, request.budget);
    Ok(())
}

fn run(tokens: &mut Tokens, item: usize) {
    // errors were checked in the warm-up run
    if tokens.run(TokenItem::ALL[item]).is_err() {
        eprintln!("{} failed", TokenItem::ALL[item].name());
    }
}

fn logits_item(request: &Request, item: LogitsItem, kind: Kind, name: &str) -> Result<()> {
    let rows = request.rows;
    let shape = format!("{rows}×{VOCAB}");
    let mut logits = Logits::new(rows, VOCAB, kind)?;
    if request.bits {
        bits(name, &shape, logits.fingerprint(item)?);
        return Ok(());
    }
    let bytes = rows * VOCAB * (kind.bytes() + if item == LogitsItem::Gradient { 4 } else { 0 });
    let mut data = (logits, Limit::new(bytes / 2, bytes));
    let call = |data: &mut (Logits, Limit), item: usize| {
        if data.0.run(LogitsItem::ALL[item]).is_err() {
            eprintln!("{} failed", LogitsItem::ALL[item].name());
        }
    };
    let contestants = [
        Contestant { name: "ours", call, argument: item as usize },
        Contestant { name: "copy", call: |data, bytes| data.1.copy(bytes), argument: bytes / 2 },
        Contestant { name: "read", call: |data, bytes| _ = data.1.read(bytes), argument: bytes },
    ];
    timed(name, &shape, rows, &mut data, &contestants, request.budget);
    Ok(())
}

fn timed<T>(item: &str, shape: &str, tokens: usize, data: &mut T, contestants: &[Contestant<'_, T>], budget: Duration) {
    for (contestant, time) in contestants.iter().zip(measure(data, contestants, budget)) {
        println!(
            r#"{{"item":"{item}","shape":"{shape}","tokens":{tokens},"who":"{}","ms":{},"least":{},"samples":{}}}"#,
            contestant.name, time.median, time.least, time.samples
        );
    }
}

fn bits(item: &str, shape: &str, fingerprint: u64) {
    println!(r#"{{"item":"{item}","shape":"{shape}","fingerprint":"{fingerprint:016x}"}}"#);
}

/// Time per token over five powers of ten.
fn growth() -> Result<()> {
    for slots in GROWTH {
        let len = GROWTH_LEN.min(slots / 4);
        let mut tokens = Tokens::new(slots.div_ceil(len), len, Form::Padded)?;
        for item in [TokenItem::Gae, TokenItem::Ppo, TokenItem::Analysis] {
            let kept = tokens.kept();
            let contestants = [Contestant { name: "ours", call: run, argument: item as usize }];
            let time = measure(&mut tokens, &contestants, Duration::from_millis(1000))[0];
            println!(
                r#"{{"growth":"{}","slots":{},"tokens":{kept},"ms":{}}}"#,
                item.name(),
                tokens.slots(),
                time.median
            );
        }
    }
    Ok(())
}
