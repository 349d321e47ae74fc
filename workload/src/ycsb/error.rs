//! Defines errors of a YCSB configuration.

use seekscope_run::{ErrorKind, Kinded};

use crate::generators::length::HistogramError;

/// Why a workload cannot be created.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum YcsbError {
    #[error("line {line}: \\u must be followed by four hexadecimal digits")]
    Escape { line: usize },
    #[error("{name}={value}: {why}")]
    Value {
        name: &'static str,
        value: String,
        why: String,
    },
    #[error("there is no workload {name:?}; choose one of a, b, c, d, e, f")]
    NoSuchWorkload { name: String },
    #[error("fieldlengthhistogram: {0}")]
    Histogram(#[from] HistogramError),
}

impl YcsbError {
    pub(crate) fn value(name: &'static str, value: impl ToString, why: impl Into<String>) -> Self {
        Self::Value {
            name,
            value: value.to_string(),
            why: why.into(),
        }
    }
}

impl Kinded for YcsbError {
    fn kind(&self) -> Option<ErrorKind> {
        Some(ErrorKind::Usage)
    }
}
