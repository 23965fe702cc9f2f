//! The registers of a value.

use std::rc::Rc;

use crate::llvm::emitter::V;

/// The LLVM values that carry one source value: one per register, or one for a scalar.
pub(crate) type Registers<'ctx> = Rc<[V<'ctx>]>;
