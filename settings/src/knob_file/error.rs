//! Defines errors in a file of knobs, or in the name of one.

/// Why a file or a name is rejected.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum KnobFileError {
    #[error("{0}")]
    Toml(String),
    #[error("line {line}, {what} `{name}`: {why}")]
    Entry {
        line: usize,
        what: &'static str,
        name: String,
        why: String,
    },
    #[error("there is no knob `{name}`{}", near(near_names, known))]
    Unknown {
        name: String,
        /// The most similar first.
        near_names: Vec<String>,
        known: Vec<String>,
    },
    #[error("`{name}` is never tuned: {why}")]
    Pinned { name: String, why: String },
}

/// Similarity (Jaro and Winkler) from which a name may have been meant.
const ALIKE: f64 = 0.8;
const NEAR_MAX: usize = 3;

fn near(near_names: &[String], known: &[String]) -> String {
    if near_names.is_empty() {
        format!("; known are: {}", known.join(", "))
    } else {
        format!("; did you mean {}?", near_names.join(" or "))
    }
}

impl KnobFileError {
    pub(crate) fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Self {
        let mut known: Vec<&str> = known.collect();
        known.dedup();
        let mut alike: Vec<(f64, &str)> = known
            .iter()
            .map(|other| (strsim::jaro_winkler(name, other), *other))
            .filter(|(likeness, other)| {
                *likeness >= ALIKE || (name.len() >= 4 && other.contains(name))
            })
            .collect();
        alike.sort_by(|a, b| b.0.total_cmp(&a.0));
        Self::Unknown {
            name: name.into(),
            near_names: alike
                .iter()
                .take(NEAR_MAX)
                .map(|(_, name)| (*name).to_owned())
                .collect(),
            known: known.into_iter().map(String::from).collect(),
        }
    }
}
