//! Builds a variant's writes: whole `insert` and `update` commands as BSON.

use bson::RawDocumentBuf;
use jiff::{Timestamp, civil::Date, tz::TimeZone};
use seekscope_client::BsonWriter;

use super::samples::{DAY_MS, Place, START_MS, Samples, ValueKind};
use super::variant::{Shape, Variant};

/// A bucket of limited size accepts samples for at most this many times as long as it needs to be filled, so
/// that an upsert checks few buckets however long a series is.
const BUCKET_AGE: i64 = 2;

/// A command being built.
#[derive(Debug)]
pub struct Batch {
    writer: BsonWriter,
    count: u32,
}

/// Returns whether a sample is inserted as a document of its own, rather than as a change to one.
pub fn inserts(variant: &Variant) -> bool {
    !variant.preallocated && matches!(variant.shape, Shape::Sample | Shape::Native)
}

impl Batch {
    pub fn new(variant: &Variant, insert: bool) -> Self {
        let mut writer = BsonWriter::default();
        let (command, statements) = if insert {
            ("insert", "documents")
        } else {
            ("update", "updates")
        };
        writer
            .begin()
            .string(command, &variant.collection())
            .begin_array(statements);
        Self { writer, count: 0 }
    }

    /// Returns the number of documents or changes so far.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns the command; `None` for an empty one.
    pub fn finish(mut self) -> Option<RawDocumentBuf> {
        if self.count == 0 {
            return None;
        }
        self.writer.end().boolean("ordered", false);
        self.writer
            .begin_document("writeConcern")
            .int32("w", 1)
            .end()
            .end();
        RawDocumentBuf::from_bytes(self.writer.bytes().to_vec()).ok()
    }

    fn begin(&mut self) -> &mut BsonWriter {
        let name = self.count.to_string();
        self.count += 1;
        self.writer.begin_document(&name)
    }

    /// Writes one sample according to the variant.
    pub fn sample(&mut self, variant: &Variant, samples: &Samples, at: Place, value: f64) {
        let time_ms = samples.time_ms(at.slot);
        let writer = self.begin();
        if inserts(variant) {
            insert_sample(writer, variant, samples, at, value);
            return;
        }
        writer.begin_document("q");
        series_fields(writer, samples, at.series);
        match variant.shape {
            Shape::SizeBucket(size) => size_bucket(writer, samples, size, time_ms, value),
            _ => {
                let start_ms = document_start_ms(variant, time_ms);
                writer.date("date", start_ms).end();
                let ordinal = (time_ms - start_ms) / samples.interval_ms();
                match (variant.shape, variant.preallocated) {
                    (Shape::TimeBucket(_), false) => push(writer, samples, time_ms, value),
                    (Shape::TimeBucket(_), true) => {
                        set(writer, samples, &format!("values.{ordinal}"), value);
                    }
                    (Shape::Month, _) => set(writer, samples, &(ordinal + 1).to_string(), value),
                    _ => set(writer, samples, "value", value),
                }
            }
        }
        writer.boolean("upsert", !variant.preallocated).end();
    }

    /// Writes the zero-filled document for slots from `first_slot` on, and returns the first slot after it.
    pub fn zeros(
        &mut self,
        variant: &Variant,
        samples: &Samples,
        series: u32,
        first_slot: u64,
    ) -> u64 {
        let start_ms = document_start_ms(variant, samples.time_ms(first_slot));
        let end_ms = document_end_ms(variant, samples, start_ms);
        let values = (end_ms - start_ms) / samples.interval_ms();
        let writer = self.begin();
        series_fields(writer, samples, series);
        writer.date("date", start_ms);
        match variant.shape {
            Shape::TimeBucket(_) => {
                writer.begin_array("values");
                (0..values).for_each(|n| append(writer, samples, &n.to_string(), 0.0));
                writer.end();
            }
            Shape::Month => (1..=values).for_each(|n| append(writer, samples, &n.to_string(), 0.0)),
            _ => append(writer, samples, "value", 0.0),
        }
        writer.end();
        u64::try_from((end_ms - START_MS) / samples.interval_ms()).unwrap_or(u64::MAX)
    }
}

/// Returns the date of the document that a sample belongs to, ms since 1970.
pub fn document_start_ms(variant: &Variant, time_ms: i64) -> i64 {
    match variant.shape {
        Shape::Month => month_start(time_ms).map_or(time_ms, |(start, _)| start),
        Shape::TimeBucket(span) => time_ms - (time_ms - START_MS).rem_euclid(span.ms()),
        _ => time_ms,
    }
}

/// Returns the date of the next document.
pub fn document_end_ms(variant: &Variant, samples: &Samples, start_ms: i64) -> i64 {
    match variant.shape {
        Shape::Month => month_start(start_ms).map_or(start_ms + 31 * DAY_MS, |(_, next)| next),
        Shape::TimeBucket(span) => start_ms + span.ms(),
        _ => start_ms + samples.interval_ms(),
    }
}

/// Returns the beginning of the calendar month in UTC, and of the next; `None` beyond the year 9999.
fn month_start(time_ms: i64) -> Option<(i64, i64)> {
    let date = Timestamp::from_millisecond(time_ms)
        .ok()?
        .to_zoned(TimeZone::UTC)
        .date();
    let first = date.first_of_month();
    let next = first.last_of_month().tomorrow().ok()?;
    let ms = |date: Date| {
        Some(
            date.to_zoned(TimeZone::UTC)
                .ok()?
                .timestamp()
                .as_millisecond(),
        )
    };
    Some((ms(first)?, ms(next)?))
}

fn series_fields(writer: &mut BsonWriter, samples: &Samples, series: u32) {
    writer
        .string("metric", &samples.metric(series))
        .int32("client", samples.client(series));
}

fn insert_sample(
    writer: &mut BsonWriter,
    variant: &Variant,
    samples: &Samples,
    at: Place,
    value: f64,
) {
    let native = variant.shape == Shape::Native;
    if native {
        writer.begin_document("meta");
    }
    series_fields(writer, samples, at.series);
    if native {
        writer.end();
    }
    append(writer, samples, "value", value);
    writer.date("date", samples.time_ms(at.slot)).end();
}

/// Ends the filter and writes the change.
fn size_bucket(writer: &mut BsonWriter, samples: &Samples, size: u32, time_ms: i64, value: f64) {
    let age_ms = BUCKET_AGE * i64::from(size) * samples.interval_ms();
    writer
        .begin_document("date")
        .date("$gte", time_ms.saturating_sub(age_ms))
        .end();
    let size = i32::try_from(size).unwrap_or(i32::MAX);
    writer.begin_document("n").int32("$lt", size).end().end();
    writer.begin_document("u");
    push_fields(writer, samples, time_ms, value);
    writer.begin_document("$min").date("date", time_ms).end();
    writer
        .begin_document("$max")
        .date("last", time_ms)
        .end()
        .end();
}

fn push(writer: &mut BsonWriter, samples: &Samples, time_ms: i64, value: f64) {
    writer.begin_document("u");
    push_fields(writer, samples, time_ms, value);
    writer.end();
}

fn push_fields(writer: &mut BsonWriter, samples: &Samples, time_ms: i64, value: f64) {
    writer
        .begin_document("$push")
        .begin_document("samples")
        .date("t", time_ms);
    append(writer, samples, "v", value);
    writer
        .end()
        .end()
        .begin_document("$inc")
        .int32("n", 1)
        .end();
}

fn set(writer: &mut BsonWriter, samples: &Samples, field: &str, value: f64) {
    writer.begin_document("u").begin_document("$set");
    append(writer, samples, field, value);
    writer.end().end();
}

fn append(writer: &mut BsonWriter, samples: &Samples, field: &str, value: f64) {
    match samples.options().values {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a walk is small whole numbers, and a cast saturates"
        )]
        ValueKind::Walk => writer.int32(field, value as i32),
        ValueKind::Random => writer.double(field, value),
    };
}

#[cfg(test)]
mod tests {
    use bson::{DateTime, Document, doc};

    use super::super::samples::SampleOptions;
    use super::super::variant::BucketSpan;
    use super::*;

    const MARCH_2_MS: i64 = START_MS + 60 * DAY_MS;

    fn written(variant: &Variant) -> Document {
        let samples = Samples::new(SampleOptions::default());
        let mut batch = Batch::new(variant, inserts(variant));
        batch.sample(
            variant,
            &samples,
            Place {
                series: 21,
                slot: 60,
            },
            7.0,
        );
        let command = batch.finish().unwrap();
        let command = Document::try_from(command).unwrap();
        let field = if inserts(variant) {
            "documents"
        } else {
            "updates"
        };
        command.get_array(field).unwrap()[0]
            .as_document()
            .unwrap()
            .clone()
    }

    fn date(ms: i64) -> DateTime {
        DateTime::from_millis(ms)
    }

    #[test]
    fn a_sample_is_written_as_its_shape_says() {
        assert_eq!(
            written(&Variant::new(Shape::Sample)),
            doc! { "metric": "metric_001", "client": 2, "value": 7, "date": date(MARCH_2_MS) }
        );
        assert_eq!(
            written(&Variant::new(Shape::Month)),
            doc! {
                "q": { "metric": "metric_001", "client": 2, "date": date(MARCH_2_MS - DAY_MS) },
                "u": { "$set": { "2": 7 } }, "upsert": true,
            }
        );
        let bucket = Variant::new(Shape::TimeBucket(BucketSpan::ThirtyDays));
        assert_eq!(
            written(&bucket),
            doc! {
                "q": { "metric": "metric_001", "client": 2, "date": date(MARCH_2_MS) },
                "u": { "$push": { "samples": { "t": date(MARCH_2_MS), "v": 7 } }, "$inc": { "n": 1 } },
                "upsert": true,
            }
        );
        let native = written(&Variant::new(Shape::Native));
        assert_eq!(
            native.get_document("meta").unwrap(),
            &doc! { "metric": "metric_001", "client": 2 }
        );
        let filled = Variant {
            preallocated: true,
            ..bucket
        };
        assert_eq!(
            written(&filled).get_document("u").unwrap(),
            &doc! { "$set": { "values.0": 7 } }
        );
    }

    #[test]
    fn a_size_limited_bucket_is_looked_for_among_recent_ones() {
        let written = written(&Variant::new(Shape::SizeBucket(10)));
        let filter = written.get_document("q").unwrap();
        assert_eq!(filter.get_document("n").unwrap(), &doc! { "$lt": 10 });
        let from = date(MARCH_2_MS - 20 * DAY_MS);
        assert_eq!(filter.get_document("date").unwrap(), &doc! { "$gte": from });
        let change = written.get_document("u").unwrap();
        assert_eq!(
            change.get_document("$max").unwrap(),
            &doc! { "last": date(MARCH_2_MS) }
        );
    }

    #[test]
    fn preallocated_documents_of_a_year_cover_it_without_gaps() {
        let samples = Samples::new(SampleOptions::default());
        let shapes = [
            Shape::Sample,
            Shape::Month,
            Shape::TimeBucket(BucketSpan::ThirtyDays),
        ];
        for (shape, documents) in shapes.into_iter().zip([365, 12, 13]) {
            let variant = Variant {
                preallocated: true,
                ..Variant::new(shape)
            };
            let mut batch = Batch::new(&variant, true);
            let mut slot = 0;
            while slot < samples.slots() {
                slot = batch.zeros(&variant, &samples, 0, slot);
            }
            assert_eq!(batch.count(), documents, "{shape:?}");
            let command = Document::try_from(batch.finish().unwrap()).unwrap();
            let first = command.get_array("documents").unwrap()[0]
                .as_document()
                .unwrap()
                .clone();
            assert_eq!(first.get_datetime("date").unwrap(), &date(START_MS));
        }
    }

    #[test]
    fn an_empty_batch_is_no_command() {
        assert!(
            Batch::new(&Variant::new(Shape::Sample), true)
                .finish()
                .is_none()
        );
    }
}
