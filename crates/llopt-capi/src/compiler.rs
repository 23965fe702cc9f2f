//! The handle that holds options, and what is done with it.

use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::LazyLock;

use llopt::{ArtifactKind, Error, Options, SETTINGS, Source, Target, VERSION};

use crate::boundary::{c_text, guarded, pointer, text};
use crate::compilation::llopt_compilation_t;
use crate::{LLOPT_ABI_VERSION, llopt_status_t};

/// A compiler: a set of options.
pub struct llopt_compiler_t {
    /// None until the target is known, on which the defaults of the others depend.
    options: Option<Options>,
    /// The options that were set before the target.
    waiting: Vec<(String, String)>,
    /// The message of the last `llopt_set` that failed.
    message: Option<CString>,
    /// The cache key, once the target is known.
    cache_key: Option<CString>,
}

static VERSION_TEXT: LazyLock<CString> = LazyLock::new(|| c_text(VERSION));

static OPTIONS: LazyLock<Vec<[CString; 2]>> = LazyLock::new(|| {
    let both = |setting: &llopt::Setting| [c_text(setting.name), c_text(setting.help)];
    SETTINGS.iter().map(both).collect()
});

/// The version of the compiler, such as `0.1.0+c0ffee0123456789.llvm22.1.8`. It changes whenever
/// the output of a compilation may: it belongs into the key of every cache. Never null; lives as
/// long as the process.
#[unsafe(no_mangle)]
pub extern "C" fn llopt_version() -> *const c_char {
    guarded(c"".as_ptr(), || VERSION_TEXT.as_ptr())
}

/// The number of options.
#[unsafe(no_mangle)]
pub extern "C" fn llopt_option_count() -> usize {
    SETTINGS.len()
}

/// The name of an option, null past the end. Lives as long as the process.
#[unsafe(no_mangle)]
pub extern "C" fn llopt_option_name(index: usize) -> *const c_char {
    guarded(std::ptr::null(), || {
        pointer(OPTIONS.get(index).map(|[name, _]| name))
    })
}

/// What an option is, in one line, with its unit and default; null past the end. Lives as long as
/// the process.
#[unsafe(no_mangle)]
pub extern "C" fn llopt_option_help(index: usize) -> *const c_char {
    guarded(std::ptr::null(), || {
        pointer(OPTIONS.get(index).map(|[_, help]| help))
    })
}

/// Makes a compiler with default options. `abi_version` is `LLOPT_ABI_VERSION` of the header that
/// the caller was compiled with.
///
/// Writes the handle, or null on failure: `LLOPT_MISUSE` for another version or a null
/// pointer. The caller closes it with `llopt_close`.
///
/// # Safety
/// `compiler` is null or a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llopt_open(
    abi_version: u32,
    compiler: *mut *mut llopt_compiler_t,
) -> llopt_status_t {
    guarded(llopt_status_t::LLOPT_BUG, || {
        if compiler.is_null() {
            return llopt_status_t::LLOPT_MISUSE;
        }
        let handle = if abi_version == LLOPT_ABI_VERSION {
            Box::into_raw(Box::new(llopt_compiler_t {
                options: None,
                waiting: Vec::new(),
                message: None,
                cache_key: None,
            }))
        } else {
            std::ptr::null_mut()
        };
        // SAFETY: not null, and by contract a place for a pointer.
        unsafe { compiler.write(handle) };
        if handle.is_null() {
            llopt_status_t::LLOPT_MISUSE
        } else {
            llopt_status_t::LLOPT_OK
        }
    })
}

/// Sets an option. `target`, such as `cuda:90` or `hip:gfx942`, must be set before compiling;
/// `llopt_option_name` lists the others. Options may be set in any order, and again.
///
/// `LLOPT_MISUSE` for an option that does not exist or does not take the value; nothing is
/// changed then, and `llopt_message` says what would be right.
///
/// # Safety
/// `compiler` is null or open, and no other thread uses it; the texts are null or end in a zero
/// byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llopt_set(
    compiler: *mut llopt_compiler_t,
    name: *const c_char,
    value: *const c_char,
) -> llopt_status_t {
    guarded(llopt_status_t::LLOPT_BUG, || {
        // SAFETY: by contract.
        let (compiler, name, value) = unsafe { (compiler.as_mut(), text(name), text(value)) };
        let Some(compiler) = compiler else {
            return llopt_status_t::LLOPT_MISUSE;
        };
        let result = match (name, value) {
            (Some(name), Some(value)) => compiler.set(name, value),
            _ => Err("an option and its value are texts in UTF-8".to_owned()),
        };
        compiler.message = result.as_ref().err().map(c_text);
        let options = compiler.options.as_ref();
        compiler.cache_key = options.map(|options| c_text(options.cache_key()));
        match result {
            Ok(()) => llopt_status_t::LLOPT_OK,
            Err(_) => llopt_status_t::LLOPT_MISUSE,
        }
    })
}

/// What the last call of `llopt_set` on this compiler complained about; null if it succeeded. Lives
/// until the next call of `llopt_set` or `llopt_close`.
///
/// # Safety
/// `compiler` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llopt_message(compiler: *const llopt_compiler_t) -> *const c_char {
    guarded(std::ptr::null(), || {
        // SAFETY: by contract.
        let compiler = unsafe { compiler.as_ref() };
        pointer(compiler.and_then(|compiler| compiler.message.as_ref()))
    })
}

/// What the result of a compilation depends on beside the source and the kind of artefact: the version
/// of llopt and all options, as text for a hash. Files that options name count by their paths. Null
/// before the target is set; lives until the next call of `llopt_set` or `llopt_close`.
///
/// # Safety
/// `compiler` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llopt_cache_key(compiler: *const llopt_compiler_t) -> *const c_char {
    guarded(std::ptr::null(), || {
        // SAFETY: by contract.
        let compiler = unsafe { compiler.as_ref() };
        pointer(compiler.and_then(|compiler| compiler.cache_key.as_ref()))
    })
}

/// Compiles a module. `source` is its text (no zero byte at the end is needed) or bytecode, `size`
/// bytes long; `name` is what diagnostics call it, usually a path; null means `<source>`. `kind` is
/// `ttir`, `ttgir`, `llvm`, `ptx`, `cubin`, `amdgcn` or `hsaco`; null means the target's assembly.
///
/// Returns the status of the compilation and writes its handle, which `llopt_release` frees. There
/// is a handle for failures too: it holds their diagnostics. It is null only if there was no
/// compilation: for a null pointer, or when memory for it is missing.
///
/// # Safety
/// `compiler` is null or open; texts are null or end in a zero byte; `source` is null or has `size`
/// bytes; `compilation` is null or a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llopt_compile(
    compiler: *const llopt_compiler_t,
    name: *const c_char,
    source: *const c_void,
    size: usize,
    kind: *const c_char,
    compilation: *mut *mut llopt_compilation_t,
) -> llopt_status_t {
    guarded(llopt_status_t::LLOPT_BUG, || {
        if compilation.is_null() {
            return llopt_status_t::LLOPT_MISUSE;
        }
        // SAFETY: not null, and by contract a place for a pointer.
        unsafe { compilation.write(std::ptr::null_mut()) };
        // SAFETY: by contract.
        let Some(compiler) = (unsafe { compiler.as_ref() }) else {
            return llopt_status_t::LLOPT_MISUSE;
        };
        if source.is_null() || isize::try_from(size).is_err() {
            return llopt_status_t::LLOPT_MISUSE;
        }
        // SAFETY: not null, and by contract as long as that.
        let source = unsafe { std::slice::from_raw_parts(source.cast::<u8>(), size) };
        // SAFETY: by contract.
        let outcome = match unsafe { (utf8_or(name, c"<source>"), utf8_or(kind, c"")) } {
            (Some(name), Some(kind)) => compiler.compile(name, source, kind),
            _ => {
                llopt_compilation_t::misuse("the name and the kind of artefact are texts in UTF-8")
            }
        };
        let status = outcome.status();
        // SAFETY: as above.
        unsafe { compilation.write(Box::into_raw(Box::new(outcome))) };
        status
    })
}

/// Frees a compiler. Compilations that it made stay.
///
/// # Safety
/// `compiler` is null or open, and nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llopt_close(compiler: *mut llopt_compiler_t) {
    guarded((), || {
        if !compiler.is_null() {
            // SAFETY: it came from `Box::into_raw`, and by contract nobody else has it.
            drop(unsafe { Box::from_raw(compiler) });
        }
    });
}

/// The text behind a pointer, or that for null; `None` for what is not UTF-8.
///
/// # Safety
/// As [`text`].
unsafe fn utf8_or(pointer: *const c_char, null: &CStr) -> Option<&str> {
    if pointer.is_null() {
        return null.to_str().ok();
    }
    // SAFETY: by contract.
    unsafe { text(pointer) }
}

impl llopt_compiler_t {
    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        if let Some(options) = &mut self.options {
            return options.set(name, value).map_err(|error| error.to_string());
        }
        if name == "target" {
            let target = Target::parse(value).map_err(|error| error.to_string())?;
            let mut options = Options::new(target);
            for (name, value) in self.waiting.drain(..) {
                // It was checked when it was set.
                let _ = options.set(&name, &value);
            }
            self.options = Some(options);
            return Ok(());
        }
        // Any target tells whether an option exists and takes the value.
        let mut trial = Options::new(llopt::Target::parse("cuda:90").map_err(|e| e.to_string())?);
        trial.set(name, value).map_err(|error| error.to_string())?;
        self.waiting.push((name.into(), value.into()));
        Ok(())
    }

    fn compile(&self, name: &str, source: &[u8], kind: &str) -> llopt_compilation_t {
        let Some(options) = &self.options else {
            return llopt_compilation_t::misuse("the option 'target' is not set");
        };
        let kind = match kind {
            "" => Ok(ArtifactKind::assembly_of(options.target)),
            _ => kind.parse::<ArtifactKind>(),
        };
        let kind = match kind {
            Ok(kind) if kind.exists_for(options.target) => kind,
            Ok(kind) => {
                let target = options.target;
                return llopt_compilation_t::misuse(&format!("there is no {kind} for {target}"));
            }
            Err(error) => return llopt_compilation_t::misuse(&error.to_string()),
        };
        let source = Source::new(name, source);
        let compiled: Result<_, Error> =
            llopt::Compiler::new(options.clone()).compile(&source, kind);
        match compiled {
            Ok(compiled) => llopt_compilation_t::success(compiled),
            Err(error) => llopt_compilation_t::failure(&error, &source),
        }
    }
}
