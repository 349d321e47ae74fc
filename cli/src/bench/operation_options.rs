//! The options of a connection string that change how operations are asked and acknowledged, but not of whom.

use std::collections::BTreeSet;

/// Names of these options, in small letters, as [the drivers' common specification] has them.
///
/// [the drivers' common specification]: https://github.com/mongodb/specifications/blob/master/source/uri-options/uri-options.md
const NAMES: [&str; 9] = [
    "compressors",
    "journal",
    "maxstalenessseconds",
    "readconcernlevel",
    "readpreference",
    "readpreferencetags",
    "retryreads",
    "retrywrites",
    "w",
];

/// Returns these options of a connection string, as `name=value`.
pub fn operation_options(uri: &str) -> BTreeSet<String> {
    let query = uri.split_once('?').map_or("", |(_, query)| query);
    let is_one = |option: &&str| {
        let name = option.split('=').next().unwrap_or_default();
        NAMES.contains(&name.to_ascii_lowercase().as_str())
    };
    query.split('&').filter(is_one).map(String::from).collect()
}

/// Returns a name for each connection string by the options that not all of them have; `None` if two names are the same.
pub fn names_by_options(uris: &[&str]) -> Option<Vec<String>> {
    let options: Vec<BTreeSet<String>> = uris.iter().map(|uri| operation_options(uri)).collect();
    let is_common = |option: &String| options.iter().all(|of_one| of_one.contains(option));
    let name = |of_one: &BTreeSet<String>| {
        let own = of_one.iter().filter(|option| !is_common(option));
        let own: Vec<&str> = own.map(String::as_str).collect();
        match own.as_slice() {
            [] => "defaults".into(),
            own => own.join("&"),
        }
    };
    let names: Vec<String> = options.iter().map(name).collect();
    let distinct: BTreeSet<&String> = names.iter().collect();
    (distinct.len() == names.len()).then_some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_are_named_by_what_sets_them_apart() {
        let names = names_by_options(&[
            "mongodb://u:p@a/?replicaSet=rs&w=1&retryWrites=true",
            "mongodb://u:p@a/?w=majority&journal=false&retryWrites=true",
            "mongodb://u:p@a/?retryWrites=true&tlsCertificateKeyFilePassword=secret",
        ]);
        assert_eq!(
            names.unwrap(),
            ["w=1", "journal=false&w=majority", "defaults"]
        );
        assert_eq!(
            names_by_options(&["mongodb://a/?w=1", "mongodb://b/?w=1"]),
            None
        );
    }
}
