//! `llopt-fuzz`: makes programs, runs each with every engine, keeps those that fail.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use llopt_fuzz::Program;
use llopt_fuzz::case::Case;
use llopt_fuzz::check::{Failure, Verdict, check};
use llopt_fuzz::generate::{generate, generate_without_layouts};
use llopt_fuzz::mutate::{Answer, answer, mutate};
use llopt_fuzz::program::Speller;
use llopt_fuzz::shrink::shrink;
use llopt_target::Target;

/// All targets that programs are made for unless one is named.
const TARGETS: [&str; 7] = [
    "cuda:80",
    "cuda:90",
    "hip:gfx90a",
    "hip:gfx942",
    "hip:gfx950",
    "hip:gfx1100",
    "hip:gfx1200",
];

/// Random tile programs by the reference interpreter and the simulated machine; whatever differs is made
/// small and kept.
#[derive(Parser)]
#[command(name = "llopt-fuzz", version, max_term_width = 100)]
struct Arguments {
    /// Kept cases to run again, instead of making programs
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Programs to run for each target
    #[arg(long, value_name = "N", default_value_t = 1000)]
    cases: u64,

    /// Seed of the first program; the next ones count up from it
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,

    /// GPU to make programs for; may be given several times [default: all seven]
    #[arg(long, value_name = "TARGET", value_parser = Target::parse)]
    target: Vec<Target>,

    /// Threads
    #[arg(long, value_name = "N", default_value_t = 1)]
    jobs: usize,

    /// Where failing cases are written
    #[arg(long, value_name = "DIR", default_value = "fuzz-failures")]
    keep: PathBuf,

    /// Failures after which to stop
    #[arg(long, value_name = "N", default_value_t = 20)]
    max_failures: usize,

    /// Instead of making programs, change these kernels, one after another, and compile each change for the targets; a
    /// crash ends the run and is told with its seed
    #[arg(long, value_name = "FILE", num_args = 1..)]
    mutate: Vec<PathBuf>,

    /// Make programs without layouts, which the layout engine then chooses
    #[arg(long)]
    without_layouts: bool,

    /// Write programs to standard output instead of running them
    #[arg(long)]
    print: bool,
}

/// The joint counts of all threads.
#[derive(Default)]
struct Tally {
    agreed: u64,
    /// The number of occurrences, and the least seed.
    unsupported: BTreeMap<String, (u64, u64)>,
    failures: BTreeMap<String, u64>,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if !arguments.files.is_empty() {
        return replay(&arguments.files);
    }
    let targets = if arguments.target.is_empty() {
        TARGETS
            .iter()
            .map(|name| Target::parse(name))
            .collect::<Result<Vec<_>, _>>()?
    } else {
        arguments.target.clone()
    };
    if !arguments.mutate.is_empty() {
        return hostile(&arguments, &targets);
    }
    if arguments.print {
        let speller = Speller::new()?;
        for seed in arguments.seed..arguments.seed + arguments.cases {
            for &target in &targets {
                let case = Case::of(&made(&arguments, target, seed), &speller);
                print!("{}", case.file(&format!("seed {seed}")));
            }
        }
        return Ok(());
    }
    fuzz(&arguments, &targets)
}

/// Seconds of processor time that an answer may take.
const SECONDS: f64 = 10.5;
/// MiB of memory that an answer may take.
const MIB: i64 = 1024;

/// Compiles changed kernels, each in its own process, so that a crash is an ordinary outcome.
fn hostile(arguments: &Arguments, targets: &[Target]) -> Result<()> {
    let mut tally: BTreeMap<String, u64> = BTreeMap::new();
    let mut failures = 0;
    std::fs::create_dir_all(&arguments.keep)?;
    for seed in arguments.seed..arguments.seed + arguments.cases {
        let path = &arguments.mutate[(seed % arguments.mutate.len() as u64) as usize];
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read '{}'", path.display()))?;
        let text = mutate(&text, seed);
        for &target in targets {
            let outcome = apart(|| match answer(&text, target) {
                Answer::Result => 0,
                Answer::Refused(_) => 1,
                Answer::Bug(message) => {
                    eprintln!("{message}");
                    2
                }
            });
            let took = outcome.seconds;
            let name = match outcome.status {
                Some(0) => "compiled",
                Some(1) => "refused",
                Some(2) => "bugs",
                _ => "crashes",
            };
            let excesses = [
                (took > SECONDS, format!("over {SECONDS} s")),
                (outcome.memory > MIB, format!("over {MIB} MiB")),
            ];
            let excesses = excesses.into_iter().filter(|(is, _)| *is);
            let counts: Vec<String> = [name.to_owned()]
                .into_iter()
                .chain(excesses.map(|(_, text)| text))
                .collect();
            let is_failure = counts.len() > 1 || !matches!(outcome.status, Some(0 | 1));
            for count in &counts {
                *tally.entry(count.clone()).or_default() += 1;
            }
            if is_failure {
                failures += 1;
                let file = arguments
                    .keep
                    .join(format!("mutated-{seed}-{}.mlir", target.arch()));
                std::fs::write(&file, &text)?;
                println!(
                    "seed {seed} of '{}' for {target}: {}, {took:.1} s, {} MiB: {}",
                    path.display(),
                    counts.join(", "),
                    outcome.memory,
                    file.display()
                );
            }
        }
    }
    println!("{tally:?}");
    ensure!(failures == 0, "{failures} failures");
    Ok(())
}

/// The outcome of a child process.
struct End {
    /// Its status, or `None` if a signal ended it.
    status: Option<i32>,
    /// Processor time that it took.
    seconds: f64,
    /// The most memory that it had, in MiB.
    memory: i64,
}

/// Runs `work` in a child process. The process has a single thread here.
fn apart(work: impl FnOnce() -> i32) -> End {
    // SAFETY: there are no other threads, so the child is a complete process; it exits without returning to the
    // caller's frames. Zeros are a valid usage structure.
    unsafe {
        match libc::fork() {
            0 => libc::_exit(work()),
            child => {
                let mut status = 0;
                let mut usage: libc::rusage = std::mem::zeroed();
                while libc::wait4(child, &mut status, 0, &mut usage) < 0 {}
                let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
                End {
                    seconds: seconds(usage.ru_utime) + seconds(usage.ru_stime),
                    status: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
                    memory: usage.ru_maxrss / 1024,
                }
            }
        }
    }
}

/// The program for a seed.
fn made(arguments: &Arguments, target: Target, seed: u64) -> Program {
    match arguments.without_layouts {
        true => generate_without_layouts(target, seed),
        false => generate(target, seed),
    }
}

fn replay(files: &[PathBuf]) -> Result<()> {
    let mut failed = 0;
    for path in files {
        let contents = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read '{}'", path.display()))?;
        let case = Case::parse(&contents).with_context(|| path.display().to_string())?;
        match check(&case) {
            Verdict::Agreed => println!("{}: agreed", path.display()),
            Verdict::Unsupported(what) => println!("{}: unsupported: {what}", path.display()),
            Verdict::Failed(failure) => {
                failed += 1;
                println!("{}: {failure}", path.display());
            }
        }
    }
    ensure!(failed == 0, "{failed} of {} cases fail", files.len());
    Ok(())
}

fn fuzz(arguments: &Arguments, targets: &[Target]) -> Result<()> {
    let total = arguments.cases * targets.len() as u64;
    let next = AtomicU64::new(0);
    let tally = Mutex::new(Tally::default());
    let begun = Instant::now();
    // Hidden where standard error is not a terminal.
    let style = ProgressStyle::with_template("{bar:40} {pos} of {len}, {per_sec}, {eta} left")?;
    let progress = ProgressBar::new(total).with_style(style);
    let work = || -> Result<()> {
        let mut speller = Speller::new()?;
        let mut own = 0u32;
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= total || too_many(&tally, arguments.max_failures) {
                return Ok(());
            }
            own += 1;
            if own.is_multiple_of(5000) {
                // Contexts never forget an attribute.
                speller = Speller::new()?;
            }
            let target = targets[(index % targets.len() as u64) as usize];
            let seed = arguments.seed + index / targets.len() as u64;
            let program = made(arguments, target, seed);
            let verdict = check(&Case::of(&program, &speller));
            let kept = match &verdict {
                Verdict::Failed(failure) => {
                    Some(keep(arguments, &program, seed, failure, &speller, &tally)?)
                }
                _ => None,
            };
            let mut tally = tally
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            match verdict {
                Verdict::Agreed => tally.agreed += 1,
                Verdict::Unsupported(what) => {
                    let what = what.split("error: ").last().unwrap_or(&what).to_owned();
                    let (count, least) = tally.unsupported.entry(what).or_insert((0, seed));
                    *count += 1;
                    *least = seed.min(*least);
                }
                Verdict::Failed(failure) => {
                    *tally.failures.entry(failure.kind()).or_default() += 1;
                    if let Some(path) = kept.flatten() {
                        progress.suspend(|| {
                            println!(
                                "{target} seed {seed}: {failure}\n  kept as {}",
                                path.display()
                            );
                        });
                    }
                }
            }
            drop(tally);
            progress.inc(1);
        }
    };
    std::thread::scope(|scope| -> Result<()> {
        let threads: Vec<_> = (0..arguments.jobs.max(1))
            .map(|_| scope.spawn(work))
            .collect();
        for thread in threads {
            thread
                .join()
                .map_err(|_| anyhow::anyhow!("a thread panicked"))??;
        }
        Ok(())
    })?;
    progress.finish_and_clear();
    let tally = tally
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let seconds = begun.elapsed().as_secs_f64();
    let unsupported: u64 = tally.unsupported.values().map(|(count, _)| count).sum();
    let failures: u64 = tally.failures.values().sum();
    println!(
        "{} agreed, {unsupported} unsupported, {failures} failed in {seconds:.0} s",
        tally.agreed
    );
    for (what, (count, seed)) in &tally.unsupported {
        println!("  unsupported {count}, first with seed {seed}: {what}");
    }
    for (what, count) in &tally.failures {
        println!("  failed {count}: {what}");
    }
    ensure!(failures == 0, "{failures} cases fail");
    Ok(())
}

fn too_many(tally: &Mutex<Tally>, most: usize) -> bool {
    let tally = tally
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    tally.failures.values().sum::<u64>() >= most as u64
}

/// Writes a failing program; the first few of each kind are shrunk.
fn keep(
    arguments: &Arguments,
    program: &Program,
    seed: u64,
    failure: &Failure,
    speller: &Speller,
    tally: &Mutex<Tally>,
) -> Result<Option<PathBuf>> {
    let known = {
        let tally = tally
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        tally.failures.get(&failure.kind()).copied().unwrap_or(0)
    };
    if known >= 5 {
        return Ok(None);
    }
    let small = shrink(program, &failure.kind(), speller, 400);
    let case = Case::of(&small, speller);
    let said = match check(&case) {
        Verdict::Failed(failure) => failure.to_string(),
        _ => failure.to_string(),
    };
    std::fs::create_dir_all(&arguments.keep)
        .with_context(|| format!("cannot create '{}'", arguments.keep.display()))?;
    let form = match program.has_layouts {
        true => "ttgir",
        false => "ttir",
    };
    let name = format!(
        "{}-{seed}.{form}",
        program.target.to_string().replace(':', "-")
    );
    let path = arguments.keep.join(name);
    std::fs::write(&path, case.file(&said))
        .with_context(|| format!("cannot write '{}'", path.display()))?;
    Ok(Some(path))
}
