//! Renders blocks as plain text.

use seekscope_run::{Finding, Outcome, RunDocument};

use super::Block;
use crate::escape::visible;
use crate::terminal::limitations;
use crate::text::{table_text, wrapped};
use crate::wording;

/// The most sentences of evidence for each finding; a page has all.
const EVIDENCE: usize = 2;
const INDENT: &str = "  ";
/// Indentation of the text under a finding's number.
const FINDING_INDENT: &str = "   ";

/// Renders blocks, `width` characters wide, and what the run could not measure. Lines to be copied are never
/// broken. Control characters in names are shown, not executed, and a line break in one starts no line.
pub fn text(document: &RunDocument, blocks: &[Block], width: u16) -> String {
    let shown = text_of(blocks, width, "");
    let missing = crate::terminal::visible(&limitations(document));
    let parts = [shown.as_str(), missing.trim_end()];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("\n\n") + "\n"
}

/// Renders a run that consists of a headline and blocks; how it ended comes first, unless all went well.
pub fn text_of_blocks(
    document: &RunDocument,
    headline: Option<String>,
    blocks: Vec<Block>,
    width: u16,
) -> String {
    let outcome = (document.outcome != Outcome::Ok).then(|| wording::outcome(document));
    let mut all = Block::sentences(outcome.into_iter().chain(headline));
    all.extend(blocks);
    text(document, &all, width)
}

/// Renders blocks without what could not be measured.
pub fn text_of(blocks: &[Block], width: u16, indent: &str) -> String {
    let mut text = String::new();
    let mut last: Option<&Block> = None;
    for block in blocks {
        let shown = block_text(block, width, indent);
        let shown = shown.trim_end();
        if shown.is_empty() {
            continue;
        }
        if let Some(last) = last {
            text.push_str(between(last, block, indent));
        }
        text.push_str(shown);
        last = Some(block);
    }
    text
}

/// Returns the separator: under a heading, sentences and their table follow one another without an empty
/// line.
fn between(last: &Block, next: &Block, indent: &str) -> &'static str {
    let is_close = matches!(
        (last, next),
        (Block::Sentence(_) | Block::Table(_), Block::Sentence(_))
    );
    match is_close && !indent.is_empty() {
        true => "\n",
        false => "\n\n",
    }
}

fn block_text(block: &Block, width: u16, indent: &str) -> String {
    match block {
        Block::Section(section) if section.heading.is_empty() => {
            text_of(&section.blocks, width, indent)
        }
        Block::Section(section) => under(&section.heading.to_uppercase(), &section.blocks, width),
        Block::Part(heading, blocks) => under(&visible(heading), blocks, width),
        Block::Sentence(text) | Block::Note(text) | Block::Warning(_, text) => {
            wrapped(&visible(text), width, indent)
        }
        Block::List(items) => {
            let items = items.iter().map(|item| hanging(item, width, indent));
            items.collect::<Vec<_>>().join("\n")
        }
        Block::Table(table) => table_text(&table.on_one_line(), width),
        Block::Group(blocks) => text_of(blocks, width, indent),
        Block::Findings(findings, first) => {
            let numbered = findings.iter().enumerate();
            let findings =
                numbered.map(|(index, finding)| finding_text(finding, first + index, width));
            findings.collect::<Vec<_>>().join("\n\n")
        }
        Block::Copy(heading, lines) => {
            let lines: Vec<String> = lines
                .iter()
                .map(|line| format!("{INDENT}{}", visible(line)))
                .collect();
            let heading = wrapped(&visible(&format!("{heading}:")), width, indent);
            format!("{heading}\n{}", lines.join("\n"))
        }
        Block::Characters(text) => crate::terminal::visible(text),
        Block::Folded(_) | Block::Beside(_) | Block::Contents | Block::Drawing(_) => String::new(),
    }
}

fn under(heading: &str, blocks: &[Block], width: u16) -> String {
    let text = text_of(blocks, width, INDENT);
    match text.is_empty() {
        true => text,
        false => format!("{heading}\n{text}"),
    }
}

fn finding_text(finding: &Finding, number: usize, width: u16) -> String {
    let mut lines = vec![hanging(
        &format!("{number}. {}", finding.heading()),
        width,
        "",
    )];
    // By which method it was found is told on the page.
    let evidence = finding.evidence.iter();
    let evidence = evidence.filter(|sentence| !sentence.starts_with("Method: "));
    let evidence = evidence.take(EVIDENCE);
    lines.extend(evidence.map(|sentence| wrapped(&visible(sentence), width, FINDING_INDENT)));
    let gain = wording::expected(finding).map(|gain| format!("Gain: {gain}."));
    let confidence = known(&finding.confidence).map(|word| format!("Confidence: {word}."));
    let risk = known(&finding.risk).map(|risk| format!("Risk: {risk}"));
    let worth: Vec<String> = [gain, confidence, risk].into_iter().flatten().collect();
    lines.push(wrapped(&visible(&worth.join(" ")), width, FINDING_INDENT));
    let command = finding.command.lines();
    lines.extend(command.map(|line| format!("{FINDING_INDENT}$ {}", visible(line))));
    lines.retain(|line| !line.trim().is_empty());
    lines.join("\n")
}

/// Wraps text so that the first line begins after `indent`, the others under the text after the number.
fn hanging(text: &str, width: u16, indent: &str) -> String {
    let wrapped = wrapped(&visible(text), width, &format!("{indent}{FINDING_INDENT}"));
    format!("{indent}{}", wrapped.trim_start())
}

fn known(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::super::{Folded, Section};
    use super::*;
    use crate::table::Table;

    fn table() -> Table {
        let mut table = Table::new(1, &["file", "leaves"]);
        table.row(["a".into(), "12".into()]);
        table
    }

    #[test]
    fn sentences_stand_close_to_their_table_under_a_heading_alone() {
        let told = || {
            vec![
                Block::Table(table()),
                Block::Sentence("It is short.".into()),
            ]
        };
        let blocks = [
            Block::Sentence("First.".into()),
            Block::Section(Section::new("files", "Files", told())),
            Block::Section(Section::new("none", "Nothing", Vec::new())),
            Block::Section(Section::new("", "", told())),
        ];
        let text = text_of(&blocks, 80, "");
        let expected = "First.\n\nFILES\n file  leaves\n a         12\n  It is short.\n\n file  leaves\n \
                        a         12\n\nIt is short.";
        assert_eq!(text, expected);
    }

    #[test]
    fn names_make_no_lines_and_what_is_to_be_copied_is_not_broken() {
        let command = "seekscope reorder URI ".repeat(9);
        let name = "a\nb\u{1b}[2J".to_string();
        let mut cells = Table::new(1, &["file", "leaves"]);
        cells.row([name.clone().into(), "1".into()]);
        let blocks = [
            Block::Copy("To do it".into(), vec![command.clone(), name.clone()]),
            Block::Part(name.clone(), vec![Block::Sentence(name)]),
            Block::Table(cells),
        ];
        let text = text_of(&blocks, 40, "");
        assert!(
            text.contains(&format!("To do it:\n  {command}\n")),
            "{text}"
        );
        assert_eq!(text.matches("a\\nb\\u{1b}[2J").count(), 4, "{text}");
        assert!(!text.contains('\u{1b}'));
    }

    #[test]
    fn a_text_may_begin_with_a_table() {
        let document = RunDocument::begin("disk", Vec::new());
        let text = text(&document, &[Block::Table(table())], 80);
        assert_eq!(text, " file  leaves\n a         12\n");
    }

    #[test]
    fn what_a_terminal_has_no_room_for_leaves_no_gap() {
        let folded = Folded::closed("All of it", vec![Block::Table(table())]);
        let blocks = [
            Block::Note("one".into()),
            folded,
            Block::Beside(vec![Block::Table(table())]),
            Block::Contents,
            Block::List(vec!["two".into(), "three".into()]),
        ];
        assert_eq!(text_of(&blocks, 80, ""), "one\n\ntwo\nthree");
    }
}
