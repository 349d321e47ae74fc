//! Generates texts and bytes.

use seekscope_client::BsonWriter;
use seekscope_stats::SplitMix64;

use super::DrawnNumber;
use super::value::Digits;
use crate::generators::{ByteOrder, Compressible, fnv1a_64_abs};

/// A string of drawn length.
#[derive(Debug)]
pub(crate) struct Text {
    pub(crate) length: DrawnNumber,
    pub(crate) filling: Filling,
}

/// The contents of strings and binary values.
#[derive(Debug)]
pub(crate) enum Filling {
    /// Characters, all equally likely; ASCII, at least one.
    Alphabet(Box<[u8]>),
    Compressible(Box<Compressible>),
    /// All values of a byte: for binary data only.
    AnyByte,
}

/// Alphabets by name. `text` is meant to compress as prose does: letters about as often as in English.
const ALPHABETS: [(&str, &str); 7] = [
    (
        "letters",
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
    ),
    ("lowercase", "abcdefghijklmnopqrstuvwxyz"),
    (
        "alphanumeric",
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
    ),
    ("digits", "0123456789"),
    ("hex", "0123456789abcdef"),
    (
        "printable",
        " !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~",
    ),
    (
        "text",
        "          eeeeeeetttttaaaaoooooiiiinnnnsssshhhrrrdddllcuummwfgypbvk",
    ),
];

impl Filling {
    /// Returns the alphabet with that name, or of the characters after `chars:`.
    pub(crate) fn alphabet(name: &str) -> Result<Self, String> {
        let known = ALPHABETS.iter().find(|(known, _)| *known == name);
        let characters = known
            .map(|(_, characters)| *characters)
            .or(name.strip_prefix("chars:"));
        match characters {
            Some(text) if !text.is_empty() && text.bytes().all(|b| matches!(b, 0x20..=0x7E)) => {
                Ok(Self::Alphabet(text.as_bytes().into()))
            }
            _ => {
                let names: Vec<&str> = ALPHABETS.iter().map(|(name, _)| *name).collect();
                Err(format!(
                    "{name:?} is not an alphabet; write one of {} or chars:… \
                     with printable ASCII characters",
                    names.join(", ")
                ))
            }
        }
    }

    fn fill(&self, bytes: &mut [u8], random: &mut SplitMix64) {
        match self {
            Self::Alphabet(characters) => fill_from(characters, bytes, random),
            Self::Compressible(compressible) => compressible.fill(bytes, 0, 0, random),
            Self::AnyByte => {
                for chunk in bytes.chunks_mut(8) {
                    chunk.copy_from_slice(&random.next_u64().to_le_bytes()[..chunk.len()]);
                }
            }
        }
    }
}

/// Fills with four characters from each draw: 16 bits are enough for alphabets of less than 100.
fn fill_from(characters: &[u8], bytes: &mut [u8], random: &mut SplitMix64) {
    for chunk in bytes.chunks_mut(4) {
        let mut draw = random.next_u64();
        for byte in chunk {
            let sixteen = usize::try_from(draw & 0xFFFF).unwrap_or(0);
            *byte = characters[(sixteen * characters.len()) >> 16];
            draw >>= 16;
        }
    }
}

impl Text {
    pub(super) fn write(&self, name: &str, random: &mut SplitMix64, writer: &mut BsonWriter) {
        let length = self.length.count(random);
        self.filling.fill(writer.ascii(name, length), random);
    }

    pub(super) fn bytes_max(&self) -> u64 {
        self.length.count_max().saturating_add(5)
    }
}

/// Binary data of drawn length.
#[derive(Debug)]
pub(crate) struct Bytes {
    pub(crate) length: DrawnNumber,
    pub(crate) filling: Filling,
}

impl Bytes {
    pub(super) fn write(&self, name: &str, random: &mut SplitMix64, writer: &mut BsonWriter) {
        let length = self.length.count(random);
        self.filling.fill(writer.binary(name, length), random);
    }

    pub(super) fn bytes_max(&self) -> u64 {
        self.length.count_max().saturating_add(5)
    }
}

/// Text with holes.
#[derive(Debug)]
pub(crate) struct Template {
    parts: Vec<TemplatePart>,
}

#[derive(Debug)]
enum TemplatePart {
    Literal(Box<str>),
    /// The record's number with at least this many digits.
    Record(usize),
    /// YCSB's hash of the number.
    Hash(usize),
    /// This many random digits.
    Random(usize),
}

/// The most digits that can be requested.
const DIGITS_MAX: usize = 100;

impl Template {
    /// Parses text like `user{record:8}`; `{{` and `}}` stand for single braces.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.contains('\0') {
            return Err("a string must not contain NUL".into());
        }
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            literal.push_str(&rest[..at]);
            let brace = &rest[at..];
            if brace.starts_with("{{") || brace.starts_with("}}") {
                literal.push_str(&brace[..1]);
                rest = &brace[2..];
                continue;
            }
            let end = brace.find('}').filter(|_| brace.starts_with('{'));
            let end = end.ok_or("a brace is not paired; write {{ for a literal brace")?;
            if !literal.is_empty() {
                parts.push(TemplatePart::Literal(std::mem::take(&mut literal).into()));
            }
            parts.push(hole(&brace[1..end])?);
            rest = &brace[end + 1..];
        }
        literal.push_str(rest);
        parts.push(TemplatePart::Literal(literal.into()));
        Ok(Self { parts })
    }

    pub(super) fn write(
        &self,
        name: &str,
        record: u64,
        random: &mut SplitMix64,
        writer: &mut BsonWriter,
    ) {
        writer.text(name, |bytes| {
            for part in &self.parts {
                match part {
                    TemplatePart::Literal(text) => bytes.extend_from_slice(text.as_bytes()),
                    TemplatePart::Record(digits) => padded(record, *digits, bytes),
                    TemplatePart::Hash(digits) => {
                        padded(fnv1a_64_abs(record, ByteOrder::LowFirst), *digits, bytes);
                    }
                    TemplatePart::Random(digits) => {
                        let start = bytes.len();
                        bytes.resize(start + digits, b'0');
                        fill_from(b"0123456789", &mut bytes[start..], random);
                    }
                }
            }
        });
    }

    pub(super) fn bytes_max(&self) -> u64 {
        let parts = self.parts.iter().map(|part| match part {
            TemplatePart::Literal(text) => text.len(),
            TemplatePart::Record(digits) | TemplatePart::Hash(digits) => *digits.max(&20),
            TemplatePart::Random(digits) => *digits,
        });
        parts.sum::<usize>() as u64 + 5
    }
}

fn hole(text: &str) -> Result<TemplatePart, String> {
    let (name, digits) = match text.split_once(':') {
        Some((name, digits)) => {
            let digits = digits.parse().ok().filter(|n| (1..=DIGITS_MAX).contains(n));
            (
                name,
                Some(digits.ok_or(format!("{{{text}}}: 1 to {DIGITS_MAX} digits are possible"))?),
            )
        }
        None => (text, None),
    };
    match name {
        "record" => Ok(TemplatePart::Record(digits.unwrap_or(1))),
        "hash" => Ok(TemplatePart::Hash(digits.unwrap_or(1))),
        "random" => Ok(TemplatePart::Random(digits.unwrap_or(8))),
        _ => Err(format!(
            "{{{text}}} is unknown; write {{record}}, {{hash}} or {{random}}, with {{record:8}} for digits"
        )),
    }
}

fn padded(number: u64, digits: usize, bytes: &mut Vec<u8>) {
    let number = Digits::of(number);
    let number = number.as_str().as_bytes();
    bytes.resize(bytes.len() + digits.saturating_sub(number.len()), b'0');
    bytes.extend_from_slice(number);
}
