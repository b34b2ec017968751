//! Losses over several entries of the vocabulary, or all.

use serde_json::{json, Value};

use super::{
    cases::{List, WEIGHTS},
    Given,
    Mode::TokenMean,
    Tensor, K, VOCAB,
};

/// The calls, each with the settings that change its gradient.
pub(super) fn cases<T: Tensor>(list: &mut List<T>) {
    list.add("forward_kl_topk", forward_kl_topk, TokenMean, &[], json!({ "max_loss": 0.1 }));
    for rest in ["tail", "renormalize"] {
        for beta in [0.0, 0.5, 1.0] {
            list.add("topk_jsd", topk_jsd, TokenMean, WEIGHTS, json!({ "rest": rest, "beta": beta }));
        }
    }
    for outside in [Value::Null, json!(-10.0)] {
        let config = json!({ "forward": 0.3, "outside": outside });
        list.add("mixed_kl_topk", mixed_kl_topk, TokenMean, &["entropies"], config);
    }
    for (beta, temperature) in [(0.0, 1.0), (0.5, 0.7), (1.0, 1.0)] {
        let config = json!({ "beta": beta, "temperature": temperature });
        list.add("generalized_jsd", generalized_jsd, TokenMean, WEIGHTS, config);
    }
}

/// log soft-max of rows. No row is large enough to need a shift.
fn log_softmax<T: Tensor>(rows: &T, width: usize) -> T {
    rows.sub(&rows.exp().sums(width).ln().repeat(width))
}

/// Σ p (log p − log q) of rows.
fn kl<T: Tensor>(p: &T, q: &T, width: usize) -> T {
    p.exp().mul(&p.sub(q)).sums(width)
}

/// β KL(t ‖ m) + (1 − β) KL(s ‖ m) with m = (1 − β) s + β t; its limits are KL(t ‖ s) and KL(s ‖ t).
fn jsd<T: Tensor>(s: &T, t: &T, beta: f64, width: usize) -> T {
    if beta == 0.0 {
        kl(t, s, width)
    } else if beta == 1.0 {
        kl(s, t, width)
    } else {
        let mixed = s.exp().scale(1.0 - beta).add(&t.exp().scale(beta)).ln();
        kl(t, &mixed, width).scale(beta).add(&kl(s, &mixed, width).scale(1.0 - beta))
    }
}

/// Σ q (log q − log s) over the teacher's entries, between 0 and a bound.
fn forward_kl_topk<T: Tensor>(given: &Given<'_, T>) -> T {
    let (student, teacher) = (given.column("log_probs"), given.column("teacher_log_probs"));
    given.total(&kl(&teacher, &student, K).clamp(0.0, given.number("max_loss")))
}

/// The divergence over a few entries and the rest.
pub(super) fn topk_jsd<T: Tensor>(given: &Given<'_, T>) -> T {
    let (student, teacher) = (given.column("log_probs"), given.column("teacher_log_probs"));
    let beta = given.number("beta");
    if given.case.config["rest"] == "renormalize" {
        return given.total(&jsd(&log_softmax(&student, K), &log_softmax(&teacher, K), beta, K));
    }
    let rest = |rows: &T| rows.exp().sums(K).neg().plus(1.0).ln();
    let (s, t) = (rest(&student), rest(&teacher));
    let inside = jsd(&student, &teacher, beta, K);
    given.total(&inside.add(&jsd(&s, &t, beta, 1)))
}

/// Both KL divergences to the teacher, whose entries are renormalised.
fn mixed_kl_topk<T: Tensor>(given: &Given<'_, T>) -> T {
    let (w, student) = (given.number("forward"), given.column("log_probs"));
    let teacher = log_softmax(&given.column("teacher_log_probs"), K);
    let both = |s: &T| kl(&teacher, s, K).scale(w).add(&kl(s, &teacher, K).scale(1.0 - w));
    match given.case.config["outside"].as_f64() {
        None => given.total(&both(&log_softmax(&student, K))),
        Some(c) => {
            let p = student.exp();
            let inside = p.mul(&student).sums(K);
            let rest = p.sums(K).neg().plus(1.0).scale(c);
            let outside = given.column("entropies").neg().sub(&inside).sub(&rest).scale(1.0 - w);
            given.total(&both(&student).add(&outside))
        }
    }
}

/// The divergence over the vocabulary.
fn generalized_jsd<T: Tensor>(given: &Given<'_, T>) -> T {
    let temperature = given.number("temperature");
    let [s, t] = ["logits", "teacher_logits"].map(|name| given.column(name));
    let [s, t] = [s, t].map(|rows| log_softmax(&rows.scale(1.0 / temperature), VOCAB));
    given.total(&jsd(&s, &t, given.number("beta"), VOCAB))
}
