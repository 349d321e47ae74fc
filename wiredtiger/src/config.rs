//! The grammar of WiredTiger's configuration strings (`src/config/config.c`):
//! `key=value,key=(nested=1,list=[a,b]),bare,"quoted key":"quoted value"`.
//!
//! Nothing is unpacked before it is asked for, and nesting is counted, not recursed into.

use std::borrow::Cow;

use thiserror::Error;

/// Why a text is not a configuration string, or lacks what is needed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConfigError {
    #[error("the configuration is not valid at byte {at}: {reason}")]
    Grammar { at: usize, reason: &'static str },
    #[error("the configuration has {key}={value}, which is not {wanted}")]
    Value {
        key: &'static str,
        value: String,
        wanted: &'static str,
    },
}

/// A value as written in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// A key without a value, which means true.
    Absent,
    Bare(&'a str),
    /// The text without its quotes, escapes untouched.
    Quoted(&'a str),
    /// The text between a pair of brackets of any kind.
    Nested(&'a str),
}

impl<'a> Value<'a> {
    /// Returns the text with escapes resolved.
    #[must_use]
    pub fn text(self) -> Cow<'a, str> {
        match self {
            Value::Absent => Cow::Borrowed("true"),
            Value::Bare(text) | Value::Nested(text) => Cow::Borrowed(text),
            Value::Quoted(text) if text.contains('\\') => Cow::Owned(unescaped(text)),
            Value::Quoted(text) => Cow::Borrowed(text),
        }
    }

    /// Returns the pairs inside brackets or, for an unbracketed value, the pairs it consists of.
    #[must_use]
    pub fn pairs(self) -> Pairs<'a> {
        match self {
            Value::Absent => pairs(""),
            Value::Bare(text) | Value::Quoted(text) | Value::Nested(text) => pairs(text),
        }
    }

    /// Returns a number of bytes: digits and an optional suffix `B`, `K`, `KB`, `M`, … in any case.
    #[must_use]
    pub fn size_bytes(self) -> Option<u64> {
        let text = self.text();
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, suffix) = text.split_at(digits);
        let shift = match suffix.to_ascii_lowercase().as_str() {
            "" | "b" => 0,
            "k" | "kb" => 10,
            "m" | "mb" => 20,
            "g" | "gb" => 30,
            "t" | "tb" => 40,
            "p" | "pb" => 50,
            _ => return None,
        };
        number.parse::<u64>().ok()?.checked_mul(1 << shift)
    }
}

fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        out.extend(if character == '\\' {
            characters.next()
        } else {
            Some(character)
        });
    }
    out
}

/// Returns the pairs of a text, in order.
#[must_use]
pub fn pairs(text: &str) -> Pairs<'_> {
    Pairs { text, at: 0 }
}

/// Returns the value of the last pair with `key`, as the engine does.
pub fn find<'a>(text: &'a str, key: &str) -> Result<Option<Value<'a>>, ConfigError> {
    find_in(pairs(text), key)
}

/// Like [`find`], among pairs.
pub fn find_in<'a>(pairs: Pairs<'a>, key: &str) -> Result<Option<Value<'a>>, ConfigError> {
    let mut found = None;
    for pair in pairs {
        let (name, value) = pair?;
        if name.text() == key {
            found = Some(value);
        }
    }
    Ok(found)
}

/// An iterator over keys and values, which ends after the first error.
#[derive(Debug, Clone)]
pub struct Pairs<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Pairs<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip(&mut self, skipped: impl Fn(u8) -> bool) {
        while self.peek().is_some_and(&skipped) {
            self.at += 1;
        }
    }

    fn error(&self, reason: &'static str) -> ConfigError {
        ConfigError::Grammar {
            at: self.at,
            reason,
        }
    }

    /// Returns a slice whose ends are ASCII characters, hence on character boundaries.
    fn slice(&self, from: usize, to: usize) -> &'a str {
        self.text.get(from..to).unwrap_or_default()
    }

    fn token(&mut self, ends: impl Fn(u8) -> bool) -> Result<Value<'a>, ConfigError> {
        match self.peek() {
            Some(b'"') => self.quoted().map(Value::Quoted),
            Some(b'(' | b'[' | b'{') => self.nested().map(Value::Nested),
            Some(b')' | b']' | b'}') => Err(self.error("a closing bracket has no opening one")),
            _ => {
                let start = self.at;
                self.skip(|byte| {
                    !ends(byte) && byte != b',' && !is_space(byte) && !is_bracket(byte)
                });
                Ok(Value::Bare(self.slice(start, self.at)))
            }
        }
    }

    /// Parses a value that begins with a quote.
    fn quoted(&mut self) -> Result<&'a str, ConfigError> {
        let start = self.at + 1;
        self.at += 1;
        loop {
            match self.peek() {
                None => return Err(self.error("a quote is not closed")),
                Some(b'"') => break,
                Some(b'\\') => self.at += 2,
                Some(_) => self.at += 1,
            }
        }
        self.at += 1;
        Ok(self.slice(start, self.at - 1))
    }

    /// Parses a value that begins with a bracket.
    fn nested(&mut self) -> Result<&'a str, ConfigError> {
        let start = self.at + 1;
        let mut depth = 0_usize;
        loop {
            match self.peek() {
                None => return Err(self.error("a bracket is not closed")),
                Some(b'"') => {
                    self.quoted()?;
                    continue;
                }
                Some(b'(' | b'[' | b'{') => depth += 1,
                Some(b')' | b']' | b'}') => depth -= 1,
                Some(_) => {}
            }
            self.at += 1;
            if depth == 0 {
                return Ok(self.slice(start, self.at - 1));
            }
        }
    }

    fn pair(&mut self) -> Result<(Value<'a>, Value<'a>), ConfigError> {
        let key = self.token(|byte| matches!(byte, b'=' | b':'))?;
        self.skip(is_space);
        if !matches!(self.peek(), Some(b'=' | b':')) {
            return Ok((key, Value::Absent));
        }
        self.at += 1;
        self.skip(is_space);
        let value = self.token(|_| false)?;
        self.skip(is_space);
        match self.peek() {
            None | Some(b',') => Ok((key, value)),
            Some(_) => Err(self.error("a comma is missing after a value")),
        }
    }
}

impl<'a> Iterator for Pairs<'a> {
    /// Key and value.
    type Item = Result<(Value<'a>, Value<'a>), ConfigError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.skip(|byte| byte == b',' || is_space(byte));
        self.peek()?;
        let start = self.at;
        let pair = self.pair();
        if pair.is_err() || self.at == start {
            self.at = self.text.len();
        }
        Some(pair)
    }
}

fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace()
}

fn is_bracket(byte: u8) -> bool {
    matches!(byte, b'(' | b')' | b'[' | b']' | b'{' | b'}' | b'"')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn brackets_quotes_and_lists() {
        let text = r#"a=1, b=(x=[p,q],y="(\""),c,"d e":{"k" : {"v" : "}"}, "n":2},e=,f=4KB"#;
        let value = |key| find(text, key).unwrap().unwrap();
        assert_eq!(value("a"), Value::Bare("1"));
        assert_eq!(value("c"), Value::Absent);
        assert_eq!(value("e"), Value::Bare(""));
        assert_eq!(value("f").size_bytes(), Some(4096));
        let y = find_in(value("b").pairs(), "y").unwrap().unwrap();
        assert_eq!(y.text(), "(\"");
        let x = find_in(value("b").pairs(), "x").unwrap().unwrap();
        assert_eq!(x.pairs().count(), 2);
        let n = find_in(value("d e").pairs(), "n").unwrap().unwrap();
        assert_eq!(n.size_bytes(), Some(2));
        assert_eq!(find("k=1,k=2", "k").unwrap(), Some(Value::Bare("2")));
    }

    #[test]
    fn what_is_unbalanced_is_refused() {
        for text in ["a=(b", "a=\"b", "a=)", ")", "a=(b)c", "a=\"\\"] {
            assert!(find(text, "a").is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_ends(text in r#"[a,=:()\[\]{}"\\ é]{0,60}"#) {
            prop_assert!(pairs(&text).count() <= text.len());
        }
    }
}
