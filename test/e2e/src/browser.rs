//! A real browser without a window, controlled by the DevTools protocol on two pipes. Pages are waited for: a dump after
//! a given time shows what happened to be there.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::wait_for;

pub struct Browser {
    process: Child,
    calls: ChildStdin,
    messages: BufReader<ChildStdout>,
    calls_made: u64,
    last_document: String,
}

impl Browser {
    pub fn start(profile: &Path, flags: &[&str]) -> Browser {
        // The protocol is on descriptors 3 and 4; the browser's own output is of no interest unless it fails.
        let mut process = Command::new("sh")
            .args(["-c", "exec \"$@\" 3<&0 4>&1 </dev/null >&2", "sh", "chromium", "--headless=new"])
            .args(["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
            .args(["--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", profile.display()))
            .args(flags)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let calls = process.stdin.take().expect("it is piped");
        let messages = BufReader::new(process.stdout.take().expect("it is piped"));
        Browser { process, calls, messages, calls_made: 0, last_document: String::new() }
    }

    /// The document of this address as soon as it is as expected.
    pub fn visit(&mut self, url: &str, is_expected: impl Fn(&str) -> bool) -> String {
        // A tab of its own: parts of an earlier page cannot be taken for parts of this one.
        let tab = self.call(None, "Target.createTarget", &json!({"url": url})).expect("a tab");
        let attach = json!({"targetId": tab["targetId"], "flatten": true});
        let attached = self.call(None, "Target.attachToTarget", &attach).expect("the tab exists");
        let session = attached["sessionId"].as_str().expect("a session").to_owned();
        let shown = wait_for(&format!("what is expected on the page {url}"), || {
            self.last_document = self.document(&session)?;
            is_expected(&self.last_document).then(|| self.last_document.clone())
        });
        self.call(None, "Target.closeTarget", &json!({"targetId": tab["targetId"]})).expect("the tab exists");
        shown
    }

    /// `None` between two documents.
    fn document(&mut self, session: &str) -> Option<String> {
        let script = json!({"expression": "document.documentElement.outerHTML"});
        let evaluated = self.call(Some(session), "Runtime.evaluate", &script)?;
        evaluated["result"]["value"].as_str().map(str::to_owned)
    }

    /// The result of a call, `None` if the browser rejected it.
    fn call(&mut self, session: Option<&str>, method: &str, params: &Value) -> Option<Value> {
        self.calls_made += 1;
        let mut call = json!({"id": self.calls_made, "method": method, "params": params});
        if let Some(session) = session {
            call["sessionId"] = json!(session);
        }
        self.calls.write_all(format!("{call}\0").as_bytes()).expect("the browser runs");
        loop {
            let mut message = Vec::new();
            self.messages.read_until(0, &mut message).expect("the browser runs");
            assert_eq!(message.pop(), Some(0), "the browser ended at {method}");
            let mut message: Value = serde_json::from_slice(&message).expect("JSON");
            if message["id"] == self.calls_made {
                return message.get_mut("result").map(Value::take);
            }
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- the last page:\n{}", self.last_document);
        }
        // A browser that was asked to close leaves no process that still writes to the profile.
        let _ = self.calls.write_all(b"{\"id\": 0, \"method\": \"Browser.close\"}\0");
        let _ = std::io::copy(&mut self.messages, &mut std::io::sink());
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
