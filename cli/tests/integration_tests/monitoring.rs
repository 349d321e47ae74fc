//! What comes with the exporter, by the tools that will read it: rules and their tests by Prometheus' own, queries of
//! the dashboards on the metrics that docs/monitoring.md lists, the unit by systemd's. The form of the dashboards is
//! checked in web/test/dashboards.test.mjs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use seekscope_bench::deployment::certificates;
use serde_json::{Value, json};

use crate::exporter_process::Exporter;
use crate::kubernetes::exporter;
use crate::support::{Bench, prometheus_tool, stderr, yaml};

const PAGE: &str = "docs/monitoring.md";
const RULES: &str = "deploy/prometheus/rules.yml";
const RULES_TEST: &str = "deploy/prometheus/rules_test.yml";
const UNIT: &str = "packaging/seekscope-exporter.service";

/// Returns the absolute path, since Prometheus looks for rules relative to its own file's folder.
fn repository(path: &str) -> PathBuf {
    fs::canonicalize(Path::new("..").join(path)).unwrap()
}

fn text(path: &str) -> String {
    fs::read_to_string(repository(path)).unwrap()
}

fn promtool(arguments: &[&str], path: &Path) -> Output {
    Command::new(prometheus_tool("promtool"))
        .args(arguments)
        .arg(path)
        .output()
        .expect("promtool; `./x test` fetches it")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(output)
}

#[track_caller]
fn assert_accepted(output: &Output) {
    assert!(output.status.success(), "{}", said(output));
}

/// All rules, of all groups.
fn rules() -> Vec<Value> {
    let rules = yaml(&repository(RULES));
    let groups = rules["groups"].as_array().unwrap().iter();
    groups
        .flat_map(|group| group["rules"].as_array().unwrap().clone())
        .collect()
}

fn alerts() -> Vec<Value> {
    let rules = rules().into_iter();
    rules.filter(|rule| rule["alert"].is_string()).collect()
}

fn word<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name]
        .as_str()
        .unwrap_or_else(|| panic!("no {name} in {value}"))
}

#[test]
fn promtool_accepts_the_rules_the_example_and_what_the_tests_of_the_rules_say() {
    assert_accepted(&promtool(&["check", "rules"], &repository(RULES)));
    let example = repository("deploy/prometheus/prometheus.yml");
    assert_accepted(&promtool(&["check", "config"], &example));
    assert_accepted(&promtool(&["test", "rules"], &repository(RULES_TEST)));
}

/// The example on the page that begins with a comment that is `name`'s.
fn example(name: &str) -> String {
    let page = text(PAGE);
    let mut blocks = page.split("```yaml\n").skip(1);
    let block = blocks.find_map(|block| block.strip_prefix(&format!("# {name}\n")));
    let block = block.unwrap_or_else(|| panic!("no example {name}"));
    block.split("```").next().unwrap().into()
}

#[test]
fn the_examples_of_tls_are_taken_by_prometheus_and_by_us() {
    let bench = Bench::new();
    let folder = bench.path("");
    certificates::write(&folder).unwrap();
    for (from, to) in [
        ("server.crt", "exporter.crt"),
        ("server.key", "exporter.key"),
        ("ca.pem", "seekscope-ca.pem"),
        ("ca.pem", "seekscope.password"),
    ] {
        fs::copy(bench.path(from), bench.path(to)).unwrap();
    }
    let config = bench.path("prometheus.yml");
    fs::write(&config, example("/etc/prometheus/prometheus.yml")).unwrap();
    assert_accepted(&promtool(&["check", "config"], &config));
    let web_config = bench.path("web.yml");
    fs::write(&web_config, example("/etc/seekscope/web.yml")).unwrap();
    assert_accepted(&promtool(&["check", "web-config"], &web_config));
    let arguments = ["mongodb://127.0.0.1:1/", "--web-config", "web.yml"];
    Exporter::start(&bench, &arguments).end();
}

/// The tests of the rules, on rules of which `from` was replaced; a copy in `folder`.
fn test_changed_rules(folder: &Path, from: &str, to: &str) -> Output {
    let rules = text(RULES);
    assert!(rules.contains(from), "{from}");
    fs::create_dir(folder).unwrap();
    fs::write(folder.join("rules.yml"), rules.replace(from, to)).unwrap();
    let test = folder.join("rules_test.yml");
    fs::write(&test, text(RULES_TEST)).unwrap();
    promtool(&["test", "rules"], &test)
}

/// Each condition of an alert decides in one case of the tests at least.
#[test]
fn a_condition_that_is_changed_is_noticed() {
    let bench = Bench::new();
    assert_accepted(&test_changed_rules(
        &bench.path("unchanged"),
        "> 0.05",
        "> 0.05",
    ));
    let changes = [
        ("> 0.05,", "> 5,"),
        ("> 0.05,", "> 0,"),
        ("> 0.02,", "> 2,"),
        ("> 0.02,", "> 0,"),
        (
            "seekscope_wiredtiger_checkpoint_last_seconds[15m]) > 30",
            "seekscope_wiredtiger_checkpoint_last_seconds[15m]) > 3",
        ),
        (
            "checkpoint_running:avg15m > 0.5",
            "checkpoint_running:avg15m > 5",
        ),
        (
            "> 3 * avg_over_time(server:seekscope_journal",
            "> 0 * avg_over_time(server:seekscope_journal",
        ),
        (
            "> 3 * avg_over_time(server:seekscope_data_read",
            "> 0 * avg_over_time(server:seekscope_data_read",
        ),
        ("(2 * ", "(1 * "),
        ("> 60", "> 0"),
        (
            "seekscope_layout_order_score < 0.5",
            "seekscope_layout_order_score < 2",
        ),
        (
            "server:seekscope_data_read_wait_seconds:rate5m > 0.5",
            "server:seekscope_data_read_wait_seconds:rate5m > 50",
        ),
        (
            "server:seekscope_page_cache_misses:ratio_rate5m > 0.5",
            "server:seekscope_page_cache_misses:ratio_rate5m > 0",
        ),
        (
            "server:seekscope_wiredtiger_cache_misses:ratio_rate5m > 0.01",
            "server:seekscope_wiredtiger_cache_misses:ratio_rate5m > 0.9",
        ),
        ("> 0.7", "> 0"),
        ("> 360", "> 3600"),
        ("> 360", "> 0"),
        ("up{job=\"seekscope\"} == 0", "up{job=\"seekscope\"} == 1"),
        ("absent(up{job=\"seekscope\"})", "absent(up)"),
        ("expr: seekscope_up == 0", "expr: seekscope_up == 1"),
        (
            "seekscope_exporter_tracing == 0",
            "seekscope_exporter_tracing == 1",
        ),
        (
            "seekscope_exporter_last_reading_timestamp_seconds > 120",
            "seekscope_exporter_last_reading_timestamp_seconds > 0",
        ),
        (
            "          > 0.01\n        for: 15m",
            "          > 0\n        for: 15m",
        ),
    ];
    for (n, (from, to)) in changes.into_iter().enumerate() {
        let output = test_changed_rules(&bench.path(&n.to_string()), from, to);
        assert!(!output.status.success(), "{to} is not noticed");
        assert!(said(&output).contains("FAILED"), "{to}: {}", said(&output));
    }
}

/// What GitHub makes of a heading for links.
fn anchor(heading: &str) -> String {
    let kept = heading
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[test]
fn each_alert_is_explained_and_tested_both_ways() {
    let page = text(PAGE);
    let anchors: BTreeSet<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix('#'))
        .map(|line| anchor(line.trim_start_matches('#').trim()))
        .collect();
    let tests = yaml(&repository(RULES_TEST));
    let tests = tests["tests"].as_array().unwrap().iter();
    let cases: Vec<Value> = tests
        .flat_map(|test| test["alert_rule_test"].as_array().unwrap().clone())
        .collect();
    let alerts = alerts();
    assert!(alerts.len() >= 9, "{alerts:?}");
    for alert in &alerts {
        let name = word(alert, "alert");
        let severity = word(&alert["labels"], "severity");
        assert!(
            ["info", "warning", "critical"].contains(&severity),
            "{name}"
        );
        let annotations = &alert["annotations"];
        for what in ["summary", "description"] {
            assert!(word(annotations, what).len() > 20, "{name}: {what}");
        }
        let (file, section) = word(annotations, "runbook").split_once('#').unwrap();
        assert_eq!(file, PAGE, "{name}");
        assert_eq!(section, anchor(name), "{name}");
        assert!(
            anchors.contains(section),
            "{PAGE} has no section for {name}"
        );
        let mut fires = false;
        let mut is_silent = false;
        for case in cases.iter().filter(|case| word(case, "alertname") == name) {
            let expected = case["exp_alerts"].as_array().unwrap();
            fires |= !expected.is_empty();
            is_silent |= expected.is_empty();
        }
        assert!(
            fires && is_silent,
            "{name}: {RULES_TEST} has not both cases"
        );
    }
    // And nothing is explained that is not there.
    let names: BTreeSet<String> = alerts.iter().map(|a| anchor(word(a, "alert"))).collect();
    let explained = anchors.iter().filter(|a| a.starts_with("seekscope"));
    for section in explained {
        assert!(names.contains(section), "there is no alert {section}");
    }
}

/// A row of the tables of metrics.
struct Metric {
    name: String,
    is_histogram: bool,
    /// The labels, with the values that the page names if there is a fixed number of them.
    labels: BTreeMap<String, Vec<String>>,
}

/// Labels as the page writes them: `name` (`value`, `value`), `name`.
fn labels(written: &str) -> BTreeMap<String, Vec<String>> {
    let mut labels = BTreeMap::new();
    let mut name = String::new();
    let mut is_value = false;
    for (n, piece) in written.split('`').enumerate() {
        if n % 2 == 0 {
            is_value = (is_value || piece.contains('(')) && !piece.contains(')');
        } else if is_value {
            let values: &mut Vec<String> = labels.get_mut(&name).unwrap();
            values.push(piece.into());
        } else {
            name = piece.into();
            labels.insert(name.clone(), Vec::new());
        }
    }
    labels
}

/// All metrics that the page lists.
fn listed() -> Vec<Metric> {
    const COMMON: &str = "Labels of all: ";
    let page = text(PAGE);
    let mut common = BTreeMap::new();
    let mut metrics: Vec<Metric> = Vec::new();
    for line in page.lines() {
        if line.starts_with('#') {
            common.clear();
        } else if let Some(written) = line.strip_prefix(COMMON) {
            common = labels(written.split(". ").next().unwrap());
        } else if let Some(row) = line.strip_prefix("| `seekscope_") {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let [name, kind, _unit, further, _meaning, ""] = cells.as_slice() else {
                panic!("not five columns: {line}");
            };
            let mut labels = labels(further);
            labels.extend(common.clone());
            metrics.push(Metric {
                name: format!("seekscope_{}", name.trim_end_matches('`')),
                is_histogram: *kind == "histogram",
                labels,
            });
        }
    }
    metrics
}

/// Names of series in a query, of ours alone.
fn series_names(query: &str) -> BTreeSet<String> {
    let words = query.split(|c: char| !c.is_ascii_alphanumeric() && !"_:".contains(c));
    words
        .filter(|word| word.starts_with("seekscope_") || word.starts_with("server:seekscope_"))
        .map(str::to_owned)
        .collect()
}

fn dashboards() -> BTreeMap<String, Value> {
    let files = fs::read_dir(repository("deploy/grafana"))
        .unwrap()
        .flatten();
    let dashboards: BTreeMap<String, Value> = files
        .map(|file| {
            let dashboard: Value = serde_json::from_slice(&fs::read(file.path()).unwrap()).unwrap();
            (word(&dashboard, "uid").to_owned(), dashboard)
        })
        .collect();
    assert_eq!(dashboards.len(), 3);
    dashboards
}

/// The values below `name`, wherever they stand.
fn all_named<'a>(value: &'a Value, name: &str, found: &mut Vec<&'a Value>) {
    match value {
        Value::Array(values) => values.iter().for_each(|v| all_named(v, name, found)),
        Value::Object(fields) => {
            found.extend(fields.get(name));
            fields.values().for_each(|v| all_named(v, name, found));
        }
        _ => {}
    }
}

fn texts_named<'a>(value: &'a Value, name: &str) -> Vec<&'a str> {
    let mut found = Vec::new();
    all_named(value, name, &mut found);
    found.into_iter().filter_map(Value::as_str).collect()
}

/// Returns the queries of a dashboard's panels.
fn queries(dashboard: &Value) -> Vec<&str> {
    texts_named(&dashboard["panels"], "expr")
}

fn variables(dashboard: &Value) -> BTreeSet<&str> {
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    variables.iter().map(|v| word(v, "name")).collect()
}

#[test]
fn queries_and_rules_name_only_what_is_listed_or_recorded() {
    let mut known = BTreeSet::new();
    for metric in listed() {
        if metric.is_histogram {
            for end in ["bucket", "sum", "count"] {
                known.insert(format!("{}_{end}", metric.name));
            }
        } else {
            known.insert(metric.name);
        }
    }
    assert!(known.len() > 60, "{known:?}");
    for rule in rules() {
        if let Some(record) = rule["record"].as_str() {
            known.insert(record.into());
        }
    }
    let rules = rules();
    let dashboards = dashboards();
    let mut written: Vec<&str> = rules.iter().map(|rule| word(rule, "expr")).collect();
    for dashboard in dashboards.values() {
        written.extend(queries(dashboard));
        written.extend(texts_named(&dashboard["templating"], "query"));
    }
    assert!(written.len() > 80, "{}", written.len());
    for query in written {
        let unknown: Vec<String> = series_names(query)
            .into_iter()
            .filter(|name| !known.contains(name))
            .collect();
        assert!(unknown.is_empty(), "{unknown:?} in {query}");
    }
}

/// What an exporter shows that serves everything that the page lists, as `promtool test rules` wants it.
fn input_series() -> Vec<Value> {
    let mut series = Vec::new();
    for metric in listed() {
        let mut combinations: Vec<BTreeMap<&str, &str>> = vec![BTreeMap::new()];
        for (label, values) in &metric.labels {
            let values: Vec<&str> = match label.as_str() {
                "server" => vec!["localhost:27017"],
                "device" => vec!["sda"],
                // These follow from the role.
                "collection" | "index" => continue,
                _ if values.is_empty() => vec!["any"],
                _ => values.iter().map(String::as_str).collect(),
            };
            combinations = values
                .iter()
                .flat_map(|value| {
                    let with = |before: &BTreeMap<_, _>| {
                        let mut labels = before.clone();
                        labels.insert(label.as_str(), *value);
                        labels
                    };
                    combinations.iter().map(with).collect::<Vec<_>>()
                })
                .collect();
        }
        for mut labels in combinations {
            let file = match labels.get("role") {
                Some(&"collection") => Some(("shop.orders", "")),
                Some(&"index") => Some(("shop.orders", "customer_1")),
                Some(&"other") => Some(("other", "")),
                _ => None,
            };
            if let Some((collection, index)) = file {
                labels.insert("collection", collection);
                labels.insert("index", index);
            }
            labels.insert("instance", "db1:9216");
            let mut add = |end: &str, le: Option<&str>, values: &str| {
                let mut labels: Vec<String> = labels
                    .iter()
                    .map(|(name, value)| format!("{name}=\"{value}\""))
                    .collect();
                labels.extend(le.map(|le| format!("le=\"{le}\"")));
                let name = format!("{}{end}{{{}}}", metric.name, labels.join(","));
                series.push(json!({"series": name, "values": values}));
            };
            if metric.is_histogram {
                for (le, values) in [
                    ("0.001", "0+1x130"),
                    ("0.1", "0+2x130"),
                    ("+Inf", "0+3x130"),
                ] {
                    add("_bucket", Some(le), values);
                }
                add("_sum", None, "0+0.2x130");
                add("_count", None, "0+3x130");
            } else {
                add("", None, "0+1x130");
            }
        }
    }
    series
}

/// Lets promtool say which of `queries` find nothing, each as the alert `Q` with its number.
fn find_nothing(folder: &Path, queries: &[String]) -> Output {
    let alert = |(n, query): (usize, &String)| json!({"alert": format!("Q{n}"), "expr": format!("absent({query})")});
    let alerts: Vec<Value> = queries.iter().enumerate().map(alert).collect();
    let rules = json!({"groups": [{"name": "queries", "rules": alerts}]});
    let expected: Vec<Value> = (0..queries.len())
        .map(|n| json!({"alertname": format!("Q{n}"), "eval_time": "30m", "exp_alerts": []}))
        .collect();
    let test = json!({
        "rule_files": [repository(RULES), "queries.yml"],
        "evaluation_interval": "15s",
        "tests": [{"interval": "15s", "input_series": input_series(), "alert_rule_test": expected}],
    });
    // JSON is YAML.
    fs::create_dir(folder).unwrap();
    fs::write(folder.join("queries.yml"), rules.to_string()).unwrap();
    let path = folder.join("test.yml");
    fs::write(&path, test.to_string()).unwrap();
    assert_accepted(&promtool(&["check", "rules"], &folder.join("queries.yml")));
    promtool(&["test", "rules"], &path)
}

/// A query as Grafana sends it.
fn filled_in(query: &str) -> String {
    let variables = [
        ("$__rate_interval", "1m"),
        ("$__interval", "15s"),
        ("$__range", "20m"),
        ("$instance", "db1:9216"),
        ("$server", "localhost:27017"),
        ("$collection", "shop.orders"),
    ];
    let filled = variables
        .iter()
        .fold(query.to_owned(), |query, (name, value)| {
            query.replace(name, value)
        });
    assert!(!filled.contains('$'), "{filled}");
    filled
}

#[test]
fn each_query_of_the_dashboards_finds_what_the_page_lists() {
    let bench = Bench::new();
    let dashboards = dashboards();
    let queries: Vec<String> = dashboards
        .values()
        .flat_map(|dashboard| queries(dashboard).into_iter().map(filled_in))
        .collect();
    assert!(queries.len() > 70, "{}", queries.len());
    let output = find_nothing(&bench.path("all"), &queries);
    assert!(
        output.status.success(),
        "{}\n{}",
        said(&output),
        queries
            .iter()
            .enumerate()
            .map(|(n, q)| format!("Q{n}: {q}\n"))
            .collect::<String>()
    );
    // This would notice a label or a value that does not exist.
    let wrong = [
        r#"seekscope_mongodb_queued_operations{kind="reads"}"#,
        r#"sum(rate(seekscope_file_latency_seconds_sum{file="shop.orders"}[1m]))"#,
    ];
    for (n, query) in wrong.into_iter().enumerate() {
        let output = find_nothing(&bench.path(&format!("wrong-{n}")), &[query.into()]);
        assert!(!output.status.success(), "{query}");
    }
}

#[test]
fn variables_ids_and_links_of_the_dashboards_hold_together() {
    /// Grafana's own, in queries and in links.
    const BUILT_IN: [&str; 5] = [
        "__rate_interval",
        "__interval",
        "__range",
        "__url_time_range",
        "__all",
    ];
    let dashboards = dashboards();
    for (uid, dashboard) in &dashboards {
        let defined = variables(dashboard);
        let text = dashboard.to_string();
        for (at, _) in text.match_indices('$') {
            let name = text[at + 1..].trim_start_matches('{');
            let end = name
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .unwrap();
            let name = &name[..end];
            let is_known = defined.contains(name) || BUILT_IN.contains(&name) || name == "__data";
            assert!(is_known, "{uid}: ${name} is not defined");
        }
        let mut ids = BTreeSet::new();
        for panel in dashboard["panels"].as_array().unwrap() {
            assert!(
                ids.insert(panel["id"].as_u64().unwrap()),
                "{uid}: {}",
                panel["id"]
            );
        }
        let urls = texts_named(dashboard, "url");
        assert!(
            *uid == "seekscope-collection" || !urls.is_empty(),
            "{uid} leads nowhere"
        );
        for url in urls {
            let (target, arguments) = url.strip_prefix("/d/").unwrap().split_once('?').unwrap();
            let target = dashboards
                .get(target)
                .unwrap_or_else(|| panic!("{uid}: {url}"));
            let variables = variables(target);
            let given: BTreeSet<&str> = arguments
                .split('&')
                .filter_map(|argument| argument.strip_prefix("var-")?.split('=').next())
                .collect();
            assert_eq!(given, variables, "{uid}: {url}");
        }
        // The link at the top leads to all of us, by our tag.
        let tags = &dashboard["links"][0]["tags"];
        assert_eq!(dashboard["links"][0]["type"], "dashboards");
        assert!(
            dashboards.values().all(|other| &other["tags"] == tags),
            "{tags}"
        );
        // Panels lie within the 24 columns and not upon one another.
        let mut taken = BTreeSet::new();
        for panel in dashboard["panels"].as_array().unwrap() {
            let [x, y, w, h] = ["x", "y", "w", "h"].map(|n| panel["gridPos"][n].as_u64().unwrap());
            assert!(x + w <= 24, "{uid}: {}", panel["title"]);
            for cell in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
                assert!(
                    taken.insert(cell),
                    "{uid}: {} lies on another",
                    panel["title"]
                );
            }
        }
    }
}

/// The settings of a section of the unit, in order.
fn unit() -> Vec<(String, String)> {
    let text = text(UNIT);
    let settings = text.lines().filter(|line| !line.starts_with(['#', '[']));
    settings
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn setting(name: &str) -> String {
    let unit = unit().into_iter();
    let mut found = unit
        .filter(|(other, _)| other == name)
        .map(|(_, value)| value);
    let value = found
        .next()
        .unwrap_or_else(|| panic!("the unit has no {name}"));
    assert_eq!(found.next(), None, "{name} twice");
    value
}

#[test]
fn systemd_accepts_the_unit_and_finds_it_well_closed() {
    let bench = Bench::new();
    let program = bench.seekscope(&[]).get_program().to_os_string();
    let program = program.to_str().unwrap();
    let path = bench.path("seekscope-exporter.service");
    fs::write(&path, text(UNIT).replace("/usr/bin/seekscope", program)).unwrap();
    let systemd_analyze = |arguments: &[&str]| {
        Command::new("systemd-analyze")
            .args(arguments)
            .arg(&path)
            .output()
            .expect("systemd-analyze; `./x test` installs it")
    };
    // The manual page comes with the package.
    let output = systemd_analyze(&["verify", "--man=no"]);
    assert_accepted(&output);
    assert_eq!(said(&output).trim(), "", "a warning");
    // Of 100, which is no protection at all; systemd calls less than 50 good. What is left is what it is for: the
    // network, other processes, and the four capabilities.
    assert_accepted(&systemd_analyze(&[
        "security",
        "--offline=true",
        "--no-pager",
        "--threshold=26",
    ]));
    let needed = "CAP_BPF CAP_PERFMON CAP_SYS_PTRACE CAP_DAC_READ_SEARCH";
    assert_eq!(setting("CapabilityBoundingSet"), needed);
    assert_eq!(setting("AmbientCapabilities"), needed);
}

/// Options that stand in command lines of the exporter which no page shows.
#[test]
fn options_of_the_service_and_of_the_pods_exist() {
    let bench = Bench::new();
    let output = bench.seekscope(&["exporter", "--help"]).output().unwrap();
    assert_accepted(&output);
    let help = said(&output);
    let mut words: Vec<String> = setting("ExecStart").split(' ').map(Into::into).collect();
    let default = text("packaging/seekscope-exporter.default");
    let example = default.split('\'').nth(1).unwrap();
    words.extend(example.split(' ').map(Into::into));
    for name in ["exporter.yaml", "exporter-sidecar.yaml"] {
        let arguments = exporter(name)["args"].as_array().unwrap().clone();
        assert_eq!(arguments[0], "exporter");
        words.extend(arguments.iter().map(|a| a.as_str().unwrap().to_owned()));
    }
    let options: BTreeSet<&str> = words
        .iter()
        .filter(|word| word.starts_with("--"))
        .filter_map(|word| word.split('=').next())
        .collect();
    assert!(options.len() >= 3, "{options:?}");
    for option in options {
        assert!(help.contains(option), "{option} is not in: {help}");
    }
}
