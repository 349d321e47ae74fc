//! Reading and writing one record of comma-separated values (RFC 4180).

use std::borrow::Cow;
use std::io::{self, Write};

/// Splits a record into its fields; `None` if a quoted field continues after the end of the text.
pub(crate) fn split(text: &str) -> Option<Vec<Cow<'_, str>>> {
    let mut fields = Vec::new();
    let mut rest = text;
    loop {
        let (field, after) = match rest.strip_prefix('"') {
            Some(quoted) => unquote(quoted)?,
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                (Cow::Borrowed(&rest[..end]), &rest[end..])
            }
        };
        fields.push(field);
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            // Text after a closing quote without a comma belongs to no field and is dropped.
            None => return Some(fields),
        }
    }
}

/// Returns the field whose opening quote has been removed, and what follows its closing quote.
fn unquote(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let mut from = 0;
    loop {
        let quote = from + text.get(from..)?.find('"')?;
        let after = &text[quote + 1..];
        if after.starts_with('"') {
            from = quote + 2;
            continue;
        }
        let inner = &text[..quote];
        let field = if inner.contains('"') {
            Cow::Owned(inner.replace("\"\"", "\""))
        } else {
            Cow::Borrowed(inner)
        };
        return Some((field, after));
    }
}

/// Writes a text field, quoted if need be.
pub(crate) fn write_text(out: &mut impl Write, text: &str) -> io::Result<()> {
    if text.contains(['"', ',', '\n', '\r']) {
        write!(out, "\"{}\"", text.replace('"', "\"\""))
    } else {
        out.write_all(text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back() {
        for fields in [
            vec!["a", "", "b c"],
            vec!["with,comma", "with\"quote", "two\nlines", "\"\"", ""],
            vec![""],
        ] {
            let mut line = Vec::new();
            for (i, field) in fields.iter().enumerate() {
                if i > 0 {
                    line.push(b',');
                }
                write_text(&mut line, field).unwrap();
            }
            assert_eq!(split(std::str::from_utf8(&line).unwrap()).unwrap(), fields);
        }
        assert!(split("a,\"b").is_none() && split("\"a\"\"").is_none());
        assert_eq!(split("\"a\"x,b").unwrap(), ["a"]);
    }
}
