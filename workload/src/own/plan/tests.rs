//! Tests the conversion of texts to documents and requests.

use bson::{Bson, Document};
use seekscope_client::{
    ActorPlace, BsonWriter, Failure, FailureKind, Reply, Request, Verdict, Workload,
};

use super::{Plan, PlanOptions};
use crate::own::{OwnError, Source};

fn plan(text: &str) -> Result<Plan, OwnError> {
    Plan::parse(
        Source {
            file: "test.toml",
            text,
        },
        PlanOptions::default(),
    )
}

fn with_fields(fields: &str) -> String {
    format!("name = 't'\n[collections.c]\nrecords = 1000\n[collections.c.fields]\n{fields}\n")
}

fn documents(plan: &Plan, count: u64) -> Vec<Document> {
    let mut writer = BsonWriter::default();
    let made = (0..count).map(|record| {
        writer.clear();
        plan.collections[0].write_document(record, &mut writer);
        assert!(writer.bytes().len() as u64 <= plan.collections[0].document_bytes_max());
        Document::from_reader(writer.bytes()).unwrap()
    });
    made.collect()
}

fn made(fields: &str, count: u64) -> Vec<Document> {
    documents(&plan(&with_fields(fields)).unwrap(), count)
}

/// Every generator; `_id` is the default.
const ALL: &str = r#"
    a = 5
    b = { constant = [1, "x", { y = 2026-01-01 }] }
    c = { null = true }
    d = { record = "string" }
    e = { sequence = { start = 10, step = -2, modulo = 3 } }
    f = { int32 = { uniform = [1, 6] } }
    g = { int64 = { zipf = { to = 99 } } }
    h = { double = { normal = { mean = 10, deviation = 2, min = 0 } } }
    i = { boolean = 0.25 }
    j = { choose = ["new", { value = "old", weight = 3 }, { value = { int32 = 7 } }] }
    k = { string = { length = 20, alphabet = "chars:ab" } }
    l = { string = { length = { uniform = [5, 9] }, compressible = 0.5 } }
    m = { binary = { length = 16 } }
    n = { uuid = true }
    o = { objectid = {} }
    p = { date = { start = 2026-01-01T00:00:00Z, step = "60s", jitter = "1s" } }
    q = { date = { start = 2026-01-01, end = 2026-01-02 } }
    r = { point = {} }
    s = { array = { length = 3, of = { int32 = { uniform = [0, 9] } } } }
    t = { document = { x = 1, y = { string = { length = 4 } } } }
    u = { template = "user{record:8}-{hash}-{random:3}{{}}" }
    v = { reference = { collection = "c", field = "u" } }
    w = { absent = 0.5, int32 = 1 }
    x = { double = { exponential = { mean = 5 } } }
    y = { int32 = { histogram = [[0, 9, 1], [100, 100, 1]] } }
"#;

#[test]
fn every_generator_makes_what_it_says() {
    let all = made(ALL, 2_000);
    for (record, document) in all.iter().enumerate() {
        assert_eq!(
            document.get_i64("_id").unwrap(),
            i64::try_from(record).unwrap()
        );
        assert_eq!(document.get_i32("a").unwrap(), 5);
        assert_eq!(document.get("c"), Some(&Bson::Null));
        assert_eq!(document.get_str("d").unwrap(), record.to_string());
        assert_eq!(document.get_i64("e").unwrap(), [10, 8, 6][record % 3]);
        assert!((1..=6).contains(&document.get_i32("f").unwrap()));
        assert!((0..=99).contains(&document.get_i64("g").unwrap()));
        assert!(document.get_f64("h").unwrap() >= 0.0);
        assert!(
            document
                .get_str("k")
                .unwrap()
                .bytes()
                .all(|b| b == b'a' || b == b'b')
        );
        assert!((5..=9).contains(&document.get_str("l").unwrap().len()));
        assert_eq!(document.get_binary_generic("m").unwrap().len(), 16);
        assert!(matches!(document.get("n"), Some(Bson::Binary(b)) if b.bytes.len() == 16));
        let date = document.get_datetime("p").unwrap().timestamp_millis();
        let due = 1_767_225_600_000 + 60_000 * i64::try_from(record).unwrap();
        assert!((due..=due + 1_000).contains(&date));
        let between = document.get_datetime("q").unwrap().timestamp_millis();
        assert!((1_767_225_600_000..1_767_312_000_000).contains(&between));
        assert_eq!(
            document.get_document("r").unwrap().get_str("type").unwrap(),
            "Point"
        );
        assert_eq!(document.get_array("s").unwrap().len(), 3);
        assert_eq!(document.get_document("t").unwrap().get_i32("x").unwrap(), 1);
        assert!(
            document
                .get_str("u")
                .unwrap()
                .starts_with(&format!("user{record:08}-"))
        );
        assert!(document.get_str("u").unwrap().ends_with("{}"));
        let referred: usize = document.get_str("v").unwrap()[4..12].parse().unwrap();
        if let Some(target) = all.get(referred) {
            assert_eq!(
                document.get("v"),
                target.get("u"),
                "what is referred to is there"
            );
        }
    }
    assert_eq!(
        all[0].get_str("u").unwrap()[13..32].to_string(),
        "6284781860667377211",
        "YCSB's vector"
    );
}

#[test]
fn draws_follow_their_distributions() {
    // Bounds are five standard errors or more, for a fixed seed.
    let all = made(ALL, 20_000);
    let share =
        |is: &dyn Fn(&Document) -> bool| all.iter().filter(|d| is(d)).count() as f64 / 20_000.0;
    let mean = |of: &dyn Fn(&Document) -> f64| all.iter().map(of).sum::<f64>() / 20_000.0;
    let near = |found: f64, expected: f64, bound: f64| {
        assert!(
            (found - expected).abs() < bound,
            "{found} is not {expected} ± {bound}"
        );
    };
    near(share(&|d| d.get_bool("i").unwrap()), 0.25, 0.016);
    near(
        share(&|d| d.get_str("j").is_ok_and(|j| j == "old")),
        0.6,
        0.018,
    );
    near(share(&|d| d.contains_key("w")), 0.5, 0.018);
    near(mean(&|d| f64::from(d.get_i32("f").unwrap())), 3.5, 0.06);
    near(mean(&|d| d.get_f64("h").unwrap()), 10.0, 0.071);
    near(mean(&|d| d.get_f64("x").unwrap()), 5.0, 0.18);
    near(share(&|d| d.get_i32("y").unwrap() == 100), 0.5, 0.018);
    // Zipf with theta 0.99 over 100 ranks: the first has 1 / H(100).
    let harmonic: f64 = (1..=100).map(|rank| f64::from(rank).powf(-0.99)).sum();
    near(
        share(&|d| d.get_i64("g").unwrap() == 0),
        1.0 / harmonic,
        0.015,
    );
}

#[test]
fn values_follow_from_seed_record_and_path_alone() {
    let first = plan(&with_fields(ALL)).unwrap();
    assert_eq!(documents(&first, 50), made(ALL, 50));
    let reseeded = plan(&format!("seed = 2\n{}", with_fields(ALL))).unwrap();
    assert_ne!(documents(&first, 50), documents(&reseeded, 50));
    // An additional field does not change any other.
    let more = made(
        &format!("{ALL}\n z = {{ int32 = {{ uniform = [0, 9] }} }}"),
        50,
    );
    for (old, new) in documents(&first, 50).iter().zip(&more) {
        assert!(old.iter().all(|(name, value)| new.get(name) == Some(value)));
    }
    // Two equal fields differ in their values.
    let twins = made(
        "a = { string = { length = 20 } }\nb = { string = { length = 20 } }",
        50,
    );
    assert!(twins.iter().all(|d| d.get("a") != d.get("b")));
}

#[test]
#[expect(
    clippy::too_many_lines,
    reason = "a table of mistakes and what is said of them"
)]
fn what_is_wrong_is_said_with_its_line() {
    let role = |inner: &str| {
        format!(
            "{}[[phases]]\nname = 'p'\n[[phases.roles]]\nname = 'r'\ntransactions = 1\n{inner}",
            with_fields("")
        )
    };
    let cases = [
        ("name = ", 1, "", ""),
        ("nam = 'x'", 1, "nam", "unknown field"),
        (
            &with_fields("a = { int23 = 1 }"),
            5,
            "collections.c.fields.a",
            "unknown field `int23`, expected one of",
        ),
        (&with_fields("a = {}"), 5, "fields.a", "nothing is given"),
        (
            &with_fields("a = { int32 = 1, int64 = 1 }"),
            5,
            "fields.a",
            "more than one",
        ),
        (
            &with_fields("\na = { int32 = 'x' }"),
            6,
            "fields.a.int32",
            "write a number",
        ),
        (
            &with_fields("a = { int32 = { uniform = [5, 1] } }"),
            5,
            "int32",
            "not a range",
        ),
        (
            &with_fields("a = { int32 = { uniform = [0, 3e9] } }"),
            5,
            "fields.a",
            "do not fit",
        ),
        (&with_fields("a = { int32 = nan }"), 5, "int32", "finite"),
        (
            &with_fields("a = { choose = [{ value = 1, weight = -1 }] }"),
            5,
            "choose[0]",
            "weight -1",
        ),
        (
            &with_fields("a = { choose = [{ value = 1, weight = 0 }] }"),
            5,
            "fields.a",
            "above 0",
        ),
        (
            &with_fields("a = { choose = [] }"),
            5,
            "fields.a",
            "above 0",
        ),
        (
            &with_fields("a = { absent = 1.5, null = true }"),
            5,
            "absent",
            "between 0 and 1",
        ),
        (
            &with_fields("a = 2026-01-01"),
            5,
            "fields.a",
            "{ constant = DATE }",
        ),
        (
            &with_fields("a = { template = '{recor}' }"),
            5,
            "fields.a",
            "unknown",
        ),
        (
            &with_fields("a = { string = { length = 5, alphabet = 'klingon' } }"),
            5,
            "fields.a",
            "alphabet",
        ),
        (
            &with_fields("a = { string = { length = -5 } }"),
            5,
            "fields.a",
            "below 0",
        ),
        (
            &with_fields("a = { binary = { length = 17000000 } }"),
            5,
            "fields.a",
            "the limit is",
        ),
        (
            &with_fields(
                "a = { array = { length = 1000000, of = { string = { length = 1000 } } } }",
            ),
            4,
            "collections.c.fields",
            "16777216",
        ),
        (
            &with_fields("a = { reference = { collection = 'd' } }"),
            5,
            "fields.a",
            "no collection \"d\"",
        ),
        (
            &with_fields(
                "a = { reference = { collection = 'c', field = 'b' } }\nb = { reference = { collection = 'c', field = 'a' } }",
            ),
            5,
            "fields.a",
            "cycle: c.b → c.a → c.b",
        ),
        (
            &role("operations = []"),
            11,
            "phases[0].roles[0].operations",
            "weight above 0",
        ),
        (
            &role("users = 0\noperations = [{ find_one = { collection = 'c' } }]"),
            11,
            "users",
            "1 to",
        ),
        (
            &role("arrivals = { poisson = -5 }\noperations = []"),
            11,
            "arrivals",
            "not a rate above 0",
        ),
        (
            &role("operations = [{ find_one = { collection = 'x' } }]"),
            11,
            "find_one.collection",
            "no collection",
        ),
        (
            &role("operations = [\n{ find_one = { collection = 'c', keys = 'zip' } }]"),
            12,
            "keys",
            "write \"uniform\"",
        ),
        (
            &role("operations = [{ update = { collection = 'c', set = { '' = 1 } } }]"),
            11,
            "update.set",
            "must not be empty here",
        ),
        (
            &role("operations = [{ find = { collection = 'c', filter = { a = '@b' } } }]"),
            11,
            "filter",
            "\"@b\" is unknown",
        ),
        (
            &role("operations = [{ aggregate = { collection = 'c', pipeline = '{' } }]"),
            11,
            "pipeline",
            "not valid JSON",
        ),
        (
            &role("operations = [{ insert = { collection = 'c', batch = 0 } }]"),
            11,
            "batch",
            "1 to",
        ),
        (
            &role("errors = { duplicate = 'retry' }\noperations = []"),
            11,
            "duplicate",
            "{ retry = TIMES }",
        ),
        (
            &role("timeout = '5 parsecs'\noperations = []"),
            11,
            "timeout",
            "duration",
        ),
    ];
    for (text, line, path, message) in cases {
        let error = plan(text).expect_err(text);
        assert!(
            error.line == line && error.path.contains(path) && error.message.contains(message),
            "expected {line} {path:?} {message:?} of:\n{text}\nbut got: {error}"
        );
    }
    let endless = role("operations = [{ find_one = { collection = 'c' } }]")
        .replace("transactions = 1\n", "");
    assert!(plan(&endless).unwrap_err().message.contains("never ends"));
}

#[test]
fn hostile_texts_are_refused_quickly() {
    let deep = |open: &str, close: &str| {
        with_fields(&format!(
            "a = {}1{}",
            open.repeat(5_000),
            close.repeat(5_000)
        ))
    };
    assert!(plan(&deep("{ document = { a = ", "} }")).is_err());
    assert!(plan(&deep("{ array = { length = 9, of = ", "} }")).is_err());
    assert!(plan(&deep("[", "]")).is_err());
    let nested = |depth: usize| {
        with_fields(&format!(
            "a = {}1{}",
            "{ document = { a = ".repeat(depth),
            "} }".repeat(depth)
        ))
    };
    assert!(plan(&nested(10)).is_ok());
    // Lengths multiply: 10^6 × 10^6 × …
    let product = "{ array = { length = 1000000, of = ".repeat(5);
    assert!(plan(&with_fields(&format!("a = {product}1{}", "} }".repeat(5)))).is_err());
    assert!(
        plan(&"a".repeat(2 << 20))
            .unwrap_err()
            .message
            .contains("longer")
    );
    assert!(plan(&with_fields("a = 1").replace("1000", "9007199254740993")).is_err());
}

fn requests(
    plan: &Plan,
    role: usize,
    count: usize,
    answer: &mut dyn FnMut(&Request) -> Result<Reply<'static>, Failure>,
) -> Vec<(String, Document, usize, Verdict)> {
    let role = &plan.phases[0].roles[role];
    let mut actor = role.actor(ActorPlace { index: 0, count: 1 });
    let mut request = Request::default();
    let mut sent = Vec::new();
    for _ in 0..count {
        if actor.begin().is_none() {
            break;
        }
        loop {
            request.clear();
            let Some(operation) = actor.request(&mut request) else {
                break;
            };
            let name = role.operations()[usize::from(operation)].name.clone();
            let body = Document::from_reader(request.body.bytes()).unwrap();
            let answered = answer(&request);
            let verdict = actor.reply(answered.as_ref());
            sent.push((
                name,
                body,
                usize::try_from(request.statement_count).unwrap(),
                verdict,
            ));
            if matches!(verdict, Verdict::Abort(_)) {
                break;
            }
        }
    }
    sent
}

fn fine(request: &Request) -> Result<Reply<'static>, Failure> {
    let matched = u64::from(request.statement_count).max(1);
    Ok(Reply {
        matched,
        returned: 1,
        ..Reply::default()
    })
}

const MIX: &str = r#"
name = "mix"
[collections.c]
records = 1000
[collections.c.fields]
_id = { template = "user{record}" }
n = { int32 = { uniform = [0, 9] } }
[[phases]]
name = "p"
[[phases.roles]]
name = "load"
[[phases.roles.operations]]
load = { collection = "c", batch = 300 }
[[phases.roles]]
name = "transfer"
transactions = 10
errors = { transient = { retry = 2 }, not_found = "ignore" }
[[phases.roles.operations]]
name = "TRANSFER"
[phases.roles.operations.transaction]
atomic = true
[[phases.roles.operations.transaction.steps]]
find_one = { collection = "c", keys = "zipf" }
[[phases.roles.operations.transaction.steps]]
update = { collection = "c", set = { n = { int32 = { uniform = [0, 9] } } }, inc = { m = 1 } }
[[phases.roles.operations.transaction.steps]]
parameters = { low = { int32 = { uniform = [5, 9] } } }
aggregate = { collection = "c", pipeline = '[{"$match": {"n": {"$gte": "@low", "$lte": "@low"}, "_id": "@key", "x": "@@y"}}]' }
"#;

#[test]
fn loading_sends_every_record_once_and_ends() {
    let plan = plan(MIX).unwrap();
    let sent = requests(&plan, 0, 100, &mut fine);
    let counts: Vec<usize> = sent.iter().map(|(_, _, count, _)| *count).collect();
    assert_eq!(counts, [300, 300, 300, 100]);
}

#[test]
fn transactions_keep_their_record_and_holes_their_value() {
    let plan = plan(MIX).unwrap();
    let sent = requests(&plan, 1, 3, &mut fine);
    let names: Vec<&str> = sent.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(
        names[..4],
        ["find_one c", "update c", "aggregate c", "commit"]
    );
    for transaction in sent.chunks(4) {
        let id = transaction[0]
            .1
            .get_document("filter")
            .unwrap()
            .get("_id")
            .unwrap();
        let stage = transaction[2].1.get_array("pipeline").unwrap()[0]
            .as_document()
            .unwrap();
        let matching = stage.get_document("$match").unwrap();
        assert_eq!(matching.get("_id"), Some(id));
        assert_eq!(matching.get_str("x").unwrap(), "@y");
        let bounds = matching.get_document("n").unwrap();
        assert_eq!(bounds.get("$gte"), bounds.get("$lte"));
        assert!((5..=9).contains(&bounds.get_i32("$gte").unwrap()));
    }
}

#[test]
fn failures_are_retried_as_the_policy_says() {
    let plan = plan(MIX).unwrap();
    let mut nth = 0;
    let sent = requests(&plan, 1, 1, &mut |request| {
        nth += 1;
        // The first update of each try except the last fails.
        if [2, 5].contains(&nth) {
            return Err(Failure::of(FailureKind::Transient, "WriteConflict", ""));
        }
        fine(request)
    });
    let names: Vec<&str> = sent.iter().map(|(name, ..)| name.as_str()).collect();
    let tried = ["find_one c", "update c", "abort"];
    assert_eq!(
        names,
        [
            &tried[..],
            &tried,
            &["find_one c", "update c", "aggregate c", "commit"]
        ]
        .concat()
    );
    assert_eq!(sent[0].1, sent[3].1, "another try is the same transaction");
}
