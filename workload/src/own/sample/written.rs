//! Writes observations as a workload's text.

use std::fmt::Write;

use super::Observed;
use super::observed::{DISTINCT_MAX, Fields, Numbers, Texts, Values};
use crate::own::language::Source;
use crate::own::plan::{BATCH_BYTES_MAX, CollectionPlan, Plan, PlanOptions};

/// Number of buckets of a histogram of lengths or numbers.
const BUCKETS: usize = 10;
/// Texts shorter than this say nothing about compression.
const COMPRESSIBLE_BYTES_MIN: f64 = 16.0;
const COMPRESSIBLE_SHARE_MIN: f64 = 0.1;

/// Options for the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShapeText<'a> {
    pub collection: &'a str,
    pub records: u64,
    /// Copies values of texts with few different ones.
    pub keep_values: bool,
}

/// Returns a workload that loads such documents and reads them.
pub fn workload_text(observed: &Observed, options: &ShapeText<'_>) -> String {
    let text = text_with_batch(observed, options, 1);
    // The largest document that may be made decides how many fit, and it may be larger than any that was seen.
    let source = Source {
        file: options.collection,
        text: &text,
    };
    let plan = Plan::parse(source, PlanOptions::default());
    let largest = plan.map(|plan| {
        plan.collections
            .iter()
            .map(CollectionPlan::document_bytes_max)
            .max()
    });
    let fit = match largest {
        Ok(Some(bytes)) => BATCH_BYTES_MAX / bytes.max(1),
        _ => 1,
    };
    text_with_batch(observed, options, batch(observed).min(fit).max(1))
}

fn text_with_batch(observed: &Observed, options: &ShapeText<'_>, batch: u64) -> String {
    let collection = key(options.collection);
    let name = quoted(options.collection);
    let mut out = format!(
        "# Derived from {} documents of {:.0} bytes on average.\n",
        observed.documents,
        observed.mean_bytes()
    );
    out.push_str(if options.keep_values {
        "# Values of texts with few different ones are those of the sample: look before you share this.\n"
    } else {
        "# No text or binary value of the sample is in here; field names, ranges of numbers and dates are.\n"
    });
    for caveat in caveats(observed) {
        let _ = writeln!(out, "# {caveat}");
    }
    let _ = write!(
        out,
        "name = {name}\nseed = 1\n\n[collections.{collection}]\nrecords = {}\n{}\n[collections.{collection}.fields]\n",
        options.records,
        indexes(observed)
    );
    let writer = Writer {
        keep_values: options.keep_values,
    };
    for (field, values) in &observed.fields.0 {
        let value = match field.as_str() {
            "_id" => id(values).0,
            _ => writer.field(values, observed.documents),
        };
        let _ = writeln!(out, "{} = {value}", key(field));
    }
    let _ = write!(
        out,
        "\n[[phases]]\nname = \"load\"\n\n[[phases.roles]]\nname = \"loader\"\nusers = 4\n\n\
         [[phases.roles.operations]]\nload = {{ collection = {name}, batch = {} }}\n\n\
         [[phases]]\nname = \"run\"\nduration = \"30s\"\n\n[[phases.roles]]\nname = \"readers\"\nusers = 8\n\n\
         [[phases.roles.operations]]\nfind_one = {{ collection = {name}, keys = \"zipf\" }}\n",
        batch
    );
    out
}

/// Returns how the workload differs from what was seen, a sentence each.
pub fn caveats(observed: &Observed) -> Vec<String> {
    let mut said = Vec::new();
    if observed.by_random_cursor {
        said.push(
            "The server's random cursor chose the documents, as the collection is too large to be read for a sample: those of \
             sparsely filled parts of its file are chosen more often, so shares and ranges may be off. A sample of more \
             than a twentieth of the documents (--documents) is even, and reads them all."
                .into(),
        );
    }
    if observed.left_out > 0 {
        said.push(format!(
            "{} fields were left out because there were too many, or because they \
             were nested too deep.",
            observed.left_out
        ));
    }
    if !observed.replaced.is_empty() {
        let kinds = observed.replaced.iter();
        let kinds: Vec<String> = kinds
            .map(|(kind, n)| format!("{kind} ({n} values)"))
            .collect();
        said.push(format!(
            "Values of types that cannot be generated were replaced by binary data of \
             the same size: {}.",
            kinds.join(", ")
        ));
    }
    let ids = observed.fields.0.iter().find(|(field, _)| field == "_id");
    if let Some((_, ids)) = ids
        && let (_, alike) = id(ids)
        && alike < ids.count
    {
        said.push(match alike {
            0 => format!(
                "None of the {} values of _id in the sample can be generated: integers replace \
                 them, so the size of the index on _id, and the comparison of its keys, differ \
                 from those of the collection.",
                ids.count
            ),
            _ => format!(
                "All generated values of _id are of one kind, which is that of {alike} of the {} \
                 values in the sample.",
                ids.count
            ),
        });
    }
    let not_finite = not_finite_in(&observed.fields);
    if not_finite > 0 {
        said.push(format!(
            "Infinite values and NaN were replaced by finite numbers: {not_finite} values."
        ));
    }
    match &observed.indexes {
        None => said.push(
            "Indexes cannot be derived from documents alone, so the workload has none: add those \
             of the collection."
                .into(),
        ),
        Some(indexes) => {
            if !indexes.simplified.is_empty() {
                said.push(format!(
                    "Indexes without some options that they have on the collection: {}.",
                    indexes.simplified.join("; ")
                ));
            }
            if !indexes.left_out.is_empty() {
                said.push(format!(
                    "Indexes that generated values do not suit were left out: {}.",
                    indexes.left_out.join(", ")
                ));
            }
        }
    }
    said
}

/// Returns a line of the collection's table, if there are any indexes.
fn indexes(observed: &Observed) -> String {
    let kept = observed.indexes.as_ref().map(|indexes| &indexes.kept);
    match kept.filter(|kept| !kept.is_empty()) {
        Some(kept) => format!("indexes = [{}]\n", kept.join(", ")),
        None => String::new(),
    }
}

/// Returns a batch of about a megabyte.
fn batch(observed: &Observed) -> u64 {
    crate::generators::floor_u64(1e6 / observed.mean_bytes().max(1.0)).clamp(1, 1_000)
}

/// Returns a unique id of the most frequent kind, and how many of the values were of that kind.
fn id(values: &Values) -> (String, u64) {
    let kinds = [
        (values.object_ids, "{ objectid = {} }".to_string()),
        (values.uuids, "{ uuid = true }".to_string()),
        (
            values.int32.values.len() as u64,
            "{ record = \"int32\" }".to_string(),
        ),
        (values.texts.lengths.len() as u64, {
            let digits = mean(&values.texts.lengths).round().clamp(1.0, 100.0);
            format!("{{ template = \"{{record:{digits}}}\" }}")
        }),
        (
            values.int64.values.len() as u64,
            "{ record = \"int64\" }".to_string(),
        ),
    ];
    let most = kinds.iter().map(|(count, _)| *count).max().unwrap_or(0);
    // What is of none of these kinds is numbered.
    let found = kinds
        .into_iter()
        .find(|(count, _)| *count == most && most > 0);
    found.map_or_else(
        || ("{ record = \"int64\" }".into(), 0),
        |(count, text)| (text, count),
    )
}

/// Returns how many numbers were seen that are infinite or no number.
fn not_finite_in(fields: &Fields) -> usize {
    fn not_finite(values: &Values) -> usize {
        let own = values.double.values.iter();
        let own = own.filter(|number| !number.is_finite()).count();
        let elements = values.elements.as_deref().map_or(0, not_finite);
        own + elements + not_finite_in(&values.fields)
    }
    fields.0.iter().map(|(_, values)| not_finite(values)).sum()
}

struct Writer {
    keep_values: bool,
}

impl Writer {
    fn field(&self, values: &Values, parents: u64) -> String {
        let mut kinds = self.kinds(values);
        let absent = 1.0 - values.count as f64 / parents.max(1) as f64;
        let absent = match absent > 0.0005 {
            true => format!("absent = {absent:.3}, "),
            false => String::new(),
        };
        if kinds.len() == 1 {
            return format!("{{ {absent}{} }}", kinds.remove(0).1);
        }
        let choices: Vec<String> = kinds
            .iter()
            .map(|(count, text)| format!("{{ weight = {count}, value = {{ {text} }} }}"))
            .collect();
        match choices.is_empty() {
            true => format!("{{ {absent}null = true }}"),
            false => format!("{{ {absent}choose = [{}] }}", choices.join(", ")),
        }
    }

    /// Returns a generator for each kind of value, with how often it was seen.
    fn kinds(&self, values: &Values) -> Vec<(u64, String)> {
        let booleans = values.trues + values.falses;
        let share = values.trues as f64 / booleans.max(1) as f64;
        let found = [
            (values.nulls, "null = true".to_string()),
            (booleans, format!("boolean = {share:.3}")),
            (values.int32.count(), numbers("int32", &values.int32)),
            (values.int64.count(), numbers("int64", &values.int64)),
            (values.double.count(), numbers("double", &values.double)),
            (values.dates.count(), dates(&values.dates)),
            (values.object_ids, "objectid = {}".to_string()),
            (values.uuids, "uuid = true".to_string()),
            (values.texts.lengths.len() as u64, self.texts(&values.texts)),
            (values.binary.lengths.len() as u64, bytes(&values.binary)),
            (values.others.lengths.len() as u64, bytes(&values.others)),
            (
                values.documents,
                self.document(&values.fields, values.documents),
            ),
            (values.array_lengths.len() as u64, self.array(values)),
        ];
        found.into_iter().filter(|(count, _)| *count > 0).collect()
    }

    fn document(&self, fields: &Fields, count: u64) -> String {
        if is_point(fields) {
            return "point = {}".into();
        }
        let inner: Vec<String> = fields
            .0
            .iter()
            .map(|(name, values)| format!("{} = {}", key(name), self.field(values, count)))
            .collect();
        match inner.is_empty() {
            true => "document = {}".into(),
            false => format!("document = {{ {} }}", inner.join(", ")),
        }
    }

    fn array(&self, values: &Values) -> String {
        let of = match &values.elements {
            Some(elements) if elements.count > 0 => self.field(elements, elements.count),
            _ => "0".into(),
        };
        format!(
            "array = {{ length = {}, of = {of} }}",
            lengths(&values.array_lengths)
        )
    }

    fn texts(&self, texts: &Texts) -> String {
        if let Some(few) = texts.few() {
            let choices = few.iter().enumerate().map(|(place, (value, count))| {
                let value = match self.keep_values {
                    true => String::from_utf8_lossy(value).into_owned(),
                    false => made_up(place, value.len()),
                };
                format!(
                    "{{ weight = {count}, value = {{ constant = {} }} }}",
                    quoted(&value)
                )
            });
            return format!("choose = [{}]", choices.collect::<Vec<_>>().join(", "));
        }
        let length = lengths(&texts.lengths);
        match compressible(texts) {
            Some(share) => format!("string = {{ length = {length}, compressible = {share:.2} }}"),
            None => format!(
                "string = {{ length = {length}, alphabet = \"{}\" }}",
                alphabet(&texts.kept)
            ),
        }
    }
}

/// Returns whether it is GeoJSON. Indexes reject anything else under that name.
fn is_point(fields: &Fields) -> bool {
    let [(kind, values), (coordinates, _)] = fields.0.as_slice() else {
        return false;
    };
    let is_point = |few: &std::collections::BTreeMap<Vec<u8>, u64>| few.keys().eq([b"Point"]);
    kind == "type" && coordinates == "coordinates" && values.texts.few().is_some_and(is_point)
}

/// Returns a made-up text as long as the one it replaces, and different from all others.
fn made_up(place: usize, length: usize) -> String {
    let letter = char::from(b'a' + u8::try_from(place % 26).unwrap_or(0));
    letter.to_string().repeat(length)
}

impl Numbers {
    fn count(&self) -> u64 {
        self.values.len() as u64
    }
}

fn numbers(kind: &str, numbers: &Numbers) -> String {
    let mut sorted: Vec<f64> = numbers
        .values
        .iter()
        .copied()
        .filter(|n| n.is_finite())
        .collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let (Some(&low), Some(&high)) = (sorted.first(), sorted.last()) else {
        return format!("{kind} = 0");
    };
    let show = |number: f64| {
        if kind == "double" {
            format!("{number:?}")
        } else {
            format!("{number:.0}")
        }
    };
    let mut distinct = sorted.clone();
    distinct.dedup();
    if distinct.len() == 1 {
        return format!("{kind} = {}", show(low));
    }
    let weight = |from: f64, to: f64| {
        sorted.partition_point(|n| *n <= to) - sorted.partition_point(|n| *n < from)
    };
    let buckets: Vec<String> =
        if distinct.len() <= DISTINCT_MAX && sorted.len() >= 5 * distinct.len() {
            let bucket = |n: &f64| format!("[{0}, {0}, {1}]", show(*n), weight(*n, *n));
            distinct.iter().map(bucket).collect()
        } else {
            // Evenly spaced ones: their ends are not actual values.
            let width = (high - low) / BUCKETS as f64;
            let edge = |n: usize| {
                if n == BUCKETS {
                    high
                } else {
                    low + width * n as f64
                }
            };
            let bucket = |n: usize| {
                let (from, to) = (edge(n), edge(n + 1));
                format!("[{}, {}, {}]", show(from), show(to), weight(from, to))
            };
            (0..BUCKETS).map(bucket).collect()
        };
    format!("{kind} = {{ histogram = [{}] }}", buckets.join(", "))
}

fn dates(dates: &Numbers) -> String {
    let low = dates.values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = dates
        .values
        .iter()
        .copied()
        .fold(f64::NEG_INFINITY, f64::max);
    let text = |millis: f64| {
        #[expect(clippy::cast_possible_truncation, reason = "came from an i64")]
        let date = bson::DateTime::from_millis((millis as i64).clamp(0, 253_402_300_799_000));
        date.try_to_rfc3339_string()
            .unwrap_or_else(|_| "2026-01-01T00:00:00Z".into())
    };
    format!(
        "date = {{ start = {}, end = {} }}",
        text(low),
        text(high + 1_000.0)
    )
}

fn bytes(texts: &Texts) -> String {
    let share = compressible(texts)
        .map_or_else(String::new, |share| format!(", compressible = {share:.2}"));
    format!("binary = {{ length = {}{share} }}", lengths(&texts.lengths))
}

/// Returns what lz4 saves; `None` if that is next to nothing.
fn compressible(texts: &Texts) -> Option<f64> {
    if mean(&texts.lengths) < COMPRESSIBLE_BYTES_MIN || texts.kept.is_empty() {
        return None;
    }
    let compressed = lz4_flex::block::compress(&texts.kept).len();
    let saved = 1.0 - compressed as f64 / texts.kept.len() as f64;
    (saved >= COMPRESSIBLE_SHARE_MIN).then_some(saved)
}

/// Returns the narrowest class that contains all characters.
fn alphabet(bytes: &[u8]) -> &'static str {
    let all = |is: fn(&u8) -> bool| bytes.iter().all(is);
    if all(u8::is_ascii_digit) {
        "digits"
    } else if all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
        "hex"
    } else if all(u8::is_ascii_lowercase) {
        "lowercase"
    } else if all(u8::is_ascii_alphabetic) {
        "letters"
    } else if all(u8::is_ascii_alphanumeric) {
        "alphanumeric"
    } else if all(|b| b.is_ascii_lowercase() || *b == b' ') {
        "text"
    } else {
        "printable"
    }
}

/// Returns a constant, or a histogram whose buckets hold equal numbers.
fn lengths(lengths: &[u32]) -> String {
    let mut sorted = lengths.to_vec();
    sorted.sort_unstable();
    let (Some(&low), Some(&high)) = (sorted.first(), sorted.last()) else {
        return "0".into();
    };
    if low == high {
        return low.to_string();
    }
    let edges = |n: usize| n * sorted.len() / BUCKETS;
    let bucket = |n: usize| {
        let part = &sorted[edges(n)..edges(n + 1)];
        let (from, to) = (part.first()?, part.last()?);
        Some(format!("[{from}, {to}, {}]", part.len()))
    };
    let buckets: Vec<String> = (0..BUCKETS).filter_map(bucket).collect();
    format!("{{ histogram = [{}] }}", buckets.join(", "))
}

fn mean(lengths: &[u32]) -> f64 {
    lengths.iter().map(|length| f64::from(*length)).sum::<f64>() / lengths.len().max(1) as f64
}

/// Returns a name in TOML syntax.
pub(super) fn key(name: &str) -> String {
    let is_bare = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    match !name.is_empty() && name.bytes().all(is_bare) {
        true => name.into(),
        false => quoted(name),
    }
}

/// Returns a basic string: on one line, whatever it contains.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => {
                out.push('\\');
                out.push(character);
            }
            control if control.is_control() => {
                let _ = write!(out, "\\U{:08X}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}
