//! All batches of a file, concatenated.

use std::collections::HashMap;

use tokenwise_reader::{Column, Kind, Rollouts};
use wasm_bindgen::prelude::*;

/// Means no group or no prompt.
const NONE: u32 = u32::MAX;
/// Characters of the name of a group.
const NAME: usize = 79;

/// The contents of a file. Every array is a copy.
#[wasm_bindgen]
pub struct Dataset {
    kind: Kind,
    pub(crate) passed_over: Vec<String>,
    parts: Vec<u32>,
    offsets: Vec<u32>,
    keep: Vec<u8>,
    columns: [Vec<f64>; Column::ALL.len()],
    places: Vec<u32>,
    steps: Vec<f64>,
    scores: Vec<f64>,
    scored: Vec<u8>,
    first_update: Vec<u8>,
    group: Vec<u32>,
    groups: HashMap<u64, u32>,
    group_names: Vec<String>,
    prompt: Vec<u32>,
    known_prompts: HashMap<String, u32>,
    prompts: Vec<String>,
    text: String,
    text_ends: Vec<u32>,
    /// Letters of `text` as JavaScript counts them.
    letters: u32,
    padded: u32,
}

impl Dataset {
    pub(crate) fn new(kind: Kind) -> Self {
        Self {
            kind,
            passed_over: Vec::new(),
            parts: vec![0],
            offsets: vec![0],
            keep: Vec::new(),
            columns: Default::default(),
            places: Vec::new(),
            steps: Vec::new(),
            scores: Vec::new(),
            scored: Vec::new(),
            first_update: Vec::new(),
            group: Vec::new(),
            groups: HashMap::new(),
            group_names: Vec::new(),
            prompt: Vec::new(),
            known_prompts: HashMap::new(),
            prompts: Vec::new(),
            text: String::new(),
            text_ends: Vec::new(),
            letters: 0,
            padded: 0,
        }
    }

    /// Adds a batch.
    pub(crate) fn add(&mut self, batch: &Rollouts) {
        let before = self.keep.len();
        self.offsets.extend(batch.offsets.iter().skip(1).map(|end| before as u32 + end));
        self.keep.extend(batch.kept().iter().map(|keep| u8::from(*keep)));
        for column in Column::ALL {
            if let Some(numbers) = batch.column(column) {
                let all = &mut self.columns[column as usize];
                // batches without it had no tokens, or the reader would have refused this one
                all.resize(before, f64::NAN);
                all.extend(numbers);
            }
        }
        for (row, label) in batch.rows.iter().zip(batch.labels()) {
            self.places.push(u32::try_from(row.place).unwrap_or(u32::MAX));
            self.steps.push(row.step.map_or(f64::NAN, |step| step as f64));
            self.scores.push(row.score.unwrap_or(f64::NAN));
            self.scored.push(u8::from(row.score.is_some()));
            self.first_update.push(u8::from(row.first_update));
            let group = row.group.map_or(NONE, |group| {
                *self.groups.entry(group).or_insert_with(|| {
                    self.group_names.push(label.group.chars().take(NAME).collect());
                    self.group_names.len() as u32 - 1
                })
            });
            self.group.push(group);
            self.padded += u32::from(label.padding > 0);
            let prompt = self.prompt_number(&label.prompt);
            self.prompt.push(prompt);
        }
        for text in batch.texts() {
            self.text.push_str(text);
            self.letters += text.encode_utf16().count() as u32;
            self.text_ends.push(self.letters);
        }
        self.parts.push(self.offsets.len() as u32 - 1);
    }

    fn prompt_number(&mut self, prompt: &str) -> u32 {
        if prompt.is_empty() {
            return NONE;
        }
        if let Some(number) = self.known_prompts.get(prompt) {
            return *number;
        }
        let number = self.prompts.len() as u32;
        self.prompts.push(prompt.into());
        self.known_prompts.insert(prompt.into(), number);
        number
    }
}

#[wasm_bindgen]
impl Dataset {
    /// The usual file name extension of its format.
    #[wasm_bindgen(getter)]
    pub fn kind(&self) -> String {
        self.kind.ending().into()
    }

    /// Names with numbers that match no field.
    #[wasm_bindgen(getter, js_name = passedOver)]
    pub fn passed_over(&self) -> Vec<String> {
        self.passed_over.clone()
    }

    /// How many sequences have texts of padding after their last number; these are left out.
    #[wasm_bindgen(getter)]
    pub fn padded(&self) -> u32 {
        self.padded
    }

    /// The first sequence of every part (the sequences of one step), and how many there are in all.
    #[wasm_bindgen(getter)]
    pub fn parts(&self) -> Vec<u32> {
        self.parts.clone()
    }

    /// Where each sequence begins; one more than there are sequences.
    #[wasm_bindgen(getter)]
    pub fn offsets(&self) -> Vec<u32> {
        self.offsets.clone()
    }

    /// 1 where a token takes part.
    #[wasm_bindgen(getter)]
    pub fn keep(&self) -> Vec<u8> {
        self.keep.clone()
    }

    /// The numbers of a column, by the name it has in files; nothing if the file does not have it.
    pub fn column(&self, name: &str) -> Option<Vec<f64>> {
        let column = Column::ALL.into_iter().find(|column| column.name() == name)?;
        let numbers = &self.columns[column as usize];
        (!numbers.is_empty()).then(|| {
            let mut numbers = numbers.clone();
            numbers.resize(self.keep.len(), f64::NAN);
            numbers
        })
    }

    /// Line, row or record of each sequence, counted from 1.
    #[wasm_bindgen(getter)]
    pub fn places(&self) -> Vec<u32> {
        self.places.clone()
    }

    /// Step of each sequence, NaN if it has none.
    #[wasm_bindgen(getter)]
    pub fn steps(&self) -> Vec<f64> {
        self.steps.clone()
    }

    /// Score of each sequence.
    #[wasm_bindgen(getter)]
    pub fn scores(&self) -> Vec<f64> {
        self.scores.clone()
    }

    /// 1 where a sequence has a score.
    #[wasm_bindgen(getter)]
    pub fn scored(&self) -> Vec<u8> {
        self.scored.clone()
    }

    /// 1 where a sequence is of the first update after sampling.
    #[wasm_bindgen(getter, js_name = firstUpdate)]
    pub fn first_update(&self) -> Vec<u8> {
        self.first_update.clone()
    }

    /// Number of the group of each sequence, 2³² − 1 if it has none.
    #[wasm_bindgen(getter)]
    pub fn group(&self) -> Vec<u32> {
        self.group.clone()
    }

    /// The name of each group.
    #[wasm_bindgen(getter, js_name = groupNames)]
    pub fn group_names(&self) -> Vec<String> {
        self.group_names.clone()
    }

    /// Number of the prompt of each sequence, 2³² − 1 if it has none.
    #[wasm_bindgen(getter)]
    pub fn prompt(&self) -> Vec<u32> {
        self.prompt.clone()
    }

    /// The beginning of each prompt.
    #[wasm_bindgen(getter)]
    pub fn prompts(&self) -> Vec<String> {
        self.prompts.clone()
    }

    /// The texts of the tokens, concatenated.
    #[wasm_bindgen(getter)]
    pub fn text(&self) -> String {
        self.text.clone()
    }

    /// Where the text of each token ends, in UTF-16 units.
    #[wasm_bindgen(getter, js_name = textEnds)]
    pub fn text_ends(&self) -> Vec<u32> {
        self.text_ends.clone()
    }
}
