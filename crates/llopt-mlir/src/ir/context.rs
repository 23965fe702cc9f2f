//! A `&Context` from anything that lives in one.
//!
//! melior's `ContextRef::to_ref` returns a reference to the `ContextRef` it is called on, under
//! the life of the context: it dangles as soon as that value goes out of scope, which for
//! `location.context().to_ref()` is at once. A `&Context` needs a place that holds the raw
//! pointer for as long as the context lives, and MLIR has none. So this file keeps one such
//! place per context address for the life of the process: a few bytes for each.

use melior::{Context, ContextRef};
use std::{
    cell::Cell,
    collections::HashMap,
    sync::{LazyLock, Mutex, PoisonError},
};

/// The places, by raw context. The value is `&'static ContextRef`, as a number so that it may be
/// sent between threads.
static PLACES: LazyLock<Mutex<HashMap<usize, usize>>> = LazyLock::new(Mutex::default);

thread_local! {
    /// The last answer on this thread; nearly all work is on one context at a time.
    static LAST: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// The context behind a reference, for the full life of that context.
pub fn context<'c>(context: ContextRef<'c>) -> &'c Context {
    // SAFETY: the short-lived reference is used within the life of `context`.
    let handle = unsafe { context.to_ref() }.to_raw();
    let raw = handle.ptr as usize;
    let (last, mut place) = LAST.get();
    if last != raw {
        place = *PLACES
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(raw)
            .or_insert_with(|| {
                // SAFETY: the reference is read only while a context lives at this address; what
                // it holds is the address alone.
                let place: ContextRef<'static> = unsafe { ContextRef::from_raw(handle) };
                std::ptr::from_ref(Box::leak(Box::new(place))) as usize
            });
        LAST.set((raw, place));
    }
    // SAFETY: the place is never freed and holds the pointer of the context that `context` refers
    // to, which lives for `'c`.
    unsafe { (*(place as *const ContextRef<'c>)).to_ref() }
}

/// The context behind a handle.
///
/// # Safety
/// The context is live for `'c`.
pub(crate) unsafe fn context_from_raw<'c>(raw: mlir_sys::MlirContext) -> &'c Context {
    // SAFETY: by contract.
    context(unsafe { ContextRef::from_raw(raw) })
}
