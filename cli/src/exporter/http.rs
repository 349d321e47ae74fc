//! Answers scrapes from memory. Whatever a client does, it holds up nobody but itself, and not for long.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, ALLOW, AUTHORIZATION, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use maud::{DOCTYPE, html};
use seekscope_exporter::Format;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::exported::Exported;
use super::web_config::{Access, Login};

/// Connections at a time; more are closed at once. Prometheus has one.
const CONNECTIONS_MAX: usize = 64;
/// Time for a handshake, for the head of a request, and between two requests.
const HEAD_LIMIT: Duration = Duration::from_secs(10);
/// Bytes of a request's head.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// A connection serves this long, and then may finish its last answer for this long.
const CONNECTION_LIMIT: Duration = Duration::from_secs(300);
const LAST_ANSWER_LIMIT: Duration = Duration::from_secs(10);
/// The pause after a connection could not be accepted.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(100);

const TEXT: &str = "text/plain; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";

/// Serves until it is dropped, and with it all connections.
pub async fn serve(listener: TcpListener, exported: Exported, access: Access) -> Infallible {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // No more descriptors, mostly; some will be closed.
            sleep(PAUSE_AFTER_FAILURE).await;
            continue;
        };
        while connections.try_join_next().is_some() {}
        if let Ok(permit) = Arc::clone(&room).try_acquire_owned() {
            let (exported, access) = (exported.clone(), access.clone());
            connections.spawn(async move {
                connection(stream, exported, access).await;
                drop(permit);
            });
        }
    }
}

async fn connection(stream: TcpStream, exported: Exported, access: Access) {
    let Some(tls) = access.config().tls.clone() else {
        return requests(stream, exported, access).await;
    };
    // Errors are the client's.
    if let Ok(Ok(stream)) = timeout(HEAD_LIMIT, TlsAcceptor::from(tls).accept(stream)).await {
        requests(stream, exported, access).await;
    }
}

async fn requests<S>(stream: S, exported: Exported, access: Access)
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let service = service_fn(move |request| {
        let (exported, access) = (exported.clone(), access.clone());
        async move { Ok::<_, Infallible>(answer(&request, &exported, &access).await) }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_LIMIT)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(serving);
    tokio::select! {
        // Errors are the client's.
        _ = serving.as_mut() => return,
        () = sleep(CONNECTION_LIMIT) => {}
    }
    serving.as_mut().graceful_shutdown();
    let _ = timeout(LAST_ANSWER_LIMIT, serving).await;
}

/// Answers whoever may ask. All pages are alike: that of /healthz tells strangers something, too.
async fn answer(
    request: &Request<Incoming>,
    exported: &Exported,
    access: &Access,
) -> Response<Full<Bytes>> {
    let config = access.config();
    let authorization = request.headers().get(AUTHORIZATION);
    let mut answer = match access.login(&config, authorization).await {
        Login::Passed => page(request, exported),
        Login::Refused => {
            let mut refused = response(
                StatusCode::UNAUTHORIZED,
                TEXT,
                "a name and a password are required\n",
            );
            let wanted = HeaderValue::from_static("Basic realm=\"seekscope exporter\"");
            refused.headers_mut().insert(WWW_AUTHENTICATE, wanted);
            refused
        }
        Login::Busy => {
            let why = "too many simultaneous logins\n";
            response(StatusCode::SERVICE_UNAVAILABLE, TEXT, why)
        }
    };
    answer.headers_mut().extend(config.headers.clone());
    answer
}

fn page(request: &Request<Incoming>, exported: &Exported) -> Response<Full<Bytes>> {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let mut refused = response(
            StatusCode::METHOD_NOT_ALLOWED,
            TEXT,
            "only GET and HEAD are supported\n",
        );
        refused
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refused;
    }
    match request.uri().path() {
        "/metrics" => {
            let accept = request.headers().get_all(ACCEPT).iter();
            let format = Format::accepted_by(accept.filter_map(|value| value.to_str().ok()));
            response(StatusCode::OK, format.content_type(), exported.body(format))
        }
        "/healthz" if exported.is_reading() => response(StatusCode::OK, TEXT, "ok\n"),
        "/healthz" => {
            let why = "counters are not being read\n";
            response(StatusCode::SERVICE_UNAVAILABLE, TEXT, why)
        }
        "/" => response(StatusCode::OK, HTML, start_page(exported)),
        _ => response(
            StatusCode::NOT_FOUND,
            TEXT,
            "there is no such page; see /metrics\n",
        ),
    }
}

fn response(
    status: StatusCode,
    kind: &'static str,
    body: impl Into<Bytes>,
) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

fn start_page(exported: &Exported) -> String {
    let registry = exported.registry();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                title { "seekscope exporter" }
            }
            body {
                h1 { "seekscope exporter " (env!("CARGO_PKG_VERSION")) }
                p { a href="/metrics" { "Metrics" } ", " a href="/healthz" { "health" } }
                table {
                    tr { th { "server" } th { "state" } th { "files" } }
                    @for (name, figures) in registry.servers() {
                        tr {
                            td { (name) }
                            td { @if figures.is_up { "up" } @else { "away" } }
                            td { @if figures.is_tracing { "counted" } @else { "not counted" } }
                        }
                    }
                }
            }
        }
    };
    page.into_string()
}
