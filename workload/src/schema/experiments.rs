//! Interprets the figures: repeats the published experiments, and gives a recommendation with its reason.
//!
//! The experiments are those of Colin Howe's "MongoDB - Strategies when hitting disk" (2012): about
//! 7 GB of daily metrics on a machine with 1.7 GB of memory.

use seekscope_run::units::{format_count, format_ns};
use seekscope_run::{SchemaExperiment, SchemaShape};

use super::filling::PARTS;
use super::variant::{IndexOrder, Shape, Variant};

/// Smallest factor between two ways that is worth a change of schema.
const WORTH_THE_TROUBLE: f64 = 1.5;

/// The rate of fewer samples is that of a few commands, each of which may be a late one.
const SAMPLES_OF_PART_MIN: u64 = 100;

/// Published: reading a year took 1.6 s with a document per sample, 0.3 s with one per month.
const MONTHS_PUBLISHED: f64 = 1.6 / 0.3;
/// Published: inserts fell from 10,000/s to 2,500/s with `{metric, client, date}`.
const SERIES_FIRST_PUBLISHED: f64 = 4.0;
/// Published: they stayed at 10,000/s with `{date, metric, client}`, and reading was not noticeably slower.
const DATE_FIRST_PUBLISHED: f64 = 1.0;
/// Published: 62 ms without preallocation, 6.6 ms with it.
const PREALLOCATION_PUBLISHED: f64 = 62.0 / 6.6;

/// Returns the published experiments on each disk, as far as the variants they need were measured.
pub fn experiments(shapes: &[SchemaShape]) -> Vec<SchemaExperiment> {
    let sample = Variant::new(Shape::Sample);
    let date_first = Variant {
        order: IndexOrder::DateFirst,
        ..sample
    };
    let month = Variant::new(Shape::Month);
    let filled_month = Variant {
        preallocated: true,
        ..month
    };
    let mut found = Vec::new();
    for disk in disks(shapes) {
        let read = |variant: &Variant| find(shapes, variant, disk).and_then(year_ns);
        let growth = |variant: &Variant| find(shapes, variant, disk).and_then(first_and_last);
        let rows = [
            (
                "one document per month",
                "time to read a series: document per sample / per month",
                "ns",
                pair(read(&sample), read(&month)),
                MONTHS_PUBLISHED,
            ),
            (
                "index begins with the series",
                "insert rate: first tenth / last tenth",
                "samples/s",
                growth(&sample),
                SERIES_FIRST_PUBLISHED,
            ),
            (
                "index begins with the date",
                "insert rate: first tenth / last tenth",
                "samples/s",
                growth(&date_first),
                DATE_FIRST_PUBLISHED,
            ),
            (
                "reading by $in of dates",
                "time to read a series: index by date / by series",
                "ns",
                pair(read(&date_first), read(&sample)),
                DATE_FIRST_PUBLISHED,
            ),
            (
                "pre-allocated months",
                "time to read a series: not pre-allocated / pre-allocated",
                "ns",
                pair(read(&month), read(&filled_month)),
                PREALLOCATION_PUBLISHED,
            ),
        ];
        found.extend(rows.into_iter().filter_map(
            |(name, compared, unit, figures, published_ratio)| {
                let (before, after) = figures?;
                Some(SchemaExperiment {
                    name: name.into(),
                    compared: compared.into(),
                    disk: disk.into(),
                    unit: unit.into(),
                    before,
                    after,
                    ratio: before / after.max(f64::MIN_POSITIVE),
                    published_ratio,
                })
            },
        ));
    }
    found
}

/// Recommends a way for each disk, and says why. Ways that gave wrong answers are never recommended.
pub fn recommendation(shapes: &[SchemaShape]) -> Option<String> {
    let texts: Vec<String> = disks(shapes)
        .into_iter()
        .filter_map(|disk| {
            let measured: Vec<Figures<'_>> = shapes
                .iter()
                .filter(|shape| shape.disk == disk && shape.wrong_answers == 0)
                .filter_map(Figures::of)
                .collect();
            Some(format!("On the {disk}: {}", advice(&measured)?))
        })
        .collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// The figures that a choice is based on.
#[derive(Debug, Clone, Copy)]
struct Figures<'a> {
    shape: &'a SchemaShape,
    year_ns: f64,
    /// Upper quartile of the queries' times, ns.
    slow_year_ns: f64,
    /// `None` if too few were made to tell.
    inserts: Option<Inserts>,
    /// Bytes of data files and indexes; `None` if not known.
    bytes: Option<f64>,
}

/// How fast samples were inserted, per second.
#[derive(Debug, Clone, Copy)]
struct Inserts {
    /// In the last part of the load.
    last: f64,
    /// Quartiles of the parts of its second half.
    slow: f64,
    fast: f64,
}

impl Inserts {
    fn of(shape: &SchemaShape) -> Option<Self> {
        let (_, last) = first_and_last(shape)?;
        let half = shape.insert_per_s.iter().skip(shape.insert_per_s.len() / 2);
        let mut rates: Vec<f64> = half.map(|(_, per_s)| *per_s).collect();
        rates.sort_by(f64::total_cmp);
        let quarter = rates.len() / 4;
        Some(Self {
            last,
            slow: *rates.get(quarter)?,
            fast: *rates.get(rates.len().checked_sub(quarter + 1)?)?,
        })
    }
}

impl<'a> Figures<'a> {
    fn of(shape: &'a SchemaShape) -> Option<Self> {
        Some(Self {
            shape,
            year_ns: year_ns(shape)?,
            slow_year_ns: upper_quartile(&shape.year_read_ns)?,
            inserts: Inserts::of(shape),
            bytes: disk_bytes(shape),
        })
    }

    fn title(&self) -> String {
        let filled = if self.shape.preallocated {
            ", pre-allocated"
        } else {
            ""
        };
        format!("{}{filled}, index {}", self.shape.name, self.shape.index)
    }
}

fn advice(measured: &[Figures<'_>]) -> Option<String> {
    let plain = Variant::new(Shape::Sample);
    let is_plain = |f: &&Figures<'_>| same(f.shape, &plain);
    let base = measured.iter().find(is_plain)?;
    let reader = measured
        .iter()
        .min_by(|a, b| a.year_ns.total_cmp(&b.year_ns))?;
    let reads_faster = base.year_ns / reader.year_ns;
    // Its slow queries must beat the other's usual one, or noise could have decided.
    let is_sure = reader.slow_year_ns < base.year_ns;
    let read_part = if reads_faster >= WORTH_THE_TROUBLE && is_sure {
        format!("store {}. {}", reader.title(), reading_reason(base, reader))
    } else {
        let doubt = match is_sure {
            true => "by a factor worth the trouble",
            false => "beyond doubt",
        };
        format!(
            "keep {}: no other way reads a series faster {doubt} (the best, {}, {reads_faster:.1} times in the median).",
            base.title(),
            reader.title()
        )
    };
    Some(format!("{read_part}{}", writing(base, measured)))
}

/// Returns the way that takes inserts fastest, if it is faster beyond doubt, as a sentence; says so if too few were made to
/// tell.
fn writing(base: &Figures<'_>, measured: &[Figures<'_>]) -> String {
    let known = measured.iter().filter_map(|f| Some((f, f.inserts?)));
    let fastest = known.max_by(|(_, a), (_, b)| a.last.total_cmp(&b.last));
    let Some((present, (writer, inserts))) = base.inserts.zip(fastest) else {
        return format!(
            " Which way takes inserts fastest is not said: too few were made for that, which takes {} samples in each tenth \
             of the load.",
            format_count(SAMPLES_OF_PART_MIN)
        );
    };
    let faster = inserts.last / present.last;
    // Its slow parts must beat the other's fast ones, or noise could have decided.
    if faster < WORTH_THE_TROUBLE || inserts.slow <= present.fast {
        return String::new();
    }
    format!(
        " If inserts matter more than reads: {}, which at the end of the load took {}/s instead of {}/s ({faster:.1} times).",
        writer.title(),
        count(inserts.last),
        count(present.last),
    )
}

fn reading_reason(base: &Figures<'_>, reader: &Figures<'_>) -> String {
    let reads = match (base.shape.reads_per_query, reader.shape.reads_per_query) {
        (Some(before), Some(after)) => {
            format!(", with {after:.0} reads of the server instead of {before:.0}")
        }
        _ => String::new(),
    };
    let space = match (base.bytes, reader.bytes) {
        (Some(before), Some(after)) => {
            format!(" and {:.2} times the space", after / before.max(1.0))
        }
        _ => String::new(),
    };
    let faster = base.year_ns / reader.year_ns;
    let time = |ns: f64| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a cast saturates"
        )]
        format_ns(ns as u64)
    };
    let inserts = match (base.inserts, reader.inserts) {
        (Some(before), Some(after)) => format!(
            "; it takes inserts at {}/s instead of {}/s{space}",
            count(after.last),
            count(before.last)
        ),
        _ if space.is_empty() => space,
        _ => format!("; it takes{}", space.trim_start_matches(" and")),
    };
    format!(
        "It reads one series in {} instead of {} ({faster:.1} times faster{reads}) than one document per sample \
         does{inserts}.",
        time(reader.year_ns),
        time(base.year_ns),
    )
}

fn count(per_s: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast saturates"
    )]
    format_count(per_s.round() as u64)
}

/// Returns the disks that shapes were measured on, in their order.
fn disks(shapes: &[SchemaShape]) -> Vec<&str> {
    let mut disks: Vec<&str> = Vec::new();
    for shape in shapes.iter().filter(|s| !s.disk.is_empty()) {
        if !disks.contains(&shape.disk.as_str()) {
            disks.push(&shape.disk);
        }
    }
    disks
}

fn same(shape: &SchemaShape, variant: &Variant) -> bool {
    shape.name == variant.name()
        && shape.index == variant.index_json()
        && shape.preallocated == variant.preallocated
}

fn find<'a>(shapes: &'a [SchemaShape], variant: &Variant, disk: &str) -> Option<&'a SchemaShape> {
    shapes
        .iter()
        .find(|shape| shape.disk == disk && same(shape, variant))
}

/// Returns the median time to read a series, ns.
fn year_ns(shape: &SchemaShape) -> Option<f64> {
    let times: Vec<f64> = shape.year_read_ns.iter().map(|&ns| ns as f64).collect();
    seekscope_stats::median(&times)
}

/// Returns `None` without times.
fn upper_quartile(times_ns: &[u64]) -> Option<f64> {
    let mut sorted = times_ns.to_vec();
    sorted.sort_unstable();
    let rank = (sorted.len() * 3).div_ceil(4);
    Some(*sorted.get(rank.checked_sub(1)?)? as f64)
}

fn disk_bytes(shape: &SchemaShape) -> Option<f64> {
    let bytes = shape.storage.as_ref()?.disk_bytes()?;
    Some(bytes as f64)
}

/// Returns the insert rates of the first and of the last tenth of the load; `None` if it had fewer parts, or too little in
/// one of them.
fn first_and_last(shape: &SchemaShape) -> Option<(f64, f64)> {
    let rates = &shape.insert_per_s;
    if (rates.len() as u64) < PARTS {
        return None;
    }
    let ends = rates.iter().map(|(samples, _)| *samples);
    let begins = std::iter::once(0).chain(ends.clone());
    let mut parts = begins
        .zip(ends)
        .map(|(begin, end)| end.saturating_sub(begin));
    if parts.any(|samples| samples < SAMPLES_OF_PART_MIN) {
        return None;
    }
    Some((rates.first()?.1, rates.last()?.1))
}

fn pair(before: Option<f64>, after: Option<f64>) -> Option<(f64, f64)> {
    Some((before?, after?))
}

#[cfg(test)]
mod tests {
    use seekscope_run::StorageFacts;

    use super::*;

    fn shape(variant: Variant, year_ms: u64, last_per_s: f64, bytes: u64) -> SchemaShape {
        SchemaShape {
            name: variant.name(),
            index: variant.index_json().into(),
            preallocated: variant.preallocated,
            disk: "plain disk".into(),
            insert_per_s: load(100, 10_000.0, last_per_s),
            year_read_ns: [9, 10, 11].map(|f| year_ms * 100_000 * f).to_vec(),
            reads_per_query: Some(year_ms as f64),
            storage: Some(StorageFacts {
                directory_bytes: Some(bytes),
                ..StorageFacts::default()
            }),
            ..SchemaShape::default()
        }
    }

    /// Returns the rates of a load of this many samples in each tenth, of which the second half had the last rate.
    fn load(samples: u64, first_per_s: f64, last_per_s: f64) -> Vec<(u64, f64)> {
        let rate = |part| {
            if part <= PARTS / 2 {
                first_per_s
            } else {
                last_per_s
            }
        };
        (1..=PARTS)
            .map(|part| (part * samples, rate(part)))
            .collect()
    }

    fn sample() -> Variant {
        Variant::new(Shape::Sample)
    }

    fn date_first() -> Variant {
        Variant {
            order: IndexOrder::DateFirst,
            ..sample()
        }
    }

    fn month() -> Variant {
        Variant::new(Shape::Month)
    }

    #[test]
    fn the_published_ratios_stand_beside_ours() {
        let filled = Variant {
            preallocated: true,
            ..month()
        };
        let shapes = [
            shape(sample(), 1600, 2_500.0, 100),
            shape(month(), 320, 9_000.0, 30),
            shape(filled, 32, 8_000.0, 60),
            shape(date_first(), 1600, 10_000.0, 90),
        ];
        let ratios: Vec<(f64, f64)> = experiments(&shapes)
            .iter()
            .map(|e| {
                (
                    (e.ratio * 10.0).round() / 10.0,
                    (e.published_ratio * 10.0).round() / 10.0,
                )
            })
            .collect();
        assert_eq!(
            ratios,
            [(5.0, 5.3), (4.0, 4.0), (1.0, 1.0), (1.0, 1.0), (10.0, 9.4)]
        );
        assert_eq!(experiments(&shapes[..1]).len(), 1, "only what was measured");
    }

    #[test]
    fn the_fastest_reader_is_recommended_with_what_it_costs() {
        let shapes = [
            shape(sample(), 1600, 10_000.0, 100),
            shape(month(), 320, 4_000.0, 50),
            shape(date_first(), 1700, 20_000.0, 100),
        ];
        let text = recommendation(&shapes).unwrap();
        assert!(
            text.starts_with("On the plain disk: store one document per month"),
            "{text}"
        );
        for part in [
            "320 ms instead of 1.60 s",
            "5.0 times faster",
            "320 reads",
            "4,000/s instead of 10,000/s",
            "0.50 times the space",
            "If inserts matter more",
            "20,000/s",
        ] {
            assert!(text.contains(part), "{part:?} in {text}");
        }
    }

    #[test]
    fn a_way_whose_size_is_not_known_is_recommended_all_the_same() {
        let unsized_month = SchemaShape {
            storage: None,
            ..shape(month(), 320, 4_000.0, 50)
        };
        let shapes = [shape(sample(), 1600, 10_000.0, 100), unsized_month];
        let text = recommendation(&shapes).unwrap();
        assert!(text.contains("store one document per month"), "{text}");
        assert!(text.contains("instead of 10,000/s."), "{text}");
        assert!(!text.contains("space"), "{text}");
    }

    #[test]
    fn no_difference_worth_the_trouble_is_an_answer() {
        let shapes = [
            shape(sample(), 100, 10_000.0, 100),
            shape(month(), 80, 9_000.0, 50),
        ];
        let text = recommendation(&shapes).unwrap();
        assert!(text.contains("keep one document per sample"), "{text}");
        assert!(
            text.contains("worth the trouble") && !text.contains("If inserts"),
            "{text}"
        );
    }

    #[test]
    fn a_few_inserts_or_one_fast_part_show_no_faster_way() {
        let with = |insert_per_s| SchemaShape {
            insert_per_s,
            ..shape(month(), 80, 1.0, 50)
        };
        let said = |fast: Vec<(u64, f64)>, base: Vec<(u64, f64)>| {
            let base = SchemaShape {
                insert_per_s: base,
                ..shape(sample(), 100, 1.0, 100)
            };
            recommendation(&[base, with(fast)]).unwrap()
        };
        let (slow, fast) = (load(100, 300.0, 300.0), load(100, 3_000.0, 3_000.0));
        assert!(said(fast.clone(), slow.clone()).contains("If inserts matter more"));
        for (fast, base) in [
            (vec![(1, 2_796.0)], vec![(1, 273.0)]),
            (load(99, 3_000.0, 3_000.0), load(99, 300.0, 300.0)),
        ] {
            assert_eq!(
                experiments(&[with(fast.clone())]),
                [],
                "no rate over the growth"
            );
            let said = said(fast, base);
            assert!(
                !said.contains("If inserts") && said.contains("too few"),
                "{said}"
            );
        }
        let mut once = slow.clone();
        once[9].1 = 9_000.0;
        let said = said(once, slow);
        assert!(
            !said.contains("If inserts") && !said.contains("too few"),
            "{said}"
        );
    }

    #[test]
    fn wrong_answers_and_noise_are_not_recommended() {
        let wrong = SchemaShape {
            wrong_answers: 1,
            ..shape(month(), 10, 9_000.0, 50)
        };
        let noisy = SchemaShape {
            year_read_ns: vec![1_000_000, 2_000_000, 900_000_000],
            ..shape(date_first(), 1, 9_000.0, 50)
        };
        let text = recommendation(&[shape(sample(), 100, 10_000.0, 100), wrong, noisy]).unwrap();
        assert!(text.contains("keep one document per sample"), "{text}");
        assert!(text.contains("beyond doubt"), "{text}");
        let one_late = SchemaShape {
            year_read_ns: [2, 2, 2, 2, 900].map(|ms| ms * 1_000_000).to_vec(),
            ..shape(month(), 1, 9_000.0, 50)
        };
        let text = recommendation(&[shape(sample(), 100, 10_000.0, 100), one_late]).unwrap();
        assert!(text.contains("store one document per month"), "{text}");
        assert_eq!(recommendation(&[]), None);
        assert_eq!(recommendation(&[SchemaShape::default()]), None);
    }
}
