//! The language server `llopt-lsp-server`: editors start it, and it shows them errors, hover texts
//! and definitions in files of the dialects. `docs/language-server.md` says how to set one up.
//!
//! While a file is edited, it is invalid most of the time, and MLIR's parser has bugs. So two processes share the
//! work: this one forwards messages, and a child is the server. If the child crashes, another one replaces it: it
//! gets the initialisation messages of the first and the open files, except the file whose text caused the crash;
//! that file gets a diagnostic about the crash, and pending requests get an error. A child that computes for longer
//! than the budget without a message, or that needs more memory, is killed.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use llopt::{Budget, isolation};
use serde_json::{Value, json};

/// This variable is set for the child.
const IN_CHILD: &str = "LLOPT_LSP_CHILD";

/// The interval at which the child's time and memory are checked.
const INTERVAL: Duration = Duration::from_millis(50);

/// The number of crashes after which no other child is started.
const MOST_DEATHS: u32 = 20;

fn main() -> ExitCode {
    let mut arguments = Vec::new();
    for argument in env::args_os() {
        match argument.into_string() {
            Ok(argument) => arguments.push(argument),
            Err(argument) => {
                eprintln!("llopt-lsp-server: error: {argument:?} is not UTF-8");
                return ExitCode::FAILURE;
            }
        }
    }
    // Options of MLIR may change the form of messages, or only request help.
    let alone = arguments.len() > 1
        || env::var_os(IN_CHILD).is_some()
        || env::var_os("LLOPT_NO_ISOLATION").is_some();
    if !alone {
        return match supervise() {
            Ok(status) => status,
            Err(error) => {
                eprintln!("llopt-lsp-server: error: {error}");
                ExitCode::FAILURE
            }
        };
    }
    match llopt::language_server_main(arguments) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("llopt-lsp-server: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The state that both directions share.
#[derive(Default)]
struct Session {
    /// The child's input; `None` once the client has ended the session.
    input: Option<ChildStdin>,
    /// The client's initialisation messages.
    greeting: Vec<Value>,
    /// The client's messages about each open file.
    files: BTreeMap<String, Vec<Value>>,
    /// The file of the last message that had one.
    last_file: Option<String>,
    /// Pending requests, by their numbers as text.
    waiting: BTreeMap<String, Value>,
    /// Responses that the client has received from an earlier child.
    known: BTreeSet<String>,
    /// The number of messages that the child has sent.
    heard: u64,
    /// The reason why the child was killed, if it was.
    excess: Option<String>,
}

/// The budget from the environment.
fn budget() -> Budget {
    let number = |name: &str| env::var(name).ok().and_then(|text| text.parse().ok());
    let mut budget = Budget::default();
    budget.memory = number("LLOPT_MAX_MEMORY").unwrap_or(budget.memory);
    budget.time = number("LLOPT_MAX_TIME").unwrap_or(budget.time);
    budget
}

/// Watches a child until it ends, and kills it when it uses more memory than the budget, or has computed for longer
/// without a pause or a message.
fn watch(child: u32, session: &Mutex<Session>, gone: &AtomicBool) {
    let budget = budget();
    let (mut heard, mut begun, mut before) = (0, 0, 0);
    while !gone.load(Ordering::Acquire) {
        thread::sleep(INTERVAL);
        let used = isolation::usage(child);
        let mut session = locked(session);
        // A child that waits for a processor is not idle, nor is one in which a thread wakes another.
        let pauses = used.waits && before == used.time;
        if heard != session.heard || pauses {
            (heard, begun) = (session.heard, used.time);
        }
        before = used.time;
        let excess = if used.memory > budget.memory << 20 {
            format!("needs more than {} MiB of memory", budget.memory)
        } else if used.time > begun + budget.time {
            format!(
                "takes more than {} s",
                Duration::from_millis(budget.time).as_secs_f64()
            )
        } else {
            continue;
        };
        if session.excess.is_none() {
            session.excess = Some(excess);
        }
        if !gone.load(Ordering::Acquire) {
            isolation::end_process(child);
        }
    }
}

/// Forwards messages until the client ends, or no child is left.
fn supervise() -> io::Result<ExitCode> {
    let session = Arc::new(Mutex::new(Session::default()));
    let mut child = start(&session)?;
    let of_client = session.clone();
    thread::spawn(move || {
        let mut input = BufReader::new(io::stdin());
        while let Ok(Some(message)) = read(&mut input) {
            let mut session = locked(&of_client);
            session.note(&message);
            session.send(&message);
        }
        locked(&of_client).input = None;
    });
    let mut deaths = 0;
    loop {
        let gone = Arc::new(AtomicBool::new(false));
        let (process, of_child, is_gone) = (child.id(), session.clone(), gone.clone());
        let watcher = thread::spawn(move || watch(process, &of_child, &is_gone));
        if let Some(output) = child.stdout.take() {
            let mut output = BufReader::new(output);
            while let Ok(Some(message)) = read(&mut output) {
                let is_news = locked(&session).answered(&message);
                if is_news {
                    write(&mut io::stdout(), &message)?;
                }
            }
        }
        // The child's number is valid until the child has been waited for.
        gone.store(true, Ordering::Release);
        let _ = watcher.join();
        let status = child.wait()?;
        if let Some(code) = status.code() {
            return Ok(ExitCode::from(code as u8));
        }
        deaths += 1;
        if deaths > MOST_DEATHS || locked(&session).input.is_none() {
            return Ok(ExitCode::FAILURE);
        }
        for message in locked(&session).mourn() {
            write(&mut io::stdout(), &message)?;
        }
        child = start(&session)?;
    }
}

/// Starts a child and sends it the state of the previous one.
fn start(session: &Mutex<Session>) -> io::Result<Child> {
    let mut child = Command::new(env::current_exe()?)
        .env(IN_CHILD, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut session = locked(session);
    session.input = child.stdin.take();
    let greeting = session.greeting.clone();
    let files: Vec<Value> = session.files.values().flatten().cloned().collect();
    for message in greeting.iter().chain(&files) {
        session.send(message);
    }
    Ok(child)
}

fn locked(session: &Mutex<Session>) -> MutexGuard<'_, Session> {
    session.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Session {
    fn send(&mut self, message: &Value) {
        if let Some(input) = &mut self.input {
            // The end of a child is detected at the end of its output.
            let _ = write(input, message);
        }
    }

    /// Records the part of a client's message that another child would need.
    fn note(&mut self, message: &Value) {
        let method = message["method"].as_str().unwrap_or_default();
        let uri = message["params"]["textDocument"]["uri"].as_str();
        if let Some(uri) = uri {
            self.last_file = Some(uri.to_owned());
        }
        match (method, uri) {
            ("initialize" | "initialized", _) => self.greeting.push(message.clone()),
            ("textDocument/didOpen", Some(uri)) => {
                self.files.insert(uri.to_owned(), vec![message.clone()]);
            }
            ("textDocument/didChange", Some(uri)) => {
                // A file that crashed a child is not sent to another until it is opened again.
                if let Some(said) = self.files.get_mut(uri) {
                    said.push(message.clone());
                }
            }
            ("textDocument/didClose", Some(uri)) => {
                self.files.remove(uri);
            }
            _ => {}
        }
        if !method.is_empty()
            && let Some(id) = message.get("id")
        {
            self.waiting.insert(id.to_string(), id.clone());
        }
    }

    /// Whether a message of a child is new to the client.
    fn answered(&mut self, message: &Value) -> bool {
        self.heard += 1;
        let Some(id) = message
            .get("id")
            .filter(|_| message.get("method").is_none())
        else {
            return true;
        };
        let id = id.to_string();
        self.waiting.remove(&id);
        self.known.insert(id)
    }

    /// The messages to the client after a child has crashed.
    fn mourn(&mut self) -> Vec<Value> {
        let happened = match self.excess.take() {
            Some(excess) => format!("this file {excess}, the budget of the language server"),
            None => "bug in llopt: this file ends the language server".to_owned(),
        };
        let said = format!("{happened}; it is left out until it is opened again");
        let mut messages = Vec::new();
        if let Some(uri) = self.last_file.take() {
            self.files.remove(&uri);
            let start = json!({"line": 0, "character": 0});
            let range = json!({"start": start, "end": start});
            let diagnostic =
                json!({"range": range, "severity": 1, "source": "llopt", "message": said});
            messages.push(json!({
                "jsonrpc": "2.0",
                "method": "textDocument/publishDiagnostics",
                "params": {"uri": uri, "diagnostics": [diagnostic]},
            }));
        }
        for (key, id) in std::mem::take(&mut self.waiting) {
            self.known.insert(key);
            let error =
                json!({"code": -32603, "message": "the language server has died of the file"});
            messages.push(json!({"jsonrpc": "2.0", "id": id, "error": error}));
        }
        messages
    }
}

/// The next message; `None` at the end.
fn read(input: &mut impl BufRead) -> io::Result<Option<Value>> {
    let mut length = None;
    loop {
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let line = line.trim();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().ok();
        }
    }
    let invalid = || io::Error::new(io::ErrorKind::InvalidData, "a message without a length");
    let length: u64 = length.ok_or_else(invalid)?;
    let mut text = Vec::new();
    input.take(length).read_to_end(&mut text)?;
    Ok(Some(serde_json::from_slice(&text)?))
}

fn write(output: &mut impl Write, message: &Value) -> io::Result<()> {
    let text = message.to_string();
    write!(output, "Content-Length: {}\r\n\r\n{text}", text.len())?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_they_are_written() {
        let message = json!({"id": 1, "method": "é"});
        let mut bytes = Vec::new();
        write(&mut bytes, &message).unwrap();
        write(&mut bytes, &json!(2)).unwrap();
        let mut input = &bytes[..];
        assert_eq!(read(&mut input).unwrap(), Some(message));
        assert_eq!(read(&mut input).unwrap(), Some(json!(2)));
        assert_eq!(read(&mut input).unwrap(), None);
    }

    #[test]
    fn the_file_that_ended_a_child_is_left_out() {
        let mut session = Session::default();
        let about = |method: &str, uri: &str| json!({"method": method, "params": {"textDocument": {"uri": uri}}});
        session.note(&json!({"id": 1, "method": "initialize"}));
        assert!(session.answered(&json!({"id": 1, "result": {}})));
        session.note(&about("textDocument/didOpen", "a"));
        session.note(&about("textDocument/didOpen", "b"));
        let mut hover = about("textDocument/hover", "b");
        hover["id"] = json!(2);
        session.note(&hover);
        let said = session.mourn();
        assert_eq!(said.len(), 2);
        assert_eq!(
            (&said[0]["params"]["uri"], &said[1]["id"]),
            (&json!("b"), &json!(2))
        );
        assert_eq!(session.files.keys().collect::<Vec<_>>(), ["a"]);
        let text = &said[0]["params"]["diagnostics"][0]["message"];
        assert!(text.as_str().unwrap().starts_with("bug in llopt: "));
        // The initialisation is repeated, and its response is not new.
        assert_eq!(session.greeting.len(), 1);
        assert!(!session.answered(&json!({"id": 1, "result": {}})));
        session.note(&about("textDocument/didChange", "b"));
        assert!(
            session
                .mourn()
                .iter()
                .all(|message| message.get("id").is_none())
        );
    }
}
