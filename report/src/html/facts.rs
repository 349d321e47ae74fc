//! What was measured on, what could not be measured, and how to do it again.

use maud::{Markup, html};
use seekscope_run::units::{format_bytes, format_count};
use seekscope_run::{DeviceFacts, HostFacts, RunDocument, TargetFacts};

use crate::ReportInput;
use crate::numbers::format_number;

const UNKNOWN: &str = "unknown: not readable here";
const SQL: &str = "SELECT path, op, count(*) AS calls, sum(greatest(result, 0)) AS bytes, \
    quantile_cont(latency_ns, 0.99) AS p99_ns FROM 'io.parquet' JOIN 'files.parquet' \
    USING (file_id) GROUP BY ALL ORDER BY bytes DESC;";

type Fact = (&'static str, Option<String>);

/// Everything below the files.
pub(super) fn section(input: &ReportInput<'_>) -> Markup {
    let document = input.document;
    html! {
        section #limitations {
            h2 { "Limitations" }
            (limitations(document))
        }
        section #facts {
            h2 { "Measured on" }
            div.facts {
                (fact_table("Host", document.host.as_ref().map(host_facts)))
                (fact_table("Disk under the data", document.device.as_ref().map(device_facts)))
                (fact_table("Server", document.target.as_ref().map(target_facts)))
            }
        }
        section #again {
            h2 { "Do it again" }
            p { "This report was made by seekscope " (document.seekscope_version) ", with" }
            p.command { code { (command_line(document)) } }
            p {
                @match document.seed {
                    Some(seed) => {
                        "The seed was " code { (seed) } ": what is drawn by chance is drawn alike with "
                        code { "--seed " (seed) } ". Times still vary with the machine and its load."
                    }
                    None => "Nothing was drawn by chance, or no seed was recorded.",
                }
            }
            h3 { "The data" }
            p {
                "All numbers come from " code { "run.json" } ", " code { "files.parquet" } " and "
                code { "io.parquet" } " in the run directory, which holds this report too: "
                (format_count(input.events.len() as u64)) " calls, one a row. DuckDB and pandas open "
                "them as they are. In DuckDB:"
            }
            p.command { code { (SQL) } }
        }
    }
}

/// A moment as UTC text.
pub(super) fn date(realtime_ns: u64) -> String {
    let seconds = i64::try_from(realtime_ns / 1_000_000_000).unwrap_or(i64::MAX);
    match jiff::Timestamp::from_second(seconds) {
        Ok(moment) => moment.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        Err(_) => "at an unknown date".into(),
    }
}

fn limitations(document: &RunDocument) -> Markup {
    if document.limitations.is_empty() {
        return html! { p { "None were met." } };
    }
    html! {
        div.scroll {
            table.prose {
                thead {
                    tr {
                        @for heading in ["What is missing", "Why", "What would grant it"] {
                            th.words scope="col" { (heading) }
                        }
                    }
                }
                tbody {
                    @for limitation in &document.limitations {
                        tr {
                            th.words scope="row" { bdi { (limitation.what) } }
                            td.words { bdi { (limitation.why) } }
                            td.words { bdi { (limitation.remedy) } }
                        }
                    }
                }
            }
        }
    }
}

fn fact_table(heading: &str, facts: Option<Vec<Fact>>) -> Markup {
    html! {
        div {
            h3 { (heading) }
            @match facts {
                None => p.note { "Not recorded in this run." },
                Some(facts) => table.prose {
                    tbody {
                        @for (name, value) in facts {
                            tr {
                                th.words scope="row" { (name) }
                                @match value {
                                    Some(value) => td.words { bdi { (value) } },
                                    None => td.words.missing { (UNKNOWN) },
                                }
                            }
                        }
                    }
                },
            }
        }
    }
}

fn known(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_string())
}

fn known_bytes(bytes: u64) -> Option<String> {
    (bytes > 0).then(|| format_bytes(bytes))
}

fn host_facts(host: &HostFacts) -> Vec<Fact> {
    vec![
        ("Kernel", known(&host.kernel)),
        ("Processor", known(&host.cpu_model)),
        ("CPUs", (host.cpus > 0).then(|| host.cpus.to_string())),
        ("Memory", known_bytes(host.memory_bytes)),
        (
            "Load at start, one minute",
            Some(format_number(host.load_1m)),
        ),
        (
            "Transparent huge pages",
            host.transparent_huge_pages.clone(),
        ),
    ]
}

fn device_facts(device: &DeviceFacts) -> Vec<Fact> {
    let rotational = device
        .rotational
        .map(|r| if r { "yes" } else { "no" }.to_string());
    vec![
        ("Path", known(&device.path)),
        ("Disk", device.disk.clone()),
        ("Filesystem", known(&device.filesystem)),
        ("Mount options", known(&device.mount_options)),
        ("Size", known_bytes(device.size_bytes)),
        ("Free", known_bytes(device.free_bytes)),
        ("Rotational, as the kernel claims", rotational),
        ("I/O scheduler", device.scheduler.clone()),
        (
            "Read-ahead",
            device
                .read_ahead_kib
                .map(|kib| format!("{} KiB", format_count(kib))),
        ),
        ("Write cache", device.write_cache.clone()),
    ]
}

fn target_facts(target: &TargetFacts) -> Vec<Fact> {
    let origin = if target.local {
        "started by seekscope"
    } else {
        "found running"
    };
    vec![
        ("Product", known(&target.product)),
        ("Version", known(&target.version)),
        ("Address", known(&target.uri)),
        ("Origin", Some(origin.into())),
        ("Process", target.pid.map(|pid| pid.to_string())),
        ("Data directory", target.dbpath.clone()),
        ("Configured cache", target.cache_bytes.map(format_bytes)),
    ]
}

/// The command as it can be typed again.
fn command_line(document: &RunDocument) -> String {
    let arguments = document.arguments.iter().map(|argument| quoted(argument));
    let mut words: Vec<String> = arguments.collect();
    let names_program = |word: &String| word.rsplit('/').next() == Some("seekscope");
    if words.first().is_some_and(names_program) {
        words.remove(0);
    }
    if !words.contains(&document.command) {
        words.insert(0, document.command.clone());
    }
    format!("seekscope {}", words.join(" "))
}

/// Quoted for a POSIX shell where it must be.
fn quoted(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        return argument.to_string();
    }
    format!("'{}'", argument.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_can_be_typed_again() {
        let mut document = RunDocument::begin("doctor", vec!["doctor".into(), "a b".into()]);
        assert_eq!(command_line(&document), "seekscope doctor 'a b'");
        document.arguments = vec![
            "/bin/seekscope".into(),
            "--keys={\"i\":1}".into(),
            "it's".into(),
        ];
        assert_eq!(
            command_line(&document),
            r#"seekscope doctor '--keys={"i":1}' 'it'\''s'"#
        );
    }

    #[test]
    fn dates_are_in_utc() {
        assert_eq!(date(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(date(1_700_000_000_000_000_000), "2023-11-14 22:13:20 UTC");
    }
}
