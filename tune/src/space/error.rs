//! Defines errors in knobs and in values for them.

/// Why a space or a configuration is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpaceError {
    #[error("knob `{knob}`: {why}")]
    Knob { knob: String, why: String },
    #[error("there is no knob `{name}`; known are: {known}")]
    Unknown { name: String, known: String },
    #[error("knob `{knob}` cannot be {value}; it takes {range}")]
    Value {
        knob: String,
        value: String,
        range: String,
    },
    #[error("the defaults exceed a limit; raise the limit or lower the defaults")]
    DefaultBeyondLimit,
    #[error("the values exceed the limit `{limit}`; lower them or raise the limit")]
    BeyondLimit { limit: String },
}
