//! Checks that every example in the manual can be parsed.

use super::{Plan, PlanOptions, Source};

const MANUAL: &str = include_str!("../../../docs/workloads.md");

const COLLECTION: &str = "name = 'x'\n[collections.c]\nrecords = 100\n[collections.c.fields]\n";

/// Returns the text of each example with the words after its opening fence.
fn examples() -> Vec<(&'static str, &'static str)> {
    let blocks = MANUAL.split("```").skip(1).step_by(2);
    let split = blocks.map(|block| block.split_once('\n').unwrap());
    split
        .filter(|(words, _)| words.starts_with("toml"))
        .collect()
}

/// Completes an example to a whole workload.
fn whole(words: &str, example: &str) -> String {
    match words {
        "toml" => example.into(),
        "toml fields" => format!("{COLLECTION}{example}"),
        "toml operation" => format!(
            "{COLLECTION}a = {{ int32 = 1 }}\n[[phases]]\nname = 'p'\n[[phases.roles]]\nname = 'r'\n\
             transactions = 1\n[[phases.roles.operations]]\n{example}"
        ),
        other => panic!("unknown kind of example: {other}"),
    }
}

#[test]
fn every_example_can_be_read() {
    let examples = examples();
    assert!(examples.len() > 15);
    for (words, example) in examples {
        let text = whole(words, example);
        let source = Source {
            file: "manual",
            text: &text,
        };
        if let Err(error) = Plan::parse(source, PlanOptions::default()) {
            panic!("{error}\n{text}");
        }
    }
}

#[test]
fn every_generator_and_operation_has_an_example() {
    let all: String = examples().into_iter().map(|(_, example)| example).collect();
    for name in [
        "constant",
        "null",
        "record",
        "sequence",
        "int32",
        "int64",
        "double",
        "boolean",
        "choose",
        "string",
        "binary",
        "uuid",
        "objectid",
        "date",
        "point",
        "array",
        "document",
        "template",
        "reference",
        "load",
        "insert",
        "find_one",
        "find",
        "update",
        "delete",
        "aggregate",
        "distinct",
        "command",
        "create_index",
        "drop_index",
    ] {
        assert!(all.contains(&format!("{name} = ")), "{name}");
    }
    assert!(all.contains(".transaction]"));
}
