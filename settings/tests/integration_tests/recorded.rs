//! Replies that real servers gave.

use mongodb::bson::{Bson, Document};
use seekscope_settings::ServerReplies;

/// A command and the reply to it.
pub(crate) struct Recorded {
    pub(crate) command: Document,
    pub(crate) reply: Document,
}

pub(crate) fn recorded(version: &str, name: &str) -> Recorded {
    let path = format!("tests/replies/mongod-{version}/{name}.json");
    let text = std::fs::read_to_string(path).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let Bson::Document(document) = bson(&json) else {
        panic!("a recorded reply is an object");
    };
    let part = |name: &str| document.get_document(name).unwrap().clone();
    Recorded {
        command: part("command"),
        reply: part("reply"),
    }
}

pub(crate) fn replies(version: &str) -> ServerReplies {
    let reply = |name: &str| recorded(version, name).reply;
    ServerReplies {
        build_info: reply("buildInfo"),
        parameters: reply("getParameter-all"),
        options: reply("getCmdLineOpts"),
        status: reply("serverStatus"),
        host: reply("hostInfo"),
        refused: Vec::new(),
    }
}

/// Whole numbers are as short as they can be, as servers send them.
fn bson(json: &serde_json::Value) -> Bson {
    use serde_json::Value;
    match json {
        Value::Null => Bson::Null,
        Value::Bool(value) => Bson::Boolean(*value),
        Value::String(text) => Bson::String(text.clone()),
        Value::Array(items) => Bson::Array(items.iter().map(bson).collect()),
        Value::Object(fields) => {
            Bson::Document(fields.iter().map(|(k, v)| (k.clone(), bson(v))).collect())
        }
        Value::Number(number) => match number.as_i64() {
            Some(whole) => i32::try_from(whole).map_or(Bson::Int64(whole), Bson::Int32),
            None => Bson::Double(number.as_f64().unwrap()),
        },
    }
}
