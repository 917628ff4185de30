//! One client: its requests, one after the other, and what it is told.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use actix::Addr;
use serde::Serialize;
use state_machine::wire::{Ask, Interest, Lines, Notice, line};
use tokio::net::UnixStream;
use tokio::sync::mpsc;

use super::StatusReport;
use super::house::House;
use crate::actors::{Drain, Reload, Root, Shutdown, Status, Subscribe};

/// How long a client may leave what it is told unread, once the kernel holds no more of it.
const UNREAD: Duration = Duration::from_secs(10);
/// How much is told in one go, in bytes.
const PORTION: usize = 16 << 10;

/// What was asked is answered so.
#[derive(Serialize)]
struct Answer<T> {
    ok: T,
}

/// What cannot be.
#[derive(Serialize)]
struct Refusal<'a> {
    error: &'a str,
}

pub(super) struct Connection {
    stream: UnixStream,
    number: u64,
    house: Rc<House>,
    root: Addr<Root>,
}

impl Connection {
    pub(super) fn new(
        stream: UnixStream,
        number: u64,
        house: Rc<House>,
        root: Addr<Root>,
    ) -> Connection {
        Connection {
            stream,
            number,
            house,
            root,
        }
    }

    /// Answer until the client has nothing more to ask, or asks what cannot be understood.
    pub(super) async fn serve(self) -> io::Result<()> {
        let mut lines = Lines::default();
        loop {
            let asked = match lines.next_line() {
                Ok(Some(asked)) => Ask::decode(&asked),
                Ok(None) => {
                    if self.receive(&mut lines).await? {
                        continue;
                    }
                    if lines.is_within_a_line() {
                        self.refuse("the line has no end").await?;
                    }
                    return Ok(());
                }
                Err(why) => Err(why),
            };
            self.house.asks(self.number);
            match asked {
                Ok(Ask::Subscribe(interest)) => return self.tell(interest, &lines).await,
                Ok(ask) => self.answer(ask).await?,
                Err(why) => return self.refuse(&why.to_string()).await,
            }
        }
    }

    async fn answer(&self, ask: Ask) -> io::Result<()> {
        match ask {
            Ask::Status => {
                let status = self.root.send(Status).await.map_err(|_| gone())?;
                self.say(StatusReport::new(status)).await
            }
            Ask::Reload => match self.root.send(Reload).await.map_err(|_| gone())? {
                Ok(()) => self.say("reloaded").await,
                Err(error) => self.refuse(&error.to_string()).await,
            },
            Ask::Drain => {
                // It may well wait for the end.
                self.house.keep(self.number);
                self.root.send(Drain).await.map_err(|_| gone())?;
                self.say("draining").await
            }
            Ask::Shutdown => {
                self.house.keep(self.number);
                tracing::info!("told to end; jobs run on");
                // First, as nothing can be said after the end. Whether or not he hears it, it is done.
                let said = self.say("ending").await;
                self.root.do_send(Shutdown);
                said
            }
            // Its answer has no end.
            Ask::Subscribe(_) => Ok(()),
        }
    }

    /// Tell of changes until the client leaves, or is too far behind.
    async fn tell(&self, interest: Interest, lines: &Lines) -> io::Result<()> {
        if lines.is_within_a_line() {
            return self.refuse("nothing can be asked after subscribe").await;
        }
        if !self.house.keep(self.number) {
            return self.refuse("too many are subscribed").await;
        }
        let subscribed = self.root.send(Subscribe(interest)).await;
        let mut notices = subscribed.map_err(|_| gone())?;
        self.say("subscribed").await?;
        let mut unwanted = Lines::default();
        loop {
            tokio::select! {
                notice = notices.recv() => match notice {
                    Some(notice) => self.write(&portion(&notice, &mut notices)).await?,
                    None => return self.write(&Notice::Lagged.encode()).await,
                },
                received = self.receive(&mut unwanted) => {
                    if received? {
                        return self.refuse("nothing can be asked after subscribe").await;
                    }
                    return Ok(());
                }
            }
        }
    }

    async fn say(&self, ok: impl Serialize) -> io::Result<()> {
        self.write(&line(&Answer { ok })).await
    }

    async fn refuse(&self, error: &str) -> io::Result<()> {
        self.write(&line(&Refusal { error })).await
    }

    /// Take what has come in. `false`: nothing more will.
    async fn receive(&self, lines: &mut Lines) -> io::Result<bool> {
        loop {
            self.stream.readable().await?;
            match take(&self.stream, lines) {
                Ok(length) => return Ok(length > 0),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }

    async fn write(&self, bytes: &[u8]) -> io::Result<()> {
        tokio::time::timeout(UNREAD, self.write_all(bytes))
            .await
            .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "it does not read"))?
    }

    async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            self.stream.writable().await?;
            match self.stream.try_write(bytes) {
                Ok(length) => bytes = &bytes[length..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// One portion of what came in. The room for it is there only meanwhile: most clients say nothing most of the time.
fn take(stream: &UnixStream, lines: &mut Lines) -> io::Result<usize> {
    let mut buffer = [0; 8192];
    let length = stream.try_read(&mut buffer)?;
    lines.push(&buffer[..length]);
    Ok(length)
}

/// This notice, and those that wait behind it, as far as they go into one portion.
fn portion(notice: &Notice, behind: &mut mpsc::Receiver<Notice>) -> Vec<u8> {
    let mut bytes = notice.encode();
    while bytes.len() < PORTION
        && let Ok(notice) = behind.try_recv()
    {
        bytes.extend(notice.encode());
    }
    bytes
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the supervisor has ended")
}
