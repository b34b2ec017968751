//! Fast path for the usual line of a JSON Lines file: an object whose lists are plain numbers. Everything else, valid
//! or not, is left to the general reader, which also reports errors.

mod decimal;

use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::{budget::grown, feeder::Feeder, fields::Field, texts::Texts, traces};
use decimal::decimal;

/// Reads a line into the record being built; `false` if the general reader must read it (also if something is wrong
/// with it), and the record is then unchanged.
pub(crate) fn record(line: &[u8], feeder: &mut Feeder<'_>) -> bool {
    let done = Cursor { line, at: 0 }.object(feeder).is_some();
    if !done {
        feeder.abandon();
    }
    done
}

struct Cursor<'l> {
    line: &'l [u8],
    at: usize,
}

impl<'l> Cursor<'l> {
    fn object(&mut self, feeder: &mut Feeder<'_>) -> Option<()> {
        self.expect(b'{')?;
        loop {
            let name = self.name()?;
            let field = feeder.find(name);
            self.expect(b':')?;
            self.skip_blanks();
            let list = self.peek()? == b'[';
            match field {
                Some(Field::Column(column)) if list => {
                    let spare = feeder.spare() / 8;
                    let length = self.list(|cursor| cursor.number(), feeder.numbers(column), spare)?;
                    feeder.row_added(column, length).ok()?;
                }
                Some(Field::Mask) if list => {
                    let spare = feeder.spare();
                    let length = self.list(Self::flag, feeder.mask(), spare)?;
                    feeder.mask_added(length).ok()?;
                }
                Some(field @ (Field::Text | Field::Id)) if list => self.texts(feeder, field)?,
                Some(Field::Inside) if list && feeder.labels() => self.texts(feeder, Field::Text)?,
                Some(field @ (Field::Prompt | Field::Group)) if self.peek()? == b'"' => {
                    feeder.text(field, &self.value::<String>()?).ok()?;
                }
                Some(Field::Mask | Field::Inside | Field::List | Field::Text | Field::Id | Field::Prompt) => {
                    return None;
                }
                Some(Field::Sequence) => {
                    self.value::<IgnoredAny>()?;
                }
                Some(field) => feeder.scalar(field, self.scalar()?).ok()?,
                None if traces::NAMES.contains(&name) => return None,
                None => {
                    if feeder.collects_names() {
                        feeder.ignore(name, matches!(self.peek()?, b'-' | b'0'..=b'9'));
                    }
                    self.value::<IgnoredAny>()?;
                }
            }
            match self.delimiter()? {
                b',' => {}
                b'}' => break,
                _ => return None,
            }
        }
        self.skip_blanks();
        (self.at == self.line.len()).then_some(())
    }

    fn peek(&self) -> Option<u8> {
        self.line.get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn delimiter(&mut self) -> Option<u8> {
        self.skip_blanks();
        self.at += 1;
        self.line.get(self.at - 1).copied()
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.delimiter()? == byte).then_some(())
    }

    /// A text without escapes.
    fn name(&mut self) -> Option<&'l str> {
        self.expect(b'"')?;
        let rest = &self.line[self.at..];
        let length = rest.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
        self.at += length + 1;
        (rest[length] == b'"').then(|| std::str::from_utf8(&rest[..length]).ok())?
    }

    /// Any value, by the usual parser.
    fn value<T: serde::de::DeserializeOwned>(&mut self) -> Option<T> {
        let mut values = serde_json::Deserializer::from_slice(&self.line[self.at..]).into_iter::<T>();
        let value = values.next()?.ok()?;
        self.at += values.byte_offset();
        Some(value)
    }

    /// A number, `true` or `false`.
    fn scalar(&mut self) -> Option<f64> {
        match self.peek()? {
            b't' | b'f' => self.flag().map(|yes| f64::from(u8::from(yes))),
            _ => self.number(),
        }
    }

    fn texts(&mut self, feeder: &mut Feeder<'_>, field: Field) -> Option<()> {
        let mut texts = Texts::default();
        self.at += 1;
        self.skip_blanks();
        if self.peek()? == b']' {
            self.at += 1;
            return texts.finish(feeder, field).ok();
        }
        loop {
            texts.add(feeder, field, self.value::<Box<RawValue>>()?.get()).ok()?;
            match self.delimiter()? {
                b',' => self.skip_blanks(),
                b']' => return texts.finish(feeder, field).ok(),
                _ => return None,
            }
        }
    }

    /// Entries between brackets, for which `spare` more may be allocated; returns their number.
    fn list<T>(&mut self, entry: impl Fn(&mut Self) -> Option<T>, out: &mut Vec<T>, spare: u64) -> Option<usize> {
        let (before, most) = (out.len(), spare.saturating_add(out.capacity() as u64));
        self.at += 1;
        self.skip_blanks();
        if self.peek()? == b']' {
            self.at += 1;
            return Some(0);
        }
        loop {
            let x = entry(self)?;
            if out.len() == out.capacity() {
                let capacity = grown(out, 1);
                if capacity as u64 > most {
                    return None;
                }
                out.reserve_exact(capacity - out.len());
            }
            out.push(x);
            match self.delimiter()? {
                b',' => self.skip_blanks(),
                b']' => return Some(out.len() - before),
                _ => return None,
            }
        }
    }

    #[inline(always)]
    fn flag(&mut self) -> Option<bool> {
        let rest = &self.line[self.at..];
        let (length, keep) = match rest.first()? {
            b'1' => (1, true),
            b'0' => (1, false),
            _ if rest.starts_with(b"true") => (4, true),
            _ if rest.starts_with(b"false") => (5, false),
            _ => return None,
        };
        self.at += length;
        Some(keep)
    }

    /// A finite number, correctly rounded.
    #[inline(always)]
    fn number(&mut self) -> Option<f64> {
        let (x, length) = decimal(self.line.get(self.at..)?)?;
        self.at += length;
        Some(x)
    }
}
