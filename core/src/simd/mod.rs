//! One source, compiled once for the baseline of the target and once more with AVX2: a second copy changes speed, never bits,
//! because neither copy may fuse or reorder an operation. The only `unsafe` of the crate.

pub(crate) mod recursion;

/// Writes a function whose body is also compiled with AVX2 and chosen at run time (x86-64, feature `std`).
///
/// Everything `#[inline(always)]` that the body calls is inlined into both copies.
macro_rules! multiversion {
    ($(#[$meta:meta])* $vis:vis fn $name:ident<$($g:ident: $bound:path),*>($($arg:ident: $ty:ty),* $(,)?) -> $ret:ty $body:block) => {
        $(#[$meta])*
        #[allow(unsafe_code, reason = "calling the AVX2 copy after detecting AVX2")]
        $vis fn $name<$($g: $bound),*>($($arg: $ty),*) -> $ret {
            #[cfg(all(feature = "std", target_arch = "x86_64", not(target_feature = "avx2")))]
            {
                // a copy of the source rather than a call: the closures in it are then this copy's own, with its features
                #[target_feature(enable = "avx2")]
                unsafe fn avx2<$($g: $bound),*>($($arg: $ty),*) -> $ret $body
                if std::is_x86_feature_detected!("avx2") {
                    // SAFETY: the CPU has AVX2, the only requirement of `avx2`.
                    return unsafe { avx2($($arg),*) };
                }
            }
            $body
        }
    };
}
pub(crate) use multiversion;
