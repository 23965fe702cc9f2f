//! The raw ABI of the C++ bridge, derived from `cpp/bridge.h` by the build script.

#![allow(
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    dead_code,
    clippy::all,
    clippy::allow_attributes_without_reason,
    clippy::allow_attributes_without_reason,
    reason = "bindgen writes C names and no documentation of ours"
)]

include!(concat!(env!("OUT_DIR"), "/bindings.rs"));

/// A borrowed string for the duration of a call.
pub fn string_ref(text: &str) -> MlirStringRef {
    MlirStringRef {
        data: text.as_ptr().cast(),
        length: text.len(),
    }
}

/// The bytes behind a string of MLIR.
///
/// # Safety
/// The memory behind `text` must live for `'a` and stay unchanged.
pub unsafe fn bytes<'a>(text: MlirStringRef) -> &'a [u8] {
    if text.data.is_null() {
        return &[];
    }
    // SAFETY: the caller vouches for lifetime; MLIR hands out valid pointer and length.
    unsafe { std::slice::from_raw_parts(text.data.cast(), text.length) }
}

/// The text behind a string of MLIR; empty where the bytes are not UTF-8, which MLIR itself
/// writes only for strings (never for keywords and identifiers of registered entities).
///
/// # Safety
/// As for [`bytes`].
pub unsafe fn text<'a>(text: MlirStringRef) -> &'a str {
    // SAFETY: passed on.
    std::str::from_utf8(unsafe { bytes(text) }).unwrap_or_default()
}

/// A slice from a C pair, tolerant of a null pointer with length zero.
///
/// # Safety
/// `data` points to `count` values that live for `'a`.
pub unsafe fn slice<'a, T>(data: *const T, count: isize) -> &'a [T] {
    if data.is_null() || count <= 0 {
        return &[];
    }
    // SAFETY: the caller vouches for pointer, count and lifetime.
    unsafe { std::slice::from_raw_parts(data, count as usize) }
}

/// A vector that C++ fills through the `collect_*` hooks; `T` must be what the function at hand
/// collects (`u8` for text).
pub fn collector<T>(items: &mut Vec<T>) -> LloptCollector {
    LloptCollector {
        ptr: std::ptr::from_mut(items).cast(),
    }
}
