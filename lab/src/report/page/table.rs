//! Tables, headings and notes.

use std::fmt::Write;

use super::super::{
    judge::SIGNIFICANT,
    statistics::Paired,
    text::{escape, signed, Text},
};

/// A cell of a table: what it shows and its class.
pub(super) type Cell = (String, &'static str);

pub(super) fn heading(html: &mut String, en: &str, zh: &str) {
    let _ = writeln!(html, "<h3>{}</h3>", Text::new(en, zh).html());
}

pub(super) fn note(html: &mut String, en: &str, zh: &str) {
    let _ = writeln!(html, "<p class=\"note\">{}</p>", Text::new(en, zh).html());
}

/// A table that scrolls sideways by itself on a narrow screen.
pub(super) fn table(head: &[Text], rows: &[Vec<Cell>]) -> String {
    let mut html = String::from("<div class=\"scroll\" tabindex=\"0\"><table><thead><tr>");
    for cell in head {
        let _ = write!(html, "<th scope=\"col\">{}</th>", cell.html());
    }
    html += "</tr></thead><tbody>";
    for row in rows {
        html += "<tr>";
        for (index, (cell, class)) in row.iter().enumerate() {
            let _ = match (index, *class) {
                (0, "") => write!(html, "<th scope=\"row\">{cell}</th>"),
                (0, class) => write!(html, "<th scope=\"row\" class=\"{class}\">{cell}</th>"),
                (_, "") => write!(html, "<td>{cell}</td>"),
                (_, class) => write!(html, "<td class=\"{class}\">{cell}</td>"),
            };
        }
        html += "</tr>";
    }
    html += "</tbody></table></div>\n";
    html
}

pub(super) fn plain(text: impl Into<String>) -> Cell {
    (escape(&text.into()), "")
}

pub(super) fn sign_class(x: f64) -> &'static str {
    if x > 0.0 {
        "plus"
    } else if x < 0.0 {
        "minus"
    } else {
        ""
    }
}

/// A difference, coloured only if the seeds agree about its sign.
pub(super) fn glance(paired: &Paired) -> Cell {
    let clear = paired.flip_p_greater.min(paired.flip_p_less) <= SIGNIFICANT;
    (escape(&signed(paired.mean)), if clear { sign_class(paired.mean) } else { "" })
}
