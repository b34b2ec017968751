//! The arrays of a call, inputs and outputs, and what is made of them.
//!
//! JavaScript has checked the arguments and written them into one queue, in the order that `js/call.js` says; each function
//! takes them out in that order, after the batch. All arrays of a kind lie in one buffer, one after the other, the outputs last.

use alloc::vec::Vec;
use core::mem;

use tokenwise::{
    loss::{Aggregate, AggregateMode},
    Batch, Either, Groups, Layout, Mask, Real as _,
};

use crate::{
    error::{refuse, Result},
    js,
    read::Read,
};

/// The kinds of arrays, by the numbers that `js/read.js` has for them.
const REALS: u32 = 0;
const SINGLES: u32 = 1;
const DOUBLES: u32 = 2;
const WORDS: u32 = 3;
const COUNTS: u32 = 4;
const FLAGS: u32 = 5;

/// What has not been taken yet.
pub(crate) struct Call<'a> {
    /// That of the call; without slots where it has none.
    pub(crate) batch: &'a Batch<'a>,
    reals: &'a mut [Either],
    singles: &'a mut [f32],
    doubles: &'a mut [f64],
    words: &'a mut [u32],
    counts: &'a mut [u64],
    flags: &'a mut [bool],
}

/// A function with its arguments in the queue; its results go the same way.
pub(crate) type Body<'b> = &'b mut dyn FnMut(&mut Call<'_>) -> Result;

/// Copies the arrays in, runs the function, copies the outputs out.
pub(crate) fn run(single: bool, body: Body<'_>) {
    Either::choose(single);
    let mut reals: Vec<Either> = filled(REALS, js::load_f64).into_iter().map(Either::from).collect();
    let mut singles = filled(SINGLES, js::load_f32);
    let mut doubles = filled(DOUBLES, js::load_f64);
    let mut words = filled(WORDS, js::load_u32);
    let mut counts: Vec<u64> = filled(COUNTS, js::load_u32).into_iter().map(u64::from).collect();
    let mut flags: Vec<bool> = filled(FLAGS, js::load_u8).into_iter().map(|flag| flag == 1).collect();
    let (mut some_words, mut some_flags) = (words.as_mut_slice(), flags.as_mut_slice());
    let result = batch(&mut some_words, &mut some_flags).and_then(|batch| {
        body(&mut Call {
            batch: &batch,
            reals: &mut reals,
            singles: &mut singles,
            doubles: &mut doubles,
            words: some_words,
            counts: &mut counts,
            flags: some_flags,
        })
    });
    match result {
        Ok(()) => {
            js::store_f64(REALS, &wide(reals));
            js::store_f32(SINGLES, &singles);
            js::store_u8(FLAGS, &bytes(flags));
        }
        Err(error) => refuse(&error),
    }
}

fn filled<T: Clone + Default>(kind: u32, load: fn(u32, &mut [T])) -> Vec<T> {
    let mut all = zeros(js::total(kind));
    if !all.is_empty() {
        load(kind, &mut all);
    }
    all
}

/// As JavaScript has them.
pub(crate) fn wide(reals: Vec<Either>) -> Vec<f64> {
    reals.into_iter().map(|real| real.widen()).collect()
}

/// 0 and 1.
pub(crate) fn bytes(flags: Vec<bool>) -> Vec<u8> {
    flags.into_iter().map(u8::from).collect()
}

/// Room for an output. Without memory the call is refused, and goes on with nothing until the core sees it.
pub(crate) fn zeros<T: Clone + Default>(len: usize) -> Vec<T> {
    let mut out = Vec::new();
    match out.try_reserve_exact(len) {
        Ok(()) => out.resize(len, T::default()),
        Err(_) => crate::error::no_memory(len),
    }
    out
}

/// The next array; none where the length says so.
fn next<'a, T>(rest: &mut &'a mut [T]) -> Option<&'a mut [T]> {
    let len = js::index(u32::MAX) as usize;
    let all = mem::take(rest);
    if len > all.len() {
        *rest = all;
        return None;
    }
    let (first, others) = all.split_at_mut(len);
    *rest = others;
    Some(first)
}

/// Padded: rows and their length. Packed: offsets.
#[inline(never)]
fn layout<'a>(words: &mut &'a mut [u32]) -> Result<Layout<'a>> {
    if js::index(0) == 0 {
        let batch = js::index(0) as usize;
        return Layout::padded(batch, js::index(0) as usize);
    }
    Layout::packed(next(words).unwrap_or_default())
}

/// Every call begins with one.
fn batch<'a>(words: &mut &'a mut [u32], flags: &mut &'a mut [bool]) -> Result<Batch<'a>> {
    let layout = layout(words)?;
    Batch::new(layout, Mask::new(next(flags).unwrap_or_default()))
}

impl<'a> Call<'a> {
    #[inline(never)]
    pub(crate) fn optional_real(&mut self) -> Option<&'a [Either]> {
        next(&mut self.reals).map(|array| &*array)
    }

    /// An input or an output.
    #[inline(never)]
    pub(crate) fn real(&mut self) -> &'a mut [Either] {
        next(&mut self.reals).unwrap_or_default()
    }

    /// An input or an output of the formulas that are compiled for `f32`.
    #[inline(never)]
    pub(crate) fn single(&mut self) -> &'a mut [f32] {
        next(&mut self.singles).unwrap_or_default()
    }

    #[inline(never)]
    pub(crate) fn optional_double(&mut self) -> Option<&'a [f64]> {
        next(&mut self.doubles).map(|array| &*array)
    }

    pub(crate) fn double(&mut self) -> &'a [f64] {
        self.optional_double().unwrap_or_default()
    }

    #[inline(never)]
    pub(crate) fn optional_words(&mut self) -> Option<&'a [u32]> {
        next(&mut self.words).map(|array| &*array)
    }

    #[inline(never)]
    pub(crate) fn words(&mut self) -> &'a [u32] {
        self.optional_words().unwrap_or_default()
    }

    #[inline(never)]
    pub(crate) fn optional_flags(&mut self) -> Option<&'a mut [bool]> {
        next(&mut self.flags)
    }

    /// An input or an output.
    pub(crate) fn flags(&mut self) -> &'a mut [bool] {
        self.optional_flags().unwrap_or_default()
    }

    pub(crate) fn layout(&mut self) -> Result<Layout<'a>> {
        layout(&mut self.words)
    }

    /// By id, or by size.
    #[inline(never)]
    pub(crate) fn groups(&mut self) -> Result<Groups<'a>> {
        if js::index(0) == 0 {
            Groups::from_ids(self.words())
        } else {
            Groups::contiguous(self.words())
        }
    }

    /// How the losses of the tokens become one number. Groups that are refused leave the usual way: nobody will see the result.
    #[inline(never)]
    pub(crate) fn aggregate(&mut self, usual: Aggregate<'a>) -> Aggregate<'a> {
        if js::index(0) == 0 {
            return usual;
        }
        let mode = match js::index(u32::MAX) {
            0 => AggregateMode::TokenMean,
            1 => AggregateMode::TokenSum,
            2 => AggregateMode::SequenceMeanTokenSum,
            3 => AggregateMode::SequenceMeanTokenMean,
            4 => AggregateMode::SequenceMeanTokenSumNorm { scale: js::number(0.0) },
            5 => {
                let (groups, tokens) = (self.groups(), next(&mut self.counts).unwrap_or_default());
                match groups {
                    Ok(groups) => AggregateMode::PromptMean { groups, tokens },
                    Err(error) => {
                        refuse(&error);
                        usual.mode
                    }
                }
            }
            _ => usual.mode,
        };
        Aggregate {
            mode,
            counts: Read::read(usual.counts),
            empty_rows: Read::read(usual.empty_rows),
            divisor: Read::read(usual.divisor),
        }
    }
}
