//! The options object as the old program printed it: unquoted names, `, ` between fields, a space
//! inside each brace, texts in double quotes without escaping and cut when long, doubles in
//! `printf`'s `%.16g`.

use super::document::{Document, Value};

/// Texts of at least this many bytes are cut.
const LONG_TEXT_BYTES: usize = 160;
/// The number of bytes that long texts are cut to.
const CUT_TEXT_BYTES: usize = 150;
/// Values nested deeper are shown as three dots, without their name.
const DEPTH_MAX: usize = 100;
/// Significant digits of a double.
const DIGITS: usize = 16;

/// Returns one line, unless a text in it contains a line feed (`\n`).
pub(crate) fn echo(document: &Document) -> String {
    let mut bytes = Vec::new();
    write_object(&mut bytes, document, 0);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn write_object(out: &mut Vec<u8>, document: &Document, depth: usize) {
    let fields = document
        .0
        .iter()
        .map(|(name, value)| (Some(&**name), value));
    write_list(out, [b'{', b'}'], fields, depth);
}

fn write_list<'a>(
    out: &mut Vec<u8>,
    [open, close]: [u8; 2],
    elements: impl ExactSizeIterator<Item = (Option<&'a [u8]>, &'a Value)>,
    depth: usize,
) {
    out.push(open);
    let separators = std::iter::once(&b" "[..]).chain(std::iter::repeat(&b", "[..]));
    let empty = elements.len() == 0;
    for ((name, value), separator) in elements.zip(separators) {
        out.extend(separator);
        if depth > DEPTH_MAX {
            out.extend(b"...");
            continue;
        }
        if let Some(name) = name {
            out.extend(name);
            out.extend(b": ");
        }
        write_value(out, value, depth);
    }
    if !empty {
        out.push(b' ');
    }
    out.push(close);
}

fn write_value(out: &mut Vec<u8>, value: &Value, depth: usize) {
    match value {
        Value::Int(number) => out.extend(number.to_string().bytes()),
        Value::Long(number) => out.extend(number.to_string().bytes()),
        Value::Double(number) => out.extend(double(*number).bytes()),
        Value::Text(text) => write_text(out, text),
        Value::Bool(value) => out.extend(value.to_string().bytes()),
        Value::Null => out.extend(b"null"),
        Value::Undefined => out.extend(b"undefined"),
        Value::Object(document) => write_object(out, document, depth + 1),
        Value::Array(values) => {
            let elements = values.iter().map(|value| (None, value));
            write_list(out, [b'[', b']'], elements, depth + 1);
        }
    }
}

fn write_text(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    if text.len() < LONG_TEXT_BYTES {
        out.extend(text);
    } else {
        out.extend(&text[..CUT_TEXT_BYTES]);
        out.extend(b"...");
    }
    out.push(b'"');
}

/// Formats as `%.16g`, with `.0` after anything without a point: whole numbers, but also `1e+20.0`
/// and `nan.0`.
fn double(number: f64) -> String {
    let mut text = general(number);
    if !text.contains('.') {
        text.push_str(".0");
    }
    text
}

/// C's `%.16g` (C11 7.21.6.1).
fn general(number: f64) -> String {
    if number.is_nan() {
        return "nan".into();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.into();
    }
    let scientific = format!("{number:.precision$e}", precision = DIGITS - 1);
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits = i32::try_from(DIGITS).unwrap_or(i32::MAX);
    if exponent < -4 || exponent >= digits {
        let sign = if exponent < 0 { '-' } else { '+' };
        let mantissa = without_trailing_zeros(mantissa);
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    let decimals = usize::try_from(digits - 1 - exponent).unwrap_or(0);
    without_trailing_zeros(&format!("{number:.decimals$}")).to_string()
}

fn without_trailing_zeros(text: &str) -> &str {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::super::input::parse;
    use super::*;

    fn echoed(input: &str) -> String {
        echo(&parse(input.as_bytes()).unwrap())
    }

    #[test]
    fn objects_look_as_in_the_article() {
        assert_eq!(
            echoed("{nThreads:32,fileSizeMB:1000,r:true}"),
            "{ nThreads: 32, fileSizeMB: 1000, r: true }"
        );
        assert_eq!(
            echoed("{recSizeKB:8,nThreads:8,fileSizeMB:1000,r:true,mmf:true}"),
            "{ recSizeKB: 8, nThreads: 8, fileSizeMB: 1000, r: true, mmf: true }"
        );
        assert_eq!(echoed("{}"), "{}");
        assert_eq!(
            echoed("{a:{},b:[],c:{d:[1,null,'x'],e:undefined}}"),
            "{ a: {}, b: [], c: { d: [ 1, null, \"x\" ], e: undefined } }"
        );
        assert_eq!(echoed("{a:5000000000,b:-3}"), "{ a: 5000000000, b: -3 }");
    }

    /// What glibc's `printf("%.16g")` prints, and ".0" where the old program added it.
    #[test]
    fn doubles_print_as_in_c() {
        for (number, expected) in [
            (32.0, "32.0"),
            (-0.0, "-0.0"),
            (0.1, "0.1"),
            (0.1 + 0.2, "0.3"),
            (1.0 / 3.0, "0.3333333333333333"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05.0"),
            (1.5e-7, "1.5e-07"),
            (123_456_789.25, "123456789.25"),
            (9_007_199_254_740_993.0, "9007199254740992.0"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16.0"),
            (9_999_999_999_999_998.0, "9999999999999998.0"),
            (1e20, "1e+20.0"),
            (-2.5e100, "-2.5e+100"),
            (f64::NAN, "nan.0"),
            (f64::INFINITY, "inf.0"),
            (f64::NEG_INFINITY, "-inf.0"),
        ] {
            assert_eq!(double(number), expected);
        }
    }

    #[test]
    fn texts_are_not_escaped_and_long_ones_are_cut() {
        assert_eq!(echoed(r#"{a:'say"hi"\\'}"#), r#"{ a: "say"hi"\" }"#);
        let of = |bytes: usize| echoed(&format!("{{a:'{}'}}", "x".repeat(bytes)));
        assert_eq!(of(159), format!("{{ a: \"{}\" }}", "x".repeat(159)));
        assert_eq!(of(160), format!("{{ a: \"{}...\" }}", "x".repeat(150)));
    }

    #[test]
    fn deep_nesting_ends_in_dots() {
        let deep = format!("{{a:{}{}}}", "[".repeat(300), "]".repeat(300));
        let expected = format!("{{ a: {}...{} }}", "[ ".repeat(101), " ]".repeat(101));
        assert_eq!(echoed(&deep), expected);
    }
}
