//! A browser for a test: chromium without a window, told what to do over chromedriver.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use outlive_tests::{Bench, DEADLINE, until_some};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use crate::client::{Answer, answer_to};

/// A browser. It and its driver are ended when it is dropped; what is left carries the marker of the bench, which kills it.
pub(crate) struct Browser {
    driver: Child,
    address: SocketAddr,
    session: String,
}

impl Browser {
    /// Start one. `None`, with the reason printed, where there is none.
    #[track_caller]
    pub(crate) fn open(bench: &Bench) -> Option<Browser> {
        for program in ["chromedriver", "chromium"] {
            let there = Command::new(program)
                .arg("--version")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            if !there.is_ok_and(|status| status.success()) {
                println!("left out: there is no {program}");
                return None;
            }
        }
        let mut driver = bench
            .program("chromedriver")
            .arg("--port=0")
            .env("HOME", bench.dir())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("it can be executed");
        let mut said = BufReader::new(driver.stdout.take().expect("it is piped")).lines();
        let port = said.by_ref().map_while(Result::ok).find_map(|line| {
            let (_, port) = line.split_once("successfully on port ")?;
            port.trim_end_matches('.').parse::<u16>().ok()
        });
        // What it says later must not end it.
        std::thread::spawn(move || said.for_each(drop));
        let mut browser = Browser {
            driver,
            address: ([127, 0, 0, 1], port.expect("it listens")).into(),
            session: String::new(),
        };
        let profile = bench.dir().join("browser");
        let arguments = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--window-size=1280,860",
            &format!("--user-data-dir={}", profile.display()),
        ];
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": { "args": arguments },
        }}});
        // A browser that does not start on this machine says nothing about the page.
        let answer = browser.ask("POST", "/session", &wanted);
        if answer.status != 200 {
            println!("left out: chromium does not start here: {}", answer.text());
            return None;
        }
        let session = answer.json()["value"].take();
        let id = session["sessionId"].as_str().expect("a session");
        browser.session = format!("/session/{id}");
        Some(browser)
    }

    /// Go there.
    #[track_caller]
    pub(crate) fn go(&self, url: &str) {
        self.tell(
            "POST",
            &format!("{}/url", self.session),
            &json!({ "url": url }),
        );
    }

    /// Run a script in the page: what it returns.
    #[track_caller]
    pub(crate) fn run(&self, script: &str) -> Value {
        let asked = json!({ "script": script, "args": [] });
        self.tell("POST", &format!("{}/execute/sync", self.session), &asked)
    }

    /// Wait until a script returns something true.
    #[track_caller]
    pub(crate) fn until(&self, script: &str) -> Value {
        until_some(script, || {
            let value = self.run(&format!("return {script}"));
            let is_false = matches!(value, Value::Null | Value::Bool(false));
            (!is_false).then_some(value)
        })
    }

    #[track_caller]
    fn tell(&self, method: &str, path: &str, body: &Value) -> Value {
        self.ask(method, path, body).expect(200).json()["value"].take()
    }

    #[track_caller]
    fn ask(&self, method: &str, path: &str, body: &Value) -> Answer {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let stream = TcpStream::connect(self.address).expect("it listens");
        stream
            .set_read_timeout(Some(3 * DEADLINE))
            .expect("a deadline");
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        answer_to(stream, request.as_bytes())
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() && !std::thread::panicking() {
            self.tell("DELETE", &self.session, &Value::Null);
        }
        // Its group is its own, and it is not reaped yet.
        let _ = kill_process_group(Pid::from_child(&self.driver), Signal::KILL);
        let _ = self.driver.wait();
    }
}
