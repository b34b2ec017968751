//! C ABI for the peers in other languages: opaque handles, buffers by address, items by number.
#![allow(unsafe_code, reason = "the C ABI uses raw pointers; nothing else in this crate does")]

use crate::{
    item::{LogitsItem, TokenItem},
    limit::Limit,
    logits::{Kind, Logits, Values},
    tokens::{Form, Tokens},
};

fn handle<T>(value: tokenwise::Result<T>) -> *mut T {
    value.map_or(std::ptr::null_mut(), |value| Box::into_raw(Box::new(value)))
}

/// A filled batch, or null if the sizes are invalid.
#[no_mangle]
pub extern "C" fn tokens_new(sequences: usize, len: usize, packed: bool) -> *mut Tokens {
    handle(Tokens::new(sequences, len, if packed { Form::Packed } else { Form::Padded }))
}

/// Number of slots or, with `kept`, of kept tokens.
///
/// # Safety
///
/// `tokens` comes from [`tokens_new`] and was not freed.
#[no_mangle]
pub unsafe extern "C" fn tokens_count(tokens: *const Tokens, kept: bool) -> usize {
    // SAFETY: a live handle, by the contract above.
    let tokens = unsafe { &*tokens };
    if kept {
        tokens.kept()
    } else {
        tokens.slots()
    }
}

/// The address of a buffer: 0 mask, 1 rewards, 2 values, 3 log-probabilities, 4 old, 5 reference, 6 advantages, 7 to 9
/// outputs, 10 totals; null for other numbers.
///
/// # Safety
///
/// `tokens` comes from [`tokens_new`] and was not freed.
#[no_mangle]
pub unsafe extern "C" fn tokens_buffer(tokens: *const Tokens, which: usize) -> *const u8 {
    // SAFETY: a live handle, by the contract above.
    let tokens = unsafe { &*tokens };
    match which {
        0 => tokens.keep().as_ptr().cast(),
        1 => tokens.rewards.as_ptr().cast(),
        2 => tokens.values.as_ptr().cast(),
        3 => tokens.log_probs.as_ptr().cast(),
        4 => tokens.old_log_probs.as_ptr().cast(),
        5 => tokens.ref_log_probs.as_ptr().cast(),
        6 => tokens.advantages.as_ptr().cast(),
        7..=9 => tokens.out[which - 7].as_ptr().cast(),
        10 => tokens.totals.as_ptr().cast(),
        _ => std::ptr::null(),
    }
}

/// Builds the batch again, as a caller does who has only arrays; false if it is invalid.
///
/// # Safety
///
/// `tokens` comes from [`tokens_new`] and was not freed.
#[no_mangle]
pub unsafe extern "C" fn tokens_check(tokens: *const Tokens) -> bool {
    // SAFETY: a live handle, by the contract above.
    unsafe { &*tokens }.check().is_ok()
}

/// Computes the item with this number; false if the number is unknown or the call fails.
///
/// # Safety
///
/// `tokens` comes from [`tokens_new`], was not freed, and nobody else uses it during the call.
#[no_mangle]
pub unsafe extern "C" fn tokens_run(tokens: *mut Tokens, item: usize) -> bool {
    // SAFETY: a live handle without other users, by the contract above.
    let tokens = unsafe { &mut *tokens };
    TokenItem::ALL.get(item).is_some_and(|&item| tokens.run(item).is_ok())
}

/// Advantages, and whitened ones in another buffer; false if the call fails.
///
/// # Safety
///
/// As for [`tokens_run`].
#[no_mangle]
pub unsafe extern "C" fn tokens_gae_apart(tokens: *mut Tokens) -> bool {
    // SAFETY: a live handle without other users, by the contract above.
    unsafe { &mut *tokens }.gae_apart().is_ok()
}

/// # Safety
///
/// `tokens` comes from [`tokens_new`] and is not used again.
#[no_mangle]
pub unsafe extern "C" fn tokens_free(tokens: *mut Tokens) {
    // SAFETY: made by `Box::into_raw`, and freed once, by the contract above.
    drop(unsafe { Box::from_raw(tokens) });
}

/// Filled rows of logits, or null if the sizes are invalid.
#[no_mangle]
pub extern "C" fn logits_new(rows: usize, vocab: usize, bf16: bool) -> *mut Logits {
    handle(Logits::new(rows, vocab, if bf16 { Kind::Bf16 } else { Kind::F32 }))
}

/// The address of a buffer: 0 logits, 1 tokens, 2 and 3 gradients of log-probabilities and entropy, 4
/// log-probabilities, 5 entropy, 6 gradient of the logits; null for other numbers.
///
/// # Safety
///
/// `logits` comes from [`logits_new`] and was not freed.
#[no_mangle]
pub unsafe extern "C" fn logits_buffer(logits: *const Logits, which: usize) -> *const u8 {
    // SAFETY: a live handle, by the contract above.
    let logits = unsafe { &*logits };
    match which {
        0 => match &logits.values {
            Values::F32(values) => values.as_ptr().cast(),
            Values::Bf16(values) => values.as_ptr().cast(),
        },
        1 => logits.tokens.as_ptr().cast(),
        2 => logits.grad_log_probs.as_ptr().cast(),
        3 => logits.grad_entropy.as_ptr().cast(),
        4 => logits.log_probs.as_ptr().cast(),
        5 => logits.entropy.as_ptr().cast(),
        6 => logits.grad_logits.as_ptr().cast(),
        _ => std::ptr::null(),
    }
}

/// Computes the item with this number; false if the number is unknown or the call fails.
///
/// # Safety
///
/// `logits` comes from [`logits_new`], was not freed, and nobody else uses it during the call.
#[no_mangle]
pub unsafe extern "C" fn logits_run(logits: *mut Logits, item: usize) -> bool {
    // SAFETY: a live handle without other users, by the contract above.
    let logits = unsafe { &mut *logits };
    LogitsItem::ALL.get(item).is_some_and(|&item| logits.run(item).is_ok())
}

/// # Safety
///
/// `logits` comes from [`logits_new`] and is not used again.
#[no_mangle]
pub unsafe extern "C" fn logits_free(logits: *mut Logits) {
    // SAFETY: made by `Box::into_raw`, and freed once, by the contract above.
    drop(unsafe { Box::from_raw(logits) });
}

/// Buffers to copy and read.
#[no_mangle]
pub extern "C" fn limit_new(copy: usize, read: usize) -> *mut Limit {
    Box::into_raw(Box::new(Limit::new(copy, read)))
}

/// Copies bytes from one buffer to the other.
///
/// # Safety
///
/// `limit` comes from [`limit_new`], was not freed, and nobody else uses it during the call.
#[no_mangle]
pub unsafe extern "C" fn limit_copy(limit: *mut Limit, bytes: usize) {
    // SAFETY: a live handle without other users, by the contract above.
    unsafe { &mut *limit }.copy(bytes);
}

/// Reads bytes.
///
/// # Safety
///
/// `limit` comes from [`limit_new`] and was not freed.
#[no_mangle]
pub unsafe extern "C" fn limit_read(limit: *const Limit, bytes: usize) -> u64 {
    // SAFETY: a live handle, by the contract above.
    unsafe { &*limit }.read(bytes)
}

/// # Safety
///
/// `limit` comes from [`limit_new`] and is not used again.
#[no_mangle]
pub unsafe extern "C" fn limit_free(limit: *mut Limit) {
    // SAFETY: made by `Box::into_raw`, and freed once, by the contract above.
    drop(unsafe { Box::from_raw(limit) });
}
