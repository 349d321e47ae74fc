//! The places that the script fills with figures.

use maud::{Markup, html};
use seekscope_run::Phase;

use super::{Figure, FileFigures, PhaseFigures};
use crate::ReportInput;
use crate::comparison::why_no_events;

/// The section with all figures: phases on the same disk beside each other.
pub(in super::super) fn section(input: &ReportInput<'_>, figures: &[PhaseFigures]) -> Markup {
    let phases = &input.document.phases;
    if phases.is_empty() {
        return html! {};
    }
    let mut disks: Vec<String> = Vec::new();
    for phase in phases {
        let label = phase.disk.label();
        if !disks.contains(&label) {
            disks.push(label);
        }
    }
    html! {
        section #figures {
            h2 { "What the disk was asked for, and when" }
            p.lead {
                "Each mark is a call. Drag over a figure to zoom in, double click to return; arrow "
                "keys move a zoomed figure. "
                span.swatch.reads {} " read " span.swatch.writes {} " write. "
                "Where marks are too many to tell apart, shading shows how many there are (logarithmic)."
            }
            noscript { p.note { "The figures need scripts; all numbers stand in the tables." } }
            @for disk in &disks {
                h3 { "On the " (disk) }
                div.phases {
                    @for (index, phase) in phases.iter().enumerate() {
                        @if phase.disk.label() == *disk {
                            (phase_block(index, phase, figures.get(index)))
                        }
                    }
                }
            }
        }
    }
}

fn phase_block(index: usize, phase: &Phase, figures: Option<&PhaseFigures>) -> Markup {
    let files = figures.map_or(&[][..], |figures| &figures.files);
    html! {
        article.phase data-phase=(index) {
            h4 { bdi { (phase.name) } }
            p.activity { bdi { (phase.activity) } }
            @match files.first() {
                None => p.note { "No figure: " (why_no_events(phase)) },
                Some(_) => (figures_of_files("File", "File offset over time", files)),
            }
        }
    }
}

/// A menu, and the figures of what is chosen in it.
pub(crate) fn figures_of_files(what: &str, heading: &str, files: &[FileFigures]) -> Markup {
    let Some(first) = files.first() else {
        return html! {};
    };
    html! {
        label.file-choice {
            (what) " "
            // Without scripts there is nothing to choose.
            select disabled[true] {
                @for (slot, file) in files.iter().enumerate() {
                    option value=(slot) selected[slot == 0] { (file.label) }
                }
            }
        }
        (figure_block("offset", heading, &first.offset))
        @if let Some(latency) = &first.latency {
            (figure_block("latency", "Latency over time", latency))
        }
    }
}

fn figure_block(kind: &str, heading: &str, figure: &Figure) -> Markup {
    html! {
        figure.chart data-kind=(kind) {
            div.chart-head { h5 { (heading) } }
            div.plot {}
            figcaption { (figure.caption) }
        }
    }
}
