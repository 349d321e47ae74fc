//! Shows a comparison as a table, and in words.

use seekscope_run::units::{format_bytes, format_ns, whole};

use super::comparison::{Against, BenchComparison, Compared, Measure, Method};
use super::enough::{COARSE, pairs_needed};
use crate::numbers::{format_number, format_rate, format_share};
use crate::table::{Cell, Table};
use crate::terminal::visible;
use crate::text::{table_text, wrapped};

const NOTHING: &str = "–";
/// Sides are named by letters, so that long names do not widen a table.
pub(super) const SIDES: [(&str, &str); 8] = [
    ("A", ""),
    ("B", "B / A"),
    ("C", "C / A"),
    ("D", "D / A"),
    ("E", "E / A"),
    ("F", "F / A"),
    ("G", "G / A"),
    ("H", "H / A"),
];
/// The most sides, one for each letter.
pub const SIDES_MAX: usize = SIDES.len();

/// Renders the comparison, `width` characters wide: the meaning of each letter (`labels` may say more than
/// the comparison's own), `notes` that must be read first, conclusions from the figures, then the figures.
pub fn comparison_terminal(comparison: &BenchComparison, notes: &[String], width: u16) -> String {
    let mut text = head(&comparison.labels, notes, width);
    for sentence in sentences(comparison) {
        text += &wrapped(&sentence, width, "");
        text.push('\n');
    }
    text.push('\n');
    match table(comparison) {
        Some(numbers) => text += &table_text(&numbers, width),
        None => text += "They have nothing in common that could be compared.",
    }
    visible(text.trim_end()) + "\n"
}

/// Returns the meaning of each letter, and what must be read before the figures.
pub(super) fn head(labels: &[String], notes: &[String], width: u16) -> String {
    let mut text = String::new();
    for (label, (letter, _)) in labels.iter().zip(SIDES) {
        text += &wrapped(&format!("{letter}: {label}"), width, "");
        text.push('\n');
    }
    for note in notes {
        text += &wrapped(note, width, "");
        text.push('\n');
    }
    text.push('\n');
    text
}

/// Returns a row for each figure: every side's value, and its ratio to the first side's.
pub(super) fn table(comparison: &BenchComparison) -> Option<Table> {
    let sides = comparison.labels.len().min(SIDES_MAX);
    let mut columns = vec!["figure"];
    for (index, (letter, ratio)) in SIDES.iter().enumerate().take(sides) {
        columns.push(letter);
        if index > 0 {
            columns.push(ratio);
        }
    }
    let needed = pairs_needed(comparison.tested());
    let mut table = Table::new(1, &columns);
    let mut group = String::new();
    for compared in &comparison.compared {
        let heading = heading(compared);
        if heading != group {
            table.group(heading.clone());
            group = heading;
        }
        table.row(row(compared, sides, needed));
    }
    table.or_nothing()
}

fn heading(compared: &Compared) -> String {
    match compared.operation.as_str() {
        "" => format!("{}: all together", compared.work),
        operation => format!("{}: {operation}", compared.work),
    }
}

fn row(compared: &Compared, sides: usize, needed: u64) -> Vec<Cell> {
    let mut cells: Vec<Cell> = vec![format!("  {}", name(compared.measure)).into()];
    for side in 0..sides {
        let value = compared.values.get(side).copied().flatten();
        cells.push(Cell::or(
            value.map(|v| value_text(compared.measure, v)),
            NOTHING,
        ));
        if let Some(index) = side.checked_sub(1) {
            let against = compared.against_first.get(index).copied().flatten();
            let ratio = against.map(|against| ratio_text(&against, needed));
            cells.push(Cell::or(ratio, NOTHING));
        }
    }
    cells
}

/// Returns `1.20 (1.17 to 1.23)`, or words for no difference. `needed`: with fewer repetitions there are too few.
fn ratio_text(against: &Against, needed: u64) -> String {
    match &against.comparison {
        None => format_number(against.ratio),
        Some(c) if c.differs => {
            format!("{:.3} ({:.3} to {:.3})", against.ratio, c.low, c.high)
        }
        // Among many without any spread no difference can be hidden.
        Some(c) if c.detectable <= 0.0 => "equal".into(),
        Some(c) if c.detectable > COARSE => match Untold::of(against, needed) {
            Untold::TooFew => "too few to tell".into(),
            Untold::TooNoisy => "too noisy to tell".into(),
        },
        Some(c) => format!("none > {}", format_share(c.detectable)),
    }
}

/// Why nothing can be told of two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Untold {
    /// There are too few repetitions, however little they vary.
    TooFew,
    /// There are enough, and they vary too much; or there is one run each, whose seconds do.
    TooNoisy,
}

impl Untold {
    fn of(against: &Against, needed: u64) -> Self {
        let is_lone = against.method == Some(Method::BlockBootstrap);
        // Values without any spread, too, may be too few.
        let is_endless = against
            .comparison
            .is_some_and(|c| c.detectable.is_infinite());
        match !is_lone && (against.repetitions < needed || is_endless) {
            true => Self::TooFew,
            false => Self::TooNoisy,
        }
    }

    /// Says so of A and the side with this letter.
    fn sentence(self, against: &Against, letter: &str) -> String {
        let count = against.repetitions;
        match (self, against.method) {
            (Self::TooFew, Some(Method::PairedRepetitions)) => {
                format!("{count} pairs are too few to compare A and {letter}")
            }
            (Self::TooFew, _) => {
                format!("{count} repetitions are too few to compare A and {letter}")
            }
            (Self::TooNoisy, Some(Method::BlockBootstrap)) => {
                format!("the seconds of one run each vary too much to compare A and {letter}")
            }
            (Self::TooNoisy, _) => format!(
                "the {count} repetitions vary too much to compare A and {letter}; more of them, longer ones, or a quieter \
                 host would tell"
            ),
        }
    }
}

fn name(measure: Measure) -> &'static str {
    match measure {
        Measure::PerSecond => "per second",
        Measure::ServiceP50Ns => "service p50",
        Measure::ServiceP99Ns => "service p99",
        Measure::ServiceP999Ns => "service p99.9",
        Measure::ResponseP50Ns => "response p50",
        Measure::ResponseP99Ns => "response p99",
        Measure::ResponseP999Ns => "response p99.9",
        Measure::ClientCpuNsPerOperation => "client CPU/op",
        Measure::ServerCpuNsPerOperation => "server CPU/op",
        Measure::WrittenBytesPerOperation => "written/op",
        Measure::DiskBytes => "size on disk",
        Measure::DiskBytesPerDocument => "on disk/document",
    }
}

fn value_text(measure: Measure, value: f64) -> String {
    match measure {
        Measure::PerSecond => format_rate(value),
        Measure::WrittenBytesPerOperation | Measure::DiskBytes | Measure::DiskBytesPerDocument => {
            format_bytes(whole(value))
        }
        _ => format_ns(whole(value)),
    }
}

/// Returns sentences on the rates: differences, and how large a hidden one could be.
pub(super) fn sentences(comparison: &BenchComparison) -> Vec<String> {
    let rates = comparison
        .compared
        .iter()
        .filter(|c| c.measure == Measure::PerSecond);
    let needed = pairs_needed(comparison.tested());
    let mut too_few = false;
    let mut said: Vec<String> = Vec::new();
    for compared in rates {
        for (index, against) in compared.against_first.iter().enumerate() {
            let letter = SIDES.get(index + 1).map_or("another", |(letter, _)| letter);
            let Some(comparison) = against.as_ref().and_then(|a| a.comparison) else {
                continue;
            };
            let what = match compared.operation.as_str() {
                "" => compared.work.clone(),
                operation => format!("{}, {operation}", compared.work),
            };
            let ratio = against.as_ref().map_or(1.0, |a| a.ratio);
            said.push(if comparison.differs {
                let word = if ratio > 1.0 { "more" } else { "fewer" };
                format!(
                    "{what}: {letter} does {} {word} per second than A (95 % interval of the ratio: {:.3} to \
                     {:.3}).",
                    format_share((ratio - 1.0).abs()),
                    comparison.low,
                    comparison.high
                )
            } else if comparison.detectable > COARSE {
                let Some(against) = against else {
                    continue;
                };
                let why = Untold::of(against, needed);
                too_few |= why == Untold::TooFew;
                format!("{what}: {}.", why.sentence(against, letter))
            } else {
                format!(
                    "{what}: no detectable difference between A and {letter} above {}.",
                    format_share(comparison.detectable)
                )
            });
        }
    }
    if too_few {
        said.push(format!(
            "Of {} figures that are compared at once, a difference of a factor of two shows from {needed} pairs or \
             repetitions on, and then only where these hardly vary; smaller ones take more (--pairs).",
            comparison.tested()
        ));
    }
    if comparison.compared.iter().any(is_tested) {
        said.push(
            "Differences are corrected for the number of comparisons (Holm); \"none >\": none was seen, and one \
             larger than that would have been in four cases of five."
                .into(),
        );
    }
    if comparison.compared.iter().any(has_lone_ratio) {
        said.push(
            "A ratio without an interval is of one run each: another pair of runs may show another, and no difference \
             is claimed."
                .into(),
        );
    }
    if comparison.has_sizes() {
        said.push(
            "Sizes have no interval, and no difference is claimed: repetitions share the data of one load, and equal \
             loads differ by some blocks."
                .into(),
        );
    }
    said
}

/// Returns whether a ratio is shown, other than of sizes, that nothing is known of the spread of.
fn has_lone_ratio(compared: &Compared) -> bool {
    let mut shown = compared.against_first.iter().flatten();
    !compared.measure.is_size() && shown.any(|against| against.comparison.is_none())
}

fn is_tested(compared: &Compared) -> bool {
    compared
        .against_first
        .iter()
        .flatten()
        .any(|a| a.comparison.is_some())
}
