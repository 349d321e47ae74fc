//! Names of databases and collections. They come from users and from servers, and are not trusted.

use std::fmt;
use std::str::FromStr;

/// The server's own limits (manual, "Naming Restrictions").
const DATABASE_MAX_BYTES: usize = 63;
const NAMESPACE_MAX_BYTES: usize = 255;
const DATABASE_FORBIDDEN: [char; 6] = ['/', '\\', ' ', '"', '$', '\0'];

/// A checked `database.collection`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Namespace {
    database: String,
    collection: String,
}

/// The reason why a name is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is not a DATABASE.COLLECTION name: {why}")]
pub struct NamespaceError {
    given: String,
    why: &'static str,
}

impl NamespaceError {
    /// Names can be as long as a line; an error need not be.
    fn new(given: &str, why: &'static str) -> Self {
        let given = given.chars().take(100).collect();
        Self { given, why }
    }
}

impl Namespace {
    /// Returns why no database can have this name; `None` if one can.
    pub fn database_flaw(name: &str) -> Option<&'static str> {
        if name.is_empty() {
            Some("a database's name must not be empty")
        } else if name.len() > DATABASE_MAX_BYTES {
            Some("the database name is longer than 63 bytes")
        } else if name.contains(DATABASE_FORBIDDEN) || name.contains('.') {
            Some("the database name contains /, \\, ., \", $, a space or NUL")
        } else {
            None
        }
    }

    /// Checks both names.
    pub fn new(database: &str, collection: &str) -> Result<Self, NamespaceError> {
        let why = if database.is_empty() || collection.is_empty() {
            "the names of database and collection must not be empty"
        } else if let Some(why) = Self::database_flaw(database) {
            why
        } else if collection.contains('\0')
            || collection.starts_with('.')
            || collection.ends_with('.')
        {
            "the collection name contains NUL, or begins or ends with a dot"
        } else if database.len() + 1 + collection.len() > NAMESPACE_MAX_BYTES {
            "it is longer than 255 bytes"
        } else {
            return Ok(Self {
                database: database.into(),
                collection: collection.into(),
            });
        };
        Err(NamespaceError::new(
            &format!("{database}.{collection}"),
            why,
        ))
    }

    pub fn database(&self) -> &str {
        &self.database
    }

    pub fn collection(&self) -> &str {
        &self.collection
    }
}

impl FromStr for Namespace {
    type Err = NamespaceError;

    /// Splits at the first dot: collections may have dots in their names, databases may not.
    fn from_str(text: &str) -> Result<Self, NamespaceError> {
        match text.split_once('.') {
            Some((database, collection)) => Self::new(database, collection),
            None => Err(NamespaceError::new(text, "it has no dot")),
        }
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.database, self.collection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_dot_separates() {
        let parsed: Namespace = "sdu.aged.2024".parse().unwrap();
        assert_eq!(
            (parsed.database(), parsed.collection()),
            ("sdu", "aged.2024")
        );
        assert_eq!(parsed.to_string(), "sdu.aged.2024");
    }

    #[test]
    fn hostile_names_are_refused() {
        let long = "a".repeat(64);
        let longer = "b".repeat(255);
        for name in [
            "",
            "sdu",
            ".x",
            "sdu.",
            "a b.c",
            "a$b.c",
            "a/b.c",
            "a.b\0",
            "a..b",
            &format!("{long}.c"),
            &format!("a.{longer}"),
        ] {
            let error = name.parse::<Namespace>().unwrap_err();
            assert!(error.to_string().len() < 600, "{error}");
        }
    }
}
