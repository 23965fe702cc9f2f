//! Each compilation runs in its own thread, so that none of its failures ends the process.
//!
//! Three failures of compilers are not covered by a `Result`:
//!
//! - Deeply nested input overflows the stack. The thread's stack is large (address space, not memory: only touched
//!   pages count).
//! - A panic: caught where the thread ends.
//! - LLVM's `report_fatal_error`, which may not return. The handler installed here passes the message to the caller
//!   and lets the thread sleep for ever; its memory is lost, but the process and its other compilations continue.
//!
//! All three are reported as bugs in llopt, [`ErrorClass::Bug`](crate::ErrorClass::Bug), unless LLVM rejected inline
//! assembly, which is input.
//!
//! A fourth failure is work without end. The caller that waits watches the processor time of the thread, which does
//! not depend on the load of the machine, and abandons the thread once that exceeds its budget.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int};
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use crate::{Budget, Diagnostic, Error, isolation};

/// Address space for the stack of a compilation, in bytes.
const STACK: usize = 1 << 30;

/// The action of such a thread on the message of a fatal error.
type OnFatal = Box<dyn Fn(String)>;

thread_local! {
    /// Set in such threads.
    static ON_FATAL: RefCell<Option<OnFatal>> = const { RefCell::new(None) };
    /// Likewise: the progress of the thread.
    static PROGRESS: RefCell<Option<Arc<Progress>>> = const { RefCell::new(None) };
}

/// The interval at which the processor time of a thread is checked.
const INTERVAL: Duration = Duration::from_millis(50);

/// Whether an abandoned thread may still be running.
static LEFT_ALONE: AtomicBool = AtomicBool::new(false);

/// Whether a compilation has exceeded its time and may still be running, in a thread that cannot be stopped. A
/// program that is about to end should then end at once, without destructors of objects that the thread uses.
pub fn is_overrunning() -> bool {
    LEFT_ALONE.load(Ordering::Relaxed)
}

/// The progress of such a thread, for the message in case it is abandoned.
#[derive(Default)]
struct Progress {
    phase: Mutex<&'static str>,
    place: Mutex<String>,
    /// Locations of the kernel's own assembly.
    assembly: Mutex<Vec<String>>,
}

/// Records the begin of a phase.
pub(crate) fn begin_phase(name: &'static str) {
    isolation::note_phase(name);
    PROGRESS.with_borrow(|progress| {
        if let Some(progress) = progress {
            *progress
                .phase
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = name;
        }
    });
}

/// Records the locations of the kernel's own assembly.
pub(crate) fn has_assembly(places: Vec<String>) {
    PROGRESS.with_borrow(|progress| {
        if let Some(progress) = progress {
            *progress
                .assembly
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = places;
        }
    });
}

/// Records the location of the kernel.
pub(crate) fn at(place: &str) {
    isolation::note_place(place);
    PROGRESS.with_borrow(|progress| {
        if let Some(progress) = progress {
            place.clone_into(
                &mut progress
                    .place
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner),
            );
        }
    });
}

/// Runs `work` in its own thread and waits for it.
///
/// # Errors
/// Those of `work`; a bug if it panics, if LLVM reports a fatal error, or if no thread can be created.
pub(crate) fn in_own_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    in_own_thread_within(None, work)
}

/// The same, with a budget for its time.
///
/// # Errors
/// As above; invalid input, at the location of the kernel, if the time is exceeded.
pub(crate) fn in_own_thread_within<T: Send + 'static>(
    budget: Option<Budget>,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    static INSTALL: Once = Once::new();
    // SAFETY: the handler never returns in such a thread and touches nothing of LLVM's.
    INSTALL.call_once(|| {
        unsafe {
            inkwell::support::error_handling::install_fatal_error_handler(on_fatal_error);
        }
        keep_memory();
    });

    let (sender, receiver) = mpsc::channel();
    let progress = Arc::<Progress>::default();
    let its = progress.clone();
    let body = move || {
        PROGRESS.set(Some(its));
        let fatal = sender.clone();
        ON_FATAL.set(Some(Box::new(move |message: String| {
            // The receiver waits as long as this thread lives.
            let _ = fatal.send(Err(Error::from_llvm(&message)));
        })));
        let result = catch_unwind(AssertUnwindSafe(work))
            .unwrap_or_else(|payload| Err(Error::bug(panic_message(&*payload))));
        let _ = sender.send(result);
    };
    let thread = thread::Builder::new()
        .name("llopt".into())
        .stack_size(STACK)
        .spawn(body)
        .map_err(|error| Error::environment(format!("cannot start a thread: {error}")))?;
    let result = loop {
        match receiver.recv_timeout(INTERVAL) {
            Ok(result) => break result,
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                break Err(Error::bug("the compilation ended without a result"));
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
        }
        if let Some(budget) = budget
            && processor_time(&thread).is_some_and(|time| time > budget.duration())
        {
            LEFT_ALONE.store(true, Ordering::Relaxed);
            return Err(overdue(&progress, budget));
        }
    };
    if thread.is_finished() {
        // It has sent its result, so the outcome of the thread is not needed.
        let _ = thread.join();
    }
    let assembly = progress
        .assembly
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    result.map_err(|error| error.blame_assembly(&assembly))
}

/// The error for a thread that takes too long.
fn overdue(progress: &Progress, budget: Budget) -> Error {
    let phase = *progress
        .phase
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let place = progress
        .place
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let seconds = budget.duration().as_secs_f64();
    let message = format!(
        "the compilation takes more than {seconds} s of processor time, its budget, and is in the phase '{phase}' \
         (max_time)"
    );
    Error::invalid(vec![Diagnostic::error(place.clone(), message)])
}

/// The processor time of a thread, where the system provides it.
fn processor_time<T>(thread: &thread::JoinHandle<T>) -> Option<Duration> {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::thread::JoinHandleExt;
        let mut clock = 0;
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: the handle keeps the thread's number alive; both places are live.
        let known = unsafe {
            libc::pthread_getcpuclockid(thread.as_pthread_t(), &mut clock) == 0
                && libc::clock_gettime(clock, &mut time) == 0
        };
        let seconds = u64::try_from(time.tv_sec).ok()?;
        known.then(|| Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0)))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = thread;
        None
    }
}

/// Lets the allocator keep the memory that a compilation frees, up to the few megabytes that the next one needs.
///
/// LLVM's back end allocates and frees tables of hundreds of kilobytes for each function. By default, the C library
/// maps and unmaps each of them, and the operating system's page faults take a sixth of the time of a small kernel on
/// AMD. With another C library nothing is changed.
fn keep_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        const MIB: i32 = 1 << 20;
        // SAFETY: both are settings that any thread may change at any time.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, 32 * MIB);
            libc::mallopt(libc::M_TRIM_THRESHOLD, 64 * MIB);
        }
    }
}

fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    format!("panic: {}", text.unwrap_or("without a message"))
}

extern "C" fn on_fatal_error(message: *const c_char) {
    // SAFETY: LLVM passes a string that ends in a zero byte and outlives this call.
    let message = unsafe { CStr::from_ptr(message) };
    let handled = ON_FATAL.try_with(|handler| match &*handler.borrow() {
        Some(handler) => {
            handler(message.to_string_lossy().into_owned());
            true
        }
        None => false,
    });
    let Ok(handled) = handled else {
        // The process is ending: LLVM flushes its streams last, and one of them has been closed.
        end(&message.to_string_lossy())
    };
    if handled {
        loop {
            thread::park();
        }
    }
    // In other threads LLVM prints the message and ends the process, as it does without a handler.
}

/// Ends at once a process that is already ending. A closed output is not reported.
fn end(message: &str) -> ! {
    unsafe extern "C" {
        fn _exit(status: c_int) -> !;
    }
    if !message.contains("Broken pipe") {
        // The standard error may have been closed, too.
        let _ = writeln!(io::stderr(), "llopt: error: {message}");
    }
    // SAFETY: POSIX; no code runs that could observe a partly destroyed process.
    unsafe { _exit(1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorClass;

    #[test]
    fn results_and_panics_come_back() {
        assert_eq!(in_own_thread(|| Ok(7)).unwrap(), 7);
        let error = in_own_thread::<()>(|| panic!("at the disco")).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Bug);
        assert!(error.to_string().contains("panic: at the disco"));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn work_without_end_is_left_alone() {
        let budget = Budget {
            time: 60,
            ..Budget::default()
        };
        let error = in_own_thread_within::<()>(Some(budget), || {
            begin_phase("spin");
            at("k.ttgir:3:4");
            loop {
                std::hint::spin_loop();
            }
        })
        .unwrap_err();
        assert_eq!(
            error.to_string(),
            "k.ttgir:3:4: error: the compilation takes more than 0.06 s of processor time, its budget, and is in the \
             phase 'spin' (max_time)"
        );
        assert!(is_overrunning());
    }

    #[test]
    fn a_fatal_error_of_llvm_does_not_end_the_process() {
        let error = in_own_thread::<()>(|| {
            on_fatal_error(c"out of registers".as_ptr());
            Ok(())
        })
        .unwrap_err();
        assert!(
            error
                .to_string()
                .contains("bug in llopt: LLVM: out of registers")
        );
    }
}
