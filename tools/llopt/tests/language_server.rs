//! The language server as an editor uses it: requests over standard streams in the framing of the Language Server
//! Protocol, 3.17, "Base Protocol".

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

const SERVER: &str = env!("CARGO_BIN_EXE_llopt-lsp-server");

const KERNEL: &str = r#"#layout = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @advance(%x: !tt.ptr<f32>) -> tensor<512x!tt.ptr<f32>, #layout> {
    %index = tt.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32, #layout>
    %base = tt.splat %x : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #layout>
    %address = tt.addptr %base, %index : tensor<512x!tt.ptr<f32>, #layout>, tensor<512xi32, #layout>
    tt.return %address : tensor<512x!tt.ptr<f32>, #layout>
  }
}
"#;
const BLOCKED: &str =
    "#ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>";

/// A running server and the client's side of the conversation.
struct Client {
    server: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    requests: u32,
}

impl Client {
    fn start() -> Self {
        Self::with(&["--log=error"], &[])
    }

    /// Without options there are two processes; a child is the server.
    fn with(options: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut server = Command::new(SERVER)
            .args(options)
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        let input = server.stdin.take().expect("is piped");
        let output = BufReader::new(server.stdout.take().expect("is piped"));
        let mut client = Self {
            server,
            input,
            output,
            requests: 0,
        };
        let parameters = json!({"processId": null, "rootUri": null, "capabilities": {}});
        let answer = client.request("initialize", &parameters);
        for capability in ["hoverProvider", "definitionProvider", "referencesProvider"] {
            assert_eq!(answer["capabilities"][capability], true, "{answer}");
        }
        client.notify("initialized", &json!({}));
        client
    }

    fn send(&mut self, message: &Value) {
        let body = message.to_string();
        write!(self.input, "Content-Length: {}\r\n\r\n{body}", body.len())
            .and_then(|()| self.input.flush())
            .expect("the server reads");
    }

    fn receive(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut header = String::new();
            let count = self.output.read_line(&mut header).expect("is text");
            assert_ne!(count, 0, "the server has ended");
            match header.trim_end().split_once(": ") {
                Some(("Content-Length", value)) => length = value.parse().expect("is a number"),
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        self.output.read_exact(&mut body).expect("is whole");
        serde_json::from_slice(&body).expect("is JSON")
    }

    fn notify(&mut self, method: &str, parameters: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": parameters}));
    }

    fn request(&mut self, method: &str, parameters: &Value) -> Value {
        self.requests += 1;
        let id = self.requests;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters}));
        let mut answer = self.receive();
        assert_eq!(answer["id"], id, "{answer}");
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].take()
    }

    /// Opens a file and returns the diagnostics the server publishes for it.
    fn open(&mut self, uri: &str, text: &str) -> Vec<Value> {
        let document = json!({"uri": uri, "languageId": "mlir", "version": 1, "text": text});
        self.notify("textDocument/didOpen", &json!({"textDocument": document}));
        self.diagnostics(uri)
    }

    /// Replaces a file's text and returns the diagnostics the server publishes for it.
    fn change(&mut self, uri: &str, text: &str) -> Vec<Value> {
        self.notify(
            "textDocument/didChange",
            &json!({
                "textDocument": {"uri": uri, "version": 2},
                "contentChanges": [{"text": text}],
            }),
        );
        self.diagnostics(uri)
    }

    fn diagnostics(&mut self, uri: &str) -> Vec<Value> {
        let message = self.receive();
        assert_eq!(message["method"], "textDocument/publishDiagnostics");
        assert_eq!(message["params"]["uri"], uri);
        let list = message["params"]["diagnostics"].as_array();
        list.expect("is a list").clone()
    }

    /// A request about the place in [`KERNEL`] where `needle` starts, on the line with `marker`.
    fn ask(&mut self, method: &str, uri: &str, marker: &str, needle: &str) -> Value {
        let (line, column) = place(marker, needle);
        self.request(
            &format!("textDocument/{method}"),
            &json!({
                "textDocument": {"uri": uri},
                "position": {"line": line, "character": column},
                "context": {"includeDeclaration": false, "triggerKind": 1},
            }),
        )
    }

    fn hover(&mut self, uri: &str, marker: &str, needle: &str) -> String {
        let answer = self.ask("hover", uri, marker, needle);
        let text = answer["contents"]["value"].as_str();
        text.unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    fn end(mut self) {
        assert_eq!(self.request("shutdown", &Value::Null), Value::Null);
        self.notify("exit", &Value::Null);
        let status = self.server.wait().expect("the server ends");
        assert!(status.success(), "{status}");
    }
}

/// Line and column, from zero, of `needle` on the line of [`KERNEL`] that contains `marker`.
fn place(marker: &str, needle: &str) -> (usize, usize) {
    let (number, line) = KERNEL
        .lines()
        .enumerate()
        .find(|(_, line)| line.contains(marker))
        .expect("the kernel has the line");
    (number, line.find(needle).expect("the line has the text"))
}

fn range(line: usize, start: usize, end: usize) -> Value {
    json!({
        "start": {"line": line, "character": start},
        "end": {"line": line, "character": end},
    })
}

#[test]
fn errors_have_ranges_and_go_when_they_are_mended() {
    let mut client = Client::start();
    let uri = "file:///kernel.ttgir";
    let found = client.open(uri, &KERNEL.replace("end = 512", "end = 500"));
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        found[0]["message"],
        "'tt.make_range' op the range from 0 to 500 has 500 elements, the result has 512"
    );
    let (line, start) = place("%index =", "tt.make_range");
    let op = range(line, start, start + "tt.make_range".len());
    assert_eq!(found[0]["range"], op);
    assert_eq!(client.change(uri, KERNEL), Vec::<Value>::new());

    // A layout that does not fit its module is reported where the tensor is defined.
    let found = client.change(
        uri,
        &KERNEL.replace("warpsPerCTA = [4]", "warpsPerCTA = [8]"),
    );
    assert!(!found.is_empty());
    assert!(
        found[0]["message"].as_str().unwrap_or("").contains("warps"),
        "{found:?}"
    );

    let found = client.change(uri, &KERNEL.replace("tt.splat %x", "tt.splat %z"));
    assert_eq!(found[0]["message"], "use of undeclared SSA value name");
    let (line, start) = place("%base =", "%x");
    assert_eq!(found[0]["range"], range(line, start, start + 2));
    client.end();
}

#[test]
fn hover_shows_operations_values_and_layouts() {
    let mut client = Client::start();
    let uri = "file:///kernel.ttgir";
    assert_eq!(client.open(uri, KERNEL), Vec::<Value>::new());

    let op = client.hover(uri, "%index =", "tt.make_range");
    assert!(op.starts_with("\"tt.make_range\""), "{op}");
    assert!(op.contains("<{end = 512 : i32, start = 0 : i32}>"), "{op}");
    let value = client.hover(uri, "%base =", "%base");
    assert!(value.contains("Operation: \"tt.splat\""), "{value}");
    assert!(
        value.contains(&format!("tensor<512x!tt.ptr<f32>, {BLOCKED}>")),
        "{value}"
    );
    for marker in ["#layout =", "%index ="] {
        let layout = client.hover(uri, marker, "#layout");
        assert!(layout.contains("Attribute Alias: \"layout"), "{layout}");
        assert!(layout.contains(BLOCKED), "{layout}");
    }
    client.end();
}

#[test]
fn definitions_references_and_completions_are_found() {
    let mut client = Client::start();
    let uri = "file:///kernel.ttgir";
    assert_eq!(client.open(uri, KERNEL), Vec::<Value>::new());

    let found = client.ask("definition", uri, "%index =", "#layout");
    assert_eq!(found[0]["range"], range(0, 0, "#layout".len()));
    let found = client.ask("definition", uri, "%address =", "%index");
    let (line, start) = place("%index =", "%index");
    assert_eq!(found[0]["range"], range(line, start, start + 6));

    let found = client.ask("references", uri, "%base =", "%base");
    let (line, start) = place("%address =", "%base");
    let found = found.as_array().expect("is a list");
    assert!(
        found
            .iter()
            .any(|location| location["range"] == range(line, start, start + 5)),
        "{found:?}"
    );

    // An unfinished text, and whether the two names are offered there.
    let unfinished = |text: &str| KERNEL.replace("    %base = tt.splat %x :", text);
    for (text, offered) in [
        ("    tt. //", ["splat", "make_range"]),
        ("    tt.splat  //", ["%x", "%index"]),
    ] {
        client.change(uri, &unfinished(text));
        let answer = client.request(
            "textDocument/completion",
            &json!({
                "textDocument": {"uri": uri},
                "position": {"line": place("%base =", "%base").0, "character": text.len() - 3},
                "context": {"triggerKind": 1},
            }),
        );
        let items = answer["items"].as_array().expect("is a list");
        for name in offered {
            let found = items.iter().any(|item| item["label"] == name);
            assert!(found, "{name} is not offered: {items:?}");
        }
    }
    client.end();
}

/// An editor sends unfinished text, and other files that were opened by mistake.
#[test]
fn nothing_that_is_opened_ends_the_server() {
    let mut client = Client::start();
    let deep_type = "!tt.ptr<".repeat(5_000);
    let texts = [
        "(".repeat(100_000),
        format!("func.func private @f({deep_type}"),
        "#a = ".to_owned() + &"[".repeat(20_000),
        "ML\u{ef}R".to_owned(),
        KERNEL[..KERNEL.len() / 2].to_owned(),
    ];
    for (number, text) in texts.iter().enumerate() {
        let found = client.open(&format!("file:///{number}.ttgir"), text);
        assert!(!found.is_empty(), "text {number} has no error");
    }
    client.end();
}

/// The process that does the work of an isolated server.
#[cfg(target_os = "linux")]
fn child_of(server: &Child) -> String {
    // Threads have children, not processes; any may have started this one.
    let tasks = std::fs::read_dir(format!("/proc/{}/task", server.id())).expect("it runs");
    tasks
        .map(|task| std::fs::read_to_string(task.unwrap().path().join("children")).unwrap())
        .find_map(|children| Some(children.split_whitespace().next()?.to_owned()))
        .expect("it has a child")
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_that_ends_the_server_is_left_out() {
    let mut client = Client::with(&[], &[]);
    let (good, bad) = ("file:///good.ttgir", "file:///bad.ttgir");
    assert_eq!(client.open(good, KERNEL), Vec::<Value>::new());
    assert_eq!(client.open(bad, KERNEL), Vec::<Value>::new());
    let killed = Command::new("kill")
        .args(["-KILL", &child_of(&client.server)])
        .status();
    assert!(killed.expect("kill is there").success());
    let found = client.diagnostics(bad);
    let said = found[0]["message"].as_str().expect("is text");
    assert!(said.starts_with("bug in llopt: this file ends"), "{said}");
    // The new child opens the other file again, and reports its diagnostics.
    assert_eq!(client.diagnostics(good), Vec::<Value>::new());
    assert!(
        client
            .hover(good, "%index =", "tt.make_range")
            .contains("tt.make_range")
    );
    client.end();
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_that_takes_too_long_is_left_out() {
    let mut client = Client::with(&[], &[("LLOPT_MAX_TIME", "300")]);
    let (good, bad) = ("file:///good.ttgir", "file:///bad.ttgir");
    assert_eq!(client.open(good, KERNEL), Vec::<Value>::new());
    let lines: String = (0..400_000)
        .map(|i| format!("%c{i} = arith.constant dense<{i}> : tensor<64xi32>\n"))
        .collect();
    let found = client.open(bad, &lines);
    let said = found[0]["message"].as_str().expect("is text");
    assert!(
        said.starts_with("this file takes more than 0.3 s"),
        "{said}"
    );
    assert_eq!(client.diagnostics(good), Vec::<Value>::new());
    client.end();
}
