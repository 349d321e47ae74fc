//! Interprets properties: defaults, ranges, and their meaning in the two editions.

use std::time::Duration;

use super::reading::Reader;
use super::{Edition, Properties, YcsbError};
use crate::generators::{ByteOrder, Hotspot, LengthDistribution};

/// The most rows of one insert: MongoDB's limit for one command.
const BATCH_MAX: u64 = 100_000;

/// How rows are chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RequestDistribution {
    Uniform,
    /// Exact, with any exponent from 0 on: `zipfian` in the corrected edition.
    Zipf {
        theta: f64,
    },
    /// YCSB's `zipfian`, named `zipfian-ycsb` in both editions.
    ScrambledZipfian,
    Latest {
        theta: f64,
    },
    Hotspot(Hotspot),
    Sequential,
    /// `percentile` per cent of requests fall in the newest `fraction` of rows.
    Exponential {
        percentile: f64,
        fraction: f64,
    },
}

/// The order of fields in a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldOrder {
    /// The order of a Java HashMap, in which YCSB sends them.
    Java,
    Declared,
}

/// The contents of the fields.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ValueKind {
    /// YCSB's random printable bytes.
    Printable,
    /// YCSB's `dataintegrity`.
    Integrity,
    /// Functions of seed, record, field and revision; see [`crate::generators::compressible`].
    Revisioned { compressibility: f64 },
}

/// A workload's settings, resolved and checked.
#[derive(Debug, Clone)]
pub struct YcsbSettings {
    pub edition: Edition,
    pub seed: u64,
    /// Name of the collection.
    pub table: String,
    /// Number of rows that exist, or will after the load.
    pub record_count: u64,
    /// Number of operations of the run, `None` = until stopped.
    pub operation_count: Option<u64>,
    /// First record of this client's slice, and their number.
    pub insert_start: u64,
    pub insert_count: u64,
    /// Number of rows that the load writes, from `insert_start` on.
    pub load_count: u64,
    /// First record that the run inserts.
    pub first_insert: u64,
    /// `threadcount`: operations in flight.
    pub in_flight: usize,
    /// `target`: operations per second over all virtual users; `None` = as fast as possible.
    pub target_per_s: Option<f64>,
    pub max_execution: Option<Duration>,
    pub field_names: Vec<String>,
    pub field_order: FieldOrder,
    pub lengths: LengthDistribution,
    pub values: ValueKind,
    /// `dataintegrity`: reads are compared with the expected row.
    pub check_reads: bool,
    pub read_all_fields: bool,
    /// Names every field in the projection instead of sending no projection.
    pub read_by_name: bool,
    pub write_all_fields: bool,
    /// Weights: read, update, insert, scan, read-modify-write.
    pub proportions: [f64; 5],
    pub requests: RequestDistribution,
    pub scan_lengths: LengthDistribution,
    /// Keys are hashes of record numbers.
    pub hashed: bool,
    pub key_hash: ByteOrder,
    /// The least number of digits in a key.
    pub zero_padding: usize,
    /// Retries of inserts of the load.
    pub insert_retries: u32,
    pub insert_retry_pause: Duration,
    /// A virtual user whose insert failed continues with its load.
    pub keep_going: bool,
    /// Rows per insert of the load.
    pub batch: u64,
    /// Rows are replaced where they exist.
    pub upsert: bool,
    /// Percentiles of the summary, in per cent.
    pub percentiles: Vec<f64>,
}

impl YcsbSettings {
    /// Returns whether requests go to the newest rows, of which each number up to the last must have one.
    pub fn reads_newest(&self) -> bool {
        matches!(
            self.requests,
            RequestDistribution::Latest { .. } | RequestDistribution::Exponential { .. }
        )
    }

    /// Creates the settings; `histogram` is the text of the file that `fieldlengthhistogram` names
    /// ([`histogram_file`]).
    pub fn new(
        properties: &Properties,
        edition: Edition,
        histogram: Option<&str>,
    ) -> Result<Self, YcsbError> {
        let read = Reader {
            properties,
            edition,
        };
        let check_reads = read.boolean("dataintegrity", false)?;
        let lengths = read.lengths(histogram, check_reads)?;
        let counts = read.counts()?;
        let field_names = read.field_names(&lengths)?;
        let ours = edition == Edition::Corrected;
        Ok(Self {
            edition,
            seed: read.whole("seed", 1)?,
            table: read.table()?,
            record_count: counts.records,
            operation_count: counts.operations,
            insert_start: counts.insert_start,
            insert_count: counts.insert_count,
            load_count: counts.load,
            first_insert: counts.first_insert,
            in_flight: usize::try_from(read.whole_within("threadcount", 1, 1, 1_000_000)?)
                .unwrap_or(1),
            target_per_s: Some(read.number("target", 0.0, 0.0, 1e9)?).filter(|&rate| rate > 0.0),
            max_execution: Some(read.whole_within("maxexecutiontime", 0, 0, 1 << 32)?)
                .filter(|&seconds| seconds > 0)
                .map(Duration::from_secs),
            field_names,
            field_order: read.field_order()?,
            lengths,
            values: match (ours, check_reads) {
                (true, _) => ValueKind::Revisioned {
                    compressibility: read.number("compressibility", 0.0, 0.0, 1.0)?,
                },
                (false, true) => ValueKind::Integrity,
                (false, false) => ValueKind::Printable,
            },
            check_reads,
            read_all_fields: read.boolean("readallfields", true)?,
            read_by_name: read.boolean("readallfieldsbyname", false)?,
            write_all_fields: read.boolean("writeallfields", false)?,
            proportions: read.proportions()?,
            requests: read.requests(&counts)?,
            scan_lengths: read.scan_lengths()?,
            hashed: read.text("insertorder", "hashed") == "hashed",
            key_hash: read.key_hash()?,
            zero_padding: usize::try_from(read.whole_within("zeropadding", 1, 0, 1_000)?)
                .unwrap_or(1),
            insert_retries: u32::try_from(read.whole_within(
                "core_workload_insertion_retry_limit",
                0,
                0,
                1_000_000,
            )?)
            .unwrap_or(0),
            insert_retry_pause: Duration::from_secs(read.whole_within(
                "core_workload_insertion_retry_interval",
                3,
                0,
                86_400,
            )?),
            keep_going: read.boolean("core_workload_insertion_keep_going_on_error", ours)?,
            batch: read.whole_within("batchsize", 1, 1, BATCH_MAX)?,
            upsert: read.boolean("mongodb.upsert", false)?,
            percentiles: read.percentiles()?,
        })
    }

    /// Returns every setting by its property's name, for the run's record.
    pub fn resolved(&self) -> Vec<(&'static str, String)> {
        let proportions = [
            "readproportion",
            "updateproportion",
            "insertproportion",
            "scanproportion",
            "readmodifywriteproportion",
        ];
        let shares = proportions
            .into_iter()
            .zip(self.proportions.map(|w| w.to_string()));
        let (least, most) = self.lengths.bounds();
        let (scan_least, scan_most) = self.scan_lengths.bounds();
        [
            ("seed", self.seed.to_string()),
            ("table", self.table.clone()),
            ("recordcount", self.record_count.to_string()),
            (
                "operationcount",
                self.operation_count.unwrap_or(0).to_string(),
            ),
            ("insertstart", self.insert_start.to_string()),
            ("insertcount", self.insert_count.to_string()),
            ("firstinsert", self.first_insert.to_string()),
            ("fieldcount", self.field_names.len().to_string()),
            (
                "fieldlength",
                format!("{least} to {most} B, {:?}", kind(&self.lengths)),
            ),
            (
                "fieldorder",
                format!("{:?}", self.field_order).to_lowercase(),
            ),
            ("values", format!("{:?}", self.values)),
            ("dataintegrity", self.check_reads.to_string()),
            ("readallfields", self.read_all_fields.to_string()),
            ("readallfieldsbyname", self.read_by_name.to_string()),
            ("writeallfields", self.write_all_fields.to_string()),
            ("requestdistribution", format!("{:?}", self.requests)),
            (
                "scanlength",
                format!(
                    "{scan_least} to {scan_most}, {:?}",
                    kind(&self.scan_lengths)
                ),
            ),
            (
                "insertorder",
                if self.hashed { "hashed" } else { "ordered" }.into(),
            ),
            (
                "keyhash",
                if self.key_hash == ByteOrder::LowFirst {
                    "java"
                } else {
                    "go"
                }
                .into(),
            ),
            ("zeropadding", self.zero_padding.to_string()),
            ("batchsize", self.batch.to_string()),
            ("mongodb.upsert", self.upsert.to_string()),
        ]
        .into_iter()
        .chain(shares)
        .collect()
    }
}

/// Returns the file whose text [`YcsbSettings::new`] requires, if any.
pub fn histogram_file(properties: &Properties) -> Option<&str> {
    (properties.get("fieldlengthdistribution") == Some("histogram"))
        .then(|| properties.get("fieldlengthhistogram").unwrap_or("hist.txt"))
}

fn kind(lengths: &LengthDistribution) -> &'static str {
    match lengths {
        LengthDistribution::Constant(_) => "constant",
        LengthDistribution::Uniform { .. } => "uniform",
        LengthDistribution::Zipfian { .. } => "zipfian",
        LengthDistribution::Histogram(_) => "histogram",
    }
}

#[cfg(test)]
mod tests {
    use super::super::{WORKLOADS, workload};
    use super::*;

    fn settings(text: &str, edition: Edition) -> Result<YcsbSettings, YcsbError> {
        YcsbSettings::new(&Properties::parse(text).unwrap(), edition, None)
    }

    #[test]
    fn defaults_are_ycsbs() {
        let all = settings("", Edition::Ycsb).unwrap();
        assert_eq!(all.record_count, 2_147_483_647);
        assert_eq!((all.operation_count, all.in_flight), (None, 1));
        assert_eq!(all.proportions, [0.95, 0.05, 0.0, 0.0, 0.0]);
        assert_eq!(all.requests, RequestDistribution::Uniform);
        assert_eq!(
            (all.table.as_str(), all.field_names.len()),
            ("usertable", 10)
        );
        assert_eq!(
            (all.lengths.bounds(), all.scan_lengths.bounds()),
            ((100, 100), (1, 1_000))
        );
        assert_eq!((all.batch, all.zero_padding, all.hashed), (1, 1, true));
        assert_eq!(all.percentiles, [50.0, 95.0, 99.0]);
        assert!(!all.keep_going && !all.upsert && all.read_all_fields);
    }

    #[test]
    fn core_workloads_are_whole() {
        let weights = [
            [0.5, 0.5, 0.0, 0.0, 0.0],
            [0.95, 0.05, 0.0, 0.0, 0.0],
            [1.0, 0.0, 0.0, 0.0, 0.0],
            [0.95, 0.0, 0.05, 0.0, 0.0],
            [0.0, 0.0, 0.05, 0.95, 0.0],
            [0.5, 0.0, 0.0, 0.0, 0.5],
        ];
        for (letter, expected) in WORKLOADS.into_iter().zip(weights) {
            let properties = workload(letter).unwrap();
            assert!(super::super::known::without_effect(&properties).is_empty());
            let all = YcsbSettings::new(&properties, Edition::Ycsb, None).unwrap();
            assert_eq!(all.proportions, expected, "{letter}");
            assert_eq!(
                (all.record_count, all.operation_count),
                (1_000, Some(1_000))
            );
        }
        let e = YcsbSettings::new(&workload('E').unwrap(), Edition::Ycsb, None).unwrap();
        assert_eq!(e.scan_lengths.bounds(), (1, 100));
        assert!(workload('g').is_err());
    }

    #[test]
    fn slices_are_loaded_by_each_editions_rule() {
        for (edition, text, load) in [
            (Edition::Ycsb, "recordcount=100\ninsertstart=10", 100),
            (Edition::Corrected, "recordcount=100\ninsertstart=10", 90),
            (
                Edition::Ycsb,
                "recordcount=100\ninsertstart=10\ninsertcount=20",
                20,
            ),
        ] {
            assert_eq!(settings(text, edition).unwrap().load_count, load, "{text}");
        }
    }

    #[test]
    fn senseless_values_are_refused_by_name() {
        for (text, name) in [
            ("recordcount=-1", "recordcount"),
            ("recordcount=3000000000", "recordcount"),
            ("recordcount=10\ninsertstart=11", "insertstart"),
            ("recordcount=10\ninsertcount=11", "insertcount"),
            ("recordcount=10\ninsertstart=10", "insertcount"),
            ("fieldcount=0", "fieldcount"),
            ("fieldlength=99999999", "fieldlength"),
            ("fieldcount=10000\nfieldlength=10000", "fieldcount"),
            ("fieldlengthdistribution=normal", "fieldlengthdistribution"),
            (
                "fieldlengthdistribution=histogram",
                "fieldlengthdistribution",
            ),
            (
                "fieldlengthdistribution=uniform\ndataintegrity=true",
                "fieldlengthdistribution",
            ),
            ("readproportion=nan", "readproportion"),
            ("readproportion=0\nupdateproportion=0", "readproportion"),
            ("requestdistribution=zipf", "requestdistribution"),
            ("zipfianconstant=0.5", "zipfianconstant"),
            ("readallfields=yes", "readallfields"),
            ("minscanlength=5\nmaxscanlength=4", "minscanlength"),
            ("keyhash=c", "keyhash"),
            ("table=a$b", "table"),
            ("table=system.views", "table"),
            (
                "hdrhistogram.percentiles=50,,99",
                "hdrhistogram.percentiles",
            ),
            ("target=-5", "target"),
        ] {
            match settings(text, Edition::Ycsb).unwrap_err() {
                YcsbError::Value { name: found, .. } => assert_eq!(found, name, "{text}"),
                other => panic!("{text}: {other}"),
            }
        }
        assert!(settings("", Edition::Corrected).is_err(), "no recordcount");
        let large = settings("recordcount=3000000000", Edition::Corrected).unwrap();
        assert_eq!(large.record_count, 3_000_000_000);
    }

    #[test]
    fn histograms_come_from_their_file() {
        let text = "fieldlengthdistribution=histogram\nfieldlengthhistogram=a.txt";
        let properties = Properties::parse(text).unwrap();
        assert_eq!(histogram_file(&properties), Some("a.txt"));
        let histogram = "BlockSize\t8\n0\t1\n1\t1\n";
        let all = YcsbSettings::new(&properties, Edition::Ycsb, Some(histogram)).unwrap();
        assert_eq!(all.lengths.bounds(), (8, 8));
        assert_eq!(histogram_file(&Properties::default()), None);
    }
}
