//! Registration of a pass in the process.

use super::PassSpec;
use crate::{dialect::install_hooks, ffi};

impl PassSpec {
    /// Adds the pass to the registry of the process; a second call does nothing.
    pub fn register(&'static self) {
        install_hooks();
        let dependencies: Vec<_> = self
            .dependencies
            .iter()
            .map(|n| ffi::string_ref(n))
            .collect();
        let options: Vec<_> = self
            .options
            .iter()
            .map(|option| ffi::LloptPassMember {
                name: ffi::string_ref(option.name),
                description: ffi::string_ref(option.description),
                defaultValue: ffi::string_ref(option.default),
            })
            .collect();
        let statistics: Vec<_> = self
            .statistics
            .iter()
            .map(|(name, description)| ffi::LloptPassMember {
                name: ffi::string_ref(name),
                description: ffi::string_ref(description),
                defaultValue: ffi::string_ref(""),
            })
            .collect();
        let pass = ffi::LloptPass {
            spec: std::ptr::from_ref(self).cast(),
            argument: ffi::string_ref(self.argument),
            description: ffi::string_ref(self.description),
            operation: ffi::string_ref(self.operation.unwrap_or_default()),
            dependentDialects: dependencies.as_ptr(),
            dependentDialectCount: dependencies.len() as isize,
            options: options.as_ptr(),
            optionCount: options.len() as isize,
            statistics: statistics.as_ptr(),
            statisticCount: statistics.len() as isize,
        };
        // SAFETY: strings and arrays outlive the call, which copies them; the spec is static.
        unsafe { ffi::llopt_pass_register(&pass) }
    }
}
