//! Generates YCSB's values of `dataintegrity=true`: a function of key and field, so that every read can be
//! checked. Key, colon, field, then repeatedly a colon and Java's hash of the text so far, in decimal; cut to
//! length.

use super::java::StringHash;

/// Fills `bytes` with the value of a field.
pub fn fill(bytes: &mut [u8], key: &str, field: &str) {
    let mut text = Text {
        bytes,
        length: 0,
        hash: StringHash::default(),
    };
    text.push(key.as_bytes());
    text.push(b":");
    text.push(field.as_bytes());
    while text.length < text.bytes.len() {
        text.push(b":");
        let mut digits = [0; 11];
        let start = decimal(text.hash.value(), &mut digits);
        text.push(&digits[start..]);
    }
}

struct Text<'a> {
    bytes: &'a mut [u8],
    /// Exceeds `bytes` when the end is reached.
    length: usize,
    hash: StringHash,
}

impl Text<'_> {
    fn push(&mut self, part: &[u8]) {
        if let Some(rest) = self.bytes.get_mut(self.length..) {
            let fitting = part.len().min(rest.len());
            rest[..fitting].copy_from_slice(&part[..fitting]);
        }
        self.hash.push(part);
        self.length += part.len();
    }
}

/// Writes the number at the end of `digits` and returns where it begins.
fn decimal(value: i32, digits: &mut [u8; 11]) -> usize {
    let mut rest = value.unsigned_abs();
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10).to_le_bytes()[0];
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        at -= 1;
        digits[at] = b'-';
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn java_hash(text: &str) -> i32 {
        text.bytes().fold(0, |hash: i32, byte| {
            hash.wrapping_mul(31).wrapping_add(i32::from(byte))
        })
    }

    /// Implements the definition again, the slow way.
    fn by_definition(length: usize, key: &str, field: &str) -> String {
        let mut text = format!("{key}:{field}");
        while text.len() < length {
            text.push(':');
            let hash = java_hash(&text);
            text.push_str(&hash.to_string());
        }
        text.truncate(length);
        text
    }

    #[test]
    fn follows_the_definition() {
        for length in [0, 3, 10, 29, 30, 31, 100, 1_000] {
            for key in ["user6284781860667377211", "user1"] {
                let mut bytes = vec![0; length];
                fill(&mut bytes, key, "field3");
                let expected = by_definition(length, key, "field3");
                assert_eq!(String::from_utf8(bytes).unwrap(), expected);
            }
        }
    }

    #[test]
    fn writes_every_decimal() {
        for value in [0, 7, -1, i32::MAX, i32::MIN] {
            let mut digits = [0; 11];
            let start = decimal(value, &mut digits);
            assert_eq!(&digits[start..], value.to_string().as_bytes());
        }
    }
}
