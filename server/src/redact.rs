//! Removes secrets from connection strings and from texts that quote them.
//!
//! Nothing here parses strictly: a string that a driver refuses is the one most likely to be shown in an error,
//! so anything that may be a secret is removed, even if part of a host name is removed with it.

use percent_encoding::percent_decode_str;

/// The replacement for a secret.
const HIDDEN: &str = "***";
const SCHEMES: [&str; 3] = ["mongodb+srv://", "mongodb://", "cql://"];
/// Replacing every "a" in a text because the password is "a" would hide the text, not the password.
const SECRET_MIN_BYTES: usize = 3;
/// Bounds the work on absurd strings.
const SEPARATORS_MAX: usize = 64;
/// Options, in lower case, whose values are secrets or may contain some.
const SECRET_OPTIONS: [&str; 6] = [
    "authmechanismproperties",
    "tlscertificatekeyfilepassword",
    "sslclientcertificatekeypassword",
    "proxypassword",
    "proxyusername",
    "password",
];

/// Returns the connection string without user name, password and secret options. Works on malformed strings
/// too: everything before the last `@` is taken for credentials.
pub fn redact_uri(uri: &str) -> String {
    let scheme = scheme_of(uri);
    let rest = uri.get(scheme.len()..).unwrap_or(uri);
    let hosts_and_options = match rest.rsplit_once('@') {
        Some((_, after)) => after.to_string(),
        None => redact_hosts(rest),
    };
    let text = match hosts_and_options.split_once('?') {
        Some((hosts, options)) => format!("{hosts}?{}", redact_options(options)),
        None => hosts_and_options,
    };
    format!("{scheme}{text}")
}

/// Returns a text in which `uri`'s secrets, and every connection string, are replaced.
pub fn redact_text(text: &str, uri: &str) -> String {
    let mut text = if uri.is_empty() {
        text.into()
    } else {
        text.replace(uri, &redact_uri(uri))
    };
    let mut secrets = secrets(uri);
    // The longest first: a decoded password may be part of the encoded one.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    for secret in &secrets {
        text = text.replace(secret.as_str(), HIDDEN);
    }
    redact_embedded(&text)
}

/// Returns every piece of the connection string that may be a password, raw and percent-decoded. In a malformed
/// string any `:` may begin it and any `@` may end it, so all such pieces count.
fn secrets(uri: &str) -> Vec<String> {
    let rest = uri.get(scheme_of(uri).len()..).unwrap_or(uri);
    let mut secrets = Vec::new();
    let ends: Vec<usize> = rest
        .match_indices('@')
        .map(|(at, _)| at)
        .take(SEPARATORS_MAX)
        .collect();
    let starts = rest
        .match_indices(':')
        .map(|(at, _)| at + 1)
        .take(SEPARATORS_MAX);
    for start in starts {
        secrets.extend(
            ends.iter()
                .filter_map(|&end| rest.get(start..end))
                .map(String::from),
        );
        if ends.is_empty() && redact_hosts(rest) == HIDDEN {
            secrets.extend(rest.get(start..).map(String::from));
        }
    }
    let options = rest.split_once('?').map_or("", |(_, options)| options);
    for (name, value) in options
        .split(['&', ';'])
        .filter_map(|option| option.split_once('='))
    {
        if is_secret_option(name) {
            secrets.push(value.to_string());
            secrets.extend(value.split([',', ':']).skip(1).map(String::from));
        }
    }
    let decoded: Vec<String> = secrets
        .iter()
        .map(|secret| percent_decode_str(secret).decode_utf8_lossy().into_owned())
        .collect();
    secrets.extend(decoded);
    secrets.retain(|secret| secret.len() >= SECRET_MIN_BYTES);
    secrets
}

/// Redacts the hosts. Without an `@`, `name:text` can be a user and a password whose host was forgotten, so
/// only a number after the colon is accepted as a port.
fn redact_hosts(rest: &str) -> String {
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let hosts = rest.get(..end).unwrap_or(rest);
    let is_host = |host: &str| {
        let port = host.rsplit_once(']').map_or(host, |(_, port)| port);
        port.split_once(':').is_none_or(|(_, port)| {
            (1..=5).contains(&port.len()) && port.bytes().all(|b| b.is_ascii_digit())
        })
    };
    if hosts.split(',').all(is_host) {
        rest.to_string()
    } else {
        HIDDEN.to_string()
    }
}

fn redact_options(options: &str) -> String {
    let redacted = options
        .split('&')
        .map(|option| match option.split_once('=') {
            Some((name, _)) if is_secret_option(name) => format!("{name}={HIDDEN}"),
            _ => option.to_string(),
        });
    redacted.collect::<Vec<_>>().join("&")
}

fn is_secret_option(name: &str) -> bool {
    SECRET_OPTIONS.contains(&name.to_ascii_lowercase().as_str())
}

/// Replaces connection strings inside a text; one ends at a blank or a quotation mark.
fn redact_embedded(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = SCHEMES.iter().filter_map(|scheme| rest.find(scheme)).min() {
        let (before, uri) = rest.split_at(start);
        let end = uri
            .find([' ', '\n', '\t', '"', '\'', '`'])
            .unwrap_or(uri.len());
        result.push_str(before);
        result.push_str(&redact_uri(&uri[..end]));
        rest = &uri[end..];
    }
    result + rest
}

/// Returns the scheme as written, or an empty text.
fn scheme_of(uri: &str) -> &str {
    let starts = SCHEMES.into_iter().filter_map(|scheme| {
        uri.get(..scheme.len())
            .filter(|s| s.eq_ignore_ascii_case(scheme))
    });
    starts.max_by_key(|start| start.len()).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn well_formed_strings_keep_all_but_the_credentials() {
        for (uri, expected) in [
            (
                "mongodb://h1:27017,h2/db?replicaSet=r",
                "mongodb://h1:27017,h2/db?replicaSet=r",
            ),
            (
                "mongodb://u:p@h:27017/?tls=true",
                "mongodb://h:27017/?tls=true",
            ),
            (
                "mongodb+srv://u:p%40q@c.example.net/",
                "mongodb+srv://c.example.net/",
            ),
            ("mongodb://u@h", "mongodb://h"),
            ("mongodb://[::1]:27017/db", "mongodb://[::1]:27017/db"),
            ("mongodb://%2Ftmp%2Fs.sock", "mongodb://%2Ftmp%2Fs.sock"),
            (
                "mongodb://h/?authMechanismProperties=AWS_SESSION_TOKEN:x&tls=true",
                "mongodb://h/?authMechanismProperties=***&tls=true",
            ),
        ] {
            assert_eq!(redact_uri(uri), expected);
        }
    }

    #[test]
    fn malformed_strings_lose_too_much_rather_than_too_little() {
        assert_eq!(redact_uri("mongodb://u:pa/ss?w@rd@h/db"), "mongodb://h/db");
        assert_eq!(redact_uri("mongodb://user:secret"), "mongodb://***");
        assert_eq!(redact_uri("mongodb://user:se/cret"), "mongodb://***");
        assert_eq!(redact_uri("user:secret@host"), "host");
        assert_eq!(redact_uri("MongoDB://u:secret@h"), "MongoDB://h");
        assert_eq!(redact_uri(""), "");
    }

    #[test]
    fn texts_lose_decoded_passwords_too() {
        let uri = "mongodb://me:s%40cret@h/";
        let text = "cannot use mongodb://me:s%40cret@h/: bad s@cret, again s%40cret";
        assert_eq!(
            redact_text(text, uri),
            "cannot use mongodb://h/: bad ***, again ***"
        );
        assert_eq!(
            redact_text("see 'mongodb://a:bcd@h' ok", ""),
            "see 'mongodb://h' ok"
        );
    }

    proptest! {
        // The alphabet holds every separator that has a meaning in a connection string; the core
        // makes an accidental match elsewhere impossible.
        #[test]
        fn the_password_never_survives(
            before in "[:/?@&=%,;#a-z]{0,6}",
            after in "[:/?@&=%,;#a-z]{0,6}",
            scheme in "(mongodb://|mongodb\\+srv://|mongo:|)",
            user in "[a-z:@%]{0,5}",
            tail in "(h|h:27017|h1,h2:1|\\[::1\\]|)(/db|/|)(\\?tls=true|\\?authSource=a@b|)",
        ) {
            let password = format!("{before}QZ9X{after}");
            let uri = format!("{scheme}{user}:{password}@{tail}");
            prop_assert!(!redact_uri(&uri).contains("QZ9X"), "{uri} -> {}", redact_uri(&uri));
            for text in [format!("failed: {uri}"), format!("'{uri}' {password}"), format!("({password})")] {
                prop_assert!(!redact_text(&text, &uri).contains("QZ9X"), "{text}");
            }
        }

        #[test]
        fn the_forgotten_host(password in "[a-z/?&]{0,3}QZ9X[a-z/?&]{0,3}") {
            let shown = redact_uri(&format!("mongodb://user:{password}"));
            prop_assert!(!shown.contains("QZ9X"), "{shown}");
        }

        #[test]
        fn never_fails(text in any::<String>(), uri in any::<String>()) {
            redact_uri(&uri);
            redact_text(&text, &uri);
        }
    }
}
