//! What goes wrong is told apart, explained, and told without secrets.

use std::time::Duration;

use bson::{Document, doc};
use mongodb::Client;
use seekscope_client::request::Verb;
use seekscope_client::{AsyncClientFactory, DriverTarget, Failure, FailureKind};

use super::fixture::{TestServer, done, failed};

#[path = "../../../../bench/src/deployment/certificates.rs"]
#[allow(unreachable_pub, reason = "public in the crate that it belongs to")]
mod certificates;

const PASSWORD: &str = "QZ9Xse:cr@et";
const PASSWORD_IN_URI: &str = "QZ9Xse%3Acr%40et";

/// Connecting must fail, within the driver's limits, and without the password.
async fn refused(uri: &str) -> Failure {
    let target = DriverTarget::new(uri, "d");
    assert!(!format!("{target:?}").contains("QZ9X"), "{target:?}");
    let limit = Duration::from_secs(60);
    let result = tokio::time::timeout(limit, target.connect(2)).await;
    let answer = result.expect("an answer in time");
    let failure = answer.err().expect("a refusal");
    assert!(!format!("{failure:?}").contains("QZ9X"), "{failure:?}");
    failure
}

#[tokio::test]
async fn logins() {
    let server = TestServer::start(&["--auth"]);
    let admin = Client::with_uri_str(server.uri("", "directConnection=true"))
        .await
        .unwrap();
    let create = doc! { "createUser": "me", "pwd": PASSWORD, "roles": ["root"] };
    admin.database("admin").run_command(create).await.unwrap();

    let right = server.uri(&format!("me:{PASSWORD_IN_URI}@"), "directConnection=true");
    let mut client = DriverTarget::new(&right, "d")
        .connect(1)
        .await
        .unwrap()
        .remove(0);
    done(
        &mut client,
        Verb::Insert,
        doc! { "insert": "c" },
        &[doc! { "_id": 1 }],
    )
    .await;

    let wrong = server.uri(&format!("me:{PASSWORD_IN_URI}x@"), "directConnection=true");
    let failure = refused(&wrong).await;
    assert_eq!(failure.kind, FailureKind::Unauthorised, "{failure:?}");
    assert!(failure.message.contains("password"), "{failure:?}");

    // Without a login the first command is refused.
    let none = server.uri("", "directConnection=true");
    let failure = match DriverTarget::new(&none, "d").connect(1).await {
        Ok(mut clients) => {
            let insert = doc! { "insert": "c" };
            failed(&mut clients[0], Verb::Insert, insert, &[doc! { "_id": 2 }]).await
        }
        Err(failure) => failure,
    };
    assert_eq!(
        (failure.kind, failure.code),
        (FailureKind::Unauthorised, Some(13))
    );
}

#[tokio::test]
async fn tls_expected_or_not() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    certificates::write(folder.path()).unwrap();
    let tls = [
        "--tls-cert-file",
        "server.crt",
        "--tls-key-file",
        "server.key",
    ];
    let server = TestServer::start_in(folder, &tls);
    let path = |name: &str| server.folder.path().join(name).display().to_string();
    let trusting = format!(
        "directConnection=true&tls=true&tlsCAFile={}",
        path("ca.pem")
    );
    let target = DriverTarget::new(&server.uri("", &trusting), "d");
    let mut client = target.connect(3).await.unwrap().remove(0);
    done(
        &mut client,
        Verb::Insert,
        doc! { "insert": "c" },
        &[doc! { "_id": 1 }],
    )
    .await;

    let quick = "directConnection=true&serverSelectionTimeoutMS=1500";
    for (options, remedy) in [("", "add tls=true"), ("&tls=true", "tlsCAFile=FILE")] {
        let uri = server.uri(
            &format!("me:{PASSWORD_IN_URI}@"),
            &format!("{quick}{options}"),
        );
        let failure = refused(&uri).await;
        assert_eq!(failure.kind, FailureKind::Connection, "{failure:?}");
        assert!(failure.message.contains(remedy), "{failure:?}");
    }
    let plain = TestServer::start(&[]);
    let failure = refused(&plain.uri("", &format!("{quick}&tls=true"))).await;
    assert_eq!(failure.kind, FailureKind::Connection, "{failure:?}");
    // This server waits for more of a message that it takes for one of its own.
    assert!(
        failure.message.contains("did not answer within 1.5 s"),
        "{failure:?}"
    );
    let missing = format!("{quick}&tls=true&tlsCAFile=/nonexistent");
    let failure = refused(&plain.uri("", &missing)).await;
    assert!(failure.message.contains("/nonexistent"), "{failure:?}");
}

#[tokio::test]
async fn a_server_that_wants_certificates_of_its_clients() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    certificates::write(folder.path()).unwrap();
    let mut tls = vec![
        "--tls-cert-file",
        "server.crt",
        "--tls-key-file",
        "server.key",
    ];
    tls.extend(["--tls-ca-file", "ca.pem", "--tls-require-client-cert"]);
    let server = TestServer::start_in(folder, &tls);
    let path = |name: &str| server.folder.path().join(name).display().to_string();
    let anonymous = format!(
        "directConnection=true&serverSelectionTimeoutMS=1500&tls=true&tlsCAFile={}",
        path("ca.pem")
    );
    let failure = refused(&server.uri("", &anonymous)).await;
    assert_eq!(failure.kind, FailureKind::Connection, "{failure:?}");
    let known = format!("{anonymous}&tlsCertificateKeyFile={}", path("client.pem"));
    let target = DriverTarget::new(&server.uri("", &known), "d");
    let mut client = target.connect(1).await.unwrap().remove(0);
    done(&mut client, Verb::Find, doc! { "find": "c" }, &[]).await;
}

#[tokio::test]
async fn no_primary_no_server_no_sense() {
    let server = TestServer::start(&[]);
    let failure = refused(&server.uri("", "replicaSet=nosuch&serverSelectionTimeoutMS=1500")).await;
    assert_eq!(failure.kind, FailureKind::Connection, "{failure:?}");
    assert!(failure.message.contains("replicaSet=NAME"), "{failure:?}");

    let credentials = format!("me:{PASSWORD_IN_URI}@");
    let uri = format!("mongodb://{credentials}127.0.0.1:1/?serverSelectionTimeoutMS=500");
    let failure = refused(&uri).await;
    assert_eq!(failure.kind, FailureKind::Connection, "{failure:?}");
    assert!(
        failure.message.contains("nothing listens there"),
        "{failure:?}"
    );
    for uri in [
        format!("mongodb://me:{PASSWORD_IN_URI}"),
        format!("mongodb://{credentials}h/?tls=perhaps"),
        format!("monodb://{credentials}h"),
    ] {
        assert_eq!(refused(&uri).await.kind, FailureKind::Unsupported, "{uri}");
    }
}

#[tokio::test]
async fn requests_that_the_driver_cannot_express_are_not_bent() {
    let server = TestServer::start(&[]);
    let mut client = server.client().await;
    let cases: [(Verb, Document, &[Document], &str); 4] = [
        (
            Verb::Find,
            doc! { "find": "c", "tailable": true },
            &[],
            "tailable",
        ),
        (Verb::Find, doc! { "find": 5 }, &[], "string"),
        (
            Verb::Aggregate,
            doc! { "aggregate": 1, "pipeline": [] },
            &[],
            "string",
        ),
        (
            Verb::Update,
            doc! { "update": "c" },
            &[doc! { "q": {}, "u": {}, "c": 1 }],
            "`c`",
        ),
    ];
    for (verb, body, statements, word) in cases {
        let failure = failed(&mut client, verb, body, statements).await;
        assert_eq!(failure.kind, FailureKind::Unsupported);
        assert!(failure.message.contains(word), "{failure:?}");
    }
    let failure = failed(&mut client, Verb::Command, doc! { "nosuch": 1 }, &[]).await;
    assert_eq!(
        (failure.kind, failure.code),
        (FailureKind::Server, Some(59))
    );
    assert_eq!(failure.name, "CommandNotFound");
}

#[tokio::test]
async fn a_server_that_dies_is_a_lost_connection() {
    let server = TestServer::start(&[]);
    let uri = server.uri(
        "",
        "directConnection=true&serverSelectionTimeoutMS=500&retryReads=false",
    );
    let mut client = DriverTarget::new(&uri, "d")
        .connect(1)
        .await
        .unwrap()
        .remove(0);
    done(&mut client, Verb::Find, doc! { "find": "c" }, &[]).await;
    drop(server);
    for _ in 0..3 {
        let failure = failed(&mut client, Verb::Find, doc! { "find": "c" }, &[]).await;
        assert_eq!(failure.kind, FailureKind::Connection, "{failure:?}");
    }
}
