//! nginx on a port of its own, in the foreground, with everything that it keeps in a scratch directory. It is ended by its
//! number when it is dropped.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::files::program_at;
use crate::port::free_port;
use crate::ran::Ran;
use crate::until::until_some;

/// How often another port is tried: somebody else may have taken the one that was free.
const PORTS: usize = 10;
/// How long making a certificate may take.
const LIMIT: Duration = Duration::from_secs(20);

/// A server of the files of a directory.
pub struct Nginx {
    child: Child,
    port: u16,
    is_encrypted: bool,
    dir: TempDir,
}

impl Nginx {
    /// A server with these rules, as they stand in a `server` block. `None` where there is no nginx.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub fn new(rules: &str) -> Option<Nginx> {
        let nginx = program_at("nginx")?;
        Some(Nginx::start(&nginx, rules, scratch(), false))
    }

    /// The same, encrypted, with a certificate for `localhost` from an authority of its own. `None` where there is no nginx, or no
    /// openssl.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub fn encrypted(rules: &str) -> Option<Nginx> {
        let (nginx, openssl) = (program_at("nginx")?, program_at("openssl")?);
        let dir = scratch();
        certify(&openssl, dir.path());
        let rules = format!("ssl_certificate cert.pem; ssl_certificate_key key.pem; {rules}");
        Some(Nginx::start(&nginx, &rules, dir, true))
    }

    fn start(nginx: &Path, rules: &str, dir: TempDir, is_encrypted: bool) -> Nginx {
        for _ in 0..PORTS {
            let port = free_port();
            let config = config(dir.path(), port, rules, is_encrypted);
            fs::write(dir.path().join("nginx.conf"), config).expect("a new directory is writable");
            let mut child = Command::new(nginx)
                .arg("-p")
                .arg(dir.path())
                .args(["-c", "nginx.conf", "-e", "error.log"])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("nginx can be executed");
            // It listens before it says so here.
            let pid = dir.path().join("pid");
            let started = until_some("nginx listens or has ended", || {
                let has_ended = child.try_wait().expect("a child can be asked").is_some();
                let says = fs::read_to_string(&pid).unwrap_or_default();
                let listens = says.trim() == child.id().to_string();
                (has_ended || listens).then_some(!has_ended)
            });
            if started {
                return Nginx {
                    child,
                    port,
                    is_encrypted,
                    dir,
                };
            }
        }
        let log = fs::read_to_string(dir.path().join("error.log")).unwrap_or_default();
        panic!("nginx does not start: {log}");
    }

    /// The directory of its files.
    pub fn files(&self) -> PathBuf {
        self.dir.path().join("www")
    }

    /// Put a file there, in place of any other of its name, at once.
    ///
    /// # Panics
    ///
    /// When it cannot be written.
    pub fn put(&self, name: &str, bytes: &[u8]) {
        let new = self.dir.path().join("new");
        fs::write(&new, bytes).expect("a scratch directory is writable");
        fs::rename(new, self.files().join(name)).expect("it is of the same file system");
    }

    /// The address of a path.
    pub fn url(&self, path: &str) -> String {
        let scheme = if self.is_encrypted { "https" } else { "http" };
        format!("{scheme}://localhost:{}{path}", self.port)
    }

    /// The certificate of its authority.
    pub fn authority(&self) -> PathBuf {
        self.dir.path().join("authority.pem")
    }

    /// Which requests it has answered, or begun to: `uri`, `status`, `sent` (bytes of the body), `range` and `if_range`.
    ///
    /// # Panics
    ///
    /// When its log cannot be read.
    pub fn asked(&self) -> Vec<Value> {
        let log = fs::read_to_string(self.dir.path().join("access.log")).unwrap_or_default();
        log.lines()
            .map(|line| serde_json::from_str(line).expect("its log is JSON"))
            .collect()
    }

    /// What it says to these headers: what a client sees that asks for something else than we do. Not encrypted.
    ///
    /// # Panics
    ///
    /// When it does not answer.
    pub fn head_of(&self, path: &str, headers: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("it answers");
        let text = String::from_utf8_lossy(&answer);
        let (head, _) = text.split_once("\r\n\r\n").expect("an answer has a head");
        head.to_owned()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // One that has ended already needs no killing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Not below the directory of a bench: it is none of its processes.
fn scratch() -> TempDir {
    let dir = tempfile::Builder::new().prefix("outlive-nginx-").tempdir();
    let dir = dir.expect("there is a directory for temporary files");
    fs::create_dir(dir.path().join("www")).expect("a new directory is empty");
    dir
}

fn config(dir: &Path, port: u16, rules: &str, is_encrypted: bool) -> String {
    let dir = dir.display();
    let kept: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {dir}/{kind};\n"))
        .concat();
    let ssl = if is_encrypted { " ssl" } else { "" };
    format!(
        "daemon off;\nmaster_process off;\npid {dir}/pid;\nevents {{ worker_connections 256; }}\nhttp {{\n{kept}\
         log_format asked escape=json '{{\"uri\":\"$uri\",\"status\":$status,\"sent\":$body_bytes_sent,\
         \"range\":\"$http_range\",\"if_range\":\"$http_if_range\"}}';\n\
         access_log {dir}/access.log asked;\ntypes {{ text/plain txt; }}\ndefault_type application/octet-stream;\n\
         sendfile on;\nserver {{ listen 127.0.0.1:{port}{ssl}; root {dir}/www;\n{rules}\n}}\n}}\n"
    )
}

/// An authority, and what it says of `localhost`.
fn certify(openssl: &Path, dir: &Path) {
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    let extensions = "subjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE\n";
    fs::write(dir.join("extensions"), extensions).expect("a new directory is writable");
    for line in [
        format!("req -x509 {key} -keyout authority.key -out authority.pem -days 2 -subj /CN=tests"),
        format!("req {key} -keyout key.pem -out request.pem -subj /CN=localhost"),
        "x509 -req -in request.pem -CA authority.pem -CAkey authority.key -CAcreateserial -out cert.pem -days 2 -extfile \
         extensions"
            .to_owned(),
    ] {
        let mut command = Command::new(openssl);
        command.args(line.split_whitespace()).current_dir(dir);
        Ran::run(command, LIMIT).expect(0);
    }
}
