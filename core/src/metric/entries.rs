//! The numbers of a report by their names.

/// The most that any report has, but for what there may be any number of: verl's, which the tests fill wholly.
const MOST: usize = 80;

/// Named numbers in order. They are written down rather than chained: a chain is a type of its own for every report.
pub(crate) struct Entries {
    items: [(&'static str, f64); MOST],
    next: usize,
    len: usize,
}

impl Entries {
    pub(crate) fn new() -> Self {
        Self { items: [("", 0.0); MOST], next: 0, len: 0 }
    }

    /// One number, if it is known.
    #[cfg_attr(compact, inline(never))]
    pub(crate) fn add(&mut self, key: &'static str, value: &Option<f64>) {
        if let Some(value) = value {
            self.items[self.len] = (key, *value);
            self.len += 1;
        }
    }

    /// Some that are known.
    #[cfg_attr(compact, inline(never))]
    pub(crate) fn all(&mut self, keys: &[&'static str], values: &[f64]) {
        for (key, value) in keys.iter().zip(values) {
            self.add(key, &Some(*value));
        }
    }

    /// Some that are known together or not at all.
    pub(crate) fn group<const N: usize>(&mut self, keys: &[&'static str; N], values: Option<[f64; N]>) {
        if let Some(values) = values {
            self.all(keys, &values);
        }
    }

    /// Those of another report.
    #[cfg_attr(compact, inline(never))]
    pub(crate) fn pairs(&mut self, pairs: &[(&'static str, f64)]) {
        for (key, value) in pairs {
            self.add(key, &Some(*value));
        }
    }
}

impl Iterator for Entries {
    type Item = (&'static str, f64);

    #[cfg_attr(compact, inline(never))]
    fn next(&mut self) -> Option<Self::Item> {
        let item = self.items[..self.len].get(self.next)?;
        self.next += 1;
        Some(*item)
    }
}
