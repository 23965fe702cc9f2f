//! A child process for the work of a command on untrusted input.
//!
//! MLIR and LLVM have bugs, and some of them end the process. A command therefore splits in two before it does
//! anything: the child does the work, with the same streams, and the parent waits. If the child exits, the parent
//! exits with the same status. If a signal ends it, the parent reports a bug of llopt with a reproducer, and exits
//! with status 1. The parent also watches the child's memory, and kills it when it exceeds its
//! [budget](crate::Budget).
//!
//! For the report, the child records its phase, the kernel's location and the source in a page and a file in memory
//! that both share. A split costs a fork of a process that has written almost no memory yet, and the copies of pages
//! that the child writes to. The exit costs nothing if both exit [at once](end_at_once): otherwise each destroys the
//! thousands of options that LLVM and MLIR created before `main`, and so copies their pages.
//!
//! A library must not do that to the process of its user: [`split`] is for programs, at their start.

use std::path::PathBuf;
use std::sync::OnceLock;

use crate::{Budget, Source};

/// The process that returns from a [`split`].
#[must_use]
pub enum Side {
    /// The process that does the work: the child, or the only process.
    Work,
    /// The parent, after the child's end, with the exit status.
    Done(u8),
}

static SHARED: OnceLock<platform::Shared> = OnceLock::new();

/// Splits the process. Call it while the process has a single thread.
///
/// On systems other than Linux the process does the work itself.
pub fn split(program: &'static str, budget: Budget) -> Side {
    platform::split(program, budget)
}

/// Records the source for a reproducer.
pub(crate) fn note_source(source: &Source) {
    if let Some(shared) = SHARED.get() {
        shared.note_source(source);
    }
}

/// Records the current phase.
pub(crate) fn note_phase(phase: &str) {
    if let Some(shared) = SHARED.get() {
        shared.note(platform::Field::Phase, phase);
    }
}

/// Records the location of the kernel.
pub(crate) fn note_place(place: &str) {
    if let Some(shared) = SHARED.get() {
        shared.note(platform::Field::Place, place);
    }
}

/// Lifts the limits: the following work is not a compilation and may use the memory that it needs.
pub fn lift_limits() {
    if let Some(shared) = SHARED.get() {
        shared.note(platform::Field::Phase, LIFTED);
    }
}

/// Ends the process without running any exit handlers.
pub fn end_at_once(status: u8) -> ! {
    // SAFETY: ends the process; nothing comes after.
    unsafe { libc::_exit(i32::from(status)) }
}

/// The phase without limits.
const LIFTED: &str = "run";

/// The resources that a process has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of private memory.
    pub memory: u64,
    /// Milliseconds of processor time, of all its threads.
    pub time: u64,
    /// Whether all its threads are blocked, not waiting for a processor.
    pub waits: bool,
}

/// The resources that another process has used until now; zero where the system does not provide them.
pub fn usage(process: u32) -> Usage {
    platform::usage(process)
}

/// Ends another process, which is a child of the caller that has not been waited for, so that its number is still
/// valid.
pub fn end_process(process: u32) {
    platform::end_process(process);
}

/// Writes a source to a new file, after a comment with the error.
pub(crate) fn write_reproducer(
    directory: &std::path::Path,
    comment: &str,
    contents: &[u8],
) -> Option<PathBuf> {
    use std::io::Write;
    let mut file = tempfile::Builder::new()
        .prefix("llopt-reproducer-")
        .suffix(".mlir")
        .tempfile_in(directory)
        .ok()?;
    for line in comment.lines() {
        writeln!(file, "// {line}").ok()?;
    }
    file.write_all(contents).ok()?;
    file.keep().ok().map(|(_, path)| path)
}

#[cfg(not(target_os = "linux"))]
mod platform {
    use super::Side;
    use crate::{Budget, Source};

    /// A recorded field.
    #[derive(Clone, Copy)]
    pub(super) enum Field {
        Phase,
        Place,
    }

    /// Without a parent process.
    pub(super) struct Shared;

    impl Shared {
        pub(super) fn note_source(&self, _: &Source) {}

        pub(super) fn note(&self, field: Field, _: &str) {
            match field {
                Field::Phase | Field::Place => {}
            }
        }
    }

    pub(super) fn split(_: &'static str, _: Budget) -> Side {
        Side::Work
    }

    pub(super) fn end_process(_: u32) {}

    pub(super) fn usage(_: u32) -> super::Usage {
        super::Usage::default()
    }
}

#[cfg(target_os = "linux")]
mod platform {
    use std::fs::File;
    use std::io::{Read, Seek, Write};
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

    use super::{LIFTED, SHARED, Side, write_reproducer};
    use crate::{Budget, Source, VERSION};

    /// Milliseconds between two checks of the child's memory.
    const INTERVAL: i32 = 20;

    /// The status of a command that failed.
    const FAILURE: u8 = 1;

    /// Bytes of a shared text; longer ones are truncated.
    const TEXT: usize = 1000;

    /// A recorded field.
    #[derive(Clone, Copy)]
    pub(super) enum Field {
        Phase,
        Place,
    }

    /// A text that one process writes and the other reads after the first has ended.
    struct Text {
        length: AtomicUsize,
        bytes: [AtomicU8; TEXT],
    }

    impl Text {
        fn set(&self, text: &str) {
            let text = &text.as_bytes()[..text.len().min(TEXT)];
            self.length.store(0, Ordering::Relaxed);
            for (place, byte) in self.bytes.iter().zip(text) {
                place.store(*byte, Ordering::Relaxed);
            }
            self.length.store(text.len(), Ordering::Release);
        }

        fn get(&self) -> String {
            let length = self.length.load(Ordering::Acquire).min(TEXT);
            let bytes: Vec<u8> = self.bytes[..length]
                .iter()
                .map(|byte| byte.load(Ordering::Relaxed))
                .collect();
            String::from_utf8_lossy(&bytes).into_owned()
        }
    }

    /// The shared page.
    struct Page {
        phase: Text,
        place: Text,
    }

    /// The data that both processes share.
    pub(super) struct Shared {
        page: &'static Page,
        /// The source, in memory.
        source: Mutex<File>,
    }

    impl Shared {
        fn new() -> Option<Self> {
            // SAFETY: a new anonymous mapping, filled with zeros, which are valid texts. It is never unmapped.
            let page = unsafe {
                let address = libc::mmap(
                    std::ptr::null_mut(),
                    size_of::<Page>(),
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                    -1,
                    0,
                );
                if address == libc::MAP_FAILED {
                    return None;
                }
                &*address.cast::<Page>()
            };
            // SAFETY: a new descriptor, which the file owns.
            let source = unsafe {
                let descriptor = libc::memfd_create(c"source".as_ptr(), libc::MFD_CLOEXEC);
                if descriptor < 0 {
                    return None;
                }
                File::from(OwnedFd::from_raw_fd(descriptor))
            };
            Some(Self {
                page,
                source: Mutex::new(source),
            })
        }

        fn source(&self) -> std::sync::MutexGuard<'_, File> {
            self.source
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
        }

        pub(super) fn note_source(&self, source: &Source) {
            let mut file = self.source();
            // Without it there is only no reproducer.
            let _ = file
                .set_len(0)
                .and_then(|()| file.rewind())
                .and_then(|()| file.write_all(source.contents()));
        }

        pub(super) fn note(&self, field: Field, text: &str) {
            match field {
                Field::Phase => self.page.phase.set(text),
                Field::Place => self.page.place.set(text),
            }
        }
    }

    pub(super) fn split(program: &'static str, budget: Budget) -> Side {
        let Some(shared) = Shared::new() else {
            return Side::Work;
        };
        // SAFETY: the process has a single thread (the caller's promise), so the child is a whole process.
        let child = unsafe { libc::fork() };
        match child {
            ..0 => Side::Work,
            0 => {
                // SAFETY: settings of this process.
                unsafe {
                    // If the parent is killed, so is the child.
                    libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                    let none = libc::rlimit {
                        rlim_cur: 0,
                        rlim_max: 0,
                    };
                    libc::setrlimit(libc::RLIMIT_CORE, &none);
                }
                let _ = SHARED.set(shared);
                Side::Work
            }
            child => Side::Done(wait(program, child, budget, &shared)),
        }
    }

    /// Waits for the child's end, and reports its failure.
    fn wait(program: &str, child: libc::pid_t, budget: Budget, shared: &Shared) -> u8 {
        let (status, too_large) = watch(child, budget, shared);
        if libc::WIFEXITED(status) {
            return libc::WEXITSTATUS(status) as u8;
        }
        let (phase, place) = (shared.page.phase.get(), shared.page.place.get());
        let within = match phase.as_str() {
            "" => String::new(),
            phase => format!(" in the phase '{phase}'"),
        };
        if too_large {
            let colon = if place.is_empty() { "" } else { ": " };
            eprintln!(
                "{place}{colon}error: the compilation needs more than {} MiB of memory{within}, its budget (max_memory)",
                budget.memory
            );
            return FAILURE;
        }
        let signal = libc::WTERMSIG(status);
        if [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGPIPE].contains(&signal) {
            // The process was stopped from outside. This is the status that shells show.
            return 128 + signal as u8;
        }
        let mut contents = Vec::new();
        let mut file = shared.source();
        let read = file.rewind().and_then(|()| file.read_to_end(&mut contents));
        let message = format!(
            "error: bug in llopt: {program} was ended by {}{within}",
            name(signal)
        );
        eprint!("{message}\nnote: please report this with the input");
        let comment = format!("llopt {VERSION}\n{message}");
        match read
            .ok()
            .filter(|&bytes| bytes > 0)
            .and_then(|_| write_reproducer(&std::env::temp_dir(), &comment, &contents))
        {
            Some(path) => eprintln!("; it was written to {}", path.display()),
            None => eprintln!(),
        }
        FAILURE
    }

    /// The final status of the child, and whether it was killed because of its memory.
    fn watch(child: libc::pid_t, budget: Budget, shared: &Shared) -> (i32, bool) {
        let statm = std::path::PathBuf::from(format!("/proc/{child}/statm"));
        // SAFETY: a system call on a child that has not been waited for; a negative result is handled.
        let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, child, 0) } as i32;
        let ended = (descriptor >= 0).then(|| {
            // SAFETY: a new descriptor.
            unsafe { OwnedFd::from_raw_fd(descriptor) }
        });
        let mut too_large = false;
        loop {
            if let Some(ended) = &ended {
                let mut poll = libc::pollfd {
                    fd: ended.as_raw_fd(),
                    events: libc::POLLIN,
                    revents: 0,
                };
                // SAFETY: one entry, which is live.
                unsafe { libc::poll(&mut poll, 1, INTERVAL) };
            } else {
                std::thread::sleep(std::time::Duration::from_millis(INTERVAL as u64 / 10));
            }
            let mut status = 0;
            // SAFETY: waits for this process's own child.
            match unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) } {
                0 => {}
                -1 => return (1 << 8, too_large),
                _ => return (status, too_large),
            }
            if resident(&statm) > budget.memory << 20 && shared.page.phase.get() != LIFTED {
                too_large = true;
                // SAFETY: the child has not been waited for, so its number is still valid.
                unsafe { libc::kill(child, libc::SIGKILL) };
            }
        }
    }

    pub(super) fn end_process(process: u32) {
        if let Ok(process) = libc::pid_t::try_from(process) {
            // SAFETY: a signal to a process, which the caller names.
            unsafe { libc::kill(process, libc::SIGKILL) };
        }
    }

    pub(super) fn usage(process: u32) -> super::Usage {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        // User and system time are words 12 and 13 after the name.
        let ticks: u64 = behind_name(&stat)
            .split_whitespace()
            .skip(11)
            .take(2)
            .map(|number| number.parse().unwrap_or(0))
            .sum();
        // SAFETY: asks for a constant of the system.
        let each = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
        super::Usage {
            memory: resident(format!("/proc/{process}/statm").as_ref()),
            time: ticks * 1000 / u64::try_from(each).unwrap_or(100).max(1),
            waits: all_wait(process),
        }
    }

    /// The part of a line of `/proc/PID/stat` after the name, which is in parentheses and may contain any character.
    fn behind_name(stat: &str) -> &str {
        stat.rsplit(')').next().unwrap_or_default()
    }

    /// Whether each thread of a process is blocked.
    fn all_wait(process: u32) -> bool {
        let Ok(threads) = std::fs::read_dir(format!("/proc/{process}/task")) else {
            return true;
        };
        let mut stats = threads.flatten().filter_map(|thread| {
            // A thread that has ended meanwhile does not compute.
            std::fs::read_to_string(thread.path().join("stat")).ok()
        });
        stats.all(|stat| behind_name(&stat).trim_start().starts_with('S'))
    }

    /// Bytes of private memory of a process.
    fn resident(statm: &std::path::Path) -> u64 {
        let text = std::fs::read_to_string(statm).unwrap_or_default();
        let mut pages = text
            .split(' ')
            .skip(1)
            .map(|number| number.parse().unwrap_or(0));
        let (resident, shared): (u64, u64) = (pages.next().unwrap_or(0), pages.next().unwrap_or(0));
        // SAFETY: asks for a constant of the system.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        resident.saturating_sub(shared) * u64::try_from(page).unwrap_or(4096)
    }

    /// A signal in words.
    fn name(signal: i32) -> String {
        match signal {
            libc::SIGSEGV => "an access to memory that it does not have (SIGSEGV)".to_owned(),
            libc::SIGBUS => "an access to memory that it does not have (SIGBUS)".to_owned(),
            libc::SIGABRT => "itself (SIGABRT)".to_owned(),
            libc::SIGILL => "an illegal instruction (SIGILL)".to_owned(),
            libc::SIGFPE => "an arithmetic fault (SIGFPE)".to_owned(),
            libc::SIGKILL => "somebody else (SIGKILL)".to_owned(),
            other => format!("signal {other}"),
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn texts_are_shared_and_cut() {
            let shared = Shared::new().unwrap();
            shared.note(Field::Phase, "lower");
            shared.note(Field::Place, &"x".repeat(2 * TEXT));
            assert_eq!(shared.page.phase.get(), "lower");
            assert_eq!(shared.page.place.get().len(), TEXT);
        }

        #[test]
        fn a_process_has_memory() {
            let own = std::path::Path::new("/proc/self/statm");
            let before = resident(own);
            // The optimiser drops memory that nothing looks at.
            let block = std::hint::black_box(vec![1u8; 64 << 20]);
            assert!(resident(own) >= before + (60 << 20));
            drop(block);
        }

        #[test]
        fn a_process_takes_time() {
            let own = std::process::id();
            let begin = std::time::Instant::now();
            let before = usage(own).time;
            while begin.elapsed().as_secs() < 60 && usage(own).time < before + 50 {
                std::hint::spin_loop();
            }
            assert!(usage(own).time >= before + 50);
            assert!(usage(own).memory > 0);
            // This process is running.
            assert!(!usage(own).waits);
        }
    }
}
