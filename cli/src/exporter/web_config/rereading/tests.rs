use std::fs;

use seekscope_bench::deployment::certificates;

use super::*;

const HASH: &str = "$2y$04$FTV3gb5XKUGJLCQORqxqiOWwQCC4ZXPRTBpIPbDqLaMRCGO0QfL3S";

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        certificates::write(folder.path()).unwrap();
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, text: &str) {
        fs::write(self.path("web.yml"), text).unwrap();
    }

    fn begin(&self) -> Result<Rereading> {
        Rereading::begin(&self.path("web.yml"))
    }

    #[track_caller]
    fn assert_refused(&self, text: &str, parts: &[&str]) {
        self.write(text);
        let error = self.begin().err().unwrap();
        let message = message_of(&error);
        let place = format!("--web-config {}: ", self.path("web.yml").display());
        assert!(message.starts_with(&place), "{message}");
        assert!(!message.contains("geheim"), "{message}");
        for part in parts {
            assert!(message.contains(part), "{part}: {message}");
        }
        let code = crate::exit::code_of(&error);
        assert_eq!(code, 2);
    }
}

const TLS: &str = "tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\n";

fn users() -> String {
    format!("basic_auth_users:\n  alice: {HASH}\n")
}

#[test]
fn files_that_are_named_are_refused_by_their_names() {
    let folder = Folder::new();
    fs::write(folder.path("nothing"), "geheim").unwrap();
    let broken = fs::read_to_string(folder.path("server.key")).unwrap();
    let broken = broken.replace("PRIVATE KEY", "geheim KEY");
    fs::write(folder.path("broken.key"), broken).unwrap();
    fs::File::create(folder.path("long"))
        .unwrap()
        .set_len(2 << 20)
        .unwrap();
    let fifo = rustix::fs::Mode::RUSR;
    rustix::fs::mknodat(
        rustix::fs::CWD,
        folder.path("fifo"),
        rustix::fs::FileType::Fifo,
        fifo,
        0,
    )
    .unwrap();
    for (from, to, parts) in [
        ("server.crt", "nowhere", ["cannot read", "/nowhere"]),
        ("server.crt", "nothing", ["/nothing", "certificate in PEM"]),
        ("server.key", "nothing", ["/nothing", "private key in PEM"]),
        (
            "server.key",
            "broken.key",
            ["/broken.key", "private key in PEM"],
        ),
        ("server.key", "long", ["/long", "1 MiB"]),
        ("server.key", "fifo", ["/fifo", "not a file"]),
        ("server.key", ".", ["/.", "not a file"]),
        (
            "server.key",
            "client.key",
            ["/client.key", "does not belong to the certificate"],
        ),
    ] {
        folder.assert_refused(&TLS.replace(from, to), &parts);
    }
    let verified =
        format!("{TLS}  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ");
    folder.assert_refused(
        &format!("{verified}server.key\n"),
        &["/server.key", "certificate in PEM"],
    );
    folder.assert_refused(
        "tls_server_config: { cert: geheim, key: geheim }",
        &["tls_server_config.cert", "certificate in PEM"],
    );
    let cert = fs::read_to_string(folder.path("server.crt")).unwrap();
    let inline = cert.replace('\n', "\n    ");
    folder.assert_refused(
        &format!("tls_server_config:\n  cert: |\n    {inline}\n  key: geheim\n"),
        &["tls_server_config.key", "private key in PEM"],
    );
    fs::write(folder.path("web.yml"), [0xff, 0xfe]).unwrap();
    assert!(folder.begin().is_err());
}

#[test]
fn certificate_key_and_authority_may_stand_in_the_file_itself() {
    let folder = Folder::new();
    let inline = |name: &str| {
        let text = fs::read_to_string(folder.path(name)).unwrap();
        text.replace('\n', "\n    ")
    };
    let (cert, key, ca) = (inline("server.crt"), inline("server.key"), inline("ca.pem"));
    folder.write(&format!(
        "tls_server_config:\n  cert: |\n    {cert}\n  key: |\n    {key}\n  client_ca: |\n    {ca}\n  client_auth_type: RequireAndVerifyClientCert\n"
    ));
    let access = folder.begin().unwrap().access().unwrap();
    assert!(access.config().tls.is_some());
    assert_eq!(access.config().warning(), None);
}

/// Looks until a change has settled, and returns what became of it.
fn look(files: &mut Files, before: &WebConfig) -> Option<Result<WebConfig, String>> {
    assert!(
        files.look(before).is_none(),
        "it may still be being written"
    );
    let looked = files.look(before)?;
    Some(looked.map_err(|error| message_of(&error)))
}

#[test]
fn a_change_is_read_once_and_what_is_wrong_is_said_once() {
    let folder = Folder::new();
    let verified = "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.pem\n";
    folder.write(&format!("{TLS}{verified}{}", users()));
    let Rereading { mut files, config } = folder.begin().unwrap();
    let before = Arc::clone(&config.borrow());
    assert!(look(&mut files, &before).is_none(), "nothing has changed");
    // A new pair, one after the other.
    let other = Folder::new();
    for name in ["server.crt", "server.key"] {
        assert!(files.look(&before).is_none());
        fs::copy(other.path(name), folder.path(name)).unwrap();
    }
    assert!(look(&mut files, &before).unwrap().is_ok());
    assert!(look(&mut files, &before).is_none());
    // Each protection that the end of the file brought.
    for (text, lost) in [
        (String::new(), "tls_server_config"),
        (users(), "tls_server_config"),
        (TLS.into(), "client_auth_type"),
        (format!("{TLS}{}", users()), "client_auth_type"),
        (format!("{TLS}{verified}"), "basic_auth_users"),
    ] {
        folder.write(&text);
        let refused = look(&mut files, &before).unwrap().err().unwrap();
        assert!(refused.contains(lost), "{text}: {refused}");
        assert!(look(&mut files, &before).is_none(), "it is said once");
    }
    fs::remove_file(folder.path("web.yml")).unwrap();
    let refused = look(&mut files, &before).unwrap().err().unwrap();
    assert!(refused.contains("cannot read"), "{refused}");
    folder.write(&format!("{TLS}{verified}{}", users()));
    assert!(look(&mut files, &before).unwrap().is_ok());
}

#[test]
fn whoever_listens_without_protection_is_warned() {
    let folder = Folder::new();
    let warning = |text: &str| {
        folder.write(text);
        folder.begin().unwrap().access().unwrap().config().warning()
    };
    assert!(warning("").unwrap().contains("names of collections"));
    assert!(warning(TLS).unwrap().contains("names of collections"));
    assert!(warning(&users()).unwrap().contains("unencrypted"));
    assert_eq!(warning(&format!("{TLS}{}", users())), None);
    assert_eq!(WebConfig::default().warning(), warning(""));
}
