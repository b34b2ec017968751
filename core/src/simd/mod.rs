//! One source, compiled once for the baseline of the target, once more with AVX2 and once more with AVX-512: another copy changes speed,
//! never bits, because no copy may fuse or reorder an operation. The only `unsafe` of the crate.

#[cfg(not(compact))]
pub(crate) mod recursion;
pub(crate) mod vocab;

/// Writes a function whose body is also compiled with AVX2 and chosen at run time (x86-64, feature `std`); after `avx512:` with AVX-512
/// too. That third copy is for the kernels that are timed: it costs every crate that calls the function time to compile.
///
/// Everything `#[inline(always)]` that the body calls is inlined into both copies.
macro_rules! multiversion {
    (avx512: $(#[$meta:meta])* $vis:vis fn $name:ident<$($g:ident: $bound:path),*>($($arg:ident: $ty:ty),* $(,)?) -> $ret:ty $body:block) => {
        $(#[$meta])*
        #[allow(unsafe_code, reason = "calling a copy after detecting what it needs")]
        $vis fn $name<$($g: $bound),*>($($arg: $ty),*) -> $ret {
            #[cfg(all(feature = "std", target_arch = "x86_64", not(target_feature = "avx2"), avx512))]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
                unsafe fn avx512<$($g: $bound),*>($($arg: $ty),*) -> $ret $body
                if $crate::simd::has_avx512() {
                    // SAFETY: the CPU has what `avx512` requires.
                    return unsafe { avx512($($arg),*) };
                }
            }
            $crate::simd::multiversion! {
                fn narrower<$($g: $bound),*>($($arg: $ty),*) -> $ret $body
            }
            narrower($($arg),*)
        }
    };
    ($(#[$meta:meta])* $vis:vis fn $name:ident<$($g:ident: $bound:path),*>($($arg:ident: $ty:ty),* $(,)?) -> $ret:ty $body:block) => {
        $(#[$meta])*
        #[allow(unsafe_code, reason = "calling a copy after detecting what it needs")]
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

/// Whether the CPU has the parts of AVX-512 that the copies are compiled with: those that came together. Never in a build for a
/// machine that is known to have AVX2 but not AVX-512.
#[cfg(all(feature = "std", target_arch = "x86_64", avx512))]
#[inline]
pub(crate) fn has_avx512() -> bool {
    (cfg!(target_feature = "avx512f") || !cfg!(target_feature = "avx2"))
        && std::is_x86_feature_detected!("avx512f")
        && std::is_x86_feature_detected!("avx512bw")
        && std::is_x86_feature_detected!("avx512dq")
        && std::is_x86_feature_detected!("avx512vl")
}
