use serde_json::Value;

use crate::schemas::assert_valid;
use crate::support::{Bench, json, machine, run_document};

fn phase<'a>(document: &'a Value, variant: &str, emulated: bool) -> &'a Value {
    let phases = document["summary"]["phases"].as_array().unwrap();
    phases
        .iter()
        .find(|p| p["variant"] == variant && p["emulated"] == emulated)
        .unwrap()
}

fn collection_file<'a>(document: &'a Value, variant: &str, emulated: bool) -> &'a Value {
    let files = phase(document, variant, emulated)["files"]
        .as_array()
        .unwrap();
    let namespace = format!("sdu.{variant}");
    files
        .iter()
        .find(|f| f["namespace"] == namespace.as_str())
        .unwrap()
}

/// The whole story, small: same documents, one index, two layouts, two disks.
#[test]
fn updates_make_the_index_build_jump() {
    let _machine = machine();
    let bench = Bench::new();
    let document = json(&mut bench.demo(
        "run",
        12_000,
        &["--emulate-disk", "hdd", "--repeats", "2", "--seed", "7"],
    ));
    assert_valid("doctor", &document);
    assert_eq!(document["outcome"], "ok", "{document:#}");
    assert_eq!(document["limitations"], serde_json::json!([]));
    for emulated in [true, false] {
        for variant in ["fresh", "aged"] {
            let phase = phase(&document, variant, emulated);
            assert_eq!(phase["lost"], 0);
            assert_eq!(phase["seen"], phase["written"]);
            assert_eq!(phase["build_s"].as_array().unwrap().len(), 2);
            assert!(
                phase["page_cache_before"]
                    .as_str()
                    .unwrap()
                    .starts_with("cold")
            );
            // The kernel's own count of read calls, sockets included, bounds ours.
            let kernel = phase["process_io"]["read_calls"].as_u64().unwrap();
            assert!(phase["reads"].as_u64().unwrap() <= kernel);
        }
        let (fresh, aged) = (
            collection_file(&document, "fresh", emulated),
            collection_file(&document, "aged", emulated),
        );
        // How neatly a small load is laid out depends on when pages happen to be evicted (0.75 to
        // 0.98 seen); 10 % of updates leave nothing of it (below 0.1 seen).
        let sequential = |file: &Value| file["sequential_share"].as_f64().unwrap();
        assert!(sequential(fresh) > 0.6, "{fresh:#}");
        assert!(sequential(aged) < 0.3, "{aged:#}");
        assert_eq!(aged["pattern"], "random");
    }
    let slow = &document["summary"]["comparisons"][0];
    assert!(slow["ratio"]["median"].as_f64() > Some(2.0), "{slow:#}");
    assert_eq!(document["findings"][0]["id"], "layout.key-order-lost");

    assert_eq!(bench.leftovers(&["run"]), Vec::<String>::new());
    report_again(&bench, &document);
}

/// `report` says the same from the directory alone, even with no server, and rewrites the page.
fn report_again(bench: &Bench, document: &Value) {
    let page = bench.path("run/report.html");
    let before = std::fs::read_to_string(&page).unwrap();
    assert!(before.contains("emulated hdd"));
    std::fs::remove_file(&page).unwrap();
    let again = json(&mut bench.seekscope(&["report", "run"]));
    for (key, value) in document.as_object().unwrap() {
        assert_eq!(again[key].to_string(), value.to_string(), "{key}");
    }
    assert!(
        std::fs::read_to_string(&page).unwrap() == before,
        "another page"
    );

    let output = bench.seekscope(&["report", "run"]).output().unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    for word in [
        "fresh, plain disk",
        "aged, emulated hdd",
        "sequential",
        "random",
        "Events lost",
    ] {
        assert!(table.contains(word), "{word} is missing:\n{table}");
    }
}

#[test]
fn the_same_seed_gives_the_same_data_and_kept_data_is_kept() {
    let _machine = machine();
    let bench = Bench::new();
    let arguments = [
        "--emulate-disk",
        "none",
        "--repeats",
        "1",
        "--seed",
        "3",
        "--keep-data",
    ];
    let first = json(&mut bench.demo("first", 1_000, &arguments));
    let second = json(&mut bench.demo("second", 1_000, &arguments));
    let documents = |run: &Value| run["phases"][0]["index_build"]["documents"].clone();
    assert_eq!(documents(&run_document(&bench.path("first"))), 1_000);
    assert_eq!(
        first["findings"].as_array().unwrap().len(),
        second["findings"].as_array().unwrap().len()
    );
    let kept: Vec<String> = bench.leftovers(&["first", "second"]);
    assert_eq!(kept.len(), 2, "two data directories: {kept:?}");
    assert!(
        kept.iter().all(|path| std::path::Path::new(path)
            .join("data/WiredTiger.wt")
            .exists()),
        "{kept:?}"
    );
}
