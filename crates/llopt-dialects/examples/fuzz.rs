//! Feeds damaged files to the readers, for any length of time: `cargo xtask fuzz` runs this.
//!
//! The parent runs a few workers, processes that read one damaged file after the other and report its number before
//! they begin. A worker that dies, or reports nothing for too long, has found a bug: the parent keeps the file,
//! counts it, and restarts the worker after it. Workers run under a limit of address space, and their `malloc` fills
//! allocated and freed memory, so that uses of either are detected.

#[path = "../tests/dialects/damage/mod.rs"]
mod damage;

use clap::{Parser, ValueEnum};
use damage::{Corpus, Form, Verdict};
use std::{
    env,
    error::Error,
    fs,
    io::{self, BufRead, BufReader, Write},
    path::PathBuf,
    process::{Child, Command, ExitCode, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

/// Reads damaged text and bytecode of the dialects and reports every bad answer.
#[derive(Clone, Debug, Parser)]
struct Options {
    /// Folders of good files; without one, the examples of the repository
    #[arg(long, value_name = "FOLDER")]
    corpus: Vec<PathBuf>,
    /// Good files larger than this are left out, in bytes
    #[arg(long, default_value_t = 16_384)]
    largest: u64,
    /// What to damage
    #[arg(long, value_enum, default_value_t = FormArgument::Both)]
    form: FormArgument,
    /// Damaged files of each form
    #[arg(long, default_value_t = 10_000)]
    count: u64,
    /// The number of the first; files follow from the corpus and their number
    #[arg(long, default_value_t = 1)]
    first: u64,
    /// Worker processes
    #[arg(long, default_value_t = 2)]
    workers: u64,
    /// Seconds that one file may take
    #[arg(long, default_value_t = 120)]
    patience: u64,
    /// Address space of a worker, in MiB
    #[arg(long, default_value_t = 4096)]
    memory: u64,
    /// Also run these passes on accepted modules, for instance `canonicalize,cse`
    #[arg(long, default_value = "")]
    passes: String,
    /// Where to keep the findings
    #[arg(long, value_name = "FOLDER", default_value = "target/fuzz")]
    keep: PathBuf,
    /// Read one file and report the result
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
    /// Work: every how many-th file from the first is this worker's
    #[arg(long, hide = true)]
    step: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FormArgument {
    Text,
    Bytecode,
    Both,
}

impl Options {
    fn forms(&self) -> &'static [Form] {
        match self.form {
            FormArgument::Text => &[Form::Text],
            FormArgument::Bytecode => &[Form::Bytecode],
            FormArgument::Both => &[Form::Text, Form::Bytecode],
        }
    }

    fn corpus(&self, form: Form) -> Corpus {
        let examples = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples"));
        let folders = if self.corpus.is_empty() {
            vec![examples]
        } else {
            self.corpus.clone()
        };
        let files: Vec<_> = folders
            .iter()
            .flat_map(|folder| damage::files_below(folder))
            .filter(|path| fs::metadata(path).is_ok_and(|file| file.len() <= self.largest))
            .collect();
        Corpus::new(&files, form)
    }
}

fn main() -> ExitCode {
    let options = Options::parse();
    let result = match (&options.replay, options.step) {
        (Some(path), _) => replay(path, &options.passes),
        (None, Some(step)) => work(&options, step).map(|()| true),
        (None, None) => supervise(&options),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn replay(path: &PathBuf, passes: &str) -> Result<bool, Box<dyn Error>> {
    let answer = examine(&damage::context(), &fs::read(path)?, passes);
    println!("{answer:?}");
    Ok(answer.is_ok())
}

/// [`damage::check`], and then the passes on what was accepted.
fn examine(context: &melior::Context, source: &[u8], passes: &str) -> Result<Verdict, String> {
    let verdict = damage::check(context, source)?;
    if verdict == Verdict::Accepted && !passes.is_empty() {
        let module = damage::parse(context, source, "damaged").map_err(|_| "read once only")?;
        let (result, diagnostics) = llopt_mlir::diagnostic::capture(context, || {
            llopt_mlir::pass::run_pipeline(module.as_operation(), passes, true)
        });
        let said = llopt_mlir::diagnostic::render(&diagnostics);
        if result.is_err() || said.contains("bug in llopt") {
            return Err(format!("{passes} fails: {said}"));
        }
    }
    Ok(verdict)
}

/// The worker: says `> number` before each file, `! number message` of a bad answer, and in the end
/// `= refused deadly accepted`.
fn work(options: &Options, step: u64) -> Result<(), Box<dyn Error>> {
    llopt_mlir::pass::register_upstream_passes();
    let [form] = options.forms() else {
        return Err("a worker damages one form".into());
    };
    let corpus = options.corpus(*form);
    let mut answers = io::stdout().lock();
    let mut context = damage::context();
    let mut counts = [0; 3];
    for (round, number) in (options.first..)
        .step_by(step as usize)
        .take(options.count as usize)
        .enumerate()
    {
        // Contexts keep all types and attributes that they have seen.
        if round % 250 == 249 {
            context = damage::context();
        }
        writeln!(answers, "> {number}")?;
        answers.flush()?;
        match examine(&context, &corpus.damaged(*form, number), &options.passes) {
            Ok(verdict) => counts[verdict as usize] += 1,
            Err(message) => writeln!(answers, "! {number} {}", message.replace('\n', "; "))?,
        }
    }
    let [refused, deadly, accepted] = counts;
    writeln!(answers, "= {refused} {deadly} {accepted}")?;
    Ok(())
}

/// What the parent learns from one worker.
enum Event {
    /// One more file.
    Progress,
    /// Something that must not be: the file's number and what happened.
    Finding(u64, String),
    /// Refused, deadly and accepted files of a worker that went through.
    Counts([u64; 3]),
}

/// The parent. True when nothing was found.
fn supervise(options: &Options) -> Result<bool, Box<dyn Error>> {
    let mut good = true;
    for form in options.forms() {
        let begin = Instant::now();
        let (sender, events) = mpsc::channel();
        let count = options.count;
        for lane in 0..options.workers.min(count) {
            let mut options = options.clone();
            options.first += lane;
            options.count = (count - lane).div_ceil(options.workers);
            options.form = match form {
                Form::Text => FormArgument::Text,
                Form::Bytecode => FormArgument::Bytecode,
            };
            let sender = sender.clone();
            thread::spawn(move || follow(&options, &sender));
        }
        drop(sender);
        let mut read = 0u64;
        let mut findings = 0u64;
        let mut counts = [0; 3];
        for event in events {
            match event {
                Event::Progress => {
                    read += 1;
                    if read.is_multiple_of(10_000) {
                        println!("{form:?}: {read} read, {findings} bad answers");
                    }
                }
                Event::Finding(number, message) => {
                    findings += 1;
                    let path = keep(options, *form, number)?;
                    println!(
                        "{form:?} {number}: {message}\n    kept as {}",
                        path.display()
                    );
                }
                Event::Counts(more) => {
                    for (sum, more) in counts.iter_mut().zip(more) {
                        *sum += more;
                    }
                }
            }
        }
        let [refused, deadly, accepted] = counts;
        println!(
            "{form:?}: {read} damaged files read in {:.0} s: {findings} bad answers; \
             {refused} refused, {accepted} accepted, {deadly} that MLIR's reader alone does not survive",
            begin.elapsed().as_secs_f64()
        );
        good &= findings == 0 && read == count;
    }
    Ok(good)
}

/// Writes down the file that a finding is about.
fn keep(options: &Options, form: Form, number: u64) -> Result<PathBuf, Box<dyn Error>> {
    fs::create_dir_all(&options.keep)?;
    let extension = match form {
        Form::Text => "mlir",
        Form::Bytecode => "mlirbc",
    };
    let path = options.keep.join(format!("{number}.{extension}"));
    fs::write(&path, options.corpus(form).damaged(form, number))?;
    Ok(path)
}

/// Follows one worker through its files, restarting it after each that ends it.
fn follow(options: &Options, events: &mpsc::Sender<Event>) {
    let mut options = options.clone();
    let step = options.workers;
    while options.count > 0 {
        let mut child = match start(&options, step) {
            Ok(child) => child,
            Err(error) => {
                let _ = events.send(Event::Finding(options.first, format!("no worker: {error}")));
                return;
            }
        };
        let lines = listen(&mut child);
        let mut current: Option<u64> = None;
        let end = loop {
            // Before the first file a worker reads the whole corpus.
            let files = if current.is_some() { 1 } else { 10 };
            match lines.recv_timeout(Duration::from_secs(options.patience * files)) {
                Ok(line) => match line.split_once(' ') {
                    Some((">", number)) => {
                        current = number.parse().ok();
                        let _ = events.send(Event::Progress);
                    }
                    Some(("!", finding)) => {
                        let (number, message) = finding.split_once(' ').unwrap_or((finding, ""));
                        let number = number.parse().unwrap_or_default();
                        let _ = events.send(Event::Finding(number, message.to_owned()));
                    }
                    Some(("=", counts)) => {
                        let mut sums = [0; 3];
                        for (sum, count) in sums.iter_mut().zip(counts.split(' ')) {
                            *sum = count.parse().unwrap_or_default();
                        }
                        let _ = events.send(Event::Counts(sums));
                        let _ = child.wait();
                        return;
                    }
                    _ => {}
                },
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    let _ = child.kill();
                    let _ = child.wait();
                    break format!("no answer within {} s", options.patience);
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    break match child.wait() {
                        Ok(status) => format!("the reader died: {status}"),
                        Err(error) => format!("the reader died: {error}"),
                    };
                }
            }
        };
        let number = current.unwrap_or(options.first);
        let _ = events.send(Event::Finding(number, end));
        let done = (number - options.first) / step + 1;
        options.first += done * step;
        options.count = options.count.saturating_sub(done);
    }
}

fn start(options: &Options, step: u64) -> io::Result<Child> {
    let form = if options.form == FormArgument::Text {
        "text"
    } else {
        "bytecode"
    };
    let mut command = Command::new("sh");
    command.arg("-c");
    command.arg(format!(
        "ulimit -c 0; ulimit -v {}; exec \"$0\" \"$@\"",
        options.memory * 1024
    ));
    command.arg(env::current_exe()?);
    for folder in &options.corpus {
        command.arg("--corpus").arg(folder);
    }
    command
        .args(["--form", form, "--passes", &options.passes])
        .args(["--largest", &options.largest.to_string()])
        .args(["--count", &options.count.to_string()])
        .args(["--first", &options.first.to_string()])
        .args(["--step", &step.to_string()])
        .env("GLIBC_TUNABLES", "glibc.malloc.perturb=165")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
}

/// The lines that a worker writes, from a thread that ends with it.
fn listen(child: &mut Child) -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel();
    if let Some(output) = child.stdout.take() {
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
    }
    lines
}
