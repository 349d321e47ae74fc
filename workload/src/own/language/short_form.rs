//! Parses values that are written either short, as a number or a word, or as a table.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};

/// A type that both forms are converted to.
pub(super) trait ShortForm: Sized {
    type Table: for<'de> Deserialize<'de>;
    /// Allowed forms, for errors.
    const ALLOWED: &'static str;

    fn from_scalar(scalar: toml::Value) -> Result<Self, String>;
    fn from_table(table: Self::Table) -> Result<Self, String>;
}

/// Parses either form. Errors of the conversion arise inside the visitor, where the parser still knows the
/// line.
pub(super) fn read<'de, T: ShortForm, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    deserializer.deserialize_any(Either(PhantomData))
}

struct Either<T>(PhantomData<T>);

impl<T: ShortForm> Either<T> {
    fn scalar<E: de::Error>(scalar: impl Into<toml::Value>) -> Result<T, E> {
        T::from_scalar(scalar.into()).map_err(E::custom)
    }
}

impl<'de, T: ShortForm> Visitor<'de> for Either<T> {
    type Value = T;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(T::ALLOWED)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<T, E> {
        Self::scalar(value)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<T, E> {
        Self::scalar(value)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<T, E> {
        Self::scalar(value)
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<T, E> {
        Self::scalar(value)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        let table = T::Table::deserialize(MapAccessDeserializer::new(map))?;
        T::from_table(table).map_err(de::Error::custom)
    }
}

/// Returns the only one given of several; otherwise an error with what is allowed.
pub(super) fn only<T, const N: usize>(given: [Option<T>; N], allowed: &str) -> Result<T, String> {
    let mut given = given.into_iter().flatten();
    match (given.next(), given.next()) {
        (Some(one), None) => Ok(one),
        (None, _) => Err(format!("nothing is given; {allowed}")),
        (Some(_), Some(_)) => Err(format!("more than one alternative is given; {allowed}")),
    }
}

/// Implements deserialisation through [`ShortForm`].
macro_rules! deserialize_short_form {
    ($($name:ty),*) => { $(
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                super::short_form::read(deserializer)
            }
        }
    )* };
}
pub(super) use deserialize_short_form;
