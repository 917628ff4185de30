//! A server of files that can be told to misbehave: one request a connection, answered by whatever the test wants. It keeps what
//! it was asked.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a connection that is to be silent stays open, unless its server ends.
const SILENCE: Duration = Duration::from_secs(120);

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Request {
    /// `GET` or another.
    pub method: String,
    /// The path and the query.
    pub path: String,
    /// The headers, their names in lower case.
    pub headers: BTreeMap<String, String>,
    /// How many came before it.
    pub nth: usize,
}

impl Request {
    /// A header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// The bytes that `Range` asks for: from here on, up to and without this one.
    pub fn range(&self) -> Option<(u64, Option<u64>)> {
        let (from, last) = self
            .header("range")?
            .strip_prefix("bytes=")?
            .split_once('-')?;
        Some((
            from.parse().ok()?,
            last.parse::<u64>().ok().map(|last| last + 1),
        ))
    }
}

/// A connection that is being answered.
pub struct Reply {
    stream: TcpStream,
    sent: Arc<AtomicU64>,
    closing: Arc<AtomicBool>,
}

impl Reply {
    /// The status line and headers.
    pub fn head(&mut self, status: u16, headers: &[(&str, &str)]) {
        let mut head = format!("HTTP/1.1 {status} X\r\nConnection: close\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        // Whoever has hung up does not care.
        let _ = self.stream.write_all(head.as_bytes());
    }

    /// Bytes of the body; whether they were taken.
    pub fn body(&mut self, bytes: &[u8]) -> bool {
        let sent = self.stream.write_all(bytes).is_ok();
        if sent {
            self.sent.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        }
        sent
    }

    /// A whole answer.
    pub fn answer(&mut self, status: u16, headers: &[(&str, &str)], body: &[u8]) {
        let length = body.len().to_string();
        let mut all = vec![("Content-Length", length.as_str())];
        all.extend(headers);
        self.head(status, &all);
        self.body(body);
    }

    /// Say nothing more, and stay there, until whoever asked hangs up or the server ends.
    pub fn fall_silent(&mut self) {
        let _ = self
            .stream
            .set_read_timeout(Some(Duration::from_millis(20)));
        let begun = std::time::Instant::now();
        let mut byte = [0];
        while begun.elapsed() < SILENCE && !self.closing.load(Ordering::Relaxed) {
            match self.stream.read(&mut byte) {
                Ok(0) => return,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => return,
                Ok(_) => {}
            }
        }
    }
}

/// A file, and its version.
#[derive(Clone)]
pub struct Served {
    /// What is in it.
    pub bytes: Arc<Vec<u8>>,
    /// Its entity tag, as it stands in the header.
    pub etag: Option<String>,
}

impl Served {
    /// A file of so many bytes that are not all the same, and that this number tells from others.
    pub fn of_length(length: usize, number: u64) -> Served {
        let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut bytes = Vec::with_capacity(length + 8);
        while bytes.len() < length {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            bytes.extend_from_slice(&state.to_le_bytes());
        }
        bytes.truncate(length);
        Served {
            bytes: Arc::new(bytes),
            etag: Some(format!("\"v{number}\"")),
        }
    }

    /// What an honest server sends: its status, its headers, and the bytes.
    pub fn honest(&self, request: &Request) -> (u16, Vec<(String, String)>, &[u8]) {
        let length = self.bytes.len() as u64;
        let mut headers = vec![("Accept-Ranges".to_owned(), "bytes".to_owned())];
        if let Some(etag) = &self.etag {
            headers.push(("ETag".into(), etag.clone()));
        }
        let is_current = request
            .header("if-range")
            .is_none_or(|tag| self.etag.as_deref() == Some(tag));
        let Some((from, until)) = request.range().filter(|_| is_current) else {
            return (200, headers, &self.bytes);
        };
        if from >= length {
            headers.push(("Content-Range".into(), format!("bytes */{length}")));
            return (416, headers, b"Range not satisfiable");
        }
        let until = until.unwrap_or(length).min(length);
        headers.push((
            "Content-Range".into(),
            format!("bytes {from}-{}/{length}", until - 1),
        ));
        (206, headers, &self.bytes[from as usize..until as usize])
    }

    /// Answer honestly.
    pub fn serve(&self, request: &Request, reply: &mut Reply) {
        self.serve_some(request, reply, u64::MAX);
    }

    /// Answer honestly, and hang up after so many bytes; whether that was before the end.
    pub fn serve_some(&self, request: &Request, reply: &mut Reply, limit: u64) -> bool {
        let (status, headers, body) = self.honest(request);
        let length = body.len().to_string();
        let mut all: Vec<(&str, &str)> = vec![("Content-Length", &length)];
        all.extend(
            headers
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str())),
        );
        reply.head(status, &all);
        let sent = body.len().min(usize::try_from(limit).unwrap_or(usize::MAX));
        for chunk in body[..sent].chunks(64 << 10) {
            if !reply.body(chunk) {
                return true;
            }
        }
        sent < body.len()
    }
}

/// A server on loopback.
pub struct Server {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Request>>>,
    sent: Arc<AtomicU64>,
    closing: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// A server that answers so. The handler is called on a thread for each request.
    ///
    /// # Panics
    ///
    /// When there is no port.
    pub fn new(handler: impl Fn(&Request, &mut Reply) + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port on loopback");
        let address = listener.local_addr().expect("its address");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let sent = Arc::new(AtomicU64::new(0));
        let closing = Arc::new(AtomicBool::new(false));
        let handler = Arc::new(handler);
        let (kept, counted, told) = (asked.clone(), sent.clone(), closing.clone());
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if told.load(Ordering::Relaxed) {
                    return;
                }
                let (kept, handler) = (kept.clone(), handler.clone());
                let reply = Reply {
                    stream,
                    sent: counted.clone(),
                    closing: told.clone(),
                };
                std::thread::spawn(move || answer(reply, &kept, &*handler));
            }
        });
        Server {
            address,
            asked,
            sent,
            closing,
            thread: Some(thread),
        }
    }

    /// The address of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Host and port.
    pub fn authority(&self) -> String {
        self.address.to_string()
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// What was asked so far.
    pub fn asked(&self) -> Vec<Request> {
        self.asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// How many bytes of bodies were sent so far.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}

fn answer(
    mut reply: Reply,
    kept: &Mutex<Vec<Request>>,
    handler: &(impl Fn(&Request, &mut Reply) + ?Sized),
) {
    let Some(mut request) = read(&reply.stream) else {
        return;
    };
    {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        request.nth = kept.len();
        kept.push(request.clone());
    }
    handler(&request, &mut reply);
    // What was not read of the request must not make a reset of what was sent.
    let _ = reply.stream.shutdown(Shutdown::Write);
    let _ = reply
        .stream
        .set_read_timeout(Some(Duration::from_millis(200)));
    let _ = reply.stream.read(&mut [0; 1024]);
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next()?.ok()?;
    let mut words = first.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    for line in lines {
        let line = line.ok()?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':')?;
        // Several of a name mean the same as one with commas (RFC 9110, section 5.3).
        let all: &mut String = headers.entry(name.to_ascii_lowercase()).or_default();
        if !all.is_empty() {
            all.push_str(", ");
        }
        all.push_str(value.trim());
    }
    Some(Request {
        method,
        path,
        headers,
        nth: 0,
    })
}

impl Drop for Server {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Relaxed);
        // It waits in accept.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
