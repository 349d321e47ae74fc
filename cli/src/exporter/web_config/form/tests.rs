use super::*;

/// A bcrypt hash with a cost of 4.
const HASH: &str = "$2y$04$FTV3gb5XKUGJLCQORqxqiOWwQCC4ZXPRTBpIPbDqLaMRCGO0QfL3S";
const SECRET: &str = "geheim";

fn parse(text: &str) -> Result<Form, FormError> {
    Form::parse(text, Path::new("/etc/seekscope"))
}

#[track_caller]
fn refusal(text: &str) -> String {
    let refusal = parse(text).err().map(|error| error.to_string());
    let refusal = refusal.unwrap_or_else(|| panic!("taken: {text}"));
    assert!(!refusal.contains(SECRET), "{refusal}");
    assert!(!refusal.contains("$2"), "{refusal}");
    assert!(!refusal.contains('\n'), "one sentence: {refusal}");
    refusal
}

/// A section on TLS with one more line.
fn tls_with(line: &str) -> String {
    format!("tls_server_config:\n  cert_file: a.crt\n  key_file: a.key\n  {line}\n")
}

#[track_caller]
fn path_of(pem: &Pem) -> &Path {
    match pem {
        Pem::File(path) => path,
        Pem::Inline(field, _) => panic!("{field} is inline"),
    }
}

#[test]
fn everything_that_can_be_done_is_taken() {
    let form = parse(&format!(
        "tls_server_config:
  cert_file: tls/a.crt
  key_file: /keys/a.key
  client_ca_file: ca.pem
  client_auth_type: RequireAndVerifyClientCert
  min_version: TLS13
  max_version: TLS13
basic_auth_users:
  alice: {HASH}
  '7': {HASH}
http_server_config:
  http2: false
  headers:
    X-Frame-Options: deny
    X-Content-Type-Options: nosniff
    X-XSS-Protection: 1
    Strict-Transport-Security: max-age=31536000; includeSubDomains
    Content-Security-Policy: \"default-src 'self'\"
"
    ))
    .unwrap();
    let tls = form.tls.unwrap();
    assert_eq!(path_of(&tls.cert), "/etc/seekscope/tls/a.crt");
    assert_eq!(path_of(&tls.key), "/keys/a.key");
    assert_eq!(path_of(&tls.client_ca.unwrap()), "/etc/seekscope/ca.pem");
    assert_eq!(tls.client_auth, ClientAuth::Verified);
    assert_eq!(tls.min_version, TlsVersion::Tls13);
    let names: Vec<&String> = form.users.keys().collect();
    assert_eq!(names, ["7", "alice"]);
    assert_eq!(form.users["alice"], HASH);
    assert_eq!(form.headers.len(), 5);
    assert_eq!(form.headers["x-xss-protection"], "1");
}

#[test]
fn what_is_left_out_is_as_the_format_has_it() {
    for empty in ["", "{}", "# nothing\n", "basic_auth_users:\n"] {
        let form = parse(empty).unwrap();
        assert!(form.tls.is_none() && form.users.is_empty() && form.headers.is_empty());
    }
    let form = parse(&tls_with("")).unwrap();
    let tls = form.tls.unwrap();
    assert_eq!(tls.client_auth, ClientAuth::NotAsked);
    assert_eq!(tls.min_version, TlsVersion::Tls12);
    assert_eq!(tls.max_version, TlsVersion::Tls13);
    let form = parse("tls_server_config: { cert: CERT, key: KEY }").unwrap();
    let tls = form.tls.unwrap();
    assert!(matches!(tls.cert, Pem::Inline("cert", text) if text == "CERT"));
    assert!(matches!(tls.key, Pem::Inline("key", text) if text == "KEY"));
}

#[test]
fn clients_certificates_are_wanted_in_five_ways() {
    for (name, auth) in CLIENT_AUTH {
        let ca = match auth {
            ClientAuth::NotAsked => "",
            _ => "\n  client_ca_file: ca.pem",
        };
        let form = parse(&tls_with(&format!("client_auth_type: {name}{ca}"))).unwrap();
        assert_eq!(form.tls.unwrap().client_auth, auth, "{name}");
    }
}

#[test]
fn a_field_that_cannot_be_honoured_is_refused_by_name() {
    for (line, field) in [
        ("cipher_suites: [geheim]", "cipher_suites"),
        ("curve_preferences: []", "curve_preferences"),
        (
            "prefer_server_cipher_suites: true",
            "prefer_server_cipher_suites",
        ),
        ("client_allowed_sans: [geheim]", "client_allowed_sans"),
        ("min_version: TLS10", "min_version"),
        ("min_version: TLS11", "min_version"),
        ("max_version: TLS11", "max_version"),
        ("max_version: geheim", "max_version"),
        ("client_auth_type: geheim", "client_auth_type"),
        ("cert: geheim", "cert"),
        ("key: geheim", "key"),
        (
            "client_auth_type: RequireAndVerifyClientCert",
            "client_auth_type",
        ),
        (
            "client_auth_type: VerifyClientCertIfGiven",
            "client_auth_type",
        ),
        ("client_ca_file: ca.pem", "client_ca_file"),
        (
            "client_ca_file: ca.pem\n  client_ca: geheim\n  client_auth_type: RequireAndVerifyClientCert",
            "client_ca",
        ),
        ("min_version: TLS13\n  max_version: TLS12", "min_version"),
    ] {
        let refusal = refusal(&tls_with(line));
        let named = format!("tls_server_config.{field} ");
        assert!(refusal.starts_with(&named), "{line}: {refusal}");
    }
    for (text, field) in [
        ("rate_limit: { burst: 1 }", "rate_limit"),
        (
            "http_server_config: { http2: true }",
            "http_server_config.http2",
        ),
        (
            "http_server_config: { http2: geheim }",
            "http_server_config.http2",
        ),
        (
            "http_server_config: { headers: { X-Frame-Options: geheim } }",
            "http_server_config.headers.X-Frame-Options",
        ),
        (
            "http_server_config: { headers: { X-XSS-Protection: \"geheim\\n\" } }",
            "http_server_config.headers.X-XSS-Protection",
        ),
        ("tls_server_config: {}", "tls_server_config"),
        (
            "tls_server_config: { min_version: TLS13 }",
            "tls_server_config",
        ),
        (
            "tls_server_config: { cert_file: a }",
            "tls_server_config has neither key",
        ),
        (
            "tls_server_config: { key_file: a }",
            "tls_server_config has neither cert",
        ),
        (
            "tls_server_config: geheim",
            "tls_server_config has no fields",
        ),
        ("geheim", "the file has no fields"),
    ] {
        let refusal = refusal(text);
        assert!(refusal.starts_with(field), "{text}: {refusal}");
    }
}

#[test]
fn an_unknown_field_is_refused_at_any_depth() {
    for (text, within, name) in [
        ("tls_config: {}", "the file", "tls_config"),
        (&tls_with("certs: geheim"), "tls_server_config", "certs"),
        (
            "http_server_config: { http3: true }",
            "http_server_config",
            "http3",
        ),
        (
            "http_server_config: { headers: { Server: geheim } }",
            "http_server_config.headers",
            "Server",
        ),
        // Not a field's name at all, but perhaps a secret in the wrong place.
        (
            "$2y$04$FTV3gb5XKUGJLCQORqxqiOWwQCC4ZXPRTBpIPbDqLaMRCGO0QfL3S: alice",
            "the file",
            "of that name",
        ),
    ] {
        let refusal = refusal(text);
        let said = format!("{within} must not have a field {name}; the known fields are ");
        assert!(refusal.starts_with(&said), "{text}: {refusal}");
    }
}

#[test]
fn users_are_refused_without_telling_what_stands_there() {
    let costly = HASH.replace("$04$", "$17$");
    let cheap = HASH.replace("$04$", "$03$");
    let short = &HASH[..59];
    for (user, why) in [
        ("alice: geheim".to_owned(), "has no bcrypt hash"),
        (format!("alice: {short}"), "has no bcrypt hash"),
        (format!("{HASH}: alice"), "has no bcrypt hash"),
        ("alice: [geheim]".to_owned(), "has no bcrypt hash"),
        (format!("alice: {costly}"), "cost"),
        (format!("alice: {cheap}"), "cost"),
        (format!("7: {HASH}"), "quotes"),
        (format!("'geheim:': {HASH}"), "colon"),
    ] {
        let refusal = refusal(&format!("basic_auth_users:\n  bob: {HASH}\n  {user}\n"));
        assert!(
            refusal.starts_with("basic_auth_users, entry 2, "),
            "{refusal}"
        );
        assert!(refusal.contains(why), "{user}: {refusal}");
    }
}

#[test]
fn what_is_no_yaml_is_refused_with_its_place() {
    let refusal_of_tab = refusal("basic_auth_users:\n\tgeheim: x\n");
    assert!(refusal_of_tab.contains("line 2"), "{refusal_of_tab}");
    for text in [
        "basic_auth_users:\n  geheim: a\n  geheim: b\n",
        "a: 1\n---\nb: 2\n",
        "geheim: [",
        "x: &a [*a]",
        "x: *geheim",
    ] {
        assert!(refusal(text).starts_with("it is not a single YAML document"));
    }
}
