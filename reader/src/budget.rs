//! How much memory reading a file may take.

use crate::fault::Fault;

/// A limit on memory. What a file claims about its size is compared with it before anything is allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    bytes: u64,
}

impl Default for Budget {
    /// 2 GiB: a step of ten million tokens with all columns.
    fn default() -> Self {
        Self::new(2 << 30)
    }
}

impl Budget {
    /// A limit of so many bytes.
    #[must_use]
    pub const fn new(bytes: u64) -> Self {
        Self { bytes }
    }

    /// The limit.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.bytes
    }

    /// Refuses `what` if it needs more than the limit.
    ///
    /// # Errors
    ///
    /// [`Fault::Memory`] with both sizes.
    pub fn check(self, what: &str, needed: u64) -> Result<(), Fault> {
        if needed <= self.bytes {
            return Ok(());
        }
        Err(Fault::Memory { what: what.into(), needed: size(needed), limit: size(self.bytes) })
    }
}

/// `512 MiB`, `1.5 GiB`.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let mut unit = 0;
    let mut scaled = bytes as f64;
    while scaled >= 1024.0 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    let digits = usize::from(unit > 0 && scaled < 10.0 && scaled.fract() >= 0.05);
    format!("{scaled:.digits$} {}", UNITS[unit])
}

/// How long a list becomes if it has no room for `more` entries.
pub(crate) fn grown<T>(list: &Vec<T>, more: usize) -> usize {
    const FIRST: usize = 1024;
    list.len().saturating_add(more).max(list.capacity().saturating_mul(2)).max(FIRST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_the_budget_is_refused_with_both_sizes() {
        assert_eq!(Budget::new(10).check("a batch", 10), Ok(()));
        let fault = Budget::new(1 << 20).check("a batch", 3 << 29).unwrap_err();
        assert_eq!(fault.to_string(), "a batch needs 1.5 GiB of memory, the limit is 1 MiB");
        assert_eq!([size(0), size(1023), size(1 << 60)], ["0 bytes", "1023 bytes", "1048576 TiB"]);
    }
}
