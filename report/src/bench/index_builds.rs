//! Shows index builds: how long each took, how two servers compare, and how the collection lay and was read.

use schemars::JsonSchema;
use seekscope_run::units::{format_bytes, format_count, format_ns, whole};
use seekscope_run::{BenchIndexBuild, BenchMeasurement};
use seekscope_stats::{Estimate, RatioComparison, holm, median, paired_log_ratio};
use serde::Serialize;

use super::BenchReportInput;
use super::comparison_table::{SIDES, head};
use super::enough::pairs_needed;
use crate::balancer;
use crate::numbers::{format_number, format_rate, format_share, format_times};
use crate::table::{Cell, Table};
use crate::terminal::visible;
use crate::text::{table_text, wrapped};

const NOTHING: &str = "–";

/// How long an index took on the second of two servers, compared with the first.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct BuildComparison {
    pub kind: String,
    /// The key pattern as JSON text.
    pub keys: String,
    pub first: String,
    pub second: String,
    /// Median of the builds on the first server, s.
    pub first_s: f64,
    /// Median of the builds on the second server, s.
    pub second_s: f64,
    /// Number of repetitions in which the index was built on both.
    pub pairs: u64,
    /// Time on the second server divided by that on the first: the geometric mean over the pairs.
    pub ratio: f64,
    /// null with a single pair.
    pub comparison: Option<RatioComparison>,
}

/// Returns how the builds of each index compare between two servers; nothing for one server.
pub fn compared(measurement: &BenchMeasurement) -> Vec<BuildComparison> {
    let mut compared: Vec<BuildComparison> = Vec::new();
    let mut estimates: Vec<Estimate> = Vec::new();
    for build in &measurement.index_builds {
        let is_known = |one: &BuildComparison| one.kind == build.kind && one.keys == build.keys;
        if compared.iter().any(is_known) {
            continue;
        }
        if let Some((one, estimate)) = compare(measurement, build) {
            compared.push(one);
            estimates.extend(estimate);
        }
    }
    let mut comparisons = holm(&estimates).into_iter();
    for one in compared.iter_mut().filter(|one| one.pairs > 1) {
        one.comparison = comparisons.next();
    }
    compared
}

/// Returns how the builds of each index compare between two runs, each on one server. Sides are named by letters. Builds of
/// one repetition are a pair.
pub fn compared_runs(first: &BenchMeasurement, second: &BenchMeasurement) -> Vec<BuildComparison> {
    let sides = [first, second].into_iter().zip(SIDES);
    let builds = sides.flat_map(|(run, (letter, _))| {
        run.index_builds.iter().map(|build| BenchIndexBuild {
            variant: letter.into(),
            ..build.clone()
        })
    });
    compared(&BenchMeasurement {
        index_builds: builds.collect(),
        ..BenchMeasurement::default()
    })
}

/// Renders that comparison, `width` characters wide: the meaning of each letter, `notes` that must be read first, a sentence
/// for each index, and the figures.
pub fn compared_runs_terminal(
    compared: &[BuildComparison],
    labels: &[String],
    notes: &[String],
    width: u16,
) -> String {
    let mut text = head(labels, notes, width);
    for one in compared {
        text += &wrapped(&one.sentence(compared.len()), width, "");
        text.push('\n');
    }
    text.push('\n');
    let [(a, _), (b, ratio), ..] = SIDES;
    let mut table = Table::new(1, &["index build", a, b, ratio, "pairs"]);
    for one in compared {
        table.row([
            format!("{} {}", one.kind, one.keys).into(),
            format_ns(whole(one.first_s * 1e9)).into(),
            format_ns(whole(one.second_s * 1e9)).into(),
            format_number(one.ratio).into(),
            format_count(one.pairs).into(),
        ]);
    }
    match table.or_nothing() {
        Some(table) => text += &table_text(&table, width),
        None => text += "They built no index in common.",
    }
    visible(text.trim_end()) + "\n"
}

/// Compares all builds of the same index as this one, which is of the first server.
fn compare(
    measurement: &BenchMeasurement,
    like: &BenchIndexBuild,
) -> Option<(BuildComparison, Option<Estimate>)> {
    let builds = || {
        let all = measurement.index_builds.iter();
        all.filter(|b| b.kind == like.kind && b.keys == like.keys && b.failure.is_none())
    };
    let mut variants = measurement.index_builds.iter().map(|build| &build.variant);
    let first = variants.next()?;
    let second = variants.find(|variant| *variant != first)?;
    let seconds = |build: &BenchIndexBuild| build.elapsed_ns as f64 / 1e9;
    let of = |variant: &str, repetition: u32| {
        let mut found = builds().filter(|b| b.variant == variant && b.repetition == repetition);
        found.next().map(seconds)
    };
    let repetitions = builds()
        .filter(|build| build.variant == *first)
        .map(|build| build.repetition);
    let pairs: Vec<(f64, f64)> = repetitions
        .filter_map(|n| of(first, n).zip(of(second, n)))
        .filter(|(a, b)| *a > 0.0 && *b > 0.0)
        .collect();
    let (a, b): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let (first_s, second_s) = (median(&a)?, median(&b)?);
    let estimate = paired_log_ratio(&pairs);
    let one = BuildComparison {
        kind: like.kind.clone(),
        keys: like.keys.clone(),
        first: first.clone(),
        second: second.clone(),
        first_s,
        second_s,
        pairs: pairs.len() as u64,
        ratio: estimate.map_or(second_s / first_s, |estimate| estimate.value.exp()),
        comparison: None,
    };
    Some((one, estimate))
}

impl BuildComparison {
    /// Returns the result as a sentence; `compared` is the number of indexes that are compared at once.
    fn sentence(&self, compared: usize) -> String {
        let needed = pairs_needed(compared);
        let sure = match &self.comparison {
            None => "one pair, so without an interval".to_string(),
            Some(c) if !c.differs && (self.pairs < needed || !c.high.is_finite()) => format!(
                "{} pairs, too few to tell whether they differ; --repeats {} or more can",
                self.pairs,
                needed.max(self.pairs + 1)
            ),
            Some(c) => format!(
                "{} pairs, 95 % interval {} to {}{}",
                self.pairs,
                format_times(c.low),
                format_times(c.high),
                match c.differs {
                    true => "",
                    false => ", so it is not certain that they differ",
                }
            ),
        };
        format!(
            "The index {} {} took {} on {} and {} on {}, {} times as long ({sure}).",
            self.kind,
            self.keys,
            format_ns(whole(self.first_s * 1e9)),
            self.first,
            format_ns(whole(self.second_s * 1e9)),
            self.second,
            format_times(self.ratio)
        )
    }
}

/// Returns a sentence for each index that was built on two servers, and one about the balancer.
pub(super) fn sentences(input: &BenchReportInput<'_>) -> Vec<String> {
    let Some(measurement) = input.measurement() else {
        return Vec::new();
    };
    let compared = compared(measurement);
    let sentences = compared.iter().map(|one| one.sentence(compared.len()));
    let mut said: Vec<String> = sentences.collect();
    said.extend(balancer(&measurement.index_builds));
    said
}

/// Says what the balancer did during all builds through a router.
fn balancer(builds: &[BenchIndexBuild]) -> Option<String> {
    let (on, moved) = balanced(builds)?;
    Some(balancer::sentence(
        on,
        moved,
        "the collection",
        "the builds",
    ))
}

/// Says so if chunks were moved during builds.
pub(super) fn moved(measurement: &BenchMeasurement) -> Option<String> {
    let (_, moved) = balanced(&measurement.index_builds)?;
    moved.filter(|moved| *moved > 0)?;
    balancer(&measurement.index_builds)
}

/// Returns whether the balancer was on during all builds, and how many chunks were moved; `None` without a router.
fn balanced(builds: &[BenchIndexBuild]) -> Option<(Option<bool>, Option<u64>)> {
    let all = builds.iter().filter_map(|build| build.shards.as_ref());
    let all = all.map(|shards| (shards.balancer_on, shards.moved_chunks));
    all.reduce(|(on, moved), (one_on, one_moved)| {
        (
            on.filter(|on| one_on == Some(*on)),
            moved.zip(one_moved).map(|(a, b)| a + b),
        )
    })
}

/// Returns how long each build took, and its outcome.
pub(super) fn times(input: &BenchReportInput<'_>) -> Option<Table> {
    let mut table = Table::new(
        1,
        &[
            "index build",
            "documents",
            "time",
            "keys/s",
            "index size",
            "verified",
        ],
    );
    for build in &input.measurement()?.index_builds {
        if let Some(why) = &build.failure {
            table.group(format!("{}: {why}", build_name(build)));
            continue;
        }
        let verified = build
            .verified
            .map(|v| if v { "yes" } else { "NO" }.to_string());
        table.row([
            build_name(build).into(),
            format_count(build.documents).into(),
            format_ns(build.elapsed_ns).into(),
            format_rate(build.keys_per_s).into(),
            Cell::or(build.index_bytes.map(format_bytes), NOTHING),
            Cell::or(verified, NOTHING),
        ]);
    }
    table.or_nothing()
}

/// Returns each build's use of server and disk, and its effect on the other load.
pub(super) fn costs(input: &BenchReportInput<'_>) -> Option<Table> {
    let mut table = Table::new(
        1,
        &[
            "while building",
            "memory",
            "temp files",
            "read",
            "written",
            "p99 before",
            "p99 during",
            "p99 after",
        ],
    );
    let builds = &input.measurement()?.index_builds;
    for build in builds.iter().filter(|build| build.failure.is_none()) {
        let bytes = |value: Option<u64>| Cell::or(value.map(format_bytes), NOTHING);
        let p99 = |index: usize| {
            Cell::or(
                build
                    .foreground_p99_ns
                    .and_then(|all| all[index])
                    .map(format_ns),
                NOTHING,
            )
        };
        table.row([
            build_name(build).into(),
            bytes(build.server_rss_bytes),
            bytes(build.temp_bytes),
            bytes(build.read_bytes),
            bytes(build.write_bytes),
            p99(0),
            p99(1),
            p99(2),
        ]);
    }
    table.or_nothing()
}

fn build_name(build: &BenchIndexBuild) -> String {
    let mut name = format!("{} {}", build.kind, build.keys);
    if build.repetition > 1 {
        name.push_str(&format!(" #{}", build.repetition));
    }
    if !build.variant.is_empty() {
        name.push_str(&format!(" on {}", build.variant));
    }
    name
}

/// Returns how the collection lay in the file of each server with data.
pub(super) fn files(input: &BenchReportInput<'_>) -> Option<Table> {
    let mut table = Table::new(
        1,
        &["file of the collection", "size", "in order", "backward"],
    );
    for file in &input.measurement()?.indexed_files {
        let name = match file.variant.as_str() {
            "" => file.member.clone(),
            variant if variant == file.member => file.member.clone(),
            variant => format!("{} of {variant}", file.member),
        };
        if let Some(why) = &file.not_measured {
            table.group(format!("{name}: {why}"));
            continue;
        }
        let order = file.order.as_ref();
        table.row([
            name.into(),
            Cell::or(file.file_bytes.map(format_bytes), NOTHING),
            Cell::or(order.map(|o| format_share(o.sequential_share)), NOTHING),
            Cell::or(order.map(|o| format_share(o.backward_share)), NOTHING),
        ]);
    }
    table.or_nothing()
}

/// Returns how each server with data read the collection during each build.
pub(super) fn reads(input: &BenchReportInput<'_>) -> Option<Table> {
    let columns = [
        "read while building",
        "reads",
        "bytes",
        "pattern",
        "in order",
    ];
    let mut table = Table::new(1, &columns);
    for build in &input.measurement()?.index_builds {
        if build.reads.is_empty() {
            continue;
        }
        table.group(build_name(build));
        for one in &build.reads {
            table.row([
                format!("  {}", one.member).into(),
                format_count(one.reads).into(),
                format_bytes(one.bytes).into(),
                Cell::or(one.pattern.clone(), NOTHING),
                Cell::or(one.sequential_share.map(format_share), NOTHING),
            ]);
        }
    }
    table.or_nothing()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(variant: &str, repetition: u32, elapsed_s: u64) -> BenchIndexBuild {
        BenchIndexBuild {
            variant: variant.into(),
            kind: "int".into(),
            keys: r#"{"number":1}"#.into(),
            repetition,
            elapsed_ns: elapsed_s * 1_000_000_000,
            ..BenchIndexBuild::default()
        }
    }

    fn of(builds: Vec<BenchIndexBuild>) -> Vec<BuildComparison> {
        compared(&BenchMeasurement {
            index_builds: builds,
            ..BenchMeasurement::default()
        })
    }

    #[test]
    fn two_servers_are_compared_in_pairs() {
        let all = of(vec![
            build("a", 1, 10),
            build("b", 1, 20),
            build("b", 2, 44),
            build("a", 2, 20),
            build("a", 3, 10),
            build("b", 3, 19),
        ]);
        let [one] = all.as_slice() else {
            panic!("{all:?}");
        };
        assert_eq!((one.first_s, one.second_s, one.pairs), (10.0, 20.0, 3));
        // The geometric mean of 2, 2.2 and 1.9.
        assert!((one.ratio - 2.030).abs() < 0.001, "{}", one.ratio);
        let comparison = one.comparison.unwrap();
        assert!(comparison.differs && comparison.low < 2.0 && comparison.high > 2.0);
        let sentence = one.sentence(1);
        assert!(
            sentence.contains("2.0 times as long (3 pairs, 95 % interval 1.7 to 2.4)"),
            "{sentence}"
        );
    }

    #[test]
    fn builds_of_two_runs_are_compared() {
        let run = |times: &[u64]| BenchMeasurement {
            index_builds: (1..)
                .zip(times)
                .map(|(nth, seconds)| build("", nth, *seconds))
                .collect(),
            ..BenchMeasurement::default()
        };
        let compared = compared_runs(&run(&[10, 20, 10]), &run(&[20, 44, 19]));
        assert!(compared[0].comparison.unwrap().differs, "{compared:?}");
        let labels = ["one".to_owned(), "two".to_owned()];
        let text = compared_runs_terminal(&compared, &labels, &["A note.".into()], 200);
        for part in [
            "A: one\nB: two\nA note.\n",
            "took 10.0 s on A and 20.0 s on B, 2.0 times as long (3 pairs",
            "2.03",
        ] {
            assert!(text.contains(part), "{part:?} in {text}");
        }
        assert_eq!(compared_runs(&run(&[10]), &run(&[])), []);
    }

    #[test]
    fn two_pairs_of_one_ratio_are_too_few() {
        let seconds = [("a", 1, 10), ("b", 1, 20), ("b", 2, 20), ("a", 2, 10)];
        let all = of(seconds.map(|(on, nth, s)| build(on, nth, s)).to_vec());
        assert!(!all[0].comparison.unwrap().differs, "{all:?}");
        let sentence = all[0].sentence(1);
        assert!(
            sentence.contains("2.0 times as long (2 pairs, too few to tell whether they differ; --repeats 3 or more can)"),
            "{sentence}"
        );
    }

    #[test]
    fn what_cannot_be_compared_is_not() {
        assert_eq!(of(vec![build("", 1, 10), build("", 2, 10)]), []);
        let one = of(vec![build("a", 1, 10), build("b", 1, 30)]);
        assert!(
            one[0]
                .sentence(1)
                .contains("one pair, so without an interval")
        );
        let failed = BenchIndexBuild {
            failure: Some("no".into()),
            ..build("b", 1, 1)
        };
        assert_eq!(of(vec![build("a", 1, 10), failed]), []);
    }
}
