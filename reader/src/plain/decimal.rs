//! Decimal numbers to `f64`, correctly rounded. The numbers of rollout files have up to 17 digits and a few decimal
//! places: one division of integers rounds those, where a general parser first has to find out what it is given.

/// Powers of ten that f64 holds exactly.
const TEN: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

/// Powers of five that u64 holds.
const FIVE: [u64; 28] = {
    let mut powers = [1; 28];
    let mut index = 1;
    while index < powers.len() {
        powers[index] = 5 * powers[index - 1];
        index += 1;
    }
    powers
};

/// Powers of ten up to 10⁸.
const POWER: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// Any number of so many digits fits u64.
const MOST_DIGITS: usize = 19;

/// The number at the beginning of a text and its length in bytes; `None` if there is no finite number as JSON spells
/// it.
#[inline(always)]
pub(super) fn decimal(bytes: &[u8]) -> Option<(f64, usize)> {
    match short(bytes) {
        None => any(bytes),
        found => found,
    }
}

/// The largest byte that ends a number early: a comma or a blank. The last number of a list ends with a bracket and
/// takes the long way.
const LAST_END: u8 = b',';

#[inline(always)]
fn digit(byte: u8) -> Option<u8> {
    Some(byte.wrapping_sub(b'0')).filter(|digit| *digit < 10)
}

/// A number of at most 53 bits without exponent, that does not end where the text does.
#[inline(always)]
fn short(bytes: &[u8]) -> Option<(f64, usize)> {
    let sign = usize::from(*bytes.first()? == b'-');
    let text = bytes.get(sign..)?;
    let head: &[u8; 4] = text.first_chunk()?;
    let (x, length) = match () {
        () if head[1] <= LAST_END => (f64::from(digit(head[0])?), 1),
        () if head[1] == b'.' => with_point::<1>(text)?,
        () if head[2] == b'.' => with_point::<2>(text)?,
        () if head[3] == b'.' => with_point::<3>(text)?,
        () => integer(text)?,
    };
    Some((f64::from_bits(x.to_bits() | (sign as u64) << 63), sign + length))
}

/// So many digits, a point, and up to seven places.
#[inline(always)]
fn with_point<const WHOLE: usize>(text: &[u8]) -> Option<(f64, usize)> {
    let digits = text.get(..WHOLE)?;
    let whole = digits.iter().fold(0, |sum, byte| 10 * sum + u64::from(byte.wrapping_sub(b'0')));
    if digits.iter().any(|byte| !byte.is_ascii_digit()) || (WHOLE > 1 && digits[0] == b'0') {
        return None;
    }
    let behind: &[u8; 8] = text.get(WHOLE + 1..)?.first_chunk()?;
    let word = word(behind);
    let places = digit_count(word);
    // Few places have code of their own: in a list of such numbers the processor then knows where the next one begins
    // before it has counted them. More places vary, and no branch depends on how many there are.
    let at = |place: usize| u64::from(behind[place] ^ b'0');
    let ends = |count: usize| behind[count] <= LAST_END && places == count;
    if ends(1) {
        return Some(((10 * whole + at(0)) as f64 / 10.0, WHOLE + 2));
    }
    if ends(2) {
        return Some(((100 * whole + 10 * at(0) + at(1)) as f64 / 100.0, WHOLE + 3));
    }
    if ends(3) {
        return Some(((1000 * whole + 100 * at(0) + 10 * at(1) + at(2)) as f64 / 1000.0, WHOLE + 4));
    }
    if ends(4) {
        let mantissa = 10_000 * whole + 1000 * at(0) + 100 * at(1) + 10 * at(2) + at(3);
        return Some((mantissa as f64 / 10_000.0, WHOLE + 5));
    }
    if matches!(places, 0 | 8) || matches!(behind[places], b'e' | b'E') {
        return None;
    }
    let mantissa = whole * POWER[places] + eight_digits(word << (64 - 8 * places));
    // both are exact, so the quotient is rounded once
    Some((mantissa as f64 / TEN[places], WHOLE + 1 + places))
}

/// An integer of fewer than eight digits.
#[inline(always)]
fn integer(text: &[u8]) -> Option<(f64, usize)> {
    let head: &[u8; 8] = text.first_chunk()?;
    let word = word(head);
    let count = digit_count(word);
    if matches!(count, 0 | 8) || (count > 1 && head[0] == b'0') || matches!(head[count], b'.' | b'e' | b'E') {
        return None;
    }
    Some((eight_digits(word << (64 - 8 * count)) as f64, count))
}

#[inline(never)]
fn any(bytes: &[u8]) -> Option<(f64, usize)> {
    let first = usize::from(*bytes.first()? == b'-');
    let (mut mantissa, mut at) = digits(bytes, first, 0);
    let whole = at - first;
    if whole == 0 || (whole > 1 && bytes[first] == b'0') {
        return None;
    }
    let mut places = 0;
    if bytes.get(at) == Some(&b'.') {
        let point = at + 1;
        (mantissa, at) = many_digits(bytes, point, mantissa);
        places = at - point;
        if places == 0 {
            return None;
        }
    }
    let scientific = matches!(bytes.get(at), Some(b'e' | b'E'));
    if !scientific && whole + places <= MOST_DIGITS && mantissa <= 1 << 53 {
        // both are exact, so the quotient is rounded once
        let x = mantissa as f64 / TEN[places];
        return Some((if first == 1 { -x } else { x }, at));
    }
    let fits = whole + places <= MOST_DIGITS || whole + places - leading_zeros(&bytes[first..at]) <= MOST_DIGITS;
    let mut power = -(places as i64);
    if scientific {
        let sign = bytes.get(at + 1).filter(|sign| matches!(sign, b'+' | b'-'));
        let start = at + 1 + usize::from(sign.is_some());
        let (exponent, end) = digits(bytes, start, 0);
        if end == start {
            return None;
        }
        // a longer one has leading zeros, or is beyond every f64
        let exponent = if end - start <= 4 { exponent as i64 } else { return general(bytes, end) };
        power += if sign == Some(&b'-') { -exponent } else { exponent };
        at = end;
    }
    let x = match power {
        _ if !fits => return general(bytes, at),
        -22..=0 if mantissa <= 1 << 53 => mantissa as f64 / TEN[-power as usize],
        1..=22 if mantissa <= 1 << 53 => mantissa as f64 * TEN[power as usize],
        -27..=0 => quotient(mantissa, -power as usize),
        _ => return general(bytes, at),
    };
    Some((if first == 1 { -x } else { x }, at))
}

/// Appends the digits from a place on to a number, modulo 2⁶⁴; returns it and where they end.
#[inline(always)]
fn digits(bytes: &[u8], mut at: usize, mut number: u64) -> (u64, usize) {
    while let Some(digit) = bytes.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10) {
        number = number.wrapping_mul(10).wrapping_add(u64::from(digit));
        at += 1;
    }
    (number, at)
}

/// The same, up to eight of them at a time.
#[inline(always)]
fn many_digits(bytes: &[u8], mut at: usize, mut number: u64) -> (u64, usize) {
    while let Some(eight) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let word = word(eight);
        let count = digit_count(word);
        if count == 0 {
            return (number, at);
        }
        // zeros in front of fewer than eight
        number = number.wrapping_mul(POWER[count]).wrapping_add(eight_digits(word << (64 - 8 * count)));
        at += count;
        if count < 8 {
            return (number, at);
        }
    }
    digits(bytes, at, number)
}

/// Eight bytes, the first in the lowest; a digit has its value.
#[inline(always)]
fn word(bytes: &[u8; 8]) -> u64 {
    u64::from_le_bytes(*bytes) ^ 0x3030_3030_3030_3030
}

/// How many of its bytes are digits before the first that is none.
#[inline(always)]
fn digit_count(word: u64) -> usize {
    // the high bit of the first byte above 9 is set, whatever is behind it
    let others = (word | word.wrapping_add(0x7676_7676_7676_7676)) & 0x8080_8080_8080_8080;
    others.trailing_zeros() as usize / 8
}

/// The number of eight digits, one in each byte, the first in the lowest: neighbours are joined three times.
#[inline(always)]
fn eight_digits(word: u64) -> u64 {
    const EVERY_FOURTH: u64 = 0x0000_00ff_0000_00ff;
    let pairs = word.wrapping_mul(10).wrapping_add(word >> 8);
    let first = (pairs & EVERY_FOURTH).wrapping_mul(100 + (1_000_000 << 32));
    let second = ((pairs >> 16) & EVERY_FOURTH).wrapping_mul(1 + (10_000 << 32));
    first.wrapping_add(second) >> 32
}

/// `m / 10^places`.
fn quotient(mantissa: u64, places: usize) -> f64 {
    if mantissa == 0 {
        return 0.0;
    }
    // m = a · 2^−i and 5^places = b · 2^−j, where a and b have all 64 bits: 2^63 a / b has 63 or 64 bits
    let five = FIVE[places];
    let (i, j) = (mantissa.leading_zeros(), five.leading_zeros());
    let (a, b) = (u128::from(mantissa << i) << 63, u128::from(five << j));
    let whole = (a / b) as u64;
    // one more bit for the rest, far below those of f64: the conversion rounds the true quotient to the nearest
    let bits = whole | u64::from(u128::from(whole) * b != a);
    let exponent = i64::from(j) - i64::from(i) - 63 - places as i64;
    // a normal power of 2: at least 2^(−63−63−27)
    bits as f64 * f64::from_bits(((exponent + 1023) as u64) << 52)
}

fn leading_zeros(digits: &[u8]) -> usize {
    digits.iter().filter(|byte| **byte != b'.').take_while(|byte| **byte == b'0').count()
}

/// By the standard library.
#[cold]
fn general(bytes: &[u8], end: usize) -> Option<(f64, usize)> {
    let x: f64 = std::str::from_utf8(bytes.get(..end)?).ok()?.parse().ok()?;
    x.is_finite().then_some((x, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Option<f64> {
        decimal(format!("{text},").as_bytes()).filter(|(_, length)| *length == text.len()).map(|(x, _)| x)
    }

    fn assert_parsed(text: &str) {
        let wanted: f64 = text.parse().unwrap();
        assert_eq!(number(text).map(f64::to_bits), Some(wanted.to_bits()), "{text}");
        assert_eq!(
            decimal(text.as_bytes()).map(|(x, length)| (x.to_bits(), length)),
            Some((wanted.to_bits(), text.len()))
        );
    }

    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *state ^ (*state >> 29)
    }

    #[test]
    fn numbers_have_the_bits_of_the_standard_library() {
        let mut state = 1_u64;
        for _ in 0..20_000 {
            let bits = random(&mut state);
            let wide = f64::from_bits(bits);
            let narrow = f64::from((bits >> 40) as f32 / (1 << 24) as f32) - 0.5;
            let unit = (bits >> 11) as f64 / (1_u64 << 53) as f64;
            for x in [wide, narrow, unit, unit * unit * unit, (bits >> 20) as f64, f64::from(narrow as f32)] {
                if x.is_finite() {
                    for text in [format!("{x}"), format!("{x:e}"), format!("{x:.6}"), format!("-{unit:.25}")] {
                        assert_parsed(&text);
                    }
                }
            }
        }
        assert_eq!(number("-0").map(f64::to_bits), Some((-0.0_f64).to_bits()));
        assert_eq!(number("9007199254740993"), Some(9_007_199_254_740_992.0));
    }

    /// Numbers halfway between two floats, and the closest decimals on both sides.
    #[test]
    fn ties_are_rounded_to_even_and_their_neighbours_are_not() {
        let mut state = 7_u64;
        for _ in 0..20_000 {
            let odd = ((random(&mut state) >> 10) | (1 << 53) | 1) as i128;
            // 54 bits with the last one set, divided by 2^places, has as many decimal places
            let places = (random(&mut state) % 4) as u32;
            let exact = odd * 5_i128.pow(places);
            for near in [exact - 1, exact, exact + 1] {
                let digits = near.to_string();
                let (whole, rest) = digits.split_at(digits.len() - places as usize);
                let point = if rest.is_empty() { "" } else { "." };
                assert_parsed(&format!("{whole}{point}{rest}"));
                assert_parsed(&format!("0.00{digits}"));
                assert_parsed(&format!("{digits}e-{}", places + 9));
            }
        }
    }

    #[test]
    fn every_count_of_digits_is_read() {
        for digits in 1..40 {
            let text = "1234567890".repeat(4);
            for text in [
                text[..digits].to_string(),
                format!("0.{}", &text[..digits]),
                format!("0.{}1", "0".repeat(digits)),
                format!("1.{}e{}", &text[..digits], digits),
                format!("1E-{digits}"),
                format!("7e+{digits}"),
                "9".repeat(digits),
                format!("0.{}", "0".repeat(digits)),
                format!("1e-0000{digits}"),
            ] {
                assert_parsed(&text);
            }
        }
    }

    #[test]
    fn digits_end_at_the_first_byte_that_is_none() {
        let digits = "98765432109876543210";
        for count in 1..20 {
            let places = ["-0.", "7.", "-12.", "345.", "6789."].map(|whole| format!("{whole}{}", &digits[..count]));
            for text in
                places.into_iter().chain([digits[..count].into(), format!("-{}", &digits[..count]), "-0".into()])
            {
                let wanted: f64 = text.parse().unwrap();
                // what follows an integer may belong to it
                let is_more =
                    |byte: &u8| matches!(byte, b'0'..=b'9' | b'e' | b'E') || (*byte == b'.' && !text.contains('.'));
                for end in (0..=u8::MAX).filter(|byte| !is_more(byte)) {
                    for rest in [&[0xff; 9], b"123456789", b",,,,,,,,,", &[0; 9]] {
                        let bytes = [text.as_bytes(), &[end], rest].concat();
                        let found = decimal(&bytes).map(|(x, length)| (x.to_bits(), length));
                        assert_eq!(found, Some((wanted.to_bits(), text.len())), "{text} before {end}");
                    }
                }
            }
        }
    }

    #[test]
    fn every_short_number_has_the_bits_of_the_standard_library() {
        let all = |digits: u32| {
            (0..10_u32.pow(digits)).map(move |number| format!("{number:0digits$}", digits = digits as usize))
        };
        for places in 1..=4 {
            for (whole, text) in (0..).zip(all(places)) {
                let other = (whole * 7 + 3) % 1000;
                for text in [format!("0.{text}"), format!("-{}.{text}", other % 10), format!("{other}.{text}")] {
                    assert_parsed(&text);
                    for next in [",1", "]", " ,", "}", "\n"] {
                        let bytes = format!("{text}{next}          ");
                        let wanted: f64 = text.parse().unwrap();
                        let found = decimal(bytes.as_bytes()).map(|(x, length)| (x.to_bits(), length));
                        assert_eq!(found, Some((wanted.to_bits(), text.len())), "{bytes}");
                    }
                }
            }
        }
        for number in -11_000..11_000 {
            assert_parsed(&number.to_string());
        }
    }

    #[test]
    fn what_is_not_a_plain_number_is_left_to_the_general_reader() {
        let texts = [
            "", "-", "01", "1.", ".5", "+1", "NaN", "null", "1e999", "1e", "1e+", "0x1", "\"1\"", "[1]", "1.5.5",
            "1e99999", "-01.5", "00",
        ];
        for text in texts {
            assert_eq!(number(text), None, "{text}");
        }
    }
}
