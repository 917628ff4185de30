//! Taking connections, as many as there is room for. Where there is none, the one makes room that has been there longest and has
//! nothing asked: whoever opens connections by the thousand shuts out nobody but himself.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

use super::answer::answer;
use super::house::House;
use super::peer;
use super::reply::Content;

/// How many connections there may be.
const CONNECTIONS: usize = 256;
/// How long the head of a request may take, and how long nothing may be asked over a connection.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// How long the head of a request may be, in bytes.
const LONGEST_HEAD: usize = 16 << 10;
/// How long no connection is taken after the system had no room for one.
const PAUSE: Duration = Duration::from_millis(100);

/// Serve the page, for good. Within a runtime, on a [`LocalSet`](tokio::task::LocalSet).
///
/// # Errors
///
/// Changes of the store cannot be heard of.
pub(crate) async fn serve(house: House, listener: TcpListener) -> io::Result<()> {
    let house = Rc::new(house);
    let heard = house.clone();
    tokio::select! {
        heard = heard.listen() => heard,
        () = take_connections(house, listener) => Ok(()),
    }
}

async fn take_connections(house: Rc<House>, listener: TcpListener) {
    let guests = Rc::new(Guests::default());
    loop {
        match listener.accept().await {
            Ok((stream, there)) => {
                let here = stream.local_addr();
                // Who cannot be known is not let in.
                let is_ours = here.and_then(|here| Ok(peer::is_ours(here, there)?.then_some(here)));
                match is_ours {
                    Ok(Some(here)) => guests.admit(&house, stream, here),
                    Ok(None) => tracing::warn!(%there, "another user's connection is refused"),
                    Err(error) => tracing::warn!(%error, "whose a connection is cannot be told"),
                }
            }
            Err(error) => {
                tracing::warn!(%error, "no connection can be taken");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// The connections that there are, the oldest first.
#[derive(Default)]
struct Guests {
    all: RefCell<BTreeMap<u64, Guest>>,
    next: Cell<u64>,
}

struct Guest {
    task: AbortHandle,
    /// How many answers to it are being made.
    waits: Rc<Cell<u32>>,
}

impl Guests {
    fn admit(self: &Rc<Guests>, house: &Rc<House>, stream: TcpStream, here: SocketAddr) {
        if !self.make_room() {
            return; // everybody is being answered
        }
        let number = self.next.get();
        self.next.set(number + 1);
        let waits = Rc::new(Cell::new(0));
        let leaves = Leaves {
            guests: self.clone(),
            number,
        };
        let talk = talk(house.clone(), stream, here, waits.clone());
        let task = tokio::task::spawn_local(async move {
            let _leaves = leaves;
            talk.await;
        });
        let guest = Guest {
            task: task.abort_handle(),
            waits,
        };
        self.all.borrow_mut().insert(number, guest);
    }

    fn make_room(&self) -> bool {
        let mut all = self.all.borrow_mut();
        if all.len() < CONNECTIONS {
            return true;
        }
        let idle = all.iter().find(|(_, guest)| guest.waits.get() == 0);
        let Some((&number, _)) = idle else {
            return false;
        };
        if let Some(guest) = all.remove(&number) {
            guest.task.abort();
        }
        true
    }
}

/// Removes a connection from the list when it ends, however that comes.
struct Leaves {
    guests: Rc<Guests>,
    number: u64,
}

impl Drop for Leaves {
    fn drop(&mut self) {
        self.guests.all.borrow_mut().remove(&self.number);
    }
}

async fn talk(house: Rc<House>, stream: TcpStream, here: SocketAddr, waits: Rc<Cell<u32>>) {
    // What is told is told at once.
    let _ = stream.set_nodelay(true);
    let service = service_fn(|asked| {
        let house = house.clone();
        let waits = Waits::new(&waits);
        async move {
            let reply = answer(house, here, asked).await;
            // A stream is being answered as long as it is there; anything else is on its way now.
            let is_stream = matches!(reply.body(), Content::Stream(_));
            let waits = is_stream.then_some(waits);
            Ok::<_, Infallible>(reply.map(|content| Sent {
                content,
                _waits: waits,
            }))
        }
    });
    let talked = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(LONGEST_HEAD)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = talked {
        tracing::debug!(%error, "a connection has ended early");
    }
}

/// Counts what a connection waits for.
struct Waits(Rc<Cell<u32>>);

impl Waits {
    fn new(waits: &Rc<Cell<u32>>) -> Waits {
        waits.set(waits.get() + 1);
        Waits(waits.clone())
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// What is sent, and that it is.
struct Sent {
    content: Content,
    _waits: Option<Waits>,
}

impl Body for Sent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.content).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.content.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.content.size_hint()
    }
}
