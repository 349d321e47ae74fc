//! `seekscope exporter`: keeps the figures of servers ready for a monitoring system, until it is told to stop.
//!
//! `monitor` finds the servers and reads them now and then, each of them a `watched_server`; `layout_walk` reads the
//! order of its files, `findings` what slows it down; what they find is kept in a registry of the `exporter` room.
//! `http` and `textfile` hand it out, the former to whom `web_config` lets in.

mod exported;
mod findings;
mod http;
mod layout_walk;
mod memory;
mod monitor;
mod privileges;
mod textfile;
mod watched_server;
mod web_config;

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, Result};
use tokio::net::TcpListener;

use crate::args::ExporterArgs;
use crate::disk::load_model;
use crate::exit::Usage;
use crate::interruption::Interruption;
use crate::progress::Progress;
use exported::Exported;
use monitor::Monitor;
use textfile::Textfile;
use web_config::Access;
pub use web_config::Rereading;

const DEFAULT_ADDRESS: ([u8; 4], u16) = ([127, 0, 0, 1], 9216);

/// Reads the file of --web-config and those that it names. Call it while the rights of whoever started us are there.
pub fn read_web_config(args: &ExporterArgs) -> Result<Option<Rereading>> {
    let Some(path) = &args.web_config else {
        return Ok(None);
    };
    if address(args).is_none() {
        let why = "--web-config protects the metrics page, which --textfile alone does \
                   not serve: add --listen";
        return Err(Usage(why.into()).into());
    }
    Rereading::begin(path).map(Some)
}

/// Gives up the rights that this command does not need. Call it while there is only one thread.
pub fn drop_privileges(args: &ExporterArgs) {
    privileges::drop_others(args.textfile.is_some());
}

/// Returns the connection strings of the command line and of the file.
fn connection_strings(args: &ExporterArgs) -> Result<Vec<String>> {
    let mut uris = args.uris.clone();
    if let Some(path) = &args.uri_file {
        uris.extend(read_uris(path)?);
    }
    Ok(uris)
}

fn read_uris(path: &Path) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Usage(format!(
            "cannot read --uri-file {}: {error}",
            path.display()
        ))
    })?;
    let lines = text.lines().map(str::trim);
    let uris: Vec<String> = lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(String::from)
        .collect();
    if uris.is_empty() {
        let path = path.display();
        return Err(Usage(format!("--uri-file {path} names no server")).into());
    }
    Ok(uris)
}

/// Runs the command.
pub async fn run(args: &ExporterArgs, web_config: Option<Rereading>) -> Result<()> {
    let uris = connection_strings(args)?;
    if let Some(run) = &args.disk_run {
        // Read later, when a server is found; said now if it cannot be.
        load_model(run)?;
    }
    let interruption = Interruption::listen();
    let progress = Progress::new(args.quiet);
    let exported = Exported::new(args.series as usize, args.every);
    let access = match &web_config {
        Some(rereading) => rereading.access()?,
        None => Access::open()?,
    };
    let listener = listen(args, &access, progress).await?;
    let textfile = args.textfile.as_deref().map(Textfile::create).transpose()?;
    let mut monitor = Monitor::new(args, uris, exported.clone(), textfile, progress);
    let serve = async {
        match listener {
            Some(listener) => http::serve(listener, exported.clone(), access).await,
            None => std::future::pending().await,
        }
    };
    let reread = async {
        match web_config {
            Some(rereading) => rereading.run(progress).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        // The regular end.
        _ = interruption.first() => Ok(()),
        never = serve => match never {},
        never = reread => match never {},
        ended = monitor.run() => ended,
    }
}

/// Returns where to listen, unless the text file is all that is wanted.
fn address(args: &ExporterArgs) -> Option<SocketAddr> {
    let default = args
        .textfile
        .is_none()
        .then(|| SocketAddr::from(DEFAULT_ADDRESS));
    args.listen.or(default)
}

async fn listen(
    args: &ExporterArgs,
    access: &Access,
    progress: Progress,
) -> Result<Option<TcpListener>> {
    let Some(address) = address(args) else {
        return Ok(None);
    };
    let listener = TcpListener::bind(address).await.with_context(|| {
        format!(
            "cannot listen on {address}; if the port is in use, choose another one with --listen"
        )
    })?;
    // The port may have been left to the system.
    let address = listener.local_addr().unwrap_or(address);
    let config = access.config();
    let scheme = match config.tls {
        Some(_) => "https",
        None => "http",
    };
    progress.say(format!("serving metrics at {scheme}://{address}/metrics"));
    if !address.ip().is_loopback()
        && let Some(warning) = config.warning()
    {
        progress.complain(warning);
    }
    Ok(Some(listener))
}
