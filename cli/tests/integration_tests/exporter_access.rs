//! `seekscope exporter --web-config`: who may scrape, and how.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use seekscope_bench::deployment::certificates;

use crate::exporter_process::{Answer, Exporter};
use crate::prometheus::Prometheus;
use crate::support::{
    Bench, ForeignServer, assert_fails, prometheus_tool, shared_machine, until, wait,
};

const TLS: &str = "tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\n";
const VERIFIED: &str = "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.pem\n";

fn user(password: &str) -> String {
    let hash = bcrypt::hash(password, 4).unwrap();
    format!("basic_auth_users:\n  alice: {hash}\n")
}

/// A folder with certificates and `web.yml`.
fn prepared(web_yml: &str) -> Bench {
    let bench = Bench::new();
    certificates::write(&bench.path("")).unwrap();
    fs::write(bench.path("web.yml"), web_yml).unwrap();
    // Prometheus' own reader takes it, too.
    let check = std::process::Command::new(prometheus_tool("promtool"))
        .args(["check", "web-config"])
        .arg(bench.path("web.yml"))
        .output()
        .unwrap();
    assert!(check.status.success(), "{check:?}");
    bench
}

fn started(bench: &Bench, uri: &str, more: &[&str]) -> Exporter {
    let arguments = [uri, "--every", "1s", "--no-trace", "--no-layout"];
    Exporter::start(bench, &[&arguments[..], more].concat())
}

/// A scrape over TLS. `as_client` shows a certificate.
fn scrape(
    bench: &Bench,
    exporter: &Exporter,
    password: Option<&str>,
    as_client: bool,
) -> std::io::Result<Answer> {
    let mut roots = RootCertStore::empty();
    let pem = |name: &str| CertificateDer::from_pem_file(bench.path(name)).unwrap();
    roots.add(pem("ca.pem")).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match as_client {
        true => {
            let key = PrivateKeyDer::from_pem_file(bench.path("client.key")).unwrap();
            config
                .with_client_auth_cert(vec![pem("client.crt")], key)
                .unwrap()
        }
        false => config.with_no_client_auth(),
    };
    // As Prometheus does.
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let name = "127.0.0.1".try_into().unwrap();
    let tls = ClientConnection::new(Arc::new(config), name).unwrap();
    let stream = TcpStream::connect(exporter.address)?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    let mut stream = StreamOwned::new(tls, stream);
    let login = password.map_or(String::new(), |password| {
        let pair = BASE64_STANDARD.encode(format!("alice:{password}"));
        format!("Authorization: Basic {pair}\r\n")
    });
    write!(
        stream,
        "GET /healthz HTTP/1.1\r\nHost: a\r\n{login}Connection: close\r\n\r\n"
    )?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    Ok(Answer::read(&bytes))
}

#[test]
fn prometheus_scrapes_with_tls_and_a_password() {
    let _machine = shared_machine();
    let headers = "http_server_config:\n  headers:\n    X-Frame-Options: deny\n";
    let bench = prepared(&format!("{TLS}{}{headers}", user("geheim")));
    let server = ForeignServer::start(&bench.path("data"), "64MB");
    let exporter = started(&bench, &server.uri, &["--web.config.file", "web.yml"]);
    let how = format!(
        "    scheme: https\n    tls_config:\n      ca_file: {}\n    basic_auth:\n      username: alice\n      password: geheim\n",
        bench.path("ca.pem").display()
    );
    let prometheus = Prometheus::scraping(&bench, exporter.address, &how);
    until(|| prometheus.query("up") == Some(vec![1.0]));
    until(|| prometheus.query("seekscope_up") == Some(vec![1.0]));
    drop(prometheus);
    let right = scrape(&bench, &exporter, Some("geheim"), false).unwrap();
    assert_eq!(right.status, 200);
    assert!(right.head.contains("x-frame-options: deny"));
    for password in [None, Some("Geheim"), Some("")] {
        let answer = scrape(&bench, &exporter, password, false).unwrap();
        assert_eq!(answer.status, 401, "/healthz is protected, too");
        assert!(answer.head.contains("www-authenticate: basic"));
        assert!(answer.head.contains("x-frame-options: deny"));
        assert!(!answer.body.contains("geheim"));
    }
    exporter.end();
}

#[test]
fn whoever_has_no_certificate_is_refused_where_one_is_required() {
    let _machine = shared_machine();
    let bench = prepared(&format!("{TLS}{VERIFIED}"));
    let server = ForeignServer::start(&bench.path("data"), "64MB");
    let exporter = started(&bench, &server.uri, &["--web-config", "web.yml"]);
    until(|| scrape(&bench, &exporter, None, true).is_ok_and(|answer| answer.status == 200));
    assert!(scrape(&bench, &exporter, None, false).is_err());
    // That of another authority.
    let other = prepared(TLS);
    fs::copy(bench.path("ca.pem"), other.path("ca.pem")).unwrap();
    assert!(scrape(&other, &exporter, None, true).is_err());
    exporter.end();
    for (word, takes_any) in [
        ("RequestClientCert", true),
        ("RequireAnyClientCert", true),
        ("VerifyClientCertIfGiven\n  client_ca_file: ca.pem", false),
    ] {
        fs::write(
            bench.path("web.yml"),
            format!("{TLS}  client_auth_type: {word}\n"),
        )
        .unwrap();
        let exporter = started(&bench, &server.uri, &["--web-config", "web.yml"]);
        let is_let_in = |bench, as_client| {
            scrape(bench, &exporter, None, as_client).is_ok_and(|answer| answer.status > 0)
        };
        assert!(is_let_in(&bench, true), "{word}");
        assert_eq!(is_let_in(&other, true), takes_any, "{word}");
        let is_required = word == "RequireAnyClientCert";
        assert_eq!(is_let_in(&bench, false), !is_required, "{word}");
        exporter.end();
    }
}

#[test]
fn plain_requests_and_silence_hold_no_connection_of_a_tls_port() {
    let _machine = shared_machine();
    let bench = prepared(TLS);
    let server = ForeignServer::start(&bench.path("data"), "64MB");
    let exporter = started(&bench, &server.uri, &["--web-config", "web.yml"]);
    let began = Instant::now();
    let plain = exporter.request("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(plain.is_ok_and(|answer| answer.status == 0));
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "it is closed at once"
    );
    let silent: Vec<TcpStream> = (0..200)
        .filter_map(|_| TcpStream::connect(exporter.address).ok())
        .collect();
    assert!(
        scrape(&bench, &exporter, None, false).is_err(),
        "all are taken"
    );
    until(|| scrape(&bench, &exporter, None, false).is_ok_and(|answer| answer.status > 0));
    assert!(began.elapsed() < Duration::from_secs(25));
    drop(silent);
    exporter.end();
}

#[test]
fn a_change_holds_without_a_restart_unless_it_is_wrong() {
    let _machine = shared_machine();
    let bench = prepared(&format!("{TLS}{}", user("geheim1")));
    let server = ForeignServer::start(&bench.path("data"), "64MB");
    let mut exporter = started(&bench, &server.uri, &["--web-config", "web.yml"]);
    let status = |exporter: &Exporter, password| {
        scrape(&bench, exporter, Some(password), false).map_or(0, |answer| answer.status)
    };
    until(|| status(&exporter, "geheim1") == 200);
    fs::write(bench.path("web.yml"), format!("{TLS}{}", user("geheim2"))).unwrap();
    until(|| status(&exporter, "geheim2") == 200);
    assert_eq!(status(&exporter, "geheim1"), 401, "it is not remembered");
    // Another authority, its certificate and key.
    certificates::write(&bench.path("")).unwrap();
    until(|| status(&exporter, "geheim2") == 200);
    for (wrong, part) in [
        (
            format!("{TLS}basic_auth_users: {{ alice: geheim2 }}"),
            "bcrypt",
        ),
        (TLS.into(), "no longer has basic_auth_users"),
        (String::new(), "no longer has tls_server_config"),
    ] {
        fs::write(bench.path("web.yml"), wrong).unwrap();
        let said = exporter.until_said("still applies");
        assert!(said.contains(part), "{said}");
        assert!(said.contains("web.yml"), "{said}");
        assert!(!said.contains("geheim"), "{said}");
        assert_eq!(status(&exporter, "geheim2"), 200);
        assert_eq!(status(&exporter, "geheim1"), 401);
    }
    exporter.end();
}

#[test]
fn a_file_that_is_wrong_ends_the_start() {
    let bench = prepared(TLS);
    let run = |web_yml: &str, more: &[&str]| {
        fs::write(bench.path("web.yml"), web_yml).unwrap();
        let mut command = bench.seekscope(&["exporter", "mongodb://127.0.0.1:1/"]);
        command.args(more).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        wait(&mut child, Duration::from_secs(30));
        child.wait_with_output().unwrap()
    };
    let listen = ["--listen", "127.0.0.1:0", "--web-config", "web.yml"];
    for (web_yml, parts) in [
        ("rate_limit: {}".to_owned(), ["web.yml", "rate_limit"]),
        (
            format!("{TLS}  cipher_suites: [x]"),
            ["web.yml", "cipher_suites"],
        ),
        (
            TLS.replace("server.key", "nowhere"),
            ["cannot read", "nowhere"],
        ),
        (
            TLS.replace("server.key", "client.key"),
            ["client.key", "pair"],
        ),
    ] {
        assert_fails(&run(&web_yml, &listen), 2, &parts);
    }
    fs::create_dir(bench.path("textfile")).unwrap();
    let nobody = ["--textfile", "textfile", "--web-config", "web.yml"];
    assert_fails(&run(TLS, &nobody), 2, &["--web-config", "--listen"]);
    let nowhere = ["--listen", "127.0.0.1:0", "--web-config", "nowhere.yml"];
    assert_fails(&run(TLS, &nowhere), 2, &["cannot read", "nowhere.yml"]);
}
