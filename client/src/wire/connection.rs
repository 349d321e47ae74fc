//! One connection, with one request at a time, that never waits unless asked to.
//!
//! After [`Connection::open`] and [`Connection::send`], call [`Connection::progress`] whenever the socket is
//! ready, until it reports that something has completed. A failure closes the connection.

use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, send, sendmsg};

use super::elements::Elements;
use super::endpoint::Endpoint;
use super::greeting::{self, Greeting};
use super::message::{self, Tails};
use super::reply::{self, Answer, Batch};
use super::socket;
use crate::request::Verb;
use crate::{Failure, FailureKind, Reply, Request};

/// Room for a reply of typical size.
const INPUT_BYTES: usize = 16 << 10;
/// Buffers that a large reply has grown beyond this are freed.
const INPUT_BYTES_KEPT: usize = 1 << 20;

/// The result of a socket's readiness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Nothing is complete yet.
    Pending,
    /// Connected and greeted: ready for requests.
    Opened,
    /// The reply has arrived.
    Answered,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Closed,
    Connecting,
    Greeting,
    Ready,
    /// Waiting for the reply to a request.
    Asking,
}

/// A connection to a server.
#[derive(Debug)]
pub(crate) struct Connection {
    endpoint: Arc<Endpoint>,
    tails: Tails,
    greeting: Option<Greeting>,
    socket: Option<OwnedFd>,
    phase: Phase,
    request_id: i32,
    out: Vec<u8>,
    /// The number of bytes of `out`, and of the statements after it, that have been sent.
    sent: usize,
    input: Vec<u8>,
    /// The first reply, if the rest of the cursor has been fetched after it.
    first_input: Option<Vec<u8>>,
    answer: Answer,
    returned: u64,
    bytes: u64,
}

impl Connection {
    /// Creates a connection without opening it.
    pub(crate) fn new(endpoint: Arc<Endpoint>) -> Result<Self, Failure> {
        Ok(Self {
            tails: endpoint.tails()?,
            endpoint,
            greeting: None,
            socket: None,
            phase: Phase::Closed,
            request_id: 0,
            out: Vec::new(),
            sent: 0,
            input: Vec::new(),
            first_input: None,
            answer: Answer::default(),
            returned: 0,
            bytes: 0,
        })
    }

    /// Begins to connect again; the caller must watch the new socket.
    pub(crate) fn open(&mut self) -> Result<&OwnedFd, Failure> {
        self.close();
        self.phase = Phase::Connecting;
        Ok(self.socket.insert(self.endpoint.address.open()?))
    }

    pub(crate) fn close(&mut self) {
        self.socket = None;
        self.phase = Phase::Closed;
        self.input.clear();
    }

    /// Returns whether a request can be sent.
    pub(crate) fn is_ready(&self) -> bool {
        self.phase == Phase::Ready
    }

    /// Returns whether it is still connecting, so that its socket becomes writable when it is connected.
    pub(crate) fn is_connecting(&self) -> bool {
        self.phase == Phase::Connecting
    }

    pub(crate) fn socket(&self) -> Option<&OwnedFd> {
        self.socket.as_ref()
    }

    /// Returns what the server said when this connection was opened.
    pub(crate) fn greeting(&self) -> Option<Greeting> {
        self.greeting
    }

    /// Returns whether nothing is left to send, so that only the server's reply is awaited.
    pub(crate) fn awaits_only_reply(&self, request: &Request) -> bool {
        self.phase == Phase::Asking && self.sent == self.out.len() + request.sequence().len()
    }

    /// Begins to send a request, which must stay unchanged until it is answered.
    pub(crate) fn send(&mut self, request: &Request) -> Result<(), Failure> {
        self.request_id = self.request_id.wrapping_add(1);
        let limits = &self.endpoint.greeting.limits;
        message::write_request(
            &mut self.out,
            self.request_id,
            request,
            &mut self.tails,
            limits,
        )?;
        self.phase = Phase::Asking;
        self.sent = 0;
        self.returned = 0;
        self.bytes = 0;
        self.first_input = None;
        self.input.clear();
        if self.input.capacity() > INPUT_BYTES_KEPT {
            self.input = Vec::new();
        }
        let flushed = self.flush(request);
        self.closing_on_failure(flushed)
    }

    /// Continues as far as possible. With `may_wait`, reading may wait in the kernel for a moment
    /// ([`socket::LOOK_UP`]).
    pub(crate) fn progress(
        &mut self,
        request: &Request,
        may_wait: bool,
    ) -> Result<Progress, Failure> {
        let progress = match self.phase {
            Phase::Closed => Ok(Progress::Pending),
            Phase::Connecting => self.connected().map(|()| Progress::Pending),
            Phase::Greeting => self.greeted(),
            Phase::Ready => self.idle(),
            Phase::Asking => self.asked(request, may_wait),
        };
        self.closing_on_failure(progress)
    }

    /// Returns the latest reply.
    pub(crate) fn reply(&self) -> Reply<'_> {
        let message = self.first_input.as_ref().unwrap_or(&self.input);
        let first = self
            .answer
            .batch
            .as_ref()
            .and_then(|batch| batch.first.as_ref());
        Reply {
            returned: self.returned,
            matched: self.answer.matched,
            modified: self.answer.modified,
            bytes: self.bytes,
            first: first.and_then(|place| reply::document_at(message, place)),
            body: reply::document_at(message, &self.answer.body),
        }
    }

    fn closing_on_failure<T>(&mut self, result: Result<T, Failure>) -> Result<T, Failure> {
        // A failure that the server reported in good order leaves the connection as it was.
        if result.is_err() && self.phase != Phase::Ready {
            self.close();
        }
        result
    }

    fn connected(&mut self) -> Result<(), Failure> {
        if !socket::finish_connect(self.socket.as_ref().ok_or_else(socket::closed)?)? {
            return Ok(());
        }
        self.request_id = self.request_id.wrapping_add(1);
        message::write_query(&mut self.out, self.request_id, &self.endpoint.command);
        self.sent = 0;
        self.phase = Phase::Greeting;
        self.flush(&Request::default())
    }

    fn greeted(&mut self) -> Result<Progress, Failure> {
        self.flush(&Request::default())?;
        if !self.receive(false)? {
            return Ok(Progress::Pending);
        }
        let greeting = greeting::read(&self.input, self.request_id)?;
        self.input.clear();
        self.endpoint.admit(&greeting)?;
        self.greeting = Some(greeting);
        self.phase = Phase::Ready;
        Ok(Progress::Opened)
    }

    /// Handles activity although nothing was asked: the server went away, or it sends unrequested data.
    fn idle(&mut self) -> Result<Progress, Failure> {
        self.input.clear();
        match recv(
            self.socket.as_ref().ok_or_else(socket::closed)?,
            spare_capacity(&mut self.input),
            RecvFlags::DONTWAIT,
        ) {
            Err(Errno::AGAIN | Errno::INTR) => (),
            _ => self.close(),
        }
        Ok(Progress::Pending)
    }

    fn asked(&mut self, request: &Request, may_wait: bool) -> Result<Progress, Failure> {
        self.flush(request)?;
        while self.receive(may_wait)? {
            self.bytes += self.input.len() as u64;
            let outcome = reply::read(&self.input, self.request_id);
            let answer = match outcome {
                Ok(answer) => answer,
                Err(failure) => {
                    if failure.kind != FailureKind::Malformed {
                        self.phase = Phase::Ready;
                    }
                    return Err(failure);
                }
            };
            if !self.fetch_more(request, answer)? {
                self.phase = Phase::Ready;
                return Ok(Progress::Answered);
            }
        }
        Ok(Progress::Pending)
    }

    /// Keeps an answer; asks for the rest of its cursor, if there is any.
    fn fetch_more(&mut self, request: &Request, answer: Answer) -> Result<bool, Failure> {
        let is_cursor = matches!(request.verb, Verb::Find | Verb::Aggregate);
        let batch = answer.batch.as_ref();
        self.returned += batch.map_or(0, |batch| batch.documents);
        let rest = match batch.filter(|batch| is_cursor && batch.cursor != 0) {
            Some(batch) => self.get_more(request, batch)?,
            None => false,
        };
        if self.first_input.is_none() {
            self.answer = answer;
            if rest {
                self.first_input = Some(std::mem::take(&mut self.input));
            }
        }
        if rest {
            self.input.clear();
            self.flush(request)?;
        }
        Ok(rest)
    }

    fn get_more(&mut self, request: &Request, batch: &Batch) -> Result<bool, Failure> {
        let mut batch_size = None;
        for element in Elements::of(request.body.bytes())
            .into_iter()
            .flatten()
            .flatten()
        {
            match element.name {
                b"singleBatch" if element.integer() == Some(1) => return Ok(false),
                b"batchSize" => batch_size = element.integer().and_then(|n| i32::try_from(n).ok()),
                _ => (),
            }
        }
        let namespace = self.input.get(batch.namespace.clone()).unwrap_or_default();
        let collection = std::str::from_utf8(namespace)
            .ok()
            .and_then(|namespace| namespace.split_once('.'))
            .map(|(_, collection)| collection)
            .ok_or_else(|| reply::malformed("its cursor names no collection"))?;
        self.request_id = self.request_id.wrapping_add(1);
        message::write_get_more(
            &mut self.out,
            self.request_id,
            (batch.cursor, collection),
            batch_size.filter(|&size| size > 0),
            (request, &mut self.tails),
        );
        self.sent = 0;
        Ok(true)
    }

    /// Sends as much as the socket accepts.
    fn flush(&mut self, request: &Request) -> Result<(), Failure> {
        let statements = request.sequence();
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        while self.sent < self.out.len() + statements.len() {
            let socket = self.socket.as_ref().ok_or_else(socket::closed)?;
            let head = self.out.get(self.sent..).unwrap_or_default();
            let result = if statements.is_empty() {
                send(socket, head, flags)
            } else {
                let skipped = self.sent.saturating_sub(self.out.len());
                let parts = [head, &statements[skipped..]].map(IoSlice::new);
                sendmsg(socket, &parts, &mut SendAncillaryBuffer::default(), flags)
            };
            match result {
                Ok(bytes) => self.sent += bytes,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => (),
                Err(errno) => return Err(socket::failure_of(errno, "cannot send the request")),
            }
        }
        Ok(())
    }

    /// Reads until the message is complete (true) or nothing more is available.
    fn receive(&mut self, may_wait: bool) -> Result<bool, Failure> {
        let flags = if may_wait {
            RecvFlags::empty()
        } else {
            RecvFlags::DONTWAIT
        };
        let bytes_max = self.endpoint.greeting.limits.message_bytes;
        loop {
            let length = reply::message_length(&self.input, bytes_max)?;
            match length {
                Some(length) if self.input.len() == length => return Ok(true),
                Some(length) if self.input.len() > length => {
                    return Err(reply::malformed("more data follows than was requested"));
                }
                // The buffer grows with the data, not with the promised length.
                Some(length) => {
                    let missing = length - self.input.len();
                    self.input
                        .reserve(missing.min(self.input.len().max(INPUT_BYTES)));
                }
                None => self.input.reserve(INPUT_BYTES),
            }
            let socket = self.socket.as_ref().ok_or_else(socket::closed)?;
            match recv(socket, spare_capacity(&mut self.input), flags) {
                Ok((_, 0)) => return Err(socket::closed()),
                Ok(_) | Err(Errno::INTR) => (),
                Err(Errno::AGAIN) => return Ok(false),
                Err(errno) => return Err(socket::failure_of(errno, "cannot read the reply")),
            }
        }
    }
}
