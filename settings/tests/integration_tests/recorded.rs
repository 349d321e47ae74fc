//! Replies that real servers gave.

use std::path::Path;

use mongodb::bson::{Bson, Document};
use seekscope_settings::ServerReplies;

/// A command and the reply to it.
pub(crate) struct Recorded {
    pub(crate) command: Document,
    pub(crate) reply: Document,
}

pub(crate) fn recorded(version: &str, name: &str) -> Recorded {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/replies")
        .join(format!("mongod-{version}/{name}.json"));
    let text = std::fs::read_to_string(path).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let mut document = Document::new();
    for (key, value) in json.as_object().unwrap() {
        document.insert(key, Bson::try_from(value.clone()).unwrap());
    }
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
