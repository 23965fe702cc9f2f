//! The boundary between C and Rust: texts in both directions, and no panic across it.

use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs the body of a function of the interface; a panic in it gives `otherwise`.
pub(crate) fn guarded<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| {
        // The payload's own destructor may panic as well.
        std::mem::forget(payload);
        otherwise
    })
}

/// A text of the caller; `None` for null and for anything that is not UTF-8.
///
/// # Safety
/// The pointer is null, or ends in a zero byte and lives for `'a`.
pub(crate) unsafe fn text<'a>(pointer: *const c_char) -> Option<&'a str> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: by contract.
    unsafe { CStr::from_ptr(pointer) }.to_str().ok()
}

/// A text for the caller. C ends texts at a zero byte, so a zero byte inside becomes `\0`.
pub(crate) fn c_text(text: impl Into<String>) -> CString {
    let text = text.into();
    CString::new(text).unwrap_or_else(|error| {
        let escaped = error.into_vec().split(|&byte| byte == 0).fold(
            Vec::new(),
            |mut so_far: Vec<u8>, piece| {
                if !so_far.is_empty() {
                    so_far.extend(b"\\0");
                }
                so_far.extend(piece);
                so_far
            },
        );
        CString::new(escaped).unwrap_or_default()
    })
}

/// The pointer for the caller; null for what is not there.
pub(crate) fn pointer(text: Option<&CString>) -> *const c_char {
    text.map_or(std::ptr::null(), |text| text.as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_cross_in_both_directions() {
        // SAFETY: literals end in a zero byte.
        unsafe {
            assert_eq!(text(c"kernel".as_ptr()), Some("kernel"));
            assert_eq!(text(c"\xff".as_ptr()), None);
            assert_eq!(text(std::ptr::null()), None);
        }
        assert_eq!(c_text("a\0b").as_c_str(), c"a\\0b");
    }

    #[test]
    fn panics_stay_inside() {
        assert_eq!(guarded(7, || panic!("on purpose")), 7);
    }
}
