//! Registration of a dialect, and the mistakes of a table that it finds.

use super::{DialectSpec, hooks::install};
use crate::ffi;
use melior::dialect::DialectRegistry;

impl DialectSpec {
    /// Adds the dialect to a registry.
    ///
    /// # Errors
    /// Mistakes of the table itself: a name outside of the namespace, a name given twice, or
    /// more operations with type inference than the bridge has slots for.
    pub fn register(&'static self, registry: &DialectRegistry) -> Result<(), RegisterError> {
        install();
        self.check()?;
        for operation in self.operations {
            // SAFETY: the pointer serves as an identity only.
            if operation.infer.is_some()
                && !unsafe { ffi::llopt_reserve_inference(std::ptr::from_ref(operation).cast()) }
            {
                return Err(RegisterError::InferencePoolExhausted {
                    operation: operation.name,
                    // SAFETY: no precondition.
                    capacity: unsafe { ffi::llopt_inference_capacity() } as usize,
                });
            }
        }
        let flag = |present: bool, flag: u32| if present { flag } else { 0 };
        let flags = flag(
            self.materialize_constant.is_some(),
            ffi::LLOPT_DIALECT_MATERIALIZE_CONSTANT,
        ) | flag(
            self.verify_operation_attribute.is_some(),
            ffi::LLOPT_DIALECT_VERIFY_OPERATION_ATTRIBUTE,
        ) | flag(
            self.verify_argument_attribute.is_some(),
            ffi::LLOPT_DIALECT_VERIFY_ARGUMENT_ATTRIBUTE,
        ) | flag(self.inliner.is_some(), ffi::LLOPT_DIALECT_INLINER);
        // SAFETY: the registry is live; `self` is `'static`.
        unsafe {
            ffi::llopt_dialect_register(
                registry.to_raw(),
                std::ptr::from_ref(self).cast(),
                ffi::string_ref(self.namespace),
                flags,
            );
        }
        Ok(())
    }

    /// Finds the mistakes on which MLIR would abort.
    fn check(&self) -> Result<(), RegisterError> {
        let mut seen = std::collections::HashSet::new();
        for operation in self.operations {
            let name = operation.name;
            let local = name
                .strip_prefix(self.namespace)
                .and_then(|rest| rest.strip_prefix('.'));
            if local.is_none_or(str::is_empty) {
                return Err(RegisterError::ForeignName {
                    name,
                    namespace: self.namespace,
                });
            }
            if !seen.insert(("operation", name)) {
                return Err(RegisterError::Duplicate { name });
            }
        }
        for name in self.attributes.iter().map(|spec| spec.mnemonic) {
            if !seen.insert(("attribute", name)) {
                return Err(RegisterError::Duplicate { name });
            }
        }
        for name in self.types.iter().map(|spec| spec.mnemonic) {
            if !seen.insert(("type", name)) {
                return Err(RegisterError::Duplicate { name });
            }
        }
        Ok(())
    }
}

/// A mistake in a dialect table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// An operation name that does not start with `namespace.`.
    #[error("operation `{name}` is not of dialect `{namespace}`")]
    ForeignName {
        /// The operation.
        name: &'static str,
        /// The dialect.
        namespace: &'static str,
    },
    /// A name that the table holds twice.
    #[error("`{name}` is defined twice")]
    Duplicate {
        /// The operation name or mnemonic.
        name: &'static str,
    },
    /// MLIR's type inference does not pass the identity of the operation, so the bridge keeps a pool of entry points,
    /// one per operation with an `infer` hook.
    #[error(
        "no slot is left for the type inference of `{operation}`: raise `kInferenceSlots` (now {capacity}) in cpp/interfaces.cpp"
    )]
    InferencePoolExhausted {
        /// The first operation without a slot.
        operation: &'static str,
        /// The size of the pool.
        capacity: usize,
    },
}
