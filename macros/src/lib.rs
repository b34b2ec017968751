//! `#[multiversion]`: one function, compiled for several instruction sets and chosen at run time.
//!
//! Written for the core of tokenwise alone: the generated code names `crate::simd::has_avx512`, the feature `std` and
//! `cfg(avx512)` of that crate. It has no dependencies, so its build time is negligible.

use proc_macro::{Delimiter, Group, Ident, Punct, Spacing, Span, TokenStream, TokenTree};

/// Compiles a function for the baseline of the target and, on x86-64 with feature `std`, once more with AVX2 and, if
/// the attribute is `#[multiversion(avx512)]`, once more with AVX-512. The widest copy that the CPU supports is called.
///
/// # Why
///
/// A binary for x86-64 may use SSE2 only, which has a quarter of the lanes of AVX-512. Kernels are plain loops that the
/// compiler vectorises, so recompiling the same source with more features enabled is all it takes. No copy may fuse or
/// reorder a floating-point operation, hence all copies have the same bits.
///
/// # Why the body is copied
///
/// A short `#[target_feature]` function that calls a shared `#[inline(always)]` body would do, were it not for
/// closures. A closure in that body is a function of its own, compiled once, for the baseline. It becomes vector code
/// only if LLVM inlines it into each copy, and LLVM declines where a closure is large or called from several places,
/// which the loss of a token is: scalar code and a call per token remain. Stable Rust cannot mark a closure
/// `#[inline(always)]`. Passing the whole body as one closure per copy fails likewise for the largest kernels (twice
/// the instructions in the gradient of k3). In a copied body every copy has its own closures: each has one caller, is
/// inlined there, and inherits the features of the copy.
///
/// # Contract
///
/// * Functions that the body calls are part of a copy only if they are `#[inline(always)]`; what else it calls runs as
///   compiled for the baseline. That includes most of the standard library: `Iterator` adapters are inlined in
///   practice, `slice::sort` is not.
/// * Parameters are plain names (`x: T`, `mut x: T`), and every generic parameter can be inferred from them. There is
///   no `self`.
/// * Each copy costs compile time in every crate that calls a generic kernel. AVX-512 is for the kernels with a
///   benchmark.
/// * `cargo bench --package tokenwise-guards` counts the instructions per token and fails if a kernel lost its vectors.
#[proc_macro_attribute]
pub fn multiversion(attribute: TokenStream, function: TokenStream) -> TokenStream {
    let avx512 = match attribute.to_string().as_str() {
        "" => false,
        "avx512" => true,
        _ => return error("expected #[multiversion] or #[multiversion(avx512)]"),
    };
    match Function::parse(function) {
        Some(function) => function.dispatching(avx512),
        None => error("expected a function whose parameters are plain names"),
    }
}

/// A function in the parts that copies are put together from.
struct Function {
    /// Attributes, visibility, `fn` and the name.
    head: TokenStream,
    /// Generic parameters, parameters, return type and bounds.
    signature: TokenStream,
    /// The names of the parameters, separated by commas.
    names: TokenStream,
    body: TokenTree,
}

impl Function {
    fn parse(function: TokenStream) -> Option<Self> {
        let tokens: Vec<TokenTree> = function.into_iter().collect();
        let keyword = tokens.iter().position(|token| token.to_string() == "fn")?;
        let (head, rest) = tokens.split_at(keyword + 2);
        let (body, signature) = rest.split_last()?;
        let parameters = signature.iter().find_map(|token| match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis => Some(group.stream()),
            _ => None,
        })?;
        Some(Self {
            head: head.iter().cloned().collect(),
            signature: signature.iter().cloned().collect(),
            names: names(parameters)?,
            body: body.clone(),
        })
    }

    /// The function with its copies inside, and its own body as the last resort.
    fn dispatching(&self, avx512: bool) -> TokenStream {
        let mut body = TokenStream::new();
        if avx512 {
            body.extend(self.copy(
                "avx512",
                "avx512f,avx512bw,avx512dq,avx512vl",
                r#"all(feature = "std", target_arch = "x86_64", not(target_feature = "avx2"), avx512)"#,
                "crate::simd::has_avx512()",
            ));
        }
        body.extend(self.copy(
            "avx2",
            "avx2",
            r#"all(feature = "std", target_arch = "x86_64", not(target_feature = "avx2"))"#,
            r#"std::is_x86_feature_detected!("avx2")"#,
        ));
        body.extend([self.body.clone()]);
        let mut function = self.head.clone();
        function.extend(self.signature.clone());
        function.extend([braced(body)]);
        function
    }

    /// ```text
    /// #[cfg(condition)]
    /// {
    ///     #[target_feature(enable = "features")] unsafe fn name signature body
    ///     if detected { return unsafe { name(names) }; }
    /// }
    /// ```
    fn copy(&self, name: &str, features: &str, condition: &str, detected: &str) -> TokenStream {
        const ALLOW: &str = r#"#[allow(unsafe_code, reason = "called only after its features were detected")]"#;
        let mut block = tokens(&format!(r#"{ALLOW} #[target_feature(enable = "{features}")] unsafe fn {name}"#));
        block.extend(self.signature.clone());
        block.extend([self.body.clone()]);
        let mut call = tokens(name);
        call.extend([TokenTree::Group(Group::new(Delimiter::Parenthesis, self.names.clone()))]);
        let mut taken = tokens(&format!("{ALLOW} return unsafe"));
        taken.extend([braced(call), TokenTree::Punct(Punct::new(';', Spacing::Alone))]);
        block.extend(tokens(&format!("if {detected}")));
        block.extend([braced(taken)]);
        let mut copy = tokens(&format!("#[cfg({condition})]"));
        copy.extend([braced(block)]);
        copy
    }
}

/// The names in a list of parameters; none if one is not a plain name.
fn names(parameters: TokenStream) -> Option<TokenStream> {
    let mut names = TokenStream::new();
    // whether a name may come, and how many `<` are open: the commas between them are not those between parameters
    let (mut begin, mut open) = (true, 0_i32);
    let mut before = ' ';
    for token in parameters {
        match &token {
            TokenTree::Ident(ident) if begin => {
                if ident.to_string() == "self" {
                    return None;
                }
                if ident.to_string() != "mut" {
                    names.extend([token.clone(), TokenTree::Punct(Punct::new(',', Spacing::Alone))]);
                    begin = false;
                }
            }
            _ if begin => return None,
            TokenTree::Punct(punct) => match punct.as_char() {
                '<' => open += 1,
                '>' if before != '-' => open -= 1,
                ',' if open == 0 => begin = true,
                _ => (),
            },
            _ => (),
        }
        before = match &token {
            TokenTree::Punct(punct) => punct.as_char(),
            _ => ' ',
        };
    }
    Some(names)
}

/// The tokens of a text that is known to consist of tokens.
fn tokens(text: &str) -> TokenStream {
    text.parse().unwrap_or_default()
}

fn braced(inside: TokenStream) -> TokenTree {
    TokenTree::Group(Group::new(Delimiter::Brace, inside))
}

fn error(message: &str) -> TokenStream {
    let name = TokenTree::Ident(Ident::new("compile_error", Span::call_site()));
    let mut invocation = TokenStream::from(name);
    invocation.extend(tokens(&format!("!({message:?});")));
    invocation
}
