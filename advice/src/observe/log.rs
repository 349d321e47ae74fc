//! Slow operations from the server's log: what took longer than `slowms` (100 ms by default), whether the profiler is on
//! or not. `getLog` returns the latest 1,024 lines; from 4.4 on they are JSON, and older ones say nothing here.

use bson::{Bson, Document};
use seekscope_server::{Namespace, number};

use super::seen::GET_MORE;
use crate::values::date_ms;

/// The number of the message "Slow query", the same in all versions.
const SLOW_QUERY: u64 = 51_803;

/// Returns the operations on a collection that ended since then (ms since 1970), each as the profile would hold it.
pub(super) fn slow_operations(
    reply: &Document,
    namespace: &Namespace,
    since_ms: i64,
) -> Vec<Document> {
    let lines = reply.get_array("log").into_iter().flatten();
    let lines = lines.filter_map(Bson::as_str);
    let parsed = lines.filter_map(|line| serde_json::from_str::<Document>(line).ok());
    parsed
        .filter_map(|line| slow_operation(line, namespace, since_ms))
        .collect()
}

fn slow_operation(mut line: Document, namespace: &Namespace, since_ms: i64) -> Option<Document> {
    let is_slow = line.get("id").and_then(number) == Some(SLOW_QUERY);
    let ended_ms = line.get("t").and_then(date_ms)?;
    let Bson::Document(mut operation) = line.remove("attr")? else {
        return None;
    };
    let says = |name: &str, text: &str| operation.get_str(name).is_ok_and(|said| said == text);
    let is_ours = says("appName", "seekscope");
    if !is_slow || ended_ms < since_ms || is_ours || !says("ns", &namespace.to_string()) {
        return None;
    }
    let goes_on = operation
        .get_document("command")
        .is_ok_and(|command| command.contains_key("getMore"));
    operation.insert("op", if goes_on { GET_MORE } else { "command" });
    Some(operation)
}

#[cfg(test)]
mod tests {
    use bson::doc;

    use super::*;

    const BEGUN_MS: i64 = 1_700_000_000_000;

    fn line(at: &str, attributes: &str) -> String {
        format!(
            r#"{{"t":{{"$date":"{at}"}},"s":"I","c":"COMMAND","id":51803,"ctx":"conn9","msg":"Slow query","attr":{{{attributes}}}}}"#
        )
    }

    #[test]
    fn lines_of_the_collection_and_the_time_are_taken() {
        let find = r#""type":"command","ns":"shop.orders","command":{"find":"orders","filter":{"a":{"$oid":"000000000000000000000001"},"d":{"$gte":{"$date":"2023-01-01T00:00:00Z"}}},"$db":"shop"},"planSummary":"COLLSCAN","docsExamined":9000,"nreturned":7,"durationMillis":120"#;
        let later = "2023-11-14T22:13:21.500+00:00";
        let more = find
            .replace(r#""find":"orders","filter""#, r#""getMore":5,"x""#)
            .replace(
                r#""planSummary""#,
                r#""originatingCommand":{"find":"orders","filter":{"a":1}},"planSummary""#,
            );
        let reply = doc! { "log": [
            line(later, find),
            line(later, &more),
            line("2023-11-14T22:13:19.000+00:00", find),
            line(later, &find.replace("shop.orders", "shop.others")),
            line(later, &find.replace(r#""type""#, r#""appName":"seekscope","type""#)),
            line(later, find).replace("51803", "1"),
            "2020-01-01T00:00:00.000+0000 I COMMAND [conn1] command shop.orders find",
            7,
        ] };
        let namespace = "shop.orders".parse().unwrap();
        let found = slow_operations(&reply, &namespace, BEGUN_MS);
        assert_eq!(found.len(), 2, "{found:#?}");
        assert_eq!(found[0].get_str("op").unwrap(), "command");
        assert_eq!(found[1].get_str("op").unwrap(), GET_MORE);
        let filter = found[0].get_document("command").unwrap();
        let filter = filter.get_document("filter").unwrap();
        assert!(matches!(filter.get("a"), Some(Bson::ObjectId(_))));
        assert_eq!(
            slow_operations(&doc! {}, &namespace, 0),
            Vec::<Document>::new()
        );
    }
}
