//! How wide texts are, without a font: a little too wide rather than too narrow.

/// Width of a text of the given size.
pub(super) fn width(text: &str, size: f64) -> f64 {
    size * text.chars().map(letter).fold(0.0, |width, letter| width + letter)
}

/// In ems of DejaVu Sans.
fn letter(letter: char) -> f64 {
    match letter {
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 0.99,
        'i' | 'l' | 'j' | 'f' | 't' | 'r' | 'I' | ' ' | '.' | ',' | ':' | ';' | '|' | '!' | '\'' | '(' | ')' | '['
        | ']' | '-' | '/' => 0.42,
        'a'..='z' | '0'..='9' => 0.645,
        'A'..='Z' => 0.79,
        '_' => 0.5,
        _ if u32::from(letter) < 0x1100 => 0.85,
        _ => 1.05,
    }
}

/// A text in lines that are not wider than `most`, broken at blanks where possible.
pub(super) fn broken(text: &str, most: f64, size: f64) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_inclusive(' ') {
        if !line.is_empty() && width(&line, size) + width(word.trim_end(), size) > most {
            lines.push(std::mem::take(&mut line).trim_end().to_string());
        }
        for letter in word.chars() {
            if !line.is_empty() && width(&line, size) + width(&letter.to_string(), size) > most {
                lines.push(std::mem::take(&mut line));
            }
            line.push(letter);
        }
    }
    if !line.trim_end().is_empty() {
        lines.push(line.trim_end().to_string());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_broken_and_complete() {
        let text = "a label ".repeat(30) + &"x".repeat(200) + "的的的";
        let lines = broken(&text, 300.0, 12.0);
        assert!(lines.iter().all(|line| width(line, 12.0) <= 300.0));
        let letters = |text: &str| text.chars().filter(|letter| *letter != ' ').count();
        assert_eq!(letters(&lines.concat()), letters(&text));
        assert_eq!(broken("short", 300.0, 12.0), ["short"]);
        assert!(broken("", 300.0, 12.0).is_empty());
    }
}
