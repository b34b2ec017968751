//! Invalid layouts, masks and groups, and the messages of the errors.

use tokenwise::{policy::*, shift, Batch, Error, Groups, Layout, Mask};

use super::{Ended, Unwritten};

#[test]
fn offsets() {
    assert_eq!(Layout::packed(&[]), Err(Error::Length { what: "cu_seqlens", expected: 1, got: 0 }));
    assert_eq!(Layout::packed(&[1, 2]), Err(Error::Offsets { index: 0, at_least: 0, got: 1 }));
    assert_eq!(Layout::packed(&[0, 3, 2, 5]), Err(Error::Offsets { index: 2, at_least: 3, got: 2 }));
    let none = Layout::packed(&[0]).unwrap();
    assert_eq!((none.sequences(), none.tokens()), (0, 0));
    let empty_rows = Layout::packed(&[0, 0, 2, 2]).unwrap();
    assert_eq!((empty_rows.sequences(), empty_rows.tokens()), (3, 2));
}

#[test]
fn sizes_beyond_a_machine_word() {
    let most = usize::MAX;
    let overflow = |what, factors| Error::Overflow { what, factors };
    assert_eq!(Layout::padded(most, 2), Err(overflow("batch × len", (most, 2))));
    assert_eq!(Layout::padded(2, most), Err(overflow("batch × len", (2, most))));
    assert!(Layout::padded(most, 1).is_ok() && Layout::padded(most, 0).is_ok() && Layout::padded(0, most).is_ok());

    let batch = Batch::new(Layout::padded(1, 3).unwrap(), Mask::new(&[true; 3])).unwrap();
    let mut out = [f64::UNWRITTEN; 3];
    let input = LogitsInput::<f64> { logits: &[], vocab: most };
    let result = entropy(&batch, input, &PolicyConfig::default(), &mut out);
    Ended::new(result).with(&out).refused("entropy", overflow("tokens × vocab", (3, most)));

    let (responses, raw) = (Layout::padded(1, 3).unwrap(), Layout::padded(1, 4).unwrap());
    let result = shift(&responses, &raw, &[], most, &mut out);
    Ended::new(result).with(&out).refused("shift", overflow("raw tokens × width", (4, most)));
}

#[test]
fn sequences_as_long_as_a_machine_word_can_say() {
    let most = Layout::padded(1, usize::MAX).unwrap();
    let error = Error::Sequence { what: "raw_layout", index: 0, at_least: usize::MAX, got: usize::MAX };
    assert_eq!(shift::<f64>(&most, &most, &[], 0, &mut []), Err(error));
    let shorter = Layout::padded(1, usize::MAX - 1).unwrap();
    assert_eq!(shift::<f64>(&shorter, &most, &[], 0, &mut []), Ok(()));
}

#[test]
fn masks() {
    let layout = Layout::padded(2, 3).unwrap();
    for got in [0, 5, 7] {
        let mask = vec![true; got];
        let error = Error::Length { what: "mask", expected: 6, got };
        assert_eq!(Batch::new(layout, Mask::new(&mask)), Err(error));
    }
}

#[test]
fn groups() {
    assert_eq!(Groups::from_ids(&[0, 3, 1]), Err(Error::Group { index: 1, id: 3, sequences: 3 }));
    assert_eq!(Groups::from_ids(&[u32::MAX]), Err(Error::Group { index: 0, id: u32::MAX, sequences: 1 }));
    let empty = Error::Entry { what: "sizes", index: 1, must_be: "at least 1", got: 0.0 };
    assert_eq!(Groups::contiguous(&[2, 0, 1]), Err(empty));
    assert_eq!(Groups::from_ids(&[]).map(|groups| (groups.sequences(), groups.count())), Ok((0, 0)));
    assert_eq!(Groups::contiguous(&[]).map(|groups| (groups.sequences(), groups.count())), Ok((0, 0)));
}

#[test]
fn raw_layouts() {
    let responses = Layout::packed(&[0, 2, 2, 5]).unwrap();
    let mut out = [f64::UNWRITTEN; 5];
    let mut refused = |raw_layout: Layout<'_>, error: Error| {
        let raw = vec![0.0; raw_layout.tokens()];
        let result = shift(&responses, &raw_layout, &raw, 1, &mut out);
        Ended::new(result).with(&out).refused("raw_layout", error);
    };
    let what = "raw_layout";
    refused(Layout::packed(&[0, 3, 4]).unwrap(), Error::Length { what, expected: 3, got: 2 });
    // the last response has three tokens and needs four positions; one without tokens needs none
    refused(Layout::packed(&[0, 3, 3, 6]).unwrap(), Error::Sequence { what, index: 2, at_least: 4, got: 3 });
    let raw_layout = Layout::packed(&[0, 3, 3, 7]).unwrap();
    shift(&responses, &raw_layout, &[1.0, 2.0, 0.0, 3.0, 4.0, 5.0, 0.0], 1, &mut out).unwrap();
    assert_eq!(out, [1.0, 2.0, 3.0, 4.0, 5.0]);
}

#[test]
fn errors_speak() {
    let table = [
        (
            Error::Length { what: "values", expected: 6, got: 5 },
            "length",
            "values",
            None,
            "values: expected 6 entries, got 5",
        ),
        (
            Error::Offsets { index: 2, at_least: 3, got: 1 },
            "offsets",
            "cu_seqlens",
            Some(2),
            "cu_seqlens[2]: expected at least 3, got 1",
        ),
        (
            Error::TokenId { index: 4, id: 9, vocab: 7 },
            "token_id",
            "tokens",
            Some(4),
            "tokens[4]: expected an id below the vocabulary size 7, got 9",
        ),
        (
            Error::Offsets { index: 0, at_least: 0, got: 1 },
            "offsets",
            "cu_seqlens",
            Some(0),
            "cu_seqlens[0]: expected 0, got 1",
        ),
        (
            Error::Group { index: 1, id: 8, sequences: 2 },
            "group",
            "groups",
            Some(1),
            "groups[1]: expected an id below 2, the number of sequences, got 8",
        ),
        (
            Error::Sequence { what: "raw_layout", index: 2, at_least: 4, got: 3 },
            "sequence",
            "raw_layout",
            Some(2),
            "raw_layout[2]: expected at least 4 positions, got 3",
        ),
        (
            Error::Config { what: "gamma", must_be: "in [0, 1]", got: 1.5 },
            "config",
            "gamma",
            None,
            "gamma: must be in [0, 1], got 1.5",
        ),
        (
            Error::Entry { what: "weights", index: 3, must_be: "positive", got: -0.5 },
            "entry",
            "weights",
            Some(3),
            "weights[3]: must be positive, got -0.5",
        ),
        (Error::EmptyMask, "empty_mask", "mask", None, "mask: expected at least 1 kept token, got 0"),
        (
            Error::TooFew { what: "variance", needed: 2, got: 1 },
            "too_few",
            "variance",
            None,
            "variance: needs at least 2 kept entries, got 1",
        ),
        (
            Error::Overflow { what: "batch × len", factors: (3, 4) },
            "overflow",
            "batch × len",
            None,
            "batch × len: 3 × 4 does not fit into a machine word",
        ),
    ];
    for (error, code, parameter, index, words) in table {
        assert_eq!((error.code(), error.parameter(), error.index()), (code, parameter, index));
        assert_eq!(error.to_string(), words);
    }
}
