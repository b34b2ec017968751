use crate::{
    error::{check_len, Result},
    layout::Layout,
};

/// What [`response_mask_from_eos`] reads.
#[derive(Clone, Copy, Debug)]
pub struct EosInput<'a> {
    /// The emitted tokens, action-aligned.
    pub tokens: &'a [u32],
    /// The tokens that end a response, in any number and order.
    pub eos: &'a [u32],
}

/// The mask of a response: everything up to and including the first token that ends it.
///
/// ```text
/// keep_t = no token before t is in the set of ends
/// ```
///
/// Without such a token the whole row is kept.
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** This function creates one; `layout` gives the positions of the rows.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if `tokens` or `keep` does not fit `layout`.
///
/// **Reference.** verl 0.9.1 `get_response_mask`.
///
/// # Example
///
/// ```
/// use tokenwise::{rollout::*, Layout};
///
/// let mut keep = [false; 8];
/// let input = EosInput { tokens: &[20, 1, 0, 0, 78, 2, 1, 0], eos: &[1, 2] };
/// response_mask_from_eos(&Layout::padded(2, 4)?, input, &mut keep)?;
/// assert_eq!(keep, [true, true, false, false, true, true, false, false]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn response_mask_from_eos(layout: &Layout<'_>, input: EosInput<'_>, keep: &mut [bool]) -> Result<()> {
    check_len("tokens", input.tokens, layout.tokens())?;
    check_len("keep", keep, layout.tokens())?;
    for sequence in 0..layout.sequences() {
        let (start, len) = layout.row(sequence);
        let mut ended = false;
        for (keep, token) in keep[start..start + len].iter_mut().zip(&input.tokens[start..start + len]) {
            *keep = !ended;
            ended |= input.eos.contains(token);
        }
    }
    Ok(())
}
