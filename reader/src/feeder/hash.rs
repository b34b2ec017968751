//! Groups and prompts by a hash of their text.

/// Maximum characters of a prompt that are kept.
const PROMPT: usize = 300;

/// FNV-1a of a text that comes in pieces, and its first characters. Two of a million different texts collide with a
/// probability of 3·10⁻⁸.
#[derive(Clone, Debug)]
pub(crate) struct Hasher {
    pub(super) hash: u64,
    pub(super) beginning: String,
    /// Characters of `beginning`.
    count: usize,
}

impl Default for Hasher {
    fn default() -> Self {
        Self { hash: 0xcbf2_9ce4_8422_2325, beginning: String::new(), count: 0 }
    }
}

impl Hasher {
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn add(&mut self, text: &str) {
        self.hash = text.bytes().fold(self.hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        for letter in text.chars().take(PROMPT - self.count) {
            self.beginning.push(letter);
            self.count += 1;
        }
    }
}
