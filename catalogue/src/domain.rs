//! What a formula is called on.

use tokenwise::{Batch, Groups};

/// What a formula is called on: a batch, groups, both, or neither (`()`).
///
/// ```
/// use tokenwise::{Batch, Groups, Layout, Mask};
/// use tokenwise_catalogue::Domain;
///
/// let batch = Batch::new(Layout::padded(2, 1)?, Mask::new(&[true; 2]))?;
/// let groups = Groups::from_ids(&[0, 0])?;
/// assert!(Domain::from(&batch).groups.is_none());
/// assert!(Domain::from((&batch, &groups)).batch.is_some());
/// # Ok::<(), tokenwise::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Domain<'a> {
    /// The batch, for formulas over tokens.
    pub batch: Option<Batch<'a>>,
    /// Which sequences answer the same prompt.
    pub groups: Option<Groups<'a>>,
}

impl<'a> From<&Batch<'a>> for Domain<'a> {
    fn from(batch: &Batch<'a>) -> Self {
        Self { batch: Some(*batch), groups: None }
    }
}

impl<'a> From<&Groups<'a>> for Domain<'a> {
    fn from(groups: &Groups<'a>) -> Self {
        Self { batch: None, groups: Some(*groups) }
    }
}

impl<'a> From<(&Batch<'a>, &Groups<'a>)> for Domain<'a> {
    fn from((batch, groups): (&Batch<'a>, &Groups<'a>)) -> Self {
        Self { batch: Some(*batch), groups: Some(*groups) }
    }
}

impl From<()> for Domain<'_> {
    fn from((): ()) -> Self {
        Self::default()
    }
}
