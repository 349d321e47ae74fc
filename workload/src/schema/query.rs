//! Builds a variant's query for one series and a stretch of time, and reads the samples from the reply.

use bson::{Bson, DateTime, Document, RawBsonRef, RawDocument, doc};

use super::samples::{Answer, Samples};
use super::statement::{document_end_ms, document_start_ms};
use super::variant::{IndexOrder, Shape, Variant};

/// Returns the filter that finds slots `from` to `to` (exclusive) of a series.
pub fn filter(variant: &Variant, samples: &Samples, series: u32, from: u64, to: u64) -> Document {
    let (from_ms, to_ms) = (samples.time_ms(from), samples.time_ms(to));
    let mut filter = match variant.shape {
        Shape::Native => doc! {
            "meta.metric": samples.metric(series),
            "meta.client": samples.client(series),
        },
        _ => doc! { "metric": samples.metric(series), "client": samples.client(series) },
    };
    let first_ms = document_start_ms(variant, from_ms);
    match (variant.shape, variant.order) {
        (Shape::SizeBucket(_), _) => {
            filter.insert("date", doc! { "$lt": DateTime::from_millis(to_ms) });
            filter.insert("last", doc! { "$gte": DateTime::from_millis(from_ms) });
        }
        (_, IndexOrder::DateFirst) => {
            let mut dates = Vec::new();
            let mut date = first_ms;
            while date < to_ms {
                dates.push(Bson::DateTime(DateTime::from_millis(date)));
                date = document_end_ms(variant, samples, date);
            }
            filter.insert("date", doc! { "$in": dates });
        }
        _ => {
            let (first, end) = (
                DateTime::from_millis(first_ms),
                DateTime::from_millis(to_ms),
            );
            filter.insert("date", doc! { "$gte": first, "$lt": end });
        }
    }
    filter
}

/// Adds a document's samples of slots `from` to `to` to the answer. Zeros from preallocation are not samples.
/// Content that a document should not have is ignored: the sums then differ.
pub fn read(
    variant: &Variant,
    samples: &Samples,
    document: &RawDocument,
    from: u64,
    to: u64,
    answer: &mut Answer,
) {
    let interval_ms = samples.interval_ms();
    let (from_ms, to_ms) = (samples.time_ms(from), samples.time_ms(to));
    let mut add = |time_ms: i64, value: RawBsonRef<'_>| {
        let value = number(value).unwrap_or(0.0);
        if value != 0.0 && (from_ms..to_ms).contains(&time_ms) {
            answer.add(value);
        }
    };
    let Ok(date) = document.get_datetime("date") else {
        return;
    };
    let start_ms = date.timestamp_millis();
    let at = |ordinal: i64| start_ms.saturating_add(ordinal.saturating_mul(interval_ms));
    match (variant.shape, variant.preallocated) {
        (Shape::Sample | Shape::Native, _) => {
            if let Ok(Some(value)) = document.get("value") {
                add(start_ms, value);
            }
        }
        (Shape::Month, _) => {
            for (name, value) in document.iter().flatten() {
                if let Ok(ordinal @ 1..) = name.as_str().parse::<i64>() {
                    add(at(ordinal - 1), value);
                }
            }
        }
        (Shape::TimeBucket(_), true) => {
            let values = document.get_array("values").into_iter().flatten().flatten();
            for (ordinal, value) in (0..).zip(values) {
                add(at(ordinal), value);
            }
        }
        (Shape::TimeBucket(_) | Shape::SizeBucket(_), _) => {
            for sample in document
                .get_array("samples")
                .into_iter()
                .flatten()
                .flatten()
            {
                let sample = sample.as_document();
                let found =
                    sample.and_then(|s| Some((s.get_datetime("t").ok()?, s.get("v").ok()??)));
                if let Some((time, value)) = found {
                    add(time.timestamp_millis(), value);
                }
            }
        }
    }
}

fn number(value: RawBsonRef<'_>) -> Option<f64> {
    match value {
        RawBsonRef::Int32(n) => Some(f64::from(n)),
        RawBsonRef::Int64(n) => Some(n as f64),
        RawBsonRef::Double(n) => Some(n),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use bson::{RawDocumentBuf, rawdoc};

    use super::super::samples::{DAY_MS, START_MS, SampleOptions};
    use super::super::variant::BucketSpan;
    use super::*;

    fn found(variant: Variant, document: &RawDocumentBuf) -> Answer {
        let samples = Samples::new(SampleOptions::default());
        let mut answer = Answer::default();
        read(&variant, &samples, document, 2, 5, &mut answer);
        answer
    }

    fn day(n: i64) -> DateTime {
        DateTime::from_millis(START_MS + n * DAY_MS)
    }

    #[test]
    fn only_samples_of_the_stretch_are_read() {
        let month = rawdoc! { "_id": 1, "client": 9, "date": day(0), "1": 1, "3": 2, "4": 0, "5": 4.5, "6": 8, "x": 1 };
        let expected = Answer {
            samples: 2,
            sum: 6.5,
        };
        assert_eq!(found(Variant::new(Shape::Month), &month), expected);

        let bucket = Variant::new(Shape::TimeBucket(BucketSpan::ThirtyDays));
        let samples = rawdoc! { "date": day(0), "samples": [
            { "t": day(1), "v": 1 }, { "t": day(2), "v": 2 }, { "t": day(4), "v": 4.5 }, { "t": day(5), "v": 8 }, 3,
        ] };
        assert_eq!(found(bucket, &samples), expected);
        let filled = Variant {
            preallocated: true,
            ..bucket
        };
        let values = rawdoc! { "date": day(0), "values": [1, 1, 2, 0, 4.5, 8] };
        assert_eq!(found(filled, &values), expected);
        let hostile = rawdoc! { "date": "x", "values": 5 };
        assert_eq!(found(filled, &hostile), Answer::default());
    }

    #[test]
    fn a_date_first_index_is_asked_for_every_date() {
        let samples = Samples::new(SampleOptions::default());
        let ask = |shape| {
            let variant = Variant {
                order: IndexOrder::DateFirst,
                ..Variant::new(shape)
            };
            let filter = filter(&variant, &samples, 3, 0, 365);
            filter
                .get_document("date")
                .unwrap()
                .get_array("$in")
                .unwrap()
                .len()
        };
        assert_eq!((ask(Shape::Sample), ask(Shape::Month)), (365, 12));
        let bucket = Variant::new(Shape::SizeBucket(10));
        let filter = filter(&bucket, &samples, 3, 10, 20);
        assert_eq!(
            filter.get_document("last").unwrap(),
            &doc! { "$gte": day(10) }
        );
        assert_eq!(
            filter.get_document("date").unwrap(),
            &doc! { "$lt": day(20) }
        );
    }
}
