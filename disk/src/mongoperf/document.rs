//! The values of an options object and how the old program interpreted them: its typed numbers, its
//! truthiness, and its use of the first of several fields with the same name.

/// A value of the input language. Texts are bytes, because the old program never checked their
/// encoding.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// A number without fraction or exponent that fits into 32 bits.
    Int(i32),
    /// A number without fraction or exponent that fits into 64 bits only.
    Long(i64),
    Double(f64),
    Text(Vec<u8>),
    Bool(bool),
    Null,
    Undefined,
    Object(Document),
    Array(Vec<Value>),
}

/// Fields in the order of the input; a name may occur more than once.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Document(pub(crate) Vec<(Vec<u8>, Value)>);

impl Document {
    /// Returns the first field of this name.
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        let found = self.0.iter().find(|(key, _)| key == name.as_bytes());
        found.map(|(_, value)| value)
    }
}

impl Value {
    /// Returns whether the value counts as true: numbers other than 0 (NaN too), `true`, and
    /// everything that is not a number, boolean, null or undefined, even the text "false".
    pub(crate) fn is_true(&self) -> bool {
        match self {
            Self::Int(number) => *number != 0,
            Self::Long(number) => *number != 0,
            Self::Double(number) => *number != 0.0,
            Self::Bool(value) => *value,
            Self::Null | Self::Undefined => false,
            Self::Text(_) | Self::Object(_) | Self::Array(_) => true,
        }
    }

    /// Returns the whole part of a number, clamped to the ends of the range if it does not fit, and
    /// 0 for NaN; `None` for everything else.
    pub(crate) fn whole_number(&self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(i64::from(*number)),
            Self::Long(number) => Some(*number),
            #[expect(
                clippy::cast_possible_truncation,
                reason = "saturates, which is the wanted rule"
            )]
            Self::Double(number) => Some(*number as i64),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truth_is_that_of_the_old_program() {
        let text = Value::Text(b"false".to_vec());
        for value in [
            Value::Int(-1),
            Value::Long(1 << 40),
            Value::Double(f64::NAN),
            Value::Bool(true),
            Value::Array(vec![]),
            Value::Object(Document::default()),
            text,
        ] {
            assert!(value.is_true(), "{value:?}");
        }
        for value in [
            Value::Int(0),
            Value::Long(0),
            Value::Double(-0.0),
            Value::Bool(false),
            Value::Null,
            Value::Undefined,
        ] {
            assert!(!value.is_true(), "{value:?}");
        }
    }

    #[test]
    fn doubles_are_truncated() {
        assert_eq!(Value::Double(-1.9).whole_number(), Some(-1));
        assert_eq!(Value::Double(f64::NAN).whole_number(), Some(0));
        assert_eq!(Value::Double(1e300).whole_number(), Some(i64::MAX));
        assert_eq!(Value::Text(b"5".to_vec()).whole_number(), None);
        assert_eq!(Value::Bool(true).whole_number(), None);
    }
}
