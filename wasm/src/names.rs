//! snake_case as the core has it, camelCase as JavaScript has it.
//!
//! The two functions undo each other for every key: an underscore of JavaScript is two in snake_case. So a key is
//! accepted in camelCase only, and an error names it as it was written.

/// `max_len` → `maxLen`, in running text too.
pub(crate) fn camel_case(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '_' => out.extend(characters.next().map(|next| next.to_ascii_uppercase())),
            _ => out.push(character),
        }
    }
    out
}

/// `maxLen` → `max_len`
pub(crate) fn snake_case(key: &str) -> String {
    let mut out = String::with_capacity(key.len() + 4);
    for character in key.chars() {
        if character == '_' || character.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(character.to_ascii_lowercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{camel_case, snake_case};

    #[test]
    fn keys_come_back_as_they_were() {
        for (camel, snake) in
            [("maxLen", "max_len"), ("m2X", "m2_x"), ("k3", "k3"), ("max_len", "max__len"), ("Len", "_len")]
        {
            assert_eq!((snake_case(camel).as_str(), camel_case(snake).as_str()), (snake, camel));
        }
    }

    #[test]
    fn text_keeps_what_is_not_a_name() {
        assert_eq!(camel_case("at least 1 and at most max_len × 2"), "at least 1 and at most maxLen × 2");
    }
}
