//! Over which tokens and sequences a loss is averaged; the rest of an aggregation borrows, see [`crate::call::Call::aggregate`].

use tokenwise::loss::{Counts, EmptyRows, GlobalCounts};

use crate::read::{present, read, Read};

choices! {
    EmptyRows { "excluded" => Excluded, "counted" => Counted }
}

configs! {
    GlobalCounts { tokens: count, sequences: count, prompts: count, ranks: count }
}

/// Those of the batch at hand, or given ones.
impl Read for Counts {
    #[inline(never)]
    fn read(usual: Self) -> Self {
        if present() {
            Self::Global(read())
        } else {
            usual
        }
    }
}
