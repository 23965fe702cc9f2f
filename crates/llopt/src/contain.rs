//! One compilation in a thread of its own, so that nothing it meets takes the process down.
//!
//! Three things go wrong in compilers that a `Result` does not carry:
//!
//! - Deeply nested input exhausts the stack. The thread's stack is large (address space, not
//!   memory: only touched pages count).
//! - A panic: caught where the thread ends.
//! - LLVM's `report_fatal_error`, which may not return. The handler installed here hands the
//!   message to the caller and lets the thread sleep for ever; its memory is lost, the process and
//!   its other compilations go on.
//!
//! All three become bugs in llopt, [`ErrorClass::Bug`](crate::ErrorClass::Bug), unless LLVM gave up on
//! inline assembly, which is input.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int};
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Once, mpsc};
use std::thread;

use crate::Error;

/// Address space for the stack of a compilation, in bytes.
const STACK: usize = 1 << 30;

/// What a contained thread does with the message of a fatal error.
type OnFatal = Box<dyn Fn(String)>;

thread_local! {
    /// Set in contained threads.
    static ON_FATAL: RefCell<Option<OnFatal>> = const { RefCell::new(None) };
}

/// Runs `work` in a thread of its own and waits for it.
///
/// # Errors
/// Those of `work`; a bug if it panics, if LLVM gives up, or if no thread can be made.
pub(crate) fn contained<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    static INSTALL: Once = Once::new();
    // SAFETY: the handler never returns in a contained thread and touches nothing of LLVM's.
    INSTALL.call_once(|| {
        unsafe {
            inkwell::support::error_handling::install_fatal_error_handler(on_fatal_error);
        }
        keep_memory();
    });

    let (sender, receiver) = mpsc::channel();
    let body = move || {
        let fatal = sender.clone();
        ON_FATAL.set(Some(Box::new(move |message: String| {
            // The receiver waits for as long as this thread lives.
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
    let result = receiver
        .recv()
        .unwrap_or_else(|_| Err(Error::bug("the compilation ended without a result")));
    if thread.is_finished() {
        // It has sent its result; nothing is left to learn from it.
        let _ = thread.join();
    }
    result
}

/// Lets the allocator keep what a compilation gives back, up to the few megabytes that the next one takes.
///
/// LLVM's back end allocates and frees tables of hundreds of kilobytes for each function. By default, the C
/// library maps and unmaps each of them, and the kernel's page faults are a sixth of the time of a small
/// kernel on AMD. Where the C library is another one, nothing is changed.
fn keep_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        const MIB: i32 = 1 << 20;
        // SAFETY: both are plain settings, which any thread may change at any time.
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
        // The process is ending: LLVM flushes its streams last, and somebody has closed one.
        end(&message.to_string_lossy())
    };
    if handled {
        loop {
            thread::park();
        }
    }
    // Elsewhere LLVM prints the message and ends the process, as it does without a handler.
}

/// Ends a process that is ending already, at once. That nobody reads any more is no news.
fn end(message: &str) -> ! {
    unsafe extern "C" {
        fn _exit(status: c_int) -> !;
    }
    if !message.contains("Broken pipe") {
        // Whoever closed the output may have closed this, too.
        let _ = writeln!(io::stderr(), "llopt: error: {message}");
    }
    // SAFETY: POSIX; nothing is run that could find the process half gone.
    unsafe { _exit(1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorClass;

    #[test]
    fn results_and_panics_come_back() {
        assert_eq!(contained(|| Ok(7)).unwrap(), 7);
        let error = contained::<()>(|| panic!("at the disco")).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Bug);
        assert!(error.to_string().contains("panic: at the disco"));
    }

    #[test]
    fn a_fatal_error_of_llvm_does_not_end_the_process() {
        let error = contained::<()>(|| {
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
