//! Represents versions of servers as far as knobs depend on them: major and minor.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A version such as 4.2; anything after the second number does not matter to knobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Version {
    pub major: u32,
    pub minor: u32,
}

impl Version {
    /// Parses "4.2", "4.2.2" or "7.0.5-rc1"; `None` for text that does not begin with two numbers.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let major = parts.next()?.parse().ok()?;
        let minor = parts.next()?;
        let digits = minor.find(|c: char| !c.is_ascii_digit());
        let minor = minor.get(..digits.unwrap_or(minor.len()))?.parse().ok()?;
        Some(Self { major, minor })
    }
}

impl TryFrom<String> for Version {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("`{text}` is no version; write e.g. \"4.2\""))
    }
}

impl From<Version> for String {
    fn from(version: Version) -> Self {
        version.to_string()
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The versions that a knob or preset is for, both ends included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Versions {
    pub since: Option<Version>,
    pub until: Option<Version>,
}

impl Versions {
    /// Returns whether the version is in the range. A server that does not report its version is assumed to fit.
    pub fn include(&self, version: Option<Version>) -> bool {
        version.is_none_or(|version| {
            self.since.is_none_or(|since| since <= version)
                && self.until.is_none_or(|until| version <= until)
        })
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.since, self.until) {
            (None, None) => f.write_str("any version"),
            (Some(since), None) => write!(f, "{since} and later"),
            (None, Some(until)) => write!(f, "up to {until}"),
            (Some(since), Some(until)) => write!(f, "{since} to {until}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_numbers_count() {
        let version = |text| Version::parse(text);
        assert_eq!(version("4.2.2"), version("4.2"));
        assert_eq!(version("7.0-rc1").unwrap().to_string(), "7.0");
        assert!(version("10.0") > version("9.9"));
        for text in ["", "4", "4.", "x.2", "-1.2", "4.x"] {
            assert_eq!(version(text), None, "{text}");
        }
        let versions = Versions {
            since: version("3.6"),
            until: version("4.4"),
        };
        assert!(versions.include(version("4.4.9")) && versions.include(None));
        assert!(!versions.include(version("3.4")) && !versions.include(version("5.0")));
    }
}
