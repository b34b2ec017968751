//! The codes of reasons, and the texts that the page has for them.

use std::{collections::BTreeSet, fs, path::Path};

use tokenwise_gpu::{coverage, GpuError, Reason};

/// Every reason for which a call may be answered by the core; an error of the call itself is refused by both.
fn codes() -> BTreeSet<&'static str> {
    let errors = [
        GpuError::NoAdapter(String::new()),
        GpuError::Adapter { name: String::new(), what: "", needed: 0, limit: 0 },
        GpuError::Device(String::new()),
        GpuError::Validation(String::new()),
        GpuError::OutOfMemory,
        GpuError::Lost(String::new()),
        GpuError::Unsupported(""),
        GpuError::Limit { what: "", needed: 0, limit: 0 },
    ];
    let others = [Reason::Small { work: 1, threshold: 2 }, Reason::Special];
    let failed = errors.into_iter().map(Reason::Failed);
    let no_kernel = coverage::table().filter_map(|(_, why)| why).map(Reason::NoKernel);
    failed.chain(others).chain(no_kernel).map(|reason| reason.code()).collect()
}

#[test]
fn one_code_stands_for_one_reason() {
    let table: BTreeSet<_> = coverage::table().filter_map(|(_, why)| why).map(|why| (why.code, why.reason)).collect();
    let names: BTreeSet<_> = table.iter().map(|(code, _)| *code).collect();
    assert_eq!(names.len(), table.len());
    assert!(codes().iter().all(|code| code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')));
    assert_eq!(Reason::NoGpu(GpuError::OutOfMemory).code(), "out_of_memory");
    assert!(codes().is_superset(&BTreeSet::from(["too_small", "not_finite", "sorts", "lost"])));
}

#[test]
fn the_page_has_words_for_every_code_in_both_languages() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../www/i18n");
    for language in ["en", "zh"] {
        let texts = fs::read_to_string(folder.join(language).join("engines.js")).unwrap();
        // of a call in f64, which only the JavaScript package has
        for code in codes().into_iter().chain(["precision"]) {
            assert!(texts.contains(&format!("\"engines.why.{code}\":")), "{code} in {language}");
        }
    }
}
