//! Properties with their meanings: defaults, ranges, and what the two editions make of them.

use std::time::Duration;

use super::{Edition, Properties, YcsbError};
use crate::generators::{
    ByteOrder, Hotspot, LengthDistribution, length::LengthHistogram, zipfian_gray::YCSB_THETA,
};

/// Most fields of a row, and most bytes of its values: MongoDB's documents end at 16 MiB.
const FIELDS_MAX: u64 = 10_000;
const ROW_BYTES_MAX: usize = 16 << 20;
/// Rows of one insert: what MongoDB takes in one command.
const BATCH_MAX: u64 = 100_000;
/// YCSB counts in 32 bits.
const YCSB_COUNT_MAX: u64 = i32::MAX as u64;

/// How rows are chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RequestDistribution {
    Uniform,
    /// Exact, with any exponent from 0 on: `zipfian` of the corrected edition.
    Zipf {
        theta: f64,
    },
    /// YCSB's `zipfian`, by name `zipfian-ycsb` in both editions.
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
    /// That of a Java HashMap, as YCSB sends them.
    Java,
    Declared,
}

/// What the fields hold.
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
    /// The collection.
    pub table: String,
    /// Rows that exist, or will after the load.
    pub record_count: u64,
    /// Operations of the run, `None` = until stopped.
    pub operation_count: Option<u64>,
    /// First record of this client's slice, and how many.
    pub insert_start: u64,
    pub insert_count: u64,
    /// Rows that the load writes, from `insert_start` on.
    pub load_count: u64,
    /// First record that the run inserts.
    pub first_insert: u64,
    /// `threadcount`: operations in flight.
    pub in_flight: usize,
    /// `target`: operations per second over all virtual users; `None` = as fast as the server goes.
    pub target_per_s: Option<f64>,
    pub max_execution: Option<Duration>,
    pub field_names: Vec<String>,
    pub field_order: FieldOrder,
    pub lengths: LengthDistribution,
    pub values: ValueKind,
    /// `dataintegrity`: reads are compared with what the row must be.
    pub check_reads: bool,
    pub read_all_fields: bool,
    /// Name every field in the projection instead of having none.
    pub read_by_name: bool,
    pub write_all_fields: bool,
    /// Weights: read, update, insert, scan, read-modify-write.
    pub proportions: [f64; 5],
    pub requests: RequestDistribution,
    pub scan_lengths: LengthDistribution,
    /// Keys are hashes of record numbers.
    pub hashed: bool,
    pub key_hash: ByteOrder,
    /// Least number of digits in a key.
    pub zero_padding: usize,
    /// Of the load.
    pub insert_retries: u32,
    pub insert_retry_pause: Duration,
    /// A virtual user that failed to insert goes on with its load.
    pub keep_going: bool,
    /// Rows of one insert of the load.
    pub batch: u64,
    /// Rows are replaced where they exist.
    pub upsert: bool,
    /// In per cent, of the summary.
    pub percentiles: Vec<f64>,
}

impl YcsbSettings {
    /// `histogram`: the text of the file that `fieldlengthhistogram` names ([`histogram_file`]).
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

    /// Every setting by its property's name, for the run's record.
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

/// The file whose text [`YcsbSettings::new`] wants, if any.
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

struct Counts {
    records: u64,
    operations: Option<u64>,
    insert_start: u64,
    insert_count: u64,
    load: u64,
    first_insert: u64,
}

struct Reader<'a> {
    properties: &'a Properties,
    edition: Edition,
}

impl Reader<'_> {
    fn text(&self, name: &str, default: &'static str) -> &str {
        self.properties.get(name).unwrap_or(default)
    }

    fn whole(&self, name: &'static str, default: u64) -> Result<u64, YcsbError> {
        self.whole_within(name, default, 0, u64::MAX)
    }

    fn whole_within(
        &self,
        name: &'static str,
        default: u64,
        least: u64,
        most: u64,
    ) -> Result<u64, YcsbError> {
        let Some(text) = self.properties.get(name) else {
            return Ok(default);
        };
        let number = text.trim().parse().ok();
        number
            .filter(|number| (least..=most).contains(number))
            .ok_or_else(|| {
                YcsbError::value(
                    name,
                    text,
                    format!("want a whole number from {least} to {most}"),
                )
            })
    }

    fn number(
        &self,
        name: &'static str,
        default: f64,
        least: f64,
        most: f64,
    ) -> Result<f64, YcsbError> {
        let Some(text) = self.properties.get(name) else {
            return Ok(default);
        };
        let number = text.trim().parse().ok();
        number
            .filter(|number| (least..=most).contains(number))
            .ok_or_else(|| {
                YcsbError::value(name, text, format!("want a number from {least} to {most}"))
            })
    }

    /// As Java's `Boolean.parseBoolean`, except that what is neither true nor false is refused.
    fn boolean(&self, name: &'static str, default: bool) -> Result<bool, YcsbError> {
        let Some(text) = self.properties.get(name) else {
            return Ok(default);
        };
        match text.trim().to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(YcsbError::value(name, text, "want true or false")),
        }
    }

    fn one_of<T: Copy>(
        &self,
        name: &'static str,
        default: &'static str,
        choices: &[(&str, T)],
    ) -> Result<T, YcsbError> {
        let text = self.text(name, default);
        let found = choices.iter().find(|(choice, _)| *choice == text.trim());
        found.map(|&(_, value)| value).ok_or_else(|| {
            let names: Vec<&str> = choices.iter().map(|(choice, _)| *choice).collect();
            YcsbError::value(name, text, format!("want one of {}", names.join(", ")))
        })
    }

    fn counts(&self) -> Result<Counts, YcsbError> {
        let ycsb = self.edition == Edition::Ycsb;
        let most = if ycsb { YCSB_COUNT_MAX } else { 1 << 62 };
        let records = match self.whole_within("recordcount", 0, 0, most)? {
            0 if ycsb => YCSB_COUNT_MAX,
            0 => {
                let why = "name how many rows there are, or will be after the load";
                return Err(YcsbError::value("recordcount", 0, why));
            }
            records => records,
        };
        let insert_start = self.whole_within("insertstart", 0, 0, records)?;
        let insert_count = self.whole_within("insertcount", records - insert_start, 0, most)?;
        if insert_count == 0 || insert_start + insert_count > records {
            let why = format!(
                "the slice from {insert_start} must not be empty or end beyond recordcount={records}"
            );
            return Err(YcsbError::value("insertcount", insert_count, why));
        }
        let insert_count_given = self.properties.get("insertcount").is_some();
        let operations = self.whole_within("operationcount", 0, 0, most)?;
        Ok(Counts {
            records,
            operations: Some(operations).filter(|&count| count > 0),
            insert_start,
            insert_count,
            // Without insertcount YCSB loads recordcount rows wherever it starts.
            load: if ycsb && !insert_count_given {
                records
            } else {
                insert_count
            },
            first_insert: self.whole_within("firstinsert", records, records, 1 << 62)?,
        })
    }

    fn table(&self) -> Result<String, YcsbError> {
        let table = self.text("table", "usertable");
        if table.is_empty() || table.contains(['\0', '$']) || table.len() > 200 {
            return Err(YcsbError::value(
                "table",
                table,
                "this cannot name a collection",
            ));
        }
        Ok(table.to_owned())
    }

    fn field_names(&self, lengths: &LengthDistribution) -> Result<Vec<String>, YcsbError> {
        let count = self.whole_within("fieldcount", 10, 1, FIELDS_MAX)?;
        let prefix = self.text("fieldnameprefix", "field");
        if prefix.contains(['\0', '.', '$']) || prefix.len() > 200 {
            let why = "no dots, dollars or NUL, and at most 200 bytes";
            return Err(YcsbError::value("fieldnameprefix", prefix, why));
        }
        let row_bytes = usize::try_from(count)
            .ok()
            .and_then(|n| n.checked_mul(lengths.bounds().1));
        if row_bytes.is_none_or(|bytes| bytes > ROW_BYTES_MAX) {
            let why = "rows would be larger than the 16 MiB of a document; lower it or fieldlength";
            return Err(YcsbError::value("fieldcount", count, why));
        }
        Ok((0..count).map(|n| format!("{prefix}{n}")).collect())
    }

    fn lengths(
        &self,
        histogram: Option<&str>,
        check_reads: bool,
    ) -> Result<LengthDistribution, YcsbError> {
        let name = "fieldlengthdistribution";
        let most = ROW_BYTES_MAX as u64;
        let length = |name, default| -> Result<usize, YcsbError> {
            Ok(usize::try_from(self.whole_within(name, default, 0, most)?).unwrap_or(0))
        };
        let (max, min) = (length("fieldlength", 100)?, length("minfieldlength", 1)?);
        let ycsb = self.edition == Edition::Ycsb;
        let lengths = match self.text(name, "constant") {
            "constant" => return Ok(LengthDistribution::Constant(max)),
            "uniform" => LengthDistribution::Uniform { min, max },
            "zipfian" => LengthDistribution::zipfian(min, max),
            "histogram" => {
                let missing = || YcsbError::value(name, "histogram", "its file was not read");
                let text = histogram.ok_or_else(missing)?;
                LengthDistribution::Histogram(LengthHistogram::parse(text, ycsb)?)
            }
            other => {
                let why = "want one of constant, uniform, zipfian, histogram";
                return Err(YcsbError::value(name, other, why));
            }
        };
        if check_reads && ycsb {
            let why = "dataintegrity=true needs values of constant length";
            return Err(YcsbError::value(name, self.text(name, ""), why));
        }
        Ok(lengths)
    }

    fn scan_lengths(&self) -> Result<LengthDistribution, YcsbError> {
        let length = |name, default| -> Result<usize, YcsbError> {
            let length = self.whole_within(name, default, 1, 1 << 30)?;
            Ok(usize::try_from(length).unwrap_or(1))
        };
        let (min, max) = (length("minscanlength", 1)?, length("maxscanlength", 1_000)?);
        if min > max {
            return Err(YcsbError::value(
                "minscanlength",
                min,
                "it is above maxscanlength",
            ));
        }
        let name = "scanlengthdistribution";
        let uniform = self.one_of(name, "uniform", &[("uniform", true), ("zipfian", false)])?;
        Ok(if uniform {
            LengthDistribution::Uniform { min, max }
        } else {
            LengthDistribution::zipfian(min, max)
        })
    }

    fn proportions(&self) -> Result<[f64; 5], YcsbError> {
        let share = |name, default| self.number(name, default, 0.0, 1e9);
        let shares = [
            share("readproportion", 0.95)?,
            share("updateproportion", 0.05)?,
            share("insertproportion", 0.0)?,
            share("scanproportion", 0.0)?,
            share("readmodifywriteproportion", 0.0)?,
        ];
        if shares.iter().sum::<f64>() <= 0.0 {
            let why = "one of the proportions must be above 0";
            return Err(YcsbError::value("readproportion", shares[0], why));
        }
        Ok(shares)
    }

    fn requests(&self, counts: &Counts) -> Result<RequestDistribution, YcsbError> {
        let name = "requestdistribution";
        let theta = self.number("zipfianconstant", YCSB_THETA, 0.0, 100.0)?;
        let ycsb = self.edition == Edition::Ycsb;
        if ycsb && theta != YCSB_THETA {
            let why = "YCSB's is 0.99 always; use the corrected edition for another";
            return Err(YcsbError::value("zipfianconstant", theta, why));
        }
        Ok(match self.text(name, "uniform") {
            "uniform" => RequestDistribution::Uniform,
            "zipfian" if !ycsb => RequestDistribution::Zipf { theta },
            "zipfian" | "zipfian-ycsb" => RequestDistribution::ScrambledZipfian,
            "latest" => RequestDistribution::Latest { theta },
            "sequential" => RequestDistribution::Sequential,
            "hotspot" => RequestDistribution::Hotspot(Hotspot::new(
                counts.insert_count,
                self.number("hotspotdatafraction", 0.2, 0.0, 1.0)?,
                self.number("hotspotopnfraction", 0.8, 0.0, 1.0)?,
            )),
            "exponential" => RequestDistribution::Exponential {
                percentile: self.number("exponential.percentile", 95.0, 0.001, 99.999_999)?,
                fraction: self.number("exponential.frac", 0.857_142_857_1, 1e-9, 1.0)?,
            },
            other => {
                let why = "want one of uniform, zipfian, zipfian-ycsb, latest, hotspot, sequential, exponential";
                return Err(YcsbError::value(name, other, why));
            }
        })
    }

    fn key_hash(&self) -> Result<ByteOrder, YcsbError> {
        let orders = [("java", ByteOrder::LowFirst), ("go", ByteOrder::HighFirst)];
        self.one_of("keyhash", "java", &orders)
    }

    fn field_order(&self) -> Result<FieldOrder, YcsbError> {
        let default = match self.edition {
            Edition::Ycsb => "java",
            Edition::Corrected => "declared",
        };
        let orders = [
            ("java", FieldOrder::Java),
            ("declared", FieldOrder::Declared),
        ];
        self.one_of("fieldorder", default, &orders)
    }

    fn percentiles(&self) -> Result<Vec<f64>, YcsbError> {
        let name = "hdrhistogram.percentiles";
        let text = self.text(name, "50,95,99");
        let one = |part: &str| {
            let percentile = part.trim().parse().ok();
            percentile.filter(|percentile| (0.0..=100.0).contains(percentile))
        };
        let all: Option<Vec<f64>> = text.split(',').map(one).collect();
        all.ok_or_else(|| {
            YcsbError::value(
                name,
                text,
                "want numbers from 0 to 100, separated by commas",
            )
        })
    }
}
