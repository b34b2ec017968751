//! The explanations in English and Chinese.

use super::chain::{Chain, Found, Quantity};
use crate::{
    args::Language::{self, En, Zh},
    output::number,
};

fn choose(language: Language, english: &str, chinese: &str) -> String {
    match language {
        En => english.into(),
        Zh => chinese.into(),
    }
}

pub(super) fn token(language: Language) -> &'static str {
    match language {
        En => "token",
        Zh => "token",
    }
}

pub(super) fn mask(language: Language) -> &'static str {
    match language {
        En => "kept",
        Zh => "有效",
    }
}

pub(super) fn name(row: Quantity, language: Language) -> String {
    let (english, chinese) = match row {
        Quantity::Score => ("score", "任务得分"),
        Quantity::Kl => ("kl", "KL"),
        Quantity::Reward => ("reward", "token 级奖励"),
        Quantity::Value => ("value", "状态价值"),
        Quantity::Delta => ("delta", "TD 误差 δ"),
        Quantity::Advantage => ("advantage", "优势"),
        Quantity::Return => ("return", "回报"),
        Quantity::Whitened => ("whitened", "白化后的优势"),
    };
    choose(language, english, chinese)
}

pub(super) fn heading(chain: &Chain, language: Language) -> String {
    let numbers = format!("β = {}, γ = {}, λ = {}", number(chain.beta), number(chain.gamma), number(chain.lambda));
    let answer = chain.tokens.concat();
    choose(language, &format!("{answer}   ({numbers})"), &format!("{answer}   （{}）", numbers.replace(", ", "，")))
}

pub(super) fn hint(language: Language) -> String {
    choose(
        language,
        "To explain a value: --cell ROW:TOKEN, e.g. --cell advantage:3\n\
         (score, kl, reward, value, delta, advantage, return, whitened)",
        "查看某个数字的由来：--cell 行:token，例如 --cell advantage:3\n\
         （score、kl、reward、value、delta、advantage、return、whitened）",
    )
}

/// The formula, the same with numbers, and what the cell is aligned to.
pub(super) fn explanation(chain: &Chain, found: &Found, row: Quantity, at: usize, language: Language) -> Vec<String> {
    let t = at + 1;
    if !chain.mask[at] {
        return vec![choose(
            language,
            &format!("Token {t} is dropped: its slot is ignored."),
            &format!("第 {t} 个 token 被屏蔽：无论该位置是什么数值，都不参与计算。"),
        )];
    }
    let result = number(found.row(chain, row)[at]);
    let next = chain.next(at);
    let n = |x: f64| if x < 0.0 { format!("({})", number(x)) } else { number(x) };
    let (formula, numbers) = match row {
        Quantity::Score | Quantity::Kl | Quantity::Value => return given(row, t, &result, language),
        Quantity::Reward => (
            "r_t = score_t − β · kl_t".to_string(),
            format!("r_{t} = {} − {} · {}", n(chain.scores[at]), n(chain.beta), n(chain.kl[at])),
        ),
        Quantity::Delta => (
            "δ_t = r_t + γ · V_{t+1} − V_t".to_string(),
            format!(
                "δ_{t} = {} + {} · {} − {}",
                n(found.rewards[at]),
                n(chain.gamma),
                next.map_or("0".into(), |next| n(chain.values[next])),
                n(chain.values[at])
            ),
        ),
        Quantity::Advantage => (
            "A_t = δ_t + γ · λ · A_{t+1}".to_string(),
            format!(
                "A_{t} = {} + {} · {} · {}",
                n(found.deltas[at]),
                n(chain.gamma),
                n(chain.lambda),
                next.map_or("0".into(), |next| n(found.advantages[next]))
            ),
        ),
        Quantity::Return => {
            ("R_t = A_t + V_t".to_string(), format!("R_{t} = {} + {}", n(found.advantages[at]), n(chain.values[at])))
        }
        Quantity::Whitened => (
            "Â_t = (A_t − mean A) / √(var A + ε),  var: n − 1, ε = 1e−8".to_string(),
            format!("Â_{t} = ({} − {}) / {}", n(found.advantages[at]), n(found.mean), n(found.std)),
        ),
    };
    let mut lines = vec![formula, format!("{numbers} = {result}"), alignment(row, t, language)];
    lines.extend(note(row, t, next, language));
    lines
}

fn given(row: Quantity, t: usize, result: &str, language: Language) -> Vec<String> {
    let what = name(row, language);
    let line = choose(
        language,
        &format!("{what} of token {t}: given, {result}"),
        &format!("第 {t} 个 token 的{what}：输入值 {result}"),
    );
    vec![line, alignment(row, t, language)]
}

fn alignment(row: Quantity, t: usize, language: Language) -> String {
    match row {
        Quantity::Value | Quantity::Return => choose(
            language,
            &format!("State-aligned: belongs to the state s_{t} before token {t} is generated."),
            &format!("对齐到状态：属于生成第 {t} 个 token 之前的状态 s_{t}。"),
        ),
        _ => choose(
            language,
            &format!("Action-aligned: belongs to token {t} itself."),
            &format!("对齐到动作：属于第 {t} 个 token 本身。"),
        ),
    }
}

fn note(row: Quantity, t: usize, next: Option<usize>, language: Language) -> Option<String> {
    match row {
        Quantity::Delta | Quantity::Advantage if next.is_none() => Some(choose(
            language,
            "It is the last kept token: after it value and advantage are 0.",
            "这是最后一个有效 token：其后的状态价值与优势均为 0。",
        )),
        Quantity::Delta | Quantity::Advantage if next != Some(t) => Some(choose(
            language,
            "t+1 is the next kept token; dropped tokens are skipped.",
            "t+1 指下一个有效 token；被屏蔽的 token 会被跳过。",
        )),
        Quantity::Return => Some(choose(language, "The advantage before whitening is used.", "使用白化之前的优势。")),
        _ => None,
    }
}
