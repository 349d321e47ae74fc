//! Reads and formats sizes and durations for people.

use std::time::Duration;

/// The reason why a size or duration could not be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{text}` is not a {expected}")]
pub struct UnitError {
    text: String,
    expected: &'static str,
}

const SIZE_HINT: &str =
    "size; write bytes, or a number with k, M, G or T (powers of 1024), e.g. 64M or 1GiB";
const SIZE_ABOVE_0_HINT: &str =
    "size above 0; write bytes, or a number with k, M, G or T (powers of 1024), e.g. 64M or 1GiB";
const DURATION_HINT: &str = "duration; write a number with us, ms, s, m or h, e.g. 30s or 1.5m";
const STRETCH_HINT: &str =
    "duration above 0; write a number with us, ms, s, m or h, e.g. 30s or 1.5m";

fn split_number(text: &str) -> Option<(f64, String)> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    Some((number, text[end..].trim().to_ascii_lowercase()))
}

/// Reads a size in bytes: `4096`, `4k`, `64M`, `1GiB`. All multiples are of 1024.
pub fn parse_bytes(text: &str) -> Result<u64, UnitError> {
    let error = || UnitError {
        text: text.into(),
        expected: SIZE_HINT,
    };
    let (number, unit) = split_number(text).ok_or_else(error)?;
    let exponent = match unit.as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 1,
        "m" | "mb" | "mib" => 2,
        "g" | "gb" | "gib" => 3,
        "t" | "tb" | "tib" => 4,
        _ => return Err(error()),
    };
    let bytes = number * 1024f64.powi(exponent);
    if bytes > 2f64.powi(62) {
        return Err(error());
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "checked against 2^62 above, never negative"
    )]
    Ok(bytes as u64)
}

/// Reads a size that something is to have, as [`parse_bytes`] does; 0 is refused.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    match parse_bytes(text)? {
        0 => Err(UnitError {
            text: text.into(),
            expected: SIZE_ABOVE_0_HINT,
        }),
        bytes => Ok(bytes),
    }
}

/// Reads a duration: `250ms`, `30s`, `1.5m`, `2h`; a bare number is seconds.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let error = || UnitError {
        text: text.into(),
        expected: DURATION_HINT,
    };
    let (number, unit) = split_number(text).ok_or_else(error)?;
    let seconds = match unit.as_str() {
        "us" | "µs" => number / 1e6,
        "ms" => number / 1000.0,
        "" | "s" => number,
        "m" | "min" => number * 60.0,
        "h" => number * 3600.0,
        _ => return Err(error()),
    };
    if seconds > 366.0 * 86_400.0 {
        return Err(error());
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// Reads a duration that something is to last, as [`parse_duration`] does; 0 is refused.
pub fn parse_stretch(text: &str) -> Result<Duration, UnitError> {
    let stretch = parse_duration(text)?;
    match stretch.is_zero() {
        true => Err(UnitError {
            text: text.into(),
            expected: STRETCH_HINT,
        }),
        false => Ok(stretch),
    }
}

fn three_digits(value: f64) -> String {
    let decimals = match value {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

/// Formats bytes for people: `512 B`, `1.50 KiB`, `328 MiB`.
pub fn format_bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{} {}", three_digits(value), UNITS[unit])
}

/// Formats nanoseconds for people: `870 ns`, `45.1 µs`, `6.58 ms`, `31.6 s`.
pub fn format_ns(ns: u64) -> String {
    match ns {
        0..=999 => format!("{ns} ns"),
        1_000..=999_499 => format!("{} µs", three_digits(ns as f64 / 1e3)),
        999_500..=999_499_999 => format!("{} ms", three_digits(ns as f64 / 1e6)),
        _ => format!("{} s", three_digits(ns as f64 / 1e9)),
    }
}

/// Formats a count with thousands separators: `105,968`.
pub fn format_count(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// Joins the first `items_max` of some names, with `separator` between them, and says how many are left out:
/// `a, b and 3 more`, `a; b; and 3 more`.
pub fn format_list(items: &[impl AsRef<str>], items_max: usize, separator: &str) -> String {
    let shown: Vec<&str> = items.iter().take(items_max).map(AsRef::as_ref).collect();
    let text = shown.join(separator);
    match items.len() - shown.len() {
        0 => text,
        more => format!(
            "{text}{} and {more} more",
            separator.trim_matches([',', ' '])
        ),
    }
}

/// Returns a time in nanoseconds; `u64::MAX`, 584 years, if it is longer.
pub fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Rounds a calculated number of bytes, nanoseconds or events; 0 for negative values and NaN, and the largest number for
/// what is beyond.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and NaN becomes 0"
)]
pub fn whole(value: f64) -> u64 {
    value.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers() {
        let cases = [
            (1.4, 1),
            (1.5, 2),
            (-3.0, 0),
            (f64::NAN, 0),
            (f64::INFINITY, u64::MAX),
        ];
        for (value, expected) in cases {
            assert_eq!(whole(value), expected, "{value}");
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(parse_bytes("4096"), Ok(4096));
        assert_eq!(parse_bytes("4k"), Ok(4096));
        assert_eq!(parse_bytes("1.5 GiB"), Ok(1_610_612_736));
        for bad in ["", "x", "-1", "1q", "1e3", "99999999999G", "1.2.3k", "٣k"] {
            assert!(parse_bytes(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn durations() {
        assert_eq!(parse_duration("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(parse_duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse_duration("1.5m"), Ok(Duration::from_secs(90)));
        assert!(parse_duration("9999999h").is_err());
        assert!(parse_duration("soon").is_err());
        assert_eq!(parse_duration("0s"), Ok(Duration::ZERO));
        assert!(parse_size("0.1").is_err());
        assert_eq!(parse_size("4k"), parse_bytes("4k"));
        assert!(parse_stretch("0s").is_err());
        assert_eq!(parse_stretch("30s"), parse_duration("30s"));
    }

    #[test]
    fn for_people() {
        assert_eq!(format_bytes(0), "0 B");
        assert_eq!(format_bytes(1536), "1.50 KiB");
        assert_eq!(format_bytes(1 << 20), "1.00 MiB");
        assert_eq!(format_ns(870), "870 ns");
        assert_eq!(format_ns(999_499), "999 µs");
        assert_eq!(format_ns(6_580_000), "6.58 ms");
        assert_eq!(format_ns(31_600_000_000), "31.6 s");
        assert_eq!(format_count(105_968), "105,968");
        assert_eq!(format_count(68), "68");
    }

    #[test]
    fn lists_say_what_they_leave_out() {
        let names = ["a", "b", "c", "d"];
        assert_eq!(format_list(&names, 4, ", "), "a, b, c, d");
        assert_eq!(format_list(&names, 2, ", "), "a, b and 2 more");
        assert_eq!(format_list(&names, 3, "; "), "a; b; c; and 1 more");
        assert_eq!(format_list(&[""; 0], 2, ", "), "");
    }
}
