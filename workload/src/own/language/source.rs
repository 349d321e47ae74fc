//! Handles the text of a workload: parsing, and mapping between fields and lines.

use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::own::error::{Fault, OwnError};

use super::WorkloadFile;

/// Longest text, bytes: a workload is written by hand.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// A text and its name in errors.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    pub file: &'a str,
    pub text: &'a str,
}

impl Source<'_> {
    /// Parses the text. Relations between tables are not checked here.
    pub fn parse(&self) -> Result<WorkloadFile, OwnError> {
        if self.text.len() > TEXT_BYTES_MAX {
            let message = format!("the text is longer than {TEXT_BYTES_MAX} bytes");
            return Err(self.error(&Fault::new("", message)));
        }
        let table = DeTable::parse(self.text).map_err(|error| self.toml_error(&error))?;
        WorkloadFile::deserialize(toml::de::Deserializer::from(table))
            .map_err(|error| self.toml_error(&error))
    }

    /// Returns an error with its line: that of the field, or of the nearest enclosing one.
    pub(crate) fn error(&self, fault: &Fault) -> OwnError {
        let offset = DeTable::parse(self.text)
            .ok()
            .and_then(|table| span_of(table.get_ref(), &fault.path))
            .map_or(0, |span| span.start);
        OwnError {
            file: self.file.into(),
            line: self.line(offset),
            path: fault.path.clone(),
            message: fault.message.clone(),
        }
    }

    fn toml_error(&self, error: &toml::de::Error) -> OwnError {
        let span = error.span().unwrap_or_default();
        let path = DeTable::parse(self.text)
            .map(|table| path_of(table.get_ref(), span.start))
            .unwrap_or_default();
        let message = if error.message().contains("$__toml_private_datetime") {
            "a date is written as { constant = DATE }".into()
        } else {
            error.message().trim_end().replace('\n', "; ")
        };
        OwnError {
            file: self.file.into(),
            line: self.line(span.start),
            path,
            message,
        }
    }

    fn line(&self, offset: usize) -> usize {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        before.iter().filter(|&&byte| byte == b'\n').count() + 1
    }
}

/// One step of a path such as `phases[1].roles`.
enum Step<'a> {
    Name(&'a str),
    Index(usize),
}

fn steps(path: &str) -> impl Iterator<Item = Step<'_>> {
    path.split(['.', '['])
        .filter(|step| !step.is_empty())
        .map(
            |step| match step.strip_suffix(']').and_then(|n| n.parse().ok()) {
                Some(index) => Step::Index(index),
                None => Step::Name(step),
            },
        )
}

/// Returns the span of the deepest existing field of the path.
fn span_of(table: &DeTable<'_>, path: &str) -> Option<Range<usize>> {
    let mut steps = steps(path);
    let Some(Step::Name(first)) = steps.next() else {
        return None;
    };
    let (key, mut value) = entry(table, first)?;
    let mut span = key.span();
    for step in steps {
        match (step, value.get_ref()) {
            (Step::Name(name), DeValue::Table(table)) => {
                let Some((key, inner)) = entry(table, name) else {
                    break;
                };
                (span, value) = (key.span(), inner);
            }
            (Step::Index(index), DeValue::Array(array)) => {
                let Some(inner) = array.get(index) else {
                    break;
                };
                (span, value) = (inner.span(), inner);
            }
            _ => break,
        }
    }
    Some(span)
}

type Entry<'t, 'i> = (
    &'t Spanned<std::borrow::Cow<'i, str>>,
    &'t Spanned<DeValue<'i>>,
);

fn entry<'t, 'i>(table: &'t DeTable<'i>, name: &str) -> Option<Entry<'t, 'i>> {
    table.iter().find(|(key, _)| key.get_ref().as_ref() == name)
}

/// Returns the field at an offset: the deepest one whose name or value contains it.
fn path_of(table: &DeTable<'_>, offset: usize) -> String {
    for (key, value) in table {
        if key.span().contains(&offset) {
            return key.get_ref().to_string();
        }
        if let Some(inner) = path_in(value, offset) {
            let separator = if inner.is_empty() || inner.starts_with('[') {
                ""
            } else {
                "."
            };
            return format!("{}{separator}{inner}", key.get_ref());
        }
    }
    String::new()
}

/// Returns the path within a value. Tables in brackets span only their header, so a table is searched even if
/// it does not contain the offset.
fn path_in(value: &Spanned<DeValue<'_>>, offset: usize) -> Option<String> {
    let inside = value.span().contains(&offset).then(String::new);
    match value.get_ref() {
        DeValue::Table(table) => Some(path_of(table, offset))
            .filter(|path| !path.is_empty())
            .or(inside),
        DeValue::Array(array) => {
            let mut elements = array.iter().enumerate();
            let found = elements.find_map(|(index, element)| {
                let inner = path_in(element, offset)?;
                let separator = if inner.is_empty() || inner.starts_with('[') {
                    ""
                } else {
                    "."
                };
                Some(format!("[{index}]{separator}{inner}"))
            });
            found.or(inside)
        }
        _ => inside,
    }
}
