//! Provides the shell of every report: one self-contained file that makes no requests.
//!
//! Everything that a server or a file system reported is hostile until proven otherwise, and there are three
//! layers of defence: the templates escape by default, `escape::visible` shows control characters instead of
//! executing them, and the page's content security policy runs our one script and no other.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::charts::{BarChart, HeatMap, LineChart};
use super::figures::PhaseFigures;
use super::points::Blobs;
use super::tracks::TrackGroup;
use crate::escape;

const SCRIPT: &str = include_str!(concat!(env!("OUT_DIR"), "/page.js"));
const STYLE: &str = include_str!(concat!(env!("OUT_DIR"), "/page.css"));

/// Data for the script: where the figures' numbers are and what to call them.
#[derive(Serialize, Default)]
pub(crate) struct PageData {
    pub(crate) phases: Vec<PhaseFigures>,
    pub(crate) lines: Vec<LineChart>,
    pub(crate) bars: Vec<BarChart>,
    pub(crate) heats: Vec<HeatMap>,
    pub(crate) tracks: Vec<TrackGroup>,
}

impl PageData {
    /// Returns whether there is anything to draw.
    pub(crate) fn has_figures(&self) -> bool {
        !(self.phases.is_empty()
            && self.lines.is_empty()
            && self.bars.is_empty()
            && self.heats.is_empty()
            && self.tracks.is_empty())
    }
}

/// Returns a page of one file with `body` (header and main) and the figures' numbers.
pub(crate) fn shell(title: &str, body: Markup, data: &PageData, blobs: &Blobs) -> String {
    let title = escape::visible(title);
    let body = escape::visible(&body.into_string());
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(content_security_policy());
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (PreEscaped(body))
                script type="application/json" id="seekscope-data" {
                    (PreEscaped(escape::json_block(data)))
                }
                (blobs.markup())
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

/// Returns a policy under which nothing may be loaded, sent or run, except the one script and the one
/// stylesheet inside.
fn content_security_policy() -> String {
    let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
    format!(
        "default-src 'none'; script-src {}; style-src {}; base-uri 'none'; form-action 'none'",
        hash(SCRIPT),
        hash(STYLE)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundle_cannot_end_its_own_element() {
        assert!(!SCRIPT.to_ascii_lowercase().contains("</script"));
        assert!(!SCRIPT.contains("<!--"));
        assert!(!STYLE.to_ascii_lowercase().contains("</style"));
    }
}
