use seekscope_run::RunDirectory;
use serde_json::Value;

use crate::schemas::assert_valid;
use crate::support::{Bench, json, machine};

fn build<'a>(document: &'a Value, variant: &str, emulated: bool) -> &'a Value {
    let builds = document["summary"]["answers"]["index_builds"].as_array();
    let namespace = format!("sdu.{variant}");
    let mut builds = builds.unwrap().iter();
    builds
        .find(|b| b["namespace"] == namespace.as_str() && b["emulated"] == emulated)
        .unwrap_or_else(|| panic!("no build on {namespace} in {document:#}"))
}

fn collection_file<'a>(document: &'a Value, variant: &str) -> &'a Value {
    let files = document["summary"]["trace"]["files"].as_array().unwrap();
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
    assert_eq!(document["target"]["local"], true);
    for emulated in [true, false] {
        for variant in ["fresh", "aged"] {
            let build = build(&document, variant, emulated);
            assert_eq!(build["build_s"].as_array().unwrap().len(), 2);
            assert_eq!(build["page_cache_before"]["state"], "cold");
            assert_eq!(build["against"].is_null(), variant == "fresh");
        }
    }
    let (run, stored) = RunDirectory::open(&bench.path("run")).unwrap();
    let observed = &stored.phases[0];
    let trace = observed.trace.as_ref().unwrap();
    assert!(trace.adds_up() && !trace.loss_matters(), "{trace:?}");
    // The kernel's own count of read calls, sockets included, bounds ours.
    let kernel = observed.process_io.as_ref().unwrap().read_calls;
    let meanwhile = observed.started_ns..observed.ended_ns;
    let mut reads = 0;
    run.for_each_event(|e| reads += u64::from(e.op.is_read() && meanwhile.contains(&e.t_ns)))
        .unwrap();
    assert!((1_000..=kernel).contains(&reads), "{reads} of {kernel}");
    drop(run);

    let (fresh, aged) = (
        collection_file(&document, "fresh"),
        collection_file(&document, "aged"),
    );
    // How neatly a small load is laid out depends on when pages happen to be evicted (0.75 to
    // 0.98 seen); 10 % of updates leave nothing of it (below 0.1 seen).
    let sequential = |file: &Value| file["sequential_share"].as_f64().unwrap();
    assert!(sequential(fresh) > 0.6, "{fresh:#}");
    assert!(sequential(aged) < 0.3, "{aged:#}");
    // Under a busy machine the server evicts pages while it scans and reads them again at once.
    // Where that is more than a third of its steps, the kind is "mixed" (seen with two more loads).
    let kind = aged["pattern"].as_str().unwrap();
    assert!(["random", "mixed"].contains(&kind), "{aged:#}");
    let slow = &build(&document, "aged", true)["against"];
    assert!(slow["ratio"]["median"].as_f64() > Some(2.0), "{slow:#}");
    let first = &document["findings"][0];
    assert_eq!(
        (&first["id"], &first["subject"]),
        (&"layout.key-order-lost".into(), &"sdu.aged".into()),
        "{document:#}"
    );
    let evidence = first["evidence"][0].as_str().unwrap();
    assert!(
        evidence.starts_with("On the emulated hdd (150 IOPS, 150 MB/s) the index"),
        "{evidence}"
    );

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
    let screen = String::from_utf8(output.stdout).unwrap();
    for words in [
        "sdu.aged has lost its order",
        "emulated hdd",
        "times as long",
        "seekscope reorder",
    ] {
        assert!(screen.contains(words), "{words} is missing:\n{screen}");
    }
}

#[test]
fn the_same_seed_gives_the_same_data_and_kept_data_is_kept() {
    // Other load on the host may be a finding, too.
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
    assert_eq!(build(&first, "fresh", false)["documents"], 1_000);
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
