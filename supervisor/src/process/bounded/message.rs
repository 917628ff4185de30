//! What a minder and its caller say to each other. A command can be larger than a message, so it goes as a file; its
//! descriptors go with it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Seek, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::retry_on_intr;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recv, recvmsg, send, sendmsg,
};
use serde::{Deserialize, Serialize};
use state_machine::record::Exit;

use super::{Outcome, Ran, Work};

/// The most descriptors that go with a command: the command itself, output, complaints, input, what is held.
const MOST_FDS: usize = 5;

/// The longest message, in bytes: what names a few processes.
const LONGEST: usize = 64 << 10;

/// What a caller asks, beside what goes with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Run the command that comes with this.
    Run = b'r' as isize,
    /// End the one that runs; of none, nothing.
    Stop = b's' as isize,
}

/// A command as it has arrived.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) argv: Vec<OsString>,
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) cwd: PathBuf,
    pub(super) umask: Option<u32>,
    pub(super) stdin: Option<OwnedFd>,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
    pub(super) held: Option<OwnedFd>,
    pub(super) timeout: Duration,
    pub(super) grace: Duration,
}

/// What a minder hears.
#[derive(Debug)]
pub(super) enum Heard {
    Run(Box<Received>),
    Stop,
    /// The caller is gone.
    Closed,
}

/// What a minder says of a command.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Answer {
    pub(super) exit: Option<Exit>,
    pub(super) timed_out: bool,
    pub(super) stopped: bool,
    pub(super) duration_ms: u64,
    pub(super) leftovers: Option<String>,
    pub(super) cannot_start: Option<String>,
    /// Why nothing of the above can be said.
    pub(super) failed: Option<String>,
}

impl Answer {
    pub(super) fn failed(error: &io::Error) -> Answer {
        Answer {
            failed: Some(error.to_string()),
            ..Answer::default()
        }
    }

    pub(super) fn into_ran(self) -> io::Result<Ran> {
        if let Some(why) = self.failed {
            return Err(io::Error::other(why));
        }
        let outcome = match self.exit {
            _ if self.timed_out => Outcome::TimedOut,
            _ if self.stopped => Outcome::Stopped,
            Some(Exit::Code(0)) => Outcome::Succeeded,
            exit => Outcome::Failed { exit },
        };
        Ok(Ran {
            outcome,
            duration_ms: self.duration_ms,
            leftovers: self.leftovers,
            cannot_start: self.cannot_start,
        })
    }
}

pub(super) fn send_work(socket: &OwnedFd, work: &Work<'_>) -> io::Result<()> {
    let mut request = File::from(memfd_create("outlive-command", MemfdFlags::CLOEXEC)?);
    request.write_all(&encode(work)?)?;
    request.rewind()?;
    let mut fds: Vec<BorrowedFd<'_>> = vec![request.as_fd(), work.stdout, work.stderr];
    fds.extend(work.stdin);
    fds.extend(work.held);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&fds));
    let message = [Order::Run as u8];
    let said = [IoSlice::new(&message)];
    retry_on_intr(|| sendmsg(socket, &said, &mut ancillary, SendFlags::NOSIGNAL))?;
    Ok(())
}

pub(super) fn send_order(socket: &OwnedFd, order: Order) -> io::Result<()> {
    retry_on_intr(|| send(socket, &[order as u8], SendFlags::NOSIGNAL))?;
    Ok(())
}

pub(super) fn send_answer(socket: &OwnedFd, answer: &Answer) -> io::Result<()> {
    let text = serde_json::to_vec(answer)?;
    retry_on_intr(|| send(socket, &text, SendFlags::NOSIGNAL))?;
    Ok(())
}

/// The answer; none when the minder is gone.
pub(super) fn receive_answer(socket: &OwnedFd) -> io::Result<Option<Answer>> {
    let mut text = vec![0; LONGEST];
    match retry_on_intr(|| recv(socket, &mut text[..], RecvFlags::empty())) {
        Ok((0, _)) | Err(rustix::io::Errno::CONNRESET) => Ok(None),
        Ok((length, _)) => Ok(Some(serde_json::from_slice(
            text.get(..length).unwrap_or_default(),
        )?)),
        Err(error) => Err(error.into()),
    }
}

/// Waits for what the caller says next.
pub(super) fn hear(socket: &OwnedFd) -> io::Result<Heard> {
    let mut word = [0_u8];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = retry_on_intr(|| {
        recvmsg(
            socket,
            &mut [IoSliceMut::new(&mut word)],
            &mut ancillary,
            RecvFlags::CMSG_CLOEXEC,
        )
    });
    let fds: Vec<OwnedFd> = ancillary
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        })
        .flatten()
        .collect();
    match received {
        Ok(message) if message.bytes > 0 => {}
        Ok(_) | Err(rustix::io::Errno::CONNRESET) => return Ok(Heard::Closed),
        Err(error) => return Err(error.into()),
    }
    if word == [Order::Run as u8] {
        Ok(Heard::Run(Box::new(decode(fds)?)))
    } else {
        Ok(Heard::Stop)
    }
}

/// Strings with a NUL after each, which is the one byte that no argument and no variable has.
fn encode(work: &Work<'_>) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let mut add = |parts: &[&[u8]]| {
        if parts.iter().any(|part| part.contains(&0)) {
            let why = "a command cannot have a NUL in it";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        for part in parts {
            text.extend_from_slice(part);
        }
        text.push(0);
        Ok(())
    };
    let millis = |time: Duration| time.as_millis().to_string();
    add(&[millis(work.timeout).as_bytes()])?;
    add(&[millis(work.grace).as_bytes()])?;
    add(&[work
        .umask
        .map_or(String::new(), |umask| umask.to_string())
        .as_bytes()])?;
    add(&[if work.stdin.is_some() { b"1" } else { b"0" }])?;
    add(&[if work.held.is_some() { b"1" } else { b"0" }])?;
    add(&[work.cwd.as_os_str().as_bytes()])?;
    add(&[work.argv.len().to_string().as_bytes()])?;
    for argument in work.argv {
        add(&[argument.as_bytes()])?;
    }
    for (name, value) in work.env {
        add(&[name.as_bytes(), b"=", value.as_bytes()])?;
    }
    Ok(text)
}

fn decode(fds: Vec<OwnedFd>) -> io::Result<Received> {
    let torn = || io::Error::new(io::ErrorKind::InvalidData, "a command arrived in part");
    let mut fds = fds.into_iter();
    let mut next_fd = || fds.next().ok_or_else(torn);
    let mut text = Vec::new();
    File::from(next_fd()?).read_to_end(&mut text)?;
    let (stdout, stderr) = (next_fd()?, next_fd()?);
    let mut words = text.split(|&byte| byte == 0);
    let mut word = || words.next().ok_or_else(torn);
    let number = |word: &[u8]| std::str::from_utf8(word).ok()?.parse::<u64>().ok();
    let millis = |word: &[u8]| number(word).map(Duration::from_millis).ok_or_else(torn);
    let (timeout, grace) = (millis(word()?)?, millis(word()?)?);
    let umask = number(word()?).and_then(|umask| u32::try_from(umask).ok());
    let (has_stdin, has_held) = (word()? == b"1", word()? == b"1");
    let cwd = PathBuf::from(OsStr::from_bytes(word()?));
    let argc = number(word()?).ok_or_else(torn)?;
    let mut argv = Vec::new();
    for _ in 0..argc {
        argv.push(OsString::from_vec(word()?.to_vec()));
    }
    // Behind the last one there is nothing, which is no variable. A name may begin with '=', and has one character at least.
    let variable = |word: &[u8]| {
        let equals = 1 + word.get(1..)?.iter().position(|&byte| byte == b'=')?;
        let (name, value) = (word.get(..equals)?, word.get(equals + 1..)?);
        Some((
            OsStr::from_bytes(name).into(),
            OsStr::from_bytes(value).into(),
        ))
    };
    Ok(Received {
        argv,
        env: words.filter_map(variable).collect(),
        cwd,
        umask,
        stdin: if has_stdin { Some(next_fd()?) } else { None },
        stdout,
        stderr,
        held: if has_held { Some(next_fd()?) } else { None },
        timeout,
        grace,
    })
}
