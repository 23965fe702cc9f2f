// llopt: a compiler of tile kernels for GPUs. The C interface.
//
// Made by `cargo xtask docs` from crates/llopt-capi; edits here are lost.
// docs/embedding.md shows its use, and the rules about threads and versions.

#ifndef LLOPT_H
#define LLOPT_H

#include <stddef.h>
#include <stdint.h>

// The version of this interface. A caller hands the one of its header to `llopt_open`.
#define LLOPT_ABI_VERSION 1

// How a call ended. For a compilation it says whose fault a failure is.
typedef enum {
  // All is well.
  LLOPT_OK = 0,
  // The kernel breaks a rule; the diagnostics say which and where.
  LLOPT_INVALID_INPUT = 1,
  // The kernel is well formed, and the target or this release cannot do what it asks.
  LLOPT_UNSUPPORTED = 2,
  // Something outside the compiler is missing or failed: a file, a device library, an assembler.
  LLOPT_ENVIRONMENT = 3,
  // A mistake in llopt.
  LLOPT_BUG = 4,
  // The call breaks a rule of this interface: a null pointer, a text that is not UTF-8, an
  // option, an artefact or an interface version that does not exist.
  LLOPT_MISUSE = 5,
} llopt_status_t;

// How bad a diagnostic is.
typedef enum {
  // The input is refused.
  LLOPT_ERROR = 0,
  // The input is accepted, and probably not what its author meant.
  LLOPT_WARNING = 1,
  // Information.
  LLOPT_REMARK = 2,
  // More about the diagnostic before it.
  LLOPT_NOTE = 3,
} llopt_severity_t;

// The outcome of a compilation, good or bad.
typedef struct llopt_compilation_t llopt_compilation_t;

// A compiler: a set of options.
typedef struct llopt_compiler_t llopt_compiler_t;

// One message about one place. The texts belong to the compilation.
typedef struct {
  // Bytes of this structure, set by the caller: `sizeof(llopt_diagnostic_t)`. Fields that a later
  // version adds are written only where there is room for them.
  size_t size;
  // How bad it is.
  llopt_severity_t severity;
  // 0 for a diagnostic; a note has one more than what it belongs to, the nearest before it with
  // less.
  uint32_t depth;
  // The file as `name` or debug locations call it; null if the place is not known.
  const char *file;
  // From one; zero if not known.
  size_t line;
  // From one, in characters; zero if not known.
  size_t column;
  // What is said, in UTF-8.
  const char *message;
} llopt_diagnostic_t;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The version of the compiler, such as `0.1.0+c0ffee0123456789.llvm22.1.8`. It changes whenever
// the output of a compilation may: it belongs into the key of every cache. Never null; lives as
// long as the process.
const char *llopt_version(void);

// The number of options.
size_t llopt_option_count(void);

// The name of an option, null past the end. Lives as long as the process.
const char *llopt_option_name(size_t index);

// What an option is, in one line, with its unit and default; null past the end. Lives as long as
// the process.
const char *llopt_option_help(size_t index);

// Makes a compiler with default options. `abi_version` is `LLOPT_ABI_VERSION` of the header that
// the caller was compiled with.
//
// Writes the handle, or null on failure: `LLOPT_MISUSE` for another version or a null
// pointer. The caller closes it with `llopt_close`.
//
// # Safety
// `compiler` is null or a place for a pointer.
llopt_status_t llopt_open(uint32_t abi_version, llopt_compiler_t **compiler);

// Sets an option. `target`, such as `cuda:90` or `hip:gfx942`, must be set before compiling;
// `llopt_option_name` lists the others. Options may be set in any order, and again.
//
// `LLOPT_MISUSE` for an option that does not exist or does not take the value; nothing is
// changed then, and `llopt_message` says what would be right.
//
// # Safety
// `compiler` is null or open, and no other thread uses it; the texts are null or end in a zero
// byte.
llopt_status_t llopt_set(llopt_compiler_t *compiler, const char *name, const char *value);

// What the last call of `llopt_set` on this compiler complained about; null if it succeeded. Lives
// until the next call of `llopt_set` or `llopt_close`.
//
// # Safety
// `compiler` is null or open.
const char *llopt_message(const llopt_compiler_t *compiler);

// What the result of a compilation depends on beside the source and the kind of artefact: the version
// of llopt and all options, as text for a hash. Files that options name count by their paths. Null
// before the target is set; lives until the next call of `llopt_set` or `llopt_close`.
//
// # Safety
// `compiler` is null or open.
const char *llopt_cache_key(const llopt_compiler_t *compiler);

// Compiles a module. `source` is its text (no zero byte at the end is needed) or bytecode, `size`
// bytes long; `name` is what diagnostics call it, usually a path; null means `<source>`. `kind` is
// `ttir`, `ttgir`, `llvm`, `ptx`, `cubin`, `amdgcn` or `hsaco`; null means the target's assembly.
//
// Returns the status of the compilation and writes its handle, which `llopt_release` frees. There
// is a handle for failures too: it holds their diagnostics. It is null only if there was no
// compilation: for a null pointer, or when memory for it is missing.
//
// # Safety
// `compiler` is null or open; texts are null or end in a zero byte; `source` is null or has `size`
// bytes; `compilation` is null or a place for a pointer.
llopt_status_t llopt_compile(const llopt_compiler_t *compiler,
                             const char *name,
                             const void *source,
                             size_t size,
                             const char *kind,
                             llopt_compilation_t **compilation);

// Frees a compiler. Compilations that it made stay.
//
// # Safety
// `compiler` is null or open, and nobody uses it any more.
void llopt_close(llopt_compiler_t *compiler);

// How the compilation ended; `LLOPT_MISUSE` for null.
//
// # Safety
// `compilation` is null or not released.
llopt_status_t llopt_status(const llopt_compilation_t *compilation);

// The artefact, and its length in bytes if `size` is not null; null and zero for a failure. Text
// is UTF-8 without a zero byte at its end.
//
// # Safety
// `compilation` is null or not released; `size` is null or a place for a number.
const void *llopt_artifact(const llopt_compilation_t *compilation, size_t *size);

// A form that the kernel passed through on its way, such as `ttgir`, and its length in bytes if `size`
// is not null; null and zero unless the option `keep` asked for it.
//
// # Safety
// `compilation` is null or not released; `kind` is null or ends in a zero byte; `size` is null or a
// place for a number.
const void *llopt_kept(const llopt_compilation_t *compilation,
                       const char *kind,
                       size_t *size);

// What a launcher must know, as JSON with the keys of Triton's metadata; null for a failure.
//
// # Safety
// `compilation` is null or not released.
const char *llopt_metadata(const llopt_compilation_t *compilation);

// How long each phase took, as a JSON list of `{"phase": …, "milliseconds": …}`; null for a
// failure.
//
// # Safety
// `compilation` is null or not released.
const char *llopt_timings(const llopt_compilation_t *compilation);

// Everything there is to say about a failure, for a person: all diagnostics as
// `file:line:col: error: message` with the lines of the source that they speak of. Null for a
// success.
//
// # Safety
// `compilation` is null or not released.
const char *llopt_error(const llopt_compilation_t *compilation);

// The number of diagnostics, notes included: errors of a failure, warnings of a success.
//
// # Safety
// `compilation` is null or not released.
size_t llopt_diagnostic_count(const llopt_compilation_t *compilation);

// Fills in a diagnostic, whose `size` the caller has set. `LLOPT_MISUSE` for an index past
// the end, a null pointer, and a size that no version of the structure has.
//
// # Safety
// `compilation` is null or not released; `diagnostic` is null or begins with its size.
llopt_status_t llopt_diagnostic(const llopt_compilation_t *compilation,
                                size_t index,
                                llopt_diagnostic_t *diagnostic);

// The op that is not supported, such as `tt.dot`; null unless the status is
// `LLOPT_UNSUPPORTED`.
//
// # Safety
// `compilation` is null or not released.
const char *llopt_unsupported_op(const llopt_compilation_t *compilation);

// What would be needed to support it; null unless the status is `LLOPT_UNSUPPORTED`.
//
// # Safety
// `compilation` is null or not released.
const char *llopt_unsupported_feature(const llopt_compilation_t *compilation);

// The file with the input that shows a bug of llopt; null if there is none.
//
// # Safety
// `compilation` is null or not released.
const char *llopt_reproducer(const llopt_compilation_t *compilation);

// Frees a compilation and all that was read from it.
//
// # Safety
// `compilation` is null or not released, and nobody uses it any more.
void llopt_release(llopt_compilation_t *compilation);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* LLOPT_H */
