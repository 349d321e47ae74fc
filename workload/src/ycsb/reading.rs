//! Reads properties one by one, and checks their ranges.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::settings::{FieldOrder, RequestDistribution};
use super::{Edition, Properties, YcsbError};
use crate::collection_name;
use crate::generators::{
    ByteOrder, Hotspot, LengthDistribution, length::LengthHistogram, zipfian_gray::YCSB_THETA,
};

/// The most fields of a row, and most bytes of its values: MongoDB's documents are limited to 16 MiB.
const FIELDS_MAX: u64 = 10_000;
const ROW_BYTES_MAX: usize = 16 << 20;
/// YCSB counts in 32 bits.
const YCSB_COUNT_MAX: u64 = i32::MAX as u64;

pub(super) struct Counts {
    pub(super) records: u64,
    pub(super) operations: Option<u64>,
    pub(super) insert_start: u64,
    pub(super) insert_count: u64,
    pub(super) load: u64,
    pub(super) first_insert: u64,
}

pub(super) struct Reader<'a> {
    pub(super) properties: &'a Properties,
    pub(super) edition: Edition,
}

impl Reader<'_> {
    pub(super) fn text(&self, name: &str, default: &'static str) -> &str {
        self.properties.get(name).unwrap_or(default)
    }

    pub(super) fn whole(&self, name: &'static str, default: u64) -> Result<u64, YcsbError> {
        self.whole_within(name, default, 0, u64::MAX)
    }

    pub(super) fn whole_within(
        &self,
        name: &'static str,
        default: u64,
        least: u64,
        most: u64,
    ) -> Result<u64, YcsbError> {
        self.within(name, default, least..=most, "a whole number")
    }

    pub(super) fn number(
        &self,
        name: &'static str,
        default: f64,
        least: f64,
        most: f64,
    ) -> Result<f64, YcsbError> {
        self.within(name, default, least..=most, "a number")
    }

    fn within<T: FromStr + PartialOrd + Display>(
        &self,
        name: &'static str,
        default: T,
        range: RangeInclusive<T>,
        what: &str,
    ) -> Result<T, YcsbError> {
        let Some(text) = self.properties.get(name) else {
            return Ok(default);
        };
        let number = text.trim().parse().ok();
        number
            .filter(|number| range.contains(number))
            .ok_or_else(|| {
                let (least, most) = (range.start(), range.end());
                YcsbError::value(name, text, format!("must be {what} from {least} to {most}"))
            })
    }

    /// Parses like Java's `Boolean.parseBoolean`, except that anything other than true and false is rejected.
    pub(super) fn boolean(&self, name: &'static str, default: bool) -> Result<bool, YcsbError> {
        let Some(text) = self.properties.get(name) else {
            return Ok(default);
        };
        match text.trim().to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(YcsbError::value(name, text, "must be true or false")),
        }
    }

    pub(super) fn one_of<T: Copy>(
        &self,
        name: &'static str,
        default: &'static str,
        choices: &[(&str, T)],
    ) -> Result<T, YcsbError> {
        let text = self.text(name, default);
        let found = choices.iter().find(|(choice, _)| *choice == text.trim());
        found.map(|&(_, value)| value).ok_or_else(|| {
            let names: Vec<&str> = choices.iter().map(|(choice, _)| *choice).collect();
            YcsbError::value(name, text, format!("must be one of {}", names.join(", ")))
        })
    }

    pub(super) fn counts(&self) -> Result<Counts, YcsbError> {
        let ycsb = self.edition == Edition::Ycsb;
        let most = if ycsb { YCSB_COUNT_MAX } else { 1 << 62 };
        let records = match self.whole_within("recordcount", 0, 0, most)? {
            0 if ycsb => YCSB_COUNT_MAX,
            0 => {
                let why = "give the number of rows that there are, or will be after the load";
                return Err(YcsbError::value("recordcount", 0, why));
            }
            records => records,
        };
        let insert_start = self.whole_within("insertstart", 0, 0, records)?;
        let insert_count = self.whole_within("insertcount", records - insert_start, 0, most)?;
        if insert_count == 0 || insert_start + insert_count > records {
            let why = format!(
                "the range from {insert_start} must not be empty, and must not end beyond \
                 recordcount={records}"
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

    pub(super) fn table(&self) -> Result<String, YcsbError> {
        let table = self.text("table", "usertable");
        if !collection_name::can_be_written(table) {
            let why = "it is not the name of a collection that can be written to";
            return Err(YcsbError::value("table", table, why));
        }
        Ok(table.to_owned())
    }

    pub(super) fn field_names(
        &self,
        lengths: &LengthDistribution,
    ) -> Result<Vec<String>, YcsbError> {
        let count = self.whole_within("fieldcount", 10, 1, FIELDS_MAX)?;
        let prefix = self.text("fieldnameprefix", "field");
        if prefix.contains(['\0', '.', '$']) || prefix.len() > 200 {
            let why = "must have at most 200 bytes, and no dot, dollar sign or NUL";
            return Err(YcsbError::value("fieldnameprefix", prefix, why));
        }
        let row_bytes = usize::try_from(count)
            .ok()
            .and_then(|n| n.checked_mul(lengths.bounds().1));
        if row_bytes.is_none_or(|bytes| bytes > ROW_BYTES_MAX) {
            let why = "rows would be larger than a document may be (16 MiB); \
                       lower this or fieldlength";
            return Err(YcsbError::value("fieldcount", count, why));
        }
        Ok((0..count).map(|n| format!("{prefix}{n}")).collect())
    }

    pub(super) fn lengths(
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
                let why = "must be one of constant, uniform, zipfian, histogram";
                return Err(YcsbError::value(name, other, why));
            }
        };
        if check_reads && ycsb {
            let why = "dataintegrity=true requires values of constant length";
            return Err(YcsbError::value(name, self.text(name, ""), why));
        }
        Ok(lengths)
    }

    pub(super) fn scan_lengths(&self) -> Result<LengthDistribution, YcsbError> {
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

    pub(super) fn proportions(&self) -> Result<[f64; 5], YcsbError> {
        let share = |name, default| self.number(name, default, 0.0, 1e9);
        let shares = [
            share("readproportion", 0.95)?,
            share("updateproportion", 0.05)?,
            share("insertproportion", 0.0)?,
            share("scanproportion", 0.0)?,
            share("readmodifywriteproportion", 0.0)?,
        ];
        if shares.iter().sum::<f64>() <= 0.0 {
            let why = "at least one of the proportions must be above 0";
            return Err(YcsbError::value("readproportion", shares[0], why));
        }
        Ok(shares)
    }

    pub(super) fn requests(&self, counts: &Counts) -> Result<RequestDistribution, YcsbError> {
        let name = "requestdistribution";
        let theta = self.number("zipfianconstant", YCSB_THETA, 0.0, 100.0)?;
        let ycsb = self.edition == Edition::Ycsb;
        if ycsb && theta != YCSB_THETA {
            let why = "YCSB always uses 0.99; use the corrected edition for another value";
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
                let why = "must be one of uniform, zipfian, zipfian-ycsb, latest, hotspot, \
                           sequential, exponential";
                return Err(YcsbError::value(name, other, why));
            }
        })
    }

    pub(super) fn key_hash(&self) -> Result<ByteOrder, YcsbError> {
        let orders = [("java", ByteOrder::LowFirst), ("go", ByteOrder::HighFirst)];
        self.one_of("keyhash", "java", &orders)
    }

    pub(super) fn field_order(&self) -> Result<FieldOrder, YcsbError> {
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

    pub(super) fn percentiles(&self) -> Result<Vec<f64>, YcsbError> {
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
                "must be a list of numbers from 0 to 100, separated by commas",
            )
        })
    }
}
