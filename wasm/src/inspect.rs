//! Whether the parts of a batch fit together: `Batch` in JavaScript keeps them, and hands them over with every call.

use tokenwise::{Batch, Mask};

use crate::{call::Call, error::Result, export::export, put::numbers};

export! {
    CHAIN = 24;
    inspect(mask:flags, layout:layout) -> (sequences, tokens, kept, kept_sequences) => inspect;
}

fn inspect(call: &mut Call<'_>) -> Result {
    let layout = call.layout()?;
    let batch = Batch::new(layout, Mask::new(call.flags()))?;
    numbers(&[batch.sequences(), batch.tokens(), batch.kept(), batch.kept_sequences()].map(|count| count as f64));
    Ok(())
}
