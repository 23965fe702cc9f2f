//! Names of functions in the form that assemblers accept.
//!
//! MLIR's symbols are arbitrary texts; those of PTX and of AMD's assembly consist of letters, digits, `_` and `$`.
//! Also, the names of a module are not the only ones: LLVM knows functions by name (`llvm.memcpy`, `memcpy`, `expf`),
//! and device libraries have theirs. A function of the source must never be taken for one of those. So:
//!
//! - a kernel keeps its name if that is plain and not reserved, because a launcher looks it up;
//! - in any other name, each byte that is neither a letter, a digit nor `_` is written as `$` and two hexadecimal
//!   digits, and the name ends in `$`.
//!
//! A plain name has no `$`, and from any other the source's can be read back (that of an empty name is `_$`, as of
//! `_`, which is plain): different names stay different. The name of a private function, which is not visible
//! outside, always ends in `$`, because LLVM folds calls of functions whose names it knows, whatever their bodies
//! are.

use std::fmt::Write;

use crate::targets::back_end::reserved_prefixes;

/// Names with a meaning for LLVM, its back ends or this crate.
const RESERVED: [&str; 10] = [
    "free",
    "global_smem",
    "malloc",
    "memcmp",
    "memcpy",
    "memmove",
    "memset",
    "printf",
    "vprintf",
    "WARP_SZ",
];

/// The name of a kernel in its artefact.
#[must_use]
pub fn of_kernel(name: &str) -> String {
    let reserved = RESERVED.contains(&name)
        || name.starts_with("__assert")
        || reserved_prefixes().any(|prefix| name.starts_with(prefix));
    if is_plain(name) && !reserved {
        return name.to_owned();
    }
    written(name)
}

/// The name of a function that only its module calls.
pub(crate) fn of_private(name: &str) -> String {
    written(name)
}

/// Whether a name can be that of a library function: a plain one that is no LLVM intrinsic.
pub(crate) fn is_plain(name: &str) -> bool {
    let mut letters = name.bytes();
    letters
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && letters.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn written(name: &str) -> String {
    let mut text = String::with_capacity(name.len() + 1);
    for byte in name.bytes() {
        let first = text.is_empty();
        if byte == b'_' || byte.is_ascii_alphabetic() || (byte.is_ascii_digit() && !first) {
            text.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(text, "${byte:02x}");
        }
    }
    if text.is_empty() {
        // No assembler accepts a name that is a single `$`.
        text.push('_');
    }
    text.push('$');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_of_kernels_stay() {
        for name in ["k", "add_kernel", "_0d1d2", "K9"] {
            assert_eq!(of_kernel(name), name);
        }
    }

    #[test]
    fn other_names_are_written_in_letters_and_tell_themselves_apart() {
        for (name, written) in [
            ("é", "$c3$a9$"),
            ("k ret;", "k$20ret$3b$"),
            ("llvm.used", "llvm$2eused$"),
            ("memcpy", "memcpy$"),
            ("__nv_expf", "__nv_expf$"),
            ("1k", "$31k$"),
            ("", "_$"),
            ("a$", "a$24$"),
        ] {
            assert_eq!(of_kernel(name), written);
        }
        let names = ["k", "k$", "k$24", "k.", "k$2e", "K", "$", "1", "$31"];
        let mut written: Vec<String> = names.iter().map(|name| of_kernel(name)).collect();
        written.sort();
        written.dedup();
        assert_eq!(written.len(), names.len());
    }

    #[test]
    fn private_functions_are_never_known_by_name() {
        assert_eq!(of_private("expf"), "expf$");
        assert_eq!(of_private("sum__(1,)"), "sum__$281$2c$29$");
    }
}
