//! Operations that the server's log calls slow: those that took longer than `slowms` (100 ms by default), whether the
//! profiler is on or not. `getLog` returns the latest 1,024 lines; from MongoDB 4.4 on they are JSON documents, and older
//! ones say nothing here.

use mongodb::bson::{Bson, Document, doc};
use serde_json::Value;

use crate::replies::number;
use crate::server::APPLICATION;

/// The number of the message "Slow query", the same in all versions.
const SLOW_QUERY: u64 = 51_803;
/// Documents are nested no deeper than that in MongoDB, and a line has some levels around them.
const DEPTH_MAX: usize = 110;

/// What the log holds of a stretch of time.
#[derive(Debug, Default, PartialEq)]
pub struct SlowOperations {
    /// What the log says of each operation that ended in that time, the oldest first. Seekscope's own are left out.
    pub operations: Vec<SlowOperation>,
    /// Where the stretch begins of which the log still has all lines, ms since 1970.
    pub complete_since_ms: i64,
}

/// One operation.
#[derive(Debug, PartialEq)]
pub struct SlowOperation {
    /// When it ended, ms since 1970.
    pub ended_ms: i64,
    /// What the log says of it, most of it as in the profile: `ns`, `type`, `command`, `planSummary`, `durationMillis`, …
    pub told: Document,
    /// Whether a long line was cut off, so that the command lacks parts, whole conditions among them.
    pub is_cut_off: bool,
}

/// Returns the command that asks for the log.
pub fn command() -> Document {
    doc! { "getLog": "global" }
}

impl SlowOperations {
    /// Reads the answer of `getLog`; `None` of a log that is not made of JSON documents.
    pub fn read(reply: &Document, since_ms: i64) -> Option<Self> {
        let lines = reply.get_array("log").ok()?;
        let written = reply.get("totalLinesWritten").and_then(number);
        let has_lost_lines = written.is_none_or(|written| written > lines.len() as u64);
        let lines_parsed = lines.iter().filter_map(Bson::as_str).filter_map(parsed);
        let timed = lines_parsed.filter_map(|line| {
            let time = line.get_datetime("t").ok()?;
            Some((time.timestamp_millis(), line))
        });
        let mut timed = timed.peekable();
        let (oldest_ms, _) = timed.peek()?;
        let complete_since_ms = match has_lost_lines {
            true => since_ms.max(*oldest_ms),
            false => since_ms,
        };
        let recent = timed.filter(|(ended_ms, _)| *ended_ms >= since_ms);
        let operations = recent.filter_map(|(ended_ms, line)| {
            Some(SlowOperation {
                ended_ms,
                is_cut_off: line.contains_key("truncated"),
                told: told(line)?,
            })
        });
        Some(Self {
            operations: operations.collect(),
            complete_since_ms,
        })
    }
}

/// Parses a line. mongod writes the subtype of binary values, such as the one in the `$clusterTime` of all that a driver
/// sends to a replica set, with one digit where extended JSON has two.
fn parsed(line: &str) -> Option<Document> {
    let mut line: Value = serde_json::from_str(line).ok()?;
    complete_subtypes(&mut line, DEPTH_MAX);
    serde_json::from_value(line).ok()
}

fn complete_subtypes(value: &mut Value, depth: usize) {
    let inner: &mut dyn Iterator<Item = (&str, &mut Value)> = match value {
        Value::Object(fields) => &mut fields
            .iter_mut()
            .map(|(name, value)| (name.as_str(), value)),
        Value::Array(values) => &mut values.iter_mut().map(|value| ("", value)),
        _ => return,
    };
    for (name, value) in inner {
        match value {
            Value::String(text) if name == "subType" && text.len() == 1 => text.insert(0, '0'),
            _ if depth > 0 => complete_subtypes(value, depth - 1),
            _ => {}
        }
    }
}

/// Returns what a line says of an operation; `None` of any other line, and of seekscope's own operations.
fn told(mut line: Document) -> Option<Document> {
    let is_slow = line.get("id").and_then(number) == Some(SLOW_QUERY);
    let Bson::Document(told) = line.remove("attr")? else {
        return None;
    };
    let is_ours = told
        .get_str("appName")
        .is_ok_and(|name| name == APPLICATION);
    (is_slow && !is_ours).then_some(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGUN_MS: i64 = 1_700_000_000_000;
    const EARLIER: &str = "2023-11-14T22:13:19.000+00:00";
    const LATER: &str = "2023-11-14T22:13:21.500+00:00";
    const FIND: &str = r#""type":"command","ns":"shop.orders","command":{"find":"orders","filter":{"a":{"$oid":"000000000000000000000001"}}},"durationMillis":120"#;

    fn line(at: &str, attributes: &str) -> String {
        format!(
            r#"{{"t":{{"$date":"{at}"}},"s":"I","c":"COMMAND","id":51803,"ctx":"conn9","msg":"Slow query","attr":{{{attributes}}}}}"#
        )
    }

    #[test]
    fn lines_of_the_time_are_taken() {
        let reply = doc! { "totalLinesWritten": 6, "log": [
            line(LATER, FIND),
            line(EARLIER, FIND),
            line(LATER, &FIND.replace(r#""type""#, r#""appName":"seekscope","type""#)),
            line(LATER, FIND).replace("51803", "1"),
            "2020-01-01T00:00:00.000+0000 I COMMAND [conn1] command shop.orders find",
            7,
        ] };
        let found = SlowOperations::read(&reply, BEGUN_MS).unwrap();
        let [operation] = found.operations.as_slice() else {
            panic!("{found:#?}");
        };
        assert_eq!(operation.ended_ms, BEGUN_MS + 1_500);
        let filter = operation.told.get_document("command").unwrap();
        let filter = filter.get_document("filter").unwrap();
        assert!(matches!(filter.get("a"), Some(Bson::ObjectId(_))));
        assert_eq!(found.complete_since_ms, BEGUN_MS);
    }

    #[test]
    fn what_a_driver_sends_to_a_set_is_read() {
        let time = r#""$clusterTime":{"clusterTime":{"$timestamp":{"t":1,"i":2}},"signature":{"hash":{"$binary":{"base64":"AAAAAAAAAAAAAAAAAAAAAAAAAAA=","subType":"0"}},"keyId":0}}"#;
        let find = FIND.replace(r#""find":"orders""#, &format!(r#""find":"orders",{time}"#));
        let uuid = FIND.replace(
            r#"{"$oid":"000000000000000000000001"}"#,
            r#"[{"$binary":{"base64":"AAAA","subType":"80"}},{"$uuid":"2179066a-fd90-4238-9d7c-dc0f29e99111"}]"#,
        );
        let reply =
            doc! { "totalLinesWritten": 2, "log": [line(LATER, &find), line(LATER, &uuid)] };
        let found = SlowOperations::read(&reply, BEGUN_MS).unwrap();
        assert_eq!(found.operations.len(), 2, "{found:#?}");
        let command = found.operations[0].told.get_document("command").unwrap();
        assert!(command.get_document("$clusterTime").is_ok(), "{command}");
    }

    #[test]
    fn a_log_that_has_lost_lines_covers_less() {
        let since = |written: i32, first: &str| {
            let log = [line(first, FIND), line(LATER, FIND)];
            let reply = doc! { "totalLinesWritten": written, "log": log.to_vec() };
            let found = SlowOperations::read(&reply, BEGUN_MS).unwrap();
            found.complete_since_ms - BEGUN_MS
        };
        assert_eq!(since(2, LATER), 0);
        assert_eq!(since(3, EARLIER), 0);
        assert_eq!(since(3, LATER), 1_500);
    }

    #[test]
    fn a_line_that_is_cut_off_is_told_as_that() {
        let cut = line(LATER, FIND).replace(r#""attr""#, r#""truncated":{"command":{}},"attr""#);
        let reply = doc! { "totalLinesWritten": 2, "log": [cut, line(LATER, FIND)] };
        let found = SlowOperations::read(&reply, BEGUN_MS).unwrap();
        let are_cut_off: Vec<bool> = found.operations.iter().map(|one| one.is_cut_off).collect();
        assert_eq!(are_cut_off, [true, false]);
    }

    #[test]
    fn logs_of_other_versions_say_nothing() {
        let text = "2020-01-01T00:00:00.000+0000 I COMMAND [conn1] command shop.orders find";
        for reply in [doc! { "log": [text] }, doc! { "log": [] }, doc! {}] {
            assert_eq!(SlowOperations::read(&reply, BEGUN_MS), None);
        }
    }
}
