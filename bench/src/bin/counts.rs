//! Runs one item some times, for a program that counts instructions: `counts gae 3`. What one run takes is the difference between
//! two counts of runs, so that filling the buffers does not matter.
#![forbid(unsafe_code)]

use std::{env, process::ExitCode};

use tokenwise_bench::{
    item::{LogitsItem, TokenItem},
    logits::{Kind, Logits},
    tokens::{Form, Tokens},
};

/// Small enough for a slow counter, large enough that a row's beginning and end weigh little.
const SEQUENCES: usize = 8;
const LEN: usize = 1024;
const ROWS: usize = 4;
const VOCAB: usize = 16_384;

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let [name, times] = &words[..] else { return usage() };
    let Ok(times) = times.parse() else { return usage() };
    match count(name, times) {
        Some(Ok(())) => ExitCode::SUCCESS,
        Some(Err(error)) => {
            eprintln!("{name}: {error}");
            ExitCode::FAILURE
        }
        None => usage(),
    }
}

/// Prints how many tokens one run has, and runs; `None` for an unknown name.
fn count(name: &str, times: usize) -> Option<tokenwise::Result<()>> {
    if let Some(&item) = TokenItem::ALL.iter().find(|item| item.name() == name) {
        return Some(Tokens::new(SEQUENCES, LEN, Form::Packed).and_then(|mut tokens| {
            println!("{}", tokens.kept());
            (0..times).try_for_each(|_| tokens.run(item))
        }));
    }
    let (name, kind) = name.rsplit_once('-')?;
    let &item = LogitsItem::ALL.iter().find(|item| item.name() == name)?;
    let &kind = Kind::ALL.iter().find(|known| known.name() == kind)?;
    Some(Logits::new(ROWS, VOCAB, kind).and_then(|mut logits| {
        println!("{}", ROWS * VOCAB);
        (0..times).try_for_each(|_| logits.run(item))
    }))
}

fn usage() -> ExitCode {
    let tokens = TokenItem::ALL.map(TokenItem::name).join(", ");
    eprintln!("counts ITEM TIMES; items: {tokens}, logits-f32, logits-bf16, logits-gradient-f32, logits-gradient-bf16");
    ExitCode::FAILURE
}
