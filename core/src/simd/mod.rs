//! One source, compiled once for the baseline of the target and once more with AVX2: a second copy changes speed, never bits,
//! because neither copy may fuse or reorder an operation. The only `unsafe` of the crate.

/// Writes a function whose body is also compiled with AVX2 and chosen at run time (x86-64, feature `std`).
///
/// The body is inlined into both copies together with everything `#[inline(always)]` that it calls.
macro_rules! multiversion {
    ($(#[$meta:meta])* $vis:vis fn $name:ident<$($g:ident: $bound:path),*>($($arg:ident: $ty:ty),* $(,)?) -> $ret:ty $body:block) => {
        $(#[$meta])*
        #[allow(unsafe_code, reason = "calling the AVX2 copy after detecting AVX2")]
        $vis fn $name<$($g: $bound),*>($($arg: $ty),*) -> $ret {
            #[inline(always)]
            fn body<$($g: $bound),*>($($arg: $ty),*) -> $ret $body

            #[cfg(all(feature = "std", target_arch = "x86_64", not(target_feature = "avx2")))]
            {
                #[target_feature(enable = "avx2")]
                unsafe fn avx2<$($g: $bound),*>($($arg: $ty),*) -> $ret {
                    body($($arg),*)
                }
                if std::is_x86_feature_detected!("avx2") {
                    // SAFETY: the CPU has AVX2, the only requirement of `avx2`.
                    return unsafe { avx2($($arg),*) };
                }
            }
            body($($arg),*)
        }
    };
}
pub(crate) use multiversion;
