//! `seekscope exporter --web-config`: TLS and passwords, asked for by a real Prometheus and by strangers.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use seekscope_bench::deployment::certificates;

use crate::exporter_process::Exporter;
use crate::prometheus::Prometheus;
use crate::support::{Bench, assert_fails, prometheus_tool, python, stderr, until};

/// Prints the status of an answer over TLS, "refused" where there is none.
const ASK: &str = r"
import base64, ssl, sys, urllib.error, urllib.request
url, ca, login, client = open(sys.argv[1]).read().split('\n')
context = ssl.create_default_context(cafile=ca)
if client:
    context.load_cert_chain(client)
request = urllib.request.Request(url)
if login:
    request.add_header('Authorization', 'Basic ' + base64.b64encode(login.encode()).decode())
try:
    answer = urllib.request.urlopen(request, context=context, timeout=20)
    print(answer.status, answer.headers['X-Frame-Options'])
except urllib.error.HTTPError as error:
    print(error.code, error.headers['WWW-Authenticate'])
except (ssl.SSLError, urllib.error.URLError, ConnectionError):
    print('refused')
";

/// Certificates, and the file that is named, in a folder of their own.
struct Web {
    folder: PathBuf,
}

impl Web {
    fn new(bench: &Bench) -> Self {
        let folder = bench.path("web");
        fs::create_dir(&folder).unwrap();
        certificates::write(&folder).unwrap();
        Self { folder }
    }

    fn write(&self, password: &str, client_auth: &str) {
        let hash = bcrypt::hash(password, 4).unwrap();
        let text = format!(
            "tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\n  client_ca_file: ca.pem\n  \
             client_auth_type: {client_auth}\nbasic_auth_users:\n  prometheus: {hash}\nhttp_server_config:\n  \
             headers:\n    X-Frame-Options: deny\n"
        );
        fs::write(self.folder.join("web.yml"), text).unwrap();
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// Asks with these name and password, and with the client's certificate.
    fn ask(&self, exporter: &Exporter, page: &str, login: &str, certificate: &str) -> String {
        let client = match certificate {
            "" => String::new(),
            name => self.path(name),
        };
        let lines = [
            format!("https://{}{page}", exporter.address),
            self.path("ca.pem"),
            login.into(),
            client,
        ];
        let file = self.folder.join("question");
        fs::write(&file, lines.join("\n")).unwrap();
        python(ASK, &[&file]).trim().to_owned()
    }
}

fn exporter(bench: &Bench, web: &Web) -> Exporter {
    let pid = std::process::id().to_string();
    let file = web.path("web.yml");
    let arguments = ["--pid", &pid, "--no-trace", "--web-config", &file];
    Exporter::start(bench, &arguments)
}

#[test]
fn prometheus_logs_in_over_tls_and_strangers_do_not() {
    let bench = Bench::new();
    let web = Web::new(&bench);
    web.write("swordfish", "VerifyClientCertIfGiven");
    let exporter = exporter(&bench, &web);
    let right = "prometheus:swordfish";
    assert_eq!(web.ask(&exporter, "/metrics", right, ""), "200 deny");
    for (page, login) in [
        ("/metrics", ""),
        ("/metrics", "prometheus:wrong"),
        ("/metrics", "nobody:swordfish"),
        ("/healthz", ""),
        ("/", ""),
    ] {
        let answer = web.ask(&exporter, page, login, "");
        assert!(
            answer.starts_with("401 Basic realm="),
            "{page} {login}: {answer}"
        );
    }
    let job = format!(
        "    scheme: https\n    tls_config:\n      ca_file: {}\n    basic_auth:\n      username: prometheus\n      \
         password: swordfish\n",
        web.path("ca.pem")
    );
    let prometheus = Prometheus::scraping(&bench, exporter.address, &job);
    until(|| prometheus.query("up") == Some(vec![1.0]));
    until(|| prometheus.query("seekscope_exporter_build_info") == Some(vec![1.0]));
    // The password is changed, and both sides learn it without a restart of the exporter.
    web.write("marlin", "VerifyClientCertIfGiven");
    until(|| prometheus.query("up") == Some(vec![0.0]));
    assert_eq!(
        web.ask(&exporter, "/metrics", "prometheus:marlin", ""),
        "200 deny"
    );
    // What is wrong is not taken.
    fs::write(web.folder.join("web.yml"), "basic_auth_users: {}\n").unwrap();
    std::thread::sleep(Duration::from_secs(4));
    assert_eq!(
        web.ask(&exporter, "/metrics", "prometheus:marlin", ""),
        "200 deny"
    );
    let stranger = web.ask(&exporter, "/metrics", "", "");
    assert!(stranger.starts_with("401"), "{stranger}");
    exporter.end();
}

#[test]
fn without_a_certificate_nobody_speaks_where_one_is_demanded() {
    let bench = Bench::new();
    let web = Web::new(&bench);
    web.write("swordfish", "RequireAndVerifyClientCert");
    let exporter = exporter(&bench, &web);
    let right = "prometheus:swordfish";
    assert_eq!(web.ask(&exporter, "/metrics", right, ""), "refused");
    assert_eq!(
        web.ask(&exporter, "/metrics", right, "client.pem"),
        "200 deny"
    );
    // One who does not speak TLS is closed, at once or when the handshake takes too long.
    for sent in ["GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", ""] {
        let began = Instant::now();
        let mut stream = TcpStream::connect(exporter.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        stream.write_all(sent.as_bytes()).unwrap();
        let mut answer = Vec::new();
        // A reset connection is closed, too.
        let _ = stream.read_to_end(&mut answer);
        assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
        assert!(began.elapsed() < Duration::from_secs(20), "{sent:?}");
    }
    exporter.end();
}

#[test]
fn a_file_that_cannot_be_honoured_ends_the_start() {
    let bench = Bench::new();
    let file = bench.path("web.yml");
    let pid = std::process::id().to_string();
    let arguments = [
        "exporter",
        "--pid",
        &pid,
        "--web.config.file",
        file.to_str().unwrap(),
    ];
    for (text, said) in [
        (
            "tls_server_config:\n  cipher_suites: [TLS_AES_128_GCM_SHA256]\n",
            "cipher_suites",
        ),
        ("basic_auth_users:\n  a: secret\n", "bcrypt"),
        ("surprise: 1\n", "surprise"),
    ] {
        fs::write(&file, text).unwrap();
        let output = bench.seekscope(&arguments).output().unwrap();
        assert_fails(&output, 2, &[said]);
        assert!(!stderr(&output).contains("secret"), "{}", stderr(&output));
    }
    fs::remove_file(&file).unwrap();
    let output = bench.seekscope(&arguments).output().unwrap();
    assert_fails(&output, 2, &["web.yml"]);
    let text = ["--textfile", "."];
    let output = bench.seekscope(&arguments).args(text).output().unwrap();
    assert_fails(&output, 2, &["--listen"]);
}

/// The lines that docs/monitoring.md shows are ones that Prometheus takes.
#[test]
fn prometheus_takes_the_job_of_the_page() {
    let page = include_str!("../../../docs/monitoring.md");
    let job = page.split("```yaml\n").nth(2).unwrap();
    let job = job.split("```").next().unwrap();
    assert!(job.contains("scheme: https"), "{job}");
    let bench = Bench::new();
    fs::write(bench.path("ca.pem"), "").unwrap();
    fs::write(bench.path("password"), "secret").unwrap();
    let job = job.replace("/etc/prometheus/", "");
    let config = bench.path("prometheus.yml");
    fs::write(&config, job).unwrap();
    let output = std::process::Command::new(prometheus_tool("promtool"))
        .args(["check", "config", "--syntax-only"])
        .arg(&config)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}
