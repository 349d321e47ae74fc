//! A call as strace prints it: `name(argument, …) = result <seconds>`.

use crate::blkparse::seconds_ns;

/// A call that returned.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Call<'a> {
    pub(super) name: &'a str,
    pub(super) arguments: Vec<&'a str>,
    /// `None` for `?`: the call never returned, or is restarted after a signal.
    pub(super) result: Option<Returned<'a>>,
    /// The time in the call, with -T.
    pub(super) latency_ns: Option<u64>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Returned<'a> {
    /// The returned number, or -1.
    pub(super) value: i64,
    /// The path of the returned descriptor under `-y`; otherwise empty.
    pub(super) path: &'a str,
    /// The error's name, such as `ENOENT`, or empty.
    pub(super) errno: &'a str,
}

/// A descriptor as printed: `3`, or with -y `3</path>`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Descriptor<'a> {
    pub(super) number: i64,
    /// The path; empty without -y.
    pub(super) path: &'a str,
}

/// The most arguments of a call; a printed structure counts as one.
const ARGUMENTS_MAX: usize = 16;

/// Returns the word before the bracket.
pub(super) fn name_of(text: &str) -> &str {
    text.split('(').next().unwrap_or_default()
}

impl<'a> Call<'a> {
    /// Parses a call. `Ok(None)` if this is not a call at all, an error if it begins like one.
    pub(super) fn parse(text: &'a str) -> Result<Option<Self>, String> {
        let name = name_of(text);
        let is_name = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
            && name
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
        if !is_name || name.len() == text.len() {
            return Ok(None);
        }
        let (arguments, rest) = arguments(&text[name.len() + 1..])?;
        let result = rest
            .trim_start()
            .strip_prefix('=')
            .ok_or("there is no `= result` after the call")?
            .trim_start();
        let (result, latency_ns) = latency(result);
        Ok(Some(Self {
            name,
            arguments,
            result: returned(result)?,
            latency_ns,
        }))
    }

    pub(super) fn argument(&self, i: usize) -> &'a str {
        self.arguments.get(i).copied().unwrap_or_default()
    }

    pub(super) fn number(&self, i: usize) -> Result<i64, String> {
        integer(self.argument(i)).ok_or_else(|| format!("argument {} is not a number", i + 1))
    }

    pub(super) fn descriptor(&self, i: usize) -> Option<Descriptor<'a>> {
        let text = self.argument(i);
        let end = text.find('<').unwrap_or(text.len());
        Some(Descriptor {
            number: text[..end].parse().ok()?,
            path: path_in(&text[end..]),
        })
    }

    /// Returns the folder that AT_FDCWD or a descriptor refers to, which is printed with -y.
    pub(super) fn folder(&self, i: usize) -> &'a str {
        let text = self.argument(i);
        text.find('<').map_or("", |start| path_in(&text[start..]))
    }

    /// Returns a string argument, decoded; `None` if strace shortened it or printed an address.
    pub(super) fn text(&self, i: usize) -> Option<String> {
        let inner = self.argument(i).strip_prefix('"')?.strip_suffix('"')?;
        Some(unescape(inner))
    }
}

/// Returns the path in `</path>` or `</path>(deleted)`; empty if it holds something else.
fn path_in(text: &str) -> &str {
    let Some(inner) = text.strip_prefix('<') else {
        return "";
    };
    let inner = inner.strip_suffix("(deleted)").unwrap_or(inner);
    inner.strip_suffix('>').unwrap_or("")
}

/// Splits at the commas of the outermost level, up to the closing bracket. Also returns the rest.
fn arguments(text: &str) -> Result<(Vec<&str>, &str), String> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let (mut i, mut from, mut depth) = (0, 0, 0u32);
    while let Some(byte) = bytes.get(i) {
        match byte {
            b'"' => i = after_string(bytes, i + 1)?,
            b'/' if bytes[i..].starts_with(b"/*") => {
                i += text[i..].find("*/").ok_or("a comment is not closed")? + 2;
            }
            // A path printed by -y; strace prints brackets within it as octal numbers.
            b'<' if from < i && names_descriptor(&text[from..i]) => {
                i += text[i..].find('>').ok_or("a path is not closed")? + 1;
            }
            b'(' | b'[' | b'{' => (depth, i) = (depth + 1, i + 1),
            b')' if depth == 0 => {
                let last = text[from..i].trim();
                if !last.is_empty() {
                    found.push(last);
                }
                return Ok((found, &text[i + 1..]));
            }
            b')' | b']' | b'}' => (depth, i) = (depth.saturating_sub(1), i + 1),
            b',' if depth == 0 => {
                if found.len() == ARGUMENTS_MAX {
                    return Err("there are more arguments than any call has".into());
                }
                found.push(text[from..i].trim());
                i += 1;
                from = i;
            }
            _ => i += 1,
        }
    }
    Err("the list of arguments is not closed".into())
}

/// Returns whether a `<path>` may follow this text.
fn names_descriptor(text: &str) -> bool {
    let text = text.trim_start();
    text == "AT_FDCWD" || (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()))
}

/// Returns the position after the closing quote of a string that began before `i`.
fn after_string(bytes: &[u8], mut i: usize) -> Result<usize, String> {
    loop {
        match bytes.get(i) {
            Some(b'\\') => i += 2,
            Some(b'"') => return Ok(i + 1),
            Some(_) => i += 1,
            None => return Err("a string is not closed".into()),
        }
    }
}

/// Removes `<0.000012>` from the end.
fn latency(text: &str) -> (&str, Option<u64>) {
    let parts = text
        .strip_suffix('>')
        .and_then(|text| text.rsplit_once(" <"));
    match parts.map(|(before, seconds)| (before, seconds_ns(seconds))) {
        Some((before, Some(ns))) => (before.trim_end(), Some(ns)),
        _ => (text, None),
    }
}

fn returned(text: &str) -> Result<Option<Returned<'_>>, String> {
    if text.starts_with('?') {
        return Ok(None);
    }
    let end = text.find([' ', '<']).unwrap_or(text.len());
    let value = integer(&text[..end]).ok_or("the result is not a number")?;
    let rest = &text[end..];
    let mut words = rest.split_ascii_whitespace();
    let errno = match words.next() {
        Some(word) if value == -1 && word.starts_with('E') => word,
        _ => "",
    };
    Ok(Some(Returned {
        value,
        path: path_in(rest.trim_end()),
        errno,
    }))
}

/// Parses an integer: decimal, or hexadecimal as addresses are.
fn integer(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok().map(u64::cast_signed),
        None => text.parse().ok(),
    }
}

/// Undoes strace's escapes, which are those of C, including octal ones.
pub(super) fn unescape(text: &str) -> String {
    if !text.contains('\\') {
        return text.into();
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(b'n') => bytes.push(b'\n'),
            Some(b't') => bytes.push(b'\t'),
            Some(b'r') => bytes.push(b'\r'),
            Some(b'v') => bytes.push(0x0b),
            Some(b'f') => bytes.push(0x0c),
            Some(digit @ b'0'..=b'7') => {
                let mut value = u32::from(digit - b'0');
                for _ in 0..2 {
                    let Some(next) = rest.next_if(|b| (b'0'..=b'7').contains(b)) else {
                        break;
                    };
                    value = value * 8 + u32::from(next - b'0');
                }
                bytes.push(u8::try_from(value & 0xff).unwrap_or(b'?'));
            }
            Some(other) => bytes.push(other),
            None => bytes.push(b'\\'),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_with_everything() {
        let text = r#"pread64(3</tmp/a, (b) "c".wt>, "x\"), \\"..., 4096, 8192) = 4096 <0.000012>"#;
        let call = Call::parse(text).unwrap().unwrap();
        assert_eq!((call.name, call.arguments.len()), ("pread64", 4));
        let descriptor = call.descriptor(0).unwrap();
        assert_eq!(
            (descriptor.number, descriptor.path),
            (3, r#"/tmp/a, (b) "c".wt"#)
        );
        assert_eq!(call.number(3), Ok(8192));
        assert_eq!(call.result.unwrap().value, 4096);
        assert_eq!(call.latency_ns, Some(12_000));
    }

    #[test]
    fn results() {
        let result = |text| Call::parse(text).unwrap().unwrap().result;
        let opened = result("openat(AT_FDCWD</home>, \"a\", O_RDONLY) = 3</home/a>").unwrap();
        assert_eq!((opened.value, opened.path), (3, "/home/a"));
        let failed = result("read(9, 0x7f, 5) = -1 EBADF (Bad file descriptor) <0.1>").unwrap();
        assert_eq!((failed.value, failed.errno), (-1, "EBADF"));
        assert_eq!(result("exit_group(0) = ?"), None);
        assert!(Call::parse("Listening on port (80)").unwrap().is_none());
        assert!(Call::parse("read(3, \"abc").is_err());
        assert!(Call::parse("read(3) 5").is_err());
    }

    #[test]
    fn escapes() {
        assert_eq!(unescape(r"a\n\303\244\74\\\x"), "a\nä<\\x");
    }
}
