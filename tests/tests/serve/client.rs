//! The page under test, and a client of HTTP that shares no code with it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

use outlive_tests::{Bench, DEADLINE};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// `outlive serve`, killed when it is dropped.
pub(crate) struct Page {
    child: Child,
    pub(crate) address: SocketAddr,
    /// What is behind the `#` of what it printed.
    pub(crate) fragment: String,
}

impl Page {
    /// Serve the store of this bench on any port.
    #[track_caller]
    pub(crate) fn of(bench: &Bench, arguments: &[&str]) -> Page {
        let verb = ["serve", "--listen", "127.0.0.1:0"];
        Page::by(bench.verb(verb.iter().chain(arguments)))
    }

    #[track_caller]
    fn by(mut command: Command) -> Page {
        let mut child = command
            .env("OUTLIVE_TAPE", "")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it can be executed");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("it is piped");
        let read = BufReader::new(stdout).read_line(&mut line);
        read.expect("it prints where it is");
        let url = line.trim_end().strip_prefix("http://").expect("a URL");
        let (address, fragment) = url.split_once('/').expect("it has a path");
        Page {
            child,
            address: address.parse().expect("an address"),
            fragment: fragment.trim_start_matches('#').to_owned(),
        }
    }

    /// What `Authorization` must say.
    pub(crate) fn bearer(&self) -> String {
        let token = self.fragment.strip_prefix("token=").expect("a token");
        format!("Bearer {token}")
    }

    /// A connection.
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(DEADLINE)).expect("a deadline");
        stream
            .set_write_timeout(Some(DEADLINE))
            .expect("a deadline");
        stream
    }

    /// Ask with these headers, beside those that every client sends.
    #[track_caller]
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
        let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "Host") {
            head.push_str(&format!("Host: {}\r\n", self.address));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        answer_to(self.connect(), head.as_bytes())
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[])
    }

    /// Be told of changes.
    pub(crate) fn events(&self) -> Events {
        let mut stream = self.connect();
        let head = format!("GET /events HTTP/1.1\r\nHost: {}\r\n\r\n", self.address);
        stream.write_all(head.as_bytes()).expect("it reads");
        let mut stream = BufReader::new(stream);
        let head = head_of(&mut stream);
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(head.contains("text/event-stream"), "{head}");
        Events {
            stream,
            text: String::new(),
        }
    }

    /// Tell it to end, and see that it does so in order.
    #[track_caller]
    pub(crate) fn end(mut self, by: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, by).expect("it is there");
        let ended = self.child.wait().expect("it ends");
        assert_eq!(ended.code(), Some(0), "{ended:?}");
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // One that has ended already needs no killing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}{}", self.head, self.text()))
    }

    /// See that it was answered so.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Answer {
        assert_eq!(self.status, status, "{}{}", self.head, self.text());
        self
    }

    /// A header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (is, value) = line.split_once(':')?;
            is.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }
}

/// Send a request, and read what is answered.
#[track_caller]
pub(crate) fn answer_to(mut stream: TcpStream, request: &[u8]) -> Answer {
    // It may have answered, and closed, before it was told everything.
    let _ = stream.write_all(request);
    let mut stream = BufReader::new(stream);
    let head = head_of(&mut stream);
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
    let mut answer = Answer {
        status: status.unwrap_or(0),
        head,
        body: Vec::new(),
    };
    if answer.header("transfer-encoding") == Some("chunked") {
        while let Some(chunk) = chunk(&mut stream) {
            answer.body.extend(chunk);
        }
    } else if let Some(length) = answer.header("content-length") {
        let length = length.parse().expect("a length");
        if !request.starts_with(b"HEAD") {
            let read = stream.take(length).read_to_end(&mut answer.body);
            assert_eq!(read.expect("a body") as u64, length);
        }
    }
    answer
}

fn head_of(stream: &mut impl BufRead) -> String {
    let mut head = String::new();
    loop {
        let mut line = String::new();
        match stream.read_line(&mut line) {
            Ok(0) | Err(_) => return head,
            Ok(_) if line == "\r\n" => return head,
            Ok(_) => head.push_str(&line),
        }
    }
}

fn chunk(stream: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut line = String::new();
    stream.read_line(&mut line).expect("a chunk comes");
    let length = usize::from_str_radix(line.trim_end(), 16).ok()?;
    let mut bytes = vec![0; length + 2];
    stream.read_exact(&mut bytes).expect("it is whole");
    bytes.truncate(length);
    (length > 0).then_some(bytes)
}

/// How long each piece is that comes of what is asked for, until so many bytes have come or all of it.
pub(crate) fn lengths_of_chunks(mut stream: TcpStream, request: &[u8], most: usize) -> Vec<usize> {
    stream.write_all(request).expect("it reads");
    let mut stream = BufReader::new(stream);
    head_of(&mut stream);
    let mut lengths = Vec::new();
    while lengths.iter().sum::<usize>() < most {
        let Some(chunk) = chunk(&mut stream) else {
            break;
        };
        lengths.push(chunk.len());
    }
    lengths
}

/// What is told, as it comes.
pub(crate) struct Events {
    stream: BufReader<TcpStream>,
    text: String,
}

impl Events {
    /// The next event: its name, and what it says.
    #[track_caller]
    pub(crate) fn hear(&mut self) -> (String, Value) {
        loop {
            while let Some(end) = self.text.find("\n\n") {
                let block: String = self.text.drain(..end + 2).collect();
                let field = |name: &str| {
                    let prefix = format!("{name}: ");
                    let mut lines = block.lines();
                    lines.find_map(|line| Some(line.strip_prefix(&prefix)?.to_owned()))
                };
                if let (Some(event), Some(data)) = (field("event"), field("data")) {
                    return (event, serde_json::from_str(&data).expect("it is JSON"));
                }
            }
            let chunk = chunk(&mut self.stream).expect("it does not end");
            self.text
                .push_str(std::str::from_utf8(&chunk).expect("it is text"));
        }
    }

    /// Go on until one is told, and look at that.
    #[track_caller]
    pub(crate) fn until<T>(&mut self, event: &str, mut look: impl FnMut(&Value) -> Option<T>) -> T {
        loop {
            let (name, value) = self.hear();
            if name == event
                && let Some(found) = look(&value)
            {
                return found;
            }
        }
    }

    /// Go on until this job is in this state.
    #[track_caller]
    pub(crate) fn until_state(&mut self, id: &str, state: &str) {
        self.until("jobs", |jobs| {
            let mut jobs = jobs.as_array().into_iter().flatten();
            jobs.any(|job| job["id"] == id && job["state"] == state)
                .then_some(())
        });
    }
}
