//! Taking connections, within the thread of the actors.

use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use actix::Addr;
use rustix::process::{Resource, geteuid, getrlimit};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;

use super::connection::Connection;
use super::house::House;
use crate::actors::Root;
use crate::dial;
use crate::store::Store;

/// How long to wait before the next connection is taken where one could not be: there is no descriptor.
const PAUSE: Duration = Duration::from_millis(250);

/// The socket of a supervisor that holds its lock. Dropped, it takes the socket away; whoever is connected stays so until
/// the supervisor ends.
pub(crate) struct Server {
    root: PathBuf,
    accepting: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
        if let Err(error) = dial::withdraw(&self.root) {
            tracing::debug!(%error, "the socket stays; the next supervisor replaces it");
        }
    }
}

/// Serve the socket of the store, whose lock we hold. Where it cannot be had, the supervisor does without.
pub(crate) fn serve(store: &Store, root: Addr<Root>) -> Option<Server> {
    match listen(store) {
        Ok(listener) => Some(Server {
            root: store.root().to_owned(),
            accepting: actix::spawn(accept(listener, root)),
        }),
        Err(error) => {
            let path = store.root().join("supervisor.sock");
            tracing::warn!(path = %path.display(), %error, "there is no socket; clients look for themselves");
            None
        }
    }
}

fn listen(store: &Store) -> io::Result<UnixListener> {
    UnixListener::from_std(dial::listen(store.root())?)
}

async fn accept(listener: UnixListener, root: Addr<Root>) {
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let house = Rc::new(House::new(descriptors));
    let mut failures = 0_u32;
    loop {
        while let Err(time) = house.make_room() {
            // Whoever comes meanwhile waits, or looks for himself.
            tokio::time::sleep(time).await;
        }
        match listener.accept().await {
            Ok((stream, _)) => {
                failures = 0;
                if is_trusted(&stream) {
                    admit(stream, &house, &root);
                }
            }
            Err(error) => {
                if failures == 0 {
                    tracing::warn!(%error, "a client cannot be heard");
                }
                failures += 1;
                if house.clear_a_seat().is_err() {
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }
}

/// Whether it is one of the same user, or of root. Asked of the kernel, before anything is read.
fn is_trusted(stream: &UnixStream) -> bool {
    match stream.peer_cred() {
        Ok(peer) if peer.uid() == geteuid().as_raw() || peer.uid() == 0 => true,
        Ok(peer) => {
            tracing::warn!(user = peer.uid(), "a client of another user is sent away");
            false
        }
        Err(error) => {
            tracing::warn!(%error, "a client that nobody knows is sent away");
            false
        }
    }
}

fn admit(stream: UnixStream, house: &Rc<House>, root: &Addr<Root>) {
    let number = house.number();
    let connection = Connection::new(stream, number, house.clone(), root.clone());
    let task = actix::spawn({
        let house = house.clone();
        async move {
            if let Err(error) = connection.serve().await {
                tracing::debug!(%error, "a client is lost");
            }
            house.leave(number);
        }
    });
    house.seat(number, task.abort_handle());
}
