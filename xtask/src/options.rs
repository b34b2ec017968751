//! The words after a command.

use std::str::FromStr;

use anyhow::{anyhow, bail, Result};

/// Arguments not yet understood.
pub(crate) struct Options(Vec<String>);

impl Options {
    pub(crate) fn new(arguments: impl IntoIterator<Item = String>) -> Self {
        Self(arguments.into_iter().collect())
    }

    /// Whether a flag was given.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|argument| argument != name);
        self.0.len() < before
    }

    /// The value of `--name value` or `--name=value`.
    pub(crate) fn value<T: FromStr>(&mut self, name: &str) -> Result<Option<T>> {
        let joined = format!("{name}=");
        let Some(index) = self.0.iter().position(|argument| argument == name || argument.starts_with(&joined)) else {
            return Ok(None);
        };
        let argument = self.0.remove(index);
        let text = match argument.strip_prefix(&joined) {
            Some(text) => text.to_owned(),
            None if index < self.0.len() => self.0.remove(index),
            None => bail!("{name} needs a value"),
        };
        text.parse().map(Some).map_err(|_| anyhow!("{name} cannot be {text:?}"))
    }

    /// The next argument that is not an option.
    pub(crate) fn positional(&mut self) -> Option<String> {
        let index = self.0.iter().position(|argument| !argument.starts_with('-'))?;
        Some(self.0.remove(index))
    }

    /// Refuses what is left.
    pub(crate) fn finish(self) -> Result<()> {
        match self.0.first() {
            None => Ok(()),
            Some(unknown) => bail!("unknown argument {unknown:?}; --help lists what there is"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_values_and_words_are_told_apart() {
        let words = ["--verbose", "out", "--port=80", "--only", "fmt"];
        let mut options = Options::new(words.map(String::from));
        assert!(options.flag("--verbose"));
        assert_eq!(options.value::<u16>("--port").unwrap(), Some(80));
        assert_eq!(options.value::<String>("--only").unwrap().as_deref(), Some("fmt"));
        assert_eq!(options.positional().as_deref(), Some("out"));
        assert!(options.finish().is_ok());
        assert!(Options::new(["--nonsense".to_owned()]).finish().is_err());
        assert!(Options::new(["--port".to_owned()]).value::<u16>("--port").is_err());
        assert!(Options::new(["--port=x".to_owned()]).value::<u16>("--port").is_err());
    }
}
