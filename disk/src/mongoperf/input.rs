//! The input language: JSON as servers of the 3.x series read it, which allows unquoted names,
//! single quotes, and typed numbers.
//!
//! Two oddities are kept because inputs rely on them: only the first 1000 bytes count, and spaces,
//! line ends and 0x1A are removed everywhere, even inside texts. Anything after the closing brace
//! is ignored. Of the shell's constructors only `NumberInt()` and `NumberLong()` are known; regular
//! expressions, dates and hexadecimal numbers are refused.

use std::io::{self, Read};

use super::document::{Document, Value};

/// The number of input bytes that are used.
const INPUT_BYTES_MAX: usize = 1000;

/// Where and why the input is not an options object.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "the options are not understood at line {line}, byte {column} of it: {problem}{}",
    if *cut { "; the input is longer than 1000 bytes and only these are read" } else { "" }
)]
pub struct InputError {
    /// Line number, from 1.
    pub line: usize,
    /// Column in bytes, from 1.
    pub column: usize,
    pub problem: &'static str,
    /// Whether the input continued after the part that is read.
    pub cut: bool,
}

/// Reads the part of the input that counts, and one byte more if there is one, which shows that it
/// was cut.
pub fn read_input(input: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input
        .take(INPUT_BYTES_MAX as u64 + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the input without the bytes that the old program deleted. Lossy where it is not UTF-8.
pub(crate) fn stripped(input: &[u8]) -> String {
    let bytes: Vec<u8> = kept(input).map(|(_, byte)| byte).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the bytes that count: up to the first NUL, where text ends in C.
fn counted(input: &[u8]) -> impl Iterator<Item = u8> {
    let read = input.iter().copied().take(INPUT_BYTES_MAX);
    read.take_while(|&byte| byte != 0)
}

/// Returns those of them that are not deleted, with their positions.
fn kept(input: &[u8]) -> impl Iterator<Item = (usize, u8)> {
    let deleted = |byte: u8| matches!(byte, b' ' | b'\r' | b'\n' | 0x1a);
    let numbered = counted(input).enumerate();
    numbered.filter(move |&(_, byte)| !deleted(byte))
}

/// Reads an options object.
pub(crate) fn parse(input: &[u8]) -> Result<Document, InputError> {
    let (positions, bytes) = kept(input).unzip();
    let mut parser = Parser {
        bytes,
        positions,
        next: 0,
    };
    parser.object().map_err(|problem| {
        let at = parser.position(input);
        let before = &input[..at];
        let line_start = before.iter().rposition(|&byte| byte == b'\n');
        InputError {
            line: 1 + before.iter().filter(|&&byte| byte == b'\n').count(),
            column: 1 + at - line_start.map_or(0, |start| start + 1),
            problem,
            cut: input.len() > INPUT_BYTES_MAX,
        }
    })
}

type Parsed<T> = Result<T, &'static str>;

const ENDED: &str = "the input ends in the middle of the object";

struct Parser {
    bytes: Vec<u8>,
    /// The position of each byte in the input.
    positions: Vec<usize>,
    next: usize,
}

impl Parser {
    /// Returns the parser's position in the input.
    fn position(&self, input: &[u8]) -> usize {
        let end = || counted(input).count();
        self.positions.get(self.next).copied().unwrap_or_else(end)
    }

    fn rest(&self) -> &[u8] {
        &self.bytes[self.next..]
    }

    /// Skips tabs and form feeds: the rest of C's white space has been deleted.
    fn skip_space(&mut self) {
        let space = |byte: &&u8| matches!(byte, b'\t' | 0x0b | 0x0c);
        self.next += self.rest().iter().take_while(space).count();
    }

    /// Skips `token` if it comes next.
    fn take(&mut self, token: &str) -> bool {
        self.skip_space();
        let found = self.rest().starts_with(token.as_bytes());
        if found {
            self.next += token.len();
        }
        found
    }

    fn expect(&mut self, token: &str, otherwise: &'static str) -> Parsed<()> {
        if self.take(token) {
            Ok(())
        } else if self.rest().is_empty() {
            Err(ENDED)
        } else {
            Err(otherwise)
        }
    }

    fn object(&mut self) -> Parsed<Document> {
        self.expect("{", "an object in braces is expected: {nThreads:8,r:true}")?;
        let mut fields = Vec::new();
        if self.take("}") {
            return Ok(Document(fields));
        }
        loop {
            let name = self.name()?;
            self.expect(":", "':' is expected after a field's name")?;
            fields.push((name, self.value()?));
            if !self.take(",") {
                break;
            }
        }
        self.expect("}", "',' or '}' is expected after a value")?;
        Ok(Document(fields))
    }

    fn array(&mut self) -> Parsed<Vec<Value>> {
        let mut values = Vec::new();
        if self.take("]") {
            return Ok(values);
        }
        loop {
            values.push(self.value()?);
            if !self.take(",") {
                break;
            }
        }
        self.expect("]", "',' or ']' is expected after a value")?;
        Ok(values)
    }

    fn name(&mut self) -> Parsed<Vec<u8>> {
        if let Some(name) = self.quoted()? {
            return Ok(name);
        }
        let allowed = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$');
        let length = self.rest().iter().take_while(allowed).count();
        match self.rest().first() {
            None => return Err(ENDED),
            Some(first) if length == 0 || first.is_ascii_digit() => {
                return Err("a field's name is expected, beginning with a letter, _ or $");
            }
            Some(_) => {}
        }
        let name = self.rest()[..length].to_vec();
        self.next += length;
        Ok(name)
    }

    fn value(&mut self) -> Parsed<Value> {
        const WORDS: [(&str, Value); 7] = [
            ("true", Value::Bool(true)),
            ("false", Value::Bool(false)),
            ("null", Value::Null),
            ("undefined", Value::Undefined),
            ("NaN", Value::Double(f64::NAN)),
            ("Infinity", Value::Double(f64::INFINITY)),
            ("-Infinity", Value::Double(f64::NEG_INFINITY)),
        ];
        self.skip_space();
        if self.rest().starts_with(b"{") {
            return Ok(Value::Object(self.object()?));
        }
        if self.take("[") {
            return Ok(Value::Array(self.array()?));
        }
        if let Some(text) = self.quoted()? {
            return Ok(Value::Text(text));
        }
        for (word, value) in WORDS {
            if self.take(word) {
                return Ok(value);
            }
        }
        if self.take("NumberLong") {
            return self.constructed(|number| Some(Value::Long(number)));
        }
        if self.take("NumberInt") {
            return self.constructed(|number| i32::try_from(number).ok().map(Value::Int));
        }
        self.number()
    }

    /// Parses the parenthesis after `NumberInt` or `NumberLong`.
    fn constructed(&mut self, make: impl FnOnce(i64) -> Option<Value>) -> Parsed<Value> {
        self.expect("(", "'(' is expected")?;
        let number = match self.number()? {
            Value::Int(number) => Some(i64::from(number)),
            Value::Long(number) => Some(number),
            _ => None,
        };
        let value = number.and_then(make);
        self.expect(")", "')' is expected")?;
        value.ok_or("the number in the parentheses is not a whole one, or too large")
    }

    fn number(&mut self) -> Parsed<Value> {
        self.skip_space();
        let shape = NumberShape::of(self.rest());
        if shape.length == 0 {
            let ended = self.rest().is_empty();
            return Err(if ended { ENDED } else { "a value is expected" });
        }
        let text = std::str::from_utf8(&self.rest()[..shape.length]).unwrap_or_default();
        let value = shape.value(text)?;
        self.next += shape.length;
        Ok(value)
    }

    /// Parses a text in single or double quotes, if one comes next.
    fn quoted(&mut self) -> Parsed<Option<Vec<u8>>> {
        let quote = if self.take("\"") {
            b'"'
        } else if self.take("'") {
            b'\''
        } else {
            return Ok(None);
        };
        let mut text = Vec::new();
        loop {
            match self.byte()? {
                byte if byte == quote => return Ok(Some(text)),
                b'\\' => self.escape(&mut text)?,
                0..=0x1f => return self.refuse_byte("control characters must be escaped"),
                byte => text.push(byte),
            }
        }
    }

    fn byte(&mut self) -> Parsed<u8> {
        let byte = *self.rest().first().ok_or("a text is not closed")?;
        self.next += 1;
        Ok(byte)
    }

    /// Fails at the byte just read.
    fn refuse_byte<T>(&mut self, why: &'static str) -> Parsed<T> {
        self.next -= 1;
        Err(why)
    }

    fn escape(&mut self, text: &mut Vec<u8>) -> Parsed<()> {
        text.push(match self.byte()? {
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 0x0b,
            b'u' => return self.unicode(text),
            b'x' | b'0'..=b'7' => return self.refuse_byte("write \\u and four digits instead"),
            byte => byte,
        });
        Ok(())
    }

    /// Parses the digits of `\u`. Halves of surrogate pairs become U+FFFD.
    fn unicode(&mut self, text: &mut Vec<u8>) -> Parsed<()> {
        const EXPECTED: &str = "four hexadecimal digits are expected after \\u";
        let digits = self.rest().get(..4).ok_or(EXPECTED)?;
        let mut number = 0;
        for &digit in digits {
            number = number * 16 + char::from(digit).to_digit(16).ok_or(EXPECTED)?;
        }
        self.next += 4;
        let character = char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER);
        text.extend(character.encode_utf8(&mut [0; 4]).bytes());
        Ok(())
    }
}

/// The length of a number, and whether it has a fraction or exponent.
struct NumberShape {
    length: usize,
    whole: bool,
}

impl NumberShape {
    /// Returns the shape of the next number, with a length of 0 if no number comes next.
    fn of(bytes: &[u8]) -> Self {
        let digits_from = |at: usize| {
            bytes[at..]
                .iter()
                .take_while(|b| b.is_ascii_digit())
                .count()
        };
        let is_at = |at: usize, wanted: &[u8]| bytes.get(at).is_some_and(|b| wanted.contains(b));
        let sign = usize::from(is_at(0, b"+-"));
        let whole_digits = digits_from(sign);
        let mut length = sign + whole_digits;
        let mut digits = whole_digits;
        if is_at(length, b".") {
            let decimals = digits_from(length + 1);
            digits += decimals;
            length += 1 + decimals;
        }
        if digits == 0 {
            return Self {
                length: 0,
                whole: false,
            };
        }
        let mut whole = length == sign + whole_digits;
        if is_at(length, b"eE") {
            let digits_at = length + 1 + usize::from(is_at(length + 1, b"+-"));
            let exponent = bytes.get(digits_at..).map_or(0, |_| digits_from(digits_at));
            if exponent > 0 {
                whole = false;
                length = digits_at + exponent;
            }
        }
        Self { length, whole }
    }

    /// Returns the value; a whole number gets the smallest type that it fits.
    fn value(&self, text: &str) -> Parsed<Value> {
        if self.whole
            && let Ok(long) = text.parse::<i64>()
        {
            return Ok(i32::try_from(long).map_or(Value::Long(long), Value::Int));
        }
        let number: f64 = text.parse().map_err(|_| "a number is expected")?;
        let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
        let is_zero = !mantissa.contains(|digit| matches!(digit, '1'..='9'));
        if number.is_normal() || is_zero {
            Ok(Value::Double(number))
        } else {
            Err("the number does not fit a double")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value(text: &str) -> Value {
        let document = parse(format!("{{v:{text}}}").as_bytes()).unwrap();
        document.get("v").unwrap().clone()
    }

    fn problem(input: &str) -> InputError {
        parse(input.as_bytes()).unwrap_err()
    }

    #[test]
    fn names_may_be_quoted_or_not() {
        for input in [
            "{nThreads:3}",
            "{'nThreads':3}",
            "{\"nThreads\":3}",
            " { nThreads : 3 } \r\n",
            "{\tnThreads\t:\t3\t}",
            "{nThr\neads:\x1a3}and then anything at all",
            "{'n T h r e a d s':3}{",
            "{\"nThreads\":3,nThreads:4}",
        ] {
            let document = parse(input.as_bytes()).expect(input);
            assert_eq!(document.get("nThreads"), Some(&Value::Int(3)), "{input}");
        }
    }

    #[test]
    fn numbers_have_types() {
        for (text, expected) in [
            ("32", Value::Int(32)),
            ("+7", Value::Int(7)),
            ("-0", Value::Int(0)),
            ("007", Value::Int(7)),
            ("2147483647", Value::Int(i32::MAX)),
            ("2147483648", Value::Long(2_147_483_648)),
            ("-2147483648", Value::Int(i32::MIN)),
            ("-2147483649", Value::Long(-2_147_483_649)),
            ("9223372036854775807", Value::Long(i64::MAX)),
            (
                "9223372036854775808",
                Value::Double(9.223_372_036_854_776e18),
            ),
            ("32.0", Value::Double(32.0)),
            ("1.", Value::Double(1.0)),
            (".5", Value::Double(0.5)),
            ("1e3", Value::Double(1000.0)),
            ("1 000", Value::Int(1000)),
            ("0e5", Value::Double(0.0)),
            ("0.000", Value::Double(0.0)),
            ("Infinity", Value::Double(f64::INFINITY)),
            ("-Infinity", Value::Double(f64::NEG_INFINITY)),
            ("NumberLong(5)", Value::Long(5)),
            ("NumberInt( -5 )", Value::Int(-5)),
        ] {
            assert_eq!(value(text), expected, "{text}");
        }
        assert!(matches!(value("NaN"), Value::Double(number) if number.is_nan()));
    }

    #[test]
    fn other_values() {
        let text = |bytes: &[u8]| Value::Text(bytes.to_vec());
        for (input, expected) in [
            ("true", Value::Bool(true)),
            ("false", Value::Bool(false)),
            ("null", Value::Null),
            ("undefined", Value::Undefined),
            ("''", text(b"")),
            ("'a \"b\" c'", text(b"a\"b\"c")),
            (r#""it's""#, text(b"it's")),
            (r"'\'\\\/\b\f\n\r\t\v\q'", text(b"'\\/\x08\x0c\n\r\t\x0bq")),
            (
                r"'\u0041\u00e9\u20AC\ud800'",
                text("Aé€\u{fffd}".as_bytes()),
            ),
            ("{}", Value::Object(Document::default())),
            ("[]", Value::Array(vec![])),
            (
                "[1,[true],{a:null}]",
                Value::Array(vec![
                    Value::Int(1),
                    Value::Array(vec![Value::Bool(true)]),
                    Value::Object(Document(vec![(b"a".to_vec(), Value::Null)])),
                ]),
            ),
        ] {
            assert_eq!(value(input), expected, "{input}");
        }
    }

    #[test]
    fn errors_say_where() {
        for (input, line, column) in [
            ("", 1, 1),
            ("x", 1, 1),
            ("[1]", 1, 1),
            ("{", 1, 2),
            ("{nThreads", 1, 10),
            ("{nThreads:", 1, 11),
            ("{nThreads:32", 1, 13),
            ("{nThreads 32}", 1, 13),
            ("{3:4}", 1, 2),
            ("{a:1,}", 1, 6),
            ("{a:1 b:2}", 1, 6),
            ("{a:1;b:2}", 1, 5),
            ("{\n  r: true,\n  w: maybe\n}", 3, 6),
            ("{a:trueish}", 1, 8),
            ("{a:0x10}", 1, 5),
            ("{a:/x/}", 1, 4),
            ("{a:-}", 1, 4),
            ("{a:.}", 1, 4),
            ("{a:1e400}", 1, 4),
            ("{a:1e-400}", 1, 4),
            ("{a:'x", 1, 6),
            ("{a:'\t'}", 1, 5),
            ("{a:'\\x41'}", 1, 6),
            ("{a:'\\u12'}", 1, 7),
            ("{a:[1,2}", 1, 8),
            ("{a:NumberInt(5000000000)}", 1, 25),
            ("{a:NumberLong(1.5)}", 1, 19),
            ("{a:NumberLong 5}", 1, 15),
            ("{a:1\0}", 1, 5),
        ] {
            let error = problem(input);
            assert_eq!(
                (error.line, error.column),
                (line, column),
                "{input}: {error}"
            );
            assert!(!error.cut);
        }
    }

    #[test]
    fn only_the_first_thousand_bytes_are_read() {
        let padded = |spaces: usize| format!("{{r:true,{}w:true}}", " ".repeat(spaces));
        let fits = padded(1000 - padded(0).len());
        let longer = padded(1001 - padded(0).len());
        let read = |text: &str| read_input(text.as_bytes()).unwrap();
        assert_eq!(parse(&read(&fits)).unwrap().0.len(), 2);
        let error = parse(&read(&longer)).unwrap_err();
        assert!(error.cut && error.column == 1001, "{error}");
        assert!(error.to_string().contains("1000 bytes"), "{error}");
        let ignored = format!("{{r:true}}{}", "x".repeat(5000));
        assert_eq!(parse(&read(&ignored)).unwrap().0.len(), 1);
        assert_eq!(read(&ignored).len(), 1001);
    }

    #[test]
    fn what_is_deleted_is_deleted_everywhere() {
        assert_eq!(stripped(b" {\r\n a : 'b c'\x1a } \0 x"), "{a:'bc'}");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(input: Vec<u8>) {
            let _ = parse(&input);
        }

        /// Nearly right inputs reach deeper into the parser than arbitrary ones.
        #[test]
        fn near_misses_never_panic(input in "[{}\\[\\]:,'\"\\\\u0-9eE.+\\-a-c \t\n()NumberIntLog]{0,60}") {
            if let Err(error) = parse(input.as_bytes()) {
                prop_assert!(error.line <= 1 + input.matches('\n').count());
                prop_assert!(error.column <= input.len() + 1);
            }
            let in_object = format!("{{a:{input}}}");
            let _ = parse(in_object.as_bytes());
        }

        #[test]
        fn integers_are_read_exactly(number: i64) {
            prop_assert_eq!(value(&number.to_string()).whole_number(), Some(number));
        }
    }
}
