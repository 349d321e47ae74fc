//! Shows what was measured on, what could not be measured, and how to repeat the run.

use maud::{Markup, html};
use seekscope_run::RunDocument;

use crate::facts::{Fact, UNKNOWN, command_line, host_facts};

/// Calls by file and kind, for runs with a trace.
pub(crate) const CALLS_SQL: &str = "SELECT path, op, count(*) AS calls, sum(greatest(result, 0)) AS bytes, \
    quantile_cont(latency_ns, 0.99) AS p99_ns FROM 'io.parquet' JOIN 'files.parquet' \
    USING (file_id) GROUP BY ALL ORDER BY bytes DESC;";

/// Commands that leave nothing to chance.
const DRAWS_NOTHING: [&str; 2] = ["prefetch", "trace"];

/// Returns what could not be measured, why, and what would make it possible.
pub(crate) fn limitations(document: &RunDocument) -> Markup {
    html! {
        section #limitations {
            h2 { "Limitations" }
            (limitation_table(document))
        }
    }
}

/// Returns the host and other things measured on: heading and facts, `None` when not recorded.
pub(crate) fn measured_on(document: &RunDocument, others: &[(&str, Option<Vec<Fact>>)]) -> Markup {
    html! {
        section #facts {
            h2 { "Measured on" }
            div.facts {
                (fact_table("Host", document.host.as_ref().map(host_facts).as_deref()))
                @for (heading, facts) in others { (fact_table(heading, facts.as_deref())) }
            }
        }
    }
}

/// Returns how to repeat the run, and how to continue: `data` says where the numbers are, and what reads
/// them.
pub(crate) fn again(document: &RunDocument, data: Option<&(Markup, &str)>) -> Markup {
    html! {
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
                    None if DRAWS_NOTHING.contains(&document.command.as_str()) => {
                        "This command uses no random numbers."
                    }
                    None => "No seed was recorded.",
                }
            }
            @if let Some((sentence, sql)) = data {
                h3 { "The data" }
                p { (sentence) }
                p.command { code { (sql) } }
            }
        }
    }
}

fn limitation_table(document: &RunDocument) -> Markup {
    let limitations = crate::wording::limitations(document);
    if limitations.is_empty() {
        return html! { p { "None." } };
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
                    @for limitation in &limitations {
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

fn fact_table(heading: &str, facts: Option<&[Fact]>) -> Markup {
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
