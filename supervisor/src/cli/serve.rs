//! `outlive serve`: a page for browsers on this machine, and metrics.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::{Arg, ArgMatches, Command, value_parser};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::LocalSet;

use super::arguments::{flag, option};
use super::{Verb, print};
use crate::error::Error;
use crate::page::{self, House, Secret};
use crate::store::Store;

pub(super) const VERB: Verb = Verb {
    name: "serve",
    aliases: &[],
    declare,
    run,
};

/// Where it is listened for, where nothing else is asked for.
const ADDRESS: &str = "127.0.0.1:4747";

fn declare(verb: Command) -> Command {
    verb.about("Show jobs and slots as they are to browsers on this machine, and metrics to collectors")
        .long_about(
            "Show jobs and slots as they are to browsers on this machine, and metrics (at /metrics) to collectors, until you end it. Prints \
             the address of the page. Only processes of your own, and root's, are answered. Nothing can be changed, unless you say so.",
        )
        .args([
            option(
                "listen",
                "ADDRESS",
                "A loopback address, and a port; 0: any that is free [127.0.0.1:4747]",
            ),
            flag(
                "allow-changes",
                "Let the page pause, resume, stop and restart jobs: whoever has the address that is printed, with its token",
            ),
            Arg::new("token-file")
                .long("token-file")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .conflicts_with("allow-changes")
                .help("The same, with the token in this file, which only you can read"),
        ])
}

fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let listen = matches.get_one::<String>("listen");
    let address = page::loopback(listen.map_or(ADDRESS, String::as_str)).map_err(Error::Usage)?;
    let file = matches.get_one::<PathBuf>("token-file");
    let (secret, token) = secret(
        matches.get_flag("allow-changes"),
        file.map(PathBuf::as_path),
    )?;
    let store = Store::open_default()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("nothing can be waited for")?;
    let served = LocalSet::new().block_on(&runtime, serve(store, address, secret, token));
    // What somebody has asked for goes on in a process of its own.
    runtime.shutdown_background();
    served.map(|()| 0)
}

/// What one must know to change something, and how the address of the page tells it.
fn secret(make: bool, file: Option<&Path>) -> anyhow::Result<(Option<Secret>, String)> {
    if make {
        let (secret, token) = Secret::make().context("no token can be made")?;
        return Ok((Some(secret), format!("#token={token}")));
    }
    let secret = file.map(Secret::read).transpose();
    Ok((secret.map_err(Error::Usage)?, String::new()))
}

async fn serve(
    store: Store,
    address: SocketAddr,
    secret: Option<Secret>,
    token: String,
) -> anyhow::Result<()> {
    let listener = TcpListener::bind(address).await.map_err(|error| {
        anyhow!("cannot listen on {address}: {error}; any free port: --listen 127.0.0.1:0")
    })?;
    let address = listener.local_addr().context("it has no address")?;
    // Heard before anybody knows of the page.
    let mut ends = Ends::new().context("no signal can be heard")?;
    let house = House::open(store, secret)?;
    print::line(&format!("http://{address}/{token}"))?;
    tokio::select! {
        served = page::serve(house, listener) => served.context("the store cannot be watched"),
        () = ends.come() => Ok(()),
    }
}

/// The signals by which it is ended.
struct Ends {
    term: Signal,
    int: Signal,
}

impl Ends {
    fn new() -> std::io::Result<Ends> {
        Ok(Ends {
            term: signal(SignalKind::terminate())?,
            int: signal(SignalKind::interrupt())?,
        })
    }

    async fn come(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.int.recv() => {}
        }
    }
}
