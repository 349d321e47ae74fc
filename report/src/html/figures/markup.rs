//! Creates the elements that the script fills with figures.

use maud::{Markup, html};

use super::{Figure, FileFigures};

/// Returns a menu, and the figures of its selected entry.
pub(crate) fn figures_of_files(what: &str, heading: &str, files: &[FileFigures]) -> Markup {
    let Some(first) = files.first() else {
        return html! {};
    };
    html! {
        label.file-choice {
            (what) " "
            // Without scripts nothing can be selected.
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
