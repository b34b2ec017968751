//! The tokens of a batch as rows.

use std::sync::Arc;

use super::Context;

/// The tokens of prompts and their sampled responses: first the rows of all prompts, then those of the responses.
///
/// The last token of a response predicts nothing and has no row.
#[derive(Clone, Debug)]
pub struct Rows {
    /// The token of each row.
    pub tokens: Vec<u32>,
    /// Its place in the sequence.
    pub positions: Vec<u32>,
    /// What it attends to.
    pub context: Arc<Context>,
    /// The row whose result predicts each response token, in the order of the packed responses.
    pub predictors: Vec<u32>,
}

impl Rows {
    /// Prompts of one length, and for each the same number of responses, none of them empty.
    pub fn new<'a>(prompts: &[Vec<u32>], responses: impl ExactSizeIterator<Item = &'a [u32]>) -> Self {
        let length = prompts.first().map_or(0, Vec::len);
        let samples = responses.len() / prompts.len().max(1);
        let (mut tokens, mut positions) = (Vec::new(), Vec::new());
        let (mut context, mut predictors) = (Context::default(), Vec::new());
        for prompt in prompts {
            let first = tokens.len() as u32;
            tokens.extend(prompt);
            positions.extend(0..length as u32);
            for row in first..tokens.len() as u32 {
                context.push(first..=row);
            }
        }
        for (index, response) in responses.enumerate() {
            let prompt = (index / samples * length) as u32;
            let shared = prompt..prompt + length as u32;
            predictors.push(shared.end - 1);
            let first = tokens.len() as u32;
            let (_, read) = response.split_last().unwrap_or((&0, &[]));
            for (place, &token) in read.iter().enumerate() {
                let row = first + place as u32;
                tokens.push(token);
                positions.push((length + place) as u32);
                context.push(shared.clone().chain(first..=row));
                predictors.push(row);
            }
        }
        Self { tokens, positions, context: Arc::new(context), predictors }
    }
}
