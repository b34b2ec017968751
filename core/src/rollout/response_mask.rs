use crate::{
    error::{check_len, Result},
    layout::Layout,
};

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
/// **Mask.** This function makes one; `layout` says where the rows lie.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `layout`.
///
/// **Reference.** verl 0.9.1 `get_response_mask`.
///
/// # Example
///
/// ```
/// use tokenwise::{rollout::response_mask_from_eos, Layout};
///
/// let mut keep = [false; 8];
/// response_mask_from_eos(&Layout::padded(2, 4)?, &[20, 1, 0, 0, 78, 2, 1, 0], &[1, 2], &mut keep)?;
/// assert_eq!(keep, [true, true, false, false, true, true, false, false]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn response_mask_from_eos(layout: &Layout<'_>, tokens: &[u32], eos: &[u32], keep: &mut [bool]) -> Result<()> {
    check_len("tokens", tokens, layout.tokens())?;
    check_len("keep", keep, layout.tokens())?;
    for sequence in 0..layout.sequences() {
        let (start, len) = layout.row(sequence);
        let mut ended = false;
        for (keep, token) in keep[start..start + len].iter_mut().zip(&tokens[start..start + len]) {
            *keep = !ended;
            ended |= eos.contains(token);
        }
    }
    Ok(())
}
