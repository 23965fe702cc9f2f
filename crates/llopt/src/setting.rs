//! Options by name, for callers that use text (the C interface, a configuration file, a key of a cache).
//!
//! The table [`SETTINGS`] is the only list of names.

use std::fmt::{Display, Write};
use std::path::PathBuf;
use std::str::FromStr;

use llopt_target::Target;
use llopt_transforms::{split_k, tile_parts};

use crate::{Options, Persistent, Rewriting, TensorCopies, VERSION};

/// An option that has a name.
pub struct Setting {
    /// The name; Triton's where Triton has the option.
    pub name: &'static str,
    /// The description, with its unit and default.
    pub help: &'static str,
    /// The form of a value.
    expected: &'static str,
    set: fn(&mut Options, &str) -> Option<()>,
    get: fn(&Options) -> String,
}

/// An unknown name, or a value that the option does not accept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// There is no option of this name.
    #[error("unknown option '{name}'; known options: {known}")]
    Name {
        /// The given name.
        name: String,
        /// All names.
        known: String,
    },
    /// The option does not accept this value.
    #[error("option '{name}' takes {expected}, not '{value}'")]
    Value {
        /// The option.
        name: &'static str,
        /// The values that it accepts.
        expected: &'static str,
        /// The given value.
        value: String,
    },
}

/// All options that have names, by name.
pub const SETTINGS: &[Setting] = &[
    Setting {
        name: "allow_flush_denorm",
        help: "let arithmetic flush denormal numbers of 32 bits to zero (AMD); false by default",
        expected: "true or false",
        set: |options, text| parse(text, &mut options.flush_denormals),
        get: |options| options.flush_denormals.to_string(),
    },
    Setting {
        name: "block_pingpong",
        help: "whether halves of a block take turns in loops of products (AMD): never, where the model predicts a gain, or \
               wherever possible; auto by default",
        expected: Rewriting::EXPECTED,
        set: |options, text| parse(text, &mut options.block_pingpong),
        get: |options| options.block_pingpong.to_string(),
    },
    Setting {
        name: "check_indices",
        help: "let the simulator check indices of buffers and gathers; false by default",
        expected: "true or false",
        set: |options, text| parse(text, &mut options.check_indices),
        get: |options| options.check_indices.to_string(),
    },
    Setting {
        name: "conversion_plan",
        help: "how elements go from one layout to another; the cheapest plan by default",
        expected: "register, shuffle, shared or shared:STORE-LOAD (each vector, matrix, transposed or any), \
                   or nothing for the default",
        set: |options, text| optional_name(text, &mut options.conversion_plan),
        get: |options| shown(options.conversion_plan),
    },
    Setting {
        name: "dependent_launch",
        help: "let the kernel wait for the one before it itself, so that its launch may overlap with that (NVIDIA); false by default",
        expected: "true or false",
        set: |options, text| parse(text, &mut options.dependent_launch),
        get: |options| options.dependent_launch.to_string(),
    },
    Setting {
        name: "enable_fp_fusion",
        help: "fuse a multiplication and an addition into one rounding; true by default",
        expected: "true or false",
        set: |options, text| parse(text, &mut options.fp_fusion),
        get: |options| options.fp_fusion.to_string(),
    },
    Setting {
        name: "enable_reflect_ftz",
        help: "let libdevice flush denormal numbers of 32 bits to zero (NVIDIA); true by default",
        expected: "true or false",
        set: |options, text| parse(text, &mut options.library_flushes_denormals),
        get: |options| options.library_flushes_denormals.to_string(),
    },
    Setting {
        name: "few_programs",
        help: "whether launches have so few programs that all blocks are resident; false by default",
        expected: "true or false",
        set: |options, text| parse(text, &mut options.few_programs),
        get: |options| options.few_programs.to_string(),
    },
    Setting {
        name: "gather_plan",
        help: "how elements are gathered; the cheapest plan by default",
        expected: "thread, shuffle or shared, or nothing for the default",
        set: |options, text| optional_name(text, &mut options.gather_plan),
        get: |options| shown(options.gather_plan),
    },
    Setting {
        name: "keep",
        help: "further forms to return, such as ttgir,llvm; none by default",
        expected: "names of artefacts with commas between them",
        set: |options, text| {
            let names = text.split(',').filter(|name| !name.is_empty());
            options.keep = names.map(|name| name.parse().ok()).collect::<Option<_>>()?;
            Some(())
        },
        get: |options| {
            let names: Vec<&str> = options.keep.iter().map(|kind| kind.name()).collect();
            names.join(",")
        },
    },
    Setting {
        name: "keep_print_calls",
        help: "leave device printing to the simulator (AMD); false by default",
        expected: "true or false",
        set: |options, text| parse(text, &mut options.keep_print_calls),
        get: |options| options.keep_print_calls.to_string(),
    },
    Setting {
        name: "libdevice",
        help: "file with NVIDIA's device library; LLOPT_LIBDEVICE, or where CUDA, Debian or Triton has it, by default",
        expected: "a path, or nothing for the default",
        set: |options, text| path(text, &mut options.libdevice),
        get: |options| shown_path(&options.libdevice),
    },
    Setting {
        name: "libraries",
        help: "further bitcode libraries that kernels may call; none by default",
        expected: "paths as the search path has them",
        set: |options, text| {
            let paths = std::env::split_paths(text).filter(|path| !path.as_os_str().is_empty());
            options.libraries = paths.collect();
            Some(())
        },
        get: |options| {
            let joined = std::env::join_paths(&options.libraries);
            joined.unwrap_or_default().to_string_lossy().into_owned()
        },
    },
    Setting {
        name: "line_info",
        help: "put line information into the artefact; true by default",
        expected: "true or false",
        set: |options, text| parse(text, &mut options.line_info),
        get: |options| options.line_info.to_string(),
    },
    Setting {
        name: "lld",
        help: "LLVM's linker for AMD code objects; LLOPT_LLD or the search path by default",
        expected: "a path, or nothing for the default",
        set: |options, text| path(text, &mut options.lld),
        get: |options| shown_path(&options.lld),
    },
    Setting {
        name: "mark_buffers",
        help: "tell the simulator where buffers of shared memory begin and end; false by default",
        expected: "true or false",
        set: |options, text| parse(text, &mut options.mark_buffers),
        get: |options| options.mark_buffers.to_string(),
    },
    Setting {
        name: "max_code",
        help: "maximum number of values of all operations together in a thread; 262144 by default",
        expected: "a number",
        set: |options, text| parse(text, &mut options.budget.code),
        get: |options| options.budget.code.to_string(),
    },
    Setting {
        name: "max_memory",
        help: "maximum memory of an isolated compilation, in MiB; 896 by default",
        expected: "a number",
        set: |options, text| parse(text, &mut options.budget.memory),
        get: |options| options.budget.memory.to_string(),
    },
    Setting {
        name: "max_time",
        help: "maximum processor time of a compilation, in milliseconds; 9000 by default",
        expected: "a number",
        set: |options, text| parse(text, &mut options.budget.time),
        get: |options| options.budget.time.to_string(),
    },
    Setting {
        name: "max_values",
        help: "maximum number of values of one operation in a thread; 4096 by default",
        expected: "a number",
        set: |options, text| parse(text, &mut options.budget.values),
        get: |options| options.budget.values.to_string(),
    },
    Setting {
        name: "maxnreg",
        help: "upper bound on registers for each thread; none by default",
        expected: "a positive number, or nothing for no bound",
        set: |options, text| optional(text, &mut options.max_registers),
        get: |options| shown(options.max_registers),
    },
    Setting {
        name: "num_ctas",
        help: "blocks per cluster; by default that of the input, or 1",
        expected: "a positive number, or nothing for the default",
        set: |options, text| optional(text, &mut options.num_ctas),
        get: |options| shown(options.num_ctas),
    },
    Setting {
        name: "num_stages",
        help: "pipeline stages of loops with products, unless a loop sets its own number, 0 as many as hide latencies; \
               3 for cuda, 2 for hip by default",
        expected: "a number",
        set: |options, text| parse(text, &mut options.num_stages),
        get: |options| options.num_stages.to_string(),
    },
    Setting {
        name: "num_warps",
        help: "warps per block, 0 as many as are fastest by the model; by default that of the input, or 4",
        expected: "a number, or nothing for the default",
        set: |options, text| optional_name(text, &mut options.num_warps),
        get: |options| shown(options.num_warps),
    },
    Setting {
        name: "ocml",
        help: "directory with AMD's device libraries; LLOPT_OCML, or where ROCm, Debian or Triton has them, by default",
        expected: "a path, or nothing for the default",
        set: |options, text| path(text, &mut options.ocml),
        get: |options| shown_path(&options.ocml),
    },
    Setting {
        name: "optimize",
        help: "let LLVM optimise; true by default",
        expected: "true or false",
        set: |options, text| parse(text, &mut options.optimize),
        get: |options| options.optimize.to_string(),
    },
    Setting {
        name: "persistent",
        help: "whether blocks compute several programs each where that is faster, or only the metadata say where; off by default",
        expected: Persistent::EXPECTED,
        set: |options, text| parse(text, &mut options.persistent),
        get: |options| options.persistent.to_string(),
    },
    Setting {
        name: "ptxas",
        help: "NVIDIA's assembler; LLOPT_PTXAS, a CUDA toolkit or the search path by default",
        expected: "a path, or nothing for the default",
        set: |options, text| path(text, &mut options.ptxas),
        get: |options| shown_path(&options.ptxas),
    },
    Setting {
        name: "reproducer_directory",
        help: "directory for inputs that show a bug in llopt; the temporary directory by default",
        expected: "a path, or nothing to write none",
        set: |options, text| path(text, &mut options.reproducer_directory),
        get: |options| shown_path(&options.reproducer_directory),
    },
    Setting {
        name: "single_wave",
        help: "whether launches have no more blocks than there are multiprocessors; false by default",
        expected: "true or false",
        set: |options, text| parse(text, &mut options.single_wave),
        get: |options| options.single_wave.to_string(),
    },
    Setting {
        name: "split_k",
        help: "blocks of a cluster that share a loop of products in a kernel without layouts; 1 by default",
        expected: "1, 2, 4 or 8",
        set: |options, text| {
            let blocks = text.parse().ok();
            options.split_k = blocks.filter(|blocks| split_k::is_number_of_blocks(*blocks))?;
            Some(())
        },
        get: |options| options.split_k.to_string(),
    },
    Setting {
        name: "streamed",
        help: "whether second factors of products are larger than the cache, and read once; false by default",
        expected: "true or false",
        set: |options, text| parse(text, &mut options.streamed),
        get: |options| options.streamed.to_string(),
    },
    Setting {
        name: "target",
        help: "the GPU, such as cuda:90 or hip:gfx942",
        expected: "a target such as cuda:90 or hip:gfx942",
        set: |options, text| {
            options.target = Target::parse(text).ok()?;
            Some(())
        },
        get: |options| options.target.to_string(),
    },
    Setting {
        name: "tensor_copies",
        help: "who makes the descriptors with which loads of tiles through pointers become tensor copies; off by default",
        expected: TensorCopies::EXPECTED,
        set: |options, text| parse(text, &mut options.tensor_copies),
        get: |options| options.tensor_copies.to_string(),
    },
    Setting {
        name: "tile_parts",
        help: "blocks of which each computes a part of a program's tile in a kernel without layouts; 1 by default",
        expected: "1, 2, 4 or 8",
        set: |options, text| {
            let parts = text.parse().ok();
            options.tile_parts = parts.filter(|parts| tile_parts::is_number_of_parts(*parts))?;
            Some(())
        },
        get: |options| options.tile_parts.to_string(),
    },
    Setting {
        name: "tile_rows",
        help: "rows of tiles that are computed where others are not stored, in a kernel without layouts; 0, all, by default",
        expected: "0, or a power of two from 16 on",
        set: |options, text| {
            let rows = text.parse().ok();
            options.tile_rows = rows.filter(|rows| tile_parts::is_number_of_rows(*rows))?;
            Some(())
        },
        get: |options| options.tile_rows.to_string(),
    },
    Setting {
        name: "verify_layouts",
        help: "check layouts after each pass that changes any; false by default, true where llopt has debug assertions",
        expected: "true or false",
        set: |options, text| parse(text, &mut options.verify_layouts),
        get: |options| options.verify_layouts.to_string(),
    },
    Setting {
        name: "waves_per_eu",
        help: "warps for each execution unit to aim for (AMD); 0, the default, leaves it to LLVM",
        expected: "a number",
        set: |options, text| parse(text, &mut options.waves_per_eu),
        get: |options| options.waves_per_eu.to_string(),
    },
    Setting {
        name: "wide_iterations",
        help: "whether loops that reduce over tiles take tiles of twice the size where that is proved to be the same: never, \
               where the model predicts a gain, or wherever possible; auto by default",
        expected: Rewriting::EXPECTED,
        set: |options, text| parse(text, &mut options.wide_iterations),
        get: |options| options.wide_iterations.to_string(),
    },
];

fn parse<T: FromStr>(text: &str, place: &mut T) -> Option<()> {
    *place = text.parse().ok()?;
    Some(())
}

/// A positive number, or nothing.
fn optional(text: &str, place: &mut Option<u32>) -> Option<()> {
    *place = match text {
        "" => None,
        _ => Some(text.parse().ok().filter(|&number| number > 0)?),
    };
    Some(())
}

/// A name or a number, or nothing.
fn optional_name<T: FromStr>(text: &str, place: &mut Option<T>) -> Option<()> {
    *place = match text {
        "" => None,
        _ => Some(text.parse().ok()?),
    };
    Some(())
}

fn path(text: &str, place: &mut Option<PathBuf>) -> Option<()> {
    *place = (!text.is_empty()).then(|| text.into());
    Some(())
}

fn shown(value: Option<impl Display>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn shown_path(path: &Option<PathBuf>) -> String {
    shown(path.as_ref().map(|path| path.display()))
}

impl Options {
    /// Sets the option of this name; [`SETTINGS`] lists the names.
    ///
    /// Changing the target keeps all other options as they are, `num_stages` included.
    ///
    /// # Errors
    /// There is no such option, or it does not accept this value; then nothing is changed.
    ///
    /// ```
    /// # use llopt::{Options, Target};
    /// let mut options = Options::new(Target::parse("cuda:90")?);
    /// options.set("num_warps", "8")?;
    /// assert_eq!(options.num_warps, Some(8));
    /// let error = options.set("line_info", "perhaps").unwrap_err();
    /// assert_eq!(error.to_string(), "option 'line_info' takes true or false, not 'perhaps'");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), SettingError> {
        let Some(setting) = SETTINGS.iter().find(|setting| setting.name == name) else {
            let known: Vec<&str> = SETTINGS.iter().map(|setting| setting.name).collect();
            return Err(SettingError::Name {
                name: name.into(),
                known: known.join(", "),
            });
        };
        (setting.set)(self, value).ok_or_else(|| SettingError::Value {
            name: setting.name,
            expected: setting.expected,
            value: value.into(),
        })
    }

    /// The value of the option of this name, in the form of [`Options::set`]; `None` for a name that no option has.
    pub fn get(&self, name: &str) -> Option<String> {
        let setting = SETTINGS.iter().find(|setting| setting.name == name)?;
        Some((setting.get)(self))
    }

    /// All that the result of a compilation depends on besides its input and the kind of artefact: the [version of
    /// llopt](VERSION), which changes with its code, and all options, as lines of text for a hash. Files that options
    /// name (device libraries, assemblers) count by their paths, not by their contents.
    ///
    /// ```
    /// # use llopt::{Options, Target};
    /// let mut options = Options::new(Target::parse("cuda:90")?);
    /// let key = options.cache_key();
    /// assert!(key.starts_with(&format!("llopt {}\n", llopt::VERSION)));
    /// options.num_warps = Some(8);
    /// assert_ne!(key, options.cache_key());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cache_key(&self) -> String {
        let mut key = format!("llopt {VERSION}\n");
        for setting in SETTINGS {
            // They determine only where to write, and which other forms to return.
            if !["keep", "reproducer_directory"].contains(&setting.name) {
                let _ = writeln!(key, "{}={}", setting.name, (setting.get)(self));
            }
        }
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Budget;

    #[test]
    fn names_are_sorted_and_values_read_back() {
        assert!(SETTINGS.is_sorted_by(|a, b| a.name < b.name));
        let mut options = Options::new(Target::parse("hip:gfx942").unwrap());
        for setting in SETTINGS {
            let value = options.get(setting.name).unwrap();
            options.set(setting.name, &value).unwrap();
            assert_eq!(options.get(setting.name).unwrap(), value);
        }
        for (name, value) in [
            ("num_warps", "8"),
            ("maxnreg", "64"),
            ("ptxas", "/p/ptxas"),
            ("libraries", "/a.bc:/b.bc"),
            ("keep", "ttgir,llvm"),
            ("conversion_plan", "shared:any-matrix"),
            ("gather_plan", "shuffle"),
        ] {
            options.set(name, value).unwrap();
            assert_eq!(options.get(name).as_deref(), Some(value));
        }
    }

    /// Does not compile when an option is added: then give it a name, or it is missing in the keys of caches and in
    /// the C interface.
    #[test]
    fn every_option_has_a_name() {
        let Options {
            target: _,
            num_warps: _,
            num_stages: _,
            num_ctas: _,
            split_k: _,
            tile_parts: _,
            tile_rows: _,
            single_wave: _,
            few_programs: _,
            streamed: _,
            fp_fusion: _,
            libdevice: _,
            ocml: _,
            ptxas: _,
            lld: _,
            max_registers: _,
            libraries: _,
            library_flushes_denormals: _,
            flush_denormals: _,
            waves_per_eu: _,
            line_info: _,
            optimize: _,
            verify_layouts: _,
            keep_print_calls: _,
            check_indices: _,
            mark_buffers: _,
            keep: _,
            reproducer_directory: _,
            conversion_plan: _,
            gather_plan: _,
            tensor_copies: _,
            persistent: _,
            dependent_launch: _,
            block_pingpong: _,
            wide_iterations: _,
            budget:
                Budget {
                    values: _,
                    code: _,
                    memory: _,
                    time: _,
                },
            keep_decisions: _,
        } = Options::new(Target::parse("cuda:90").unwrap());
        assert_eq!(SETTINGS.len(), 39);
    }

    #[test]
    fn mistakes_say_what_would_be_right_and_change_nothing() {
        let mut options = Options::new(Target::parse("cuda:90").unwrap());
        let before = options.cache_key();
        let says = |error: SettingError| error.to_string();
        assert_eq!(
            says(options.set("num_warps", "few").unwrap_err()),
            "option 'num_warps' takes a number, or nothing for the default, not 'few'"
        );
        assert_eq!(
            says(options.set("num_stages", "").unwrap_err()),
            "option 'num_stages' takes a number, not ''"
        );
        assert_eq!(
            says(options.set("target", "abacus").unwrap_err()),
            "option 'target' takes a target such as cuda:90 or hip:gfx942, not 'abacus'"
        );
        assert_eq!(
            says(options.set("gather_plan", "warp").unwrap_err()),
            "option 'gather_plan' takes thread, shuffle or shared, or nothing for the default, not 'warp'"
        );
        let unknown = says(options.set("warps", "4").unwrap_err());
        assert!(unknown.starts_with("unknown option 'warps'; known options: allow_flush_denorm, "));
        assert_eq!(options.cache_key(), before);
    }
}
