//! What melior lacks: MLIR dialects, operations, types, attributes, interfaces, folders, rewrite
//! patterns and passes defined from Rust, through one thin C++ bridge without domain content.
//!
//! # Theory
//!
//! To MLIR a dialect is a set of objects that a context queries. C++ makes these objects from classes that TableGen
//! generates at compile time; but nothing in MLIR depends on that, and this crate makes them at run time from
//! `static` tables.
//!
//! **An operation** is registered as an `OperationName::Impl`, an object with virtual functions for everything that
//! MLIR may query: the traits, how to parse, print, verify and fold it, and the size of its properties. The bridge
//! has one subclass of it for all operations of all tables (`RustOp`); each object holds the address of an
//! [`dialect::OpSpec`] and forwards to the functions in there.
//!
//! **A TypeID** identifies classes of operations, attributes and types. It is a pointer to something with a unique
//! address. This crate uses the address of the spec: it is unique, stable and the same in every context of the
//! process, so the spec of an operation is found without a table. This is why specs are `static`, never `const`.
//!
//! **An interface** is looked up in a map from the interface's TypeID to a *concept*, a table of
//! functions that take the operation. MLIR knows three ways to fill it: from the C++ class of the
//! operation (the model), from outside (the external model), and from a class that stands for
//! operations of no class at all (the fallback model). The bridge has one fallback model per
//! interface, shared by all operations; each function finds the spec through the operation.
//!
//! **Inherent attributes** are properties: raw memory behind the operation, whose layout only
//! the `Impl` knows. Here it is one slot per attribute name, so that reading the third attribute
//! is an indexed load ([`dialect::OpSpec::slot`]) while MLIR's generic code sees a dictionary.
//!
//! **Attributes and types** are uniqued under the TypeID of their kind. One storage layout
//! serves all kinds: (kind, parameters), where parameters are attributes again. Walks over
//! sub-elements, replacement, aliases and bytecode then need no code per kind.
//!
//! **Hooks** are the functions in the specs, called through one table of C functions. Each call
//! is guarded: a panic becomes an error `bug in llopt: …` on the operation at hand and never
//! unwinds into C++. Hooks that fail return a [`diagnostic::Complaint`], which the bridge
//! reports, or [`diagnostic::Reported`], the proof that an error has been reported.
//!
//! ```
//! use llopt_mlir::{
//!     dialect::{Arity, DialectSpec, Effects, Fold, OpSpec, Speculation},
//!     ir::OperationExt,
//! };
//! use melior::{Context, dialect::DialectRegistry};
//!
//! static DEMO: DialectSpec = DialectSpec {
//!     operations: &[OpSpec {
//!         operands: Arity::exactly(1),
//!         results: Arity::exactly(1),
//!         effects: Effects::None,
//!         speculation: Speculation::Always,
//!         fold: Some(|_, operation, _| match operation.operand_value(0) {
//!             Some(operand) => Fold::value(operand),
//!             None => Fold::None,
//!         }),
//!         ..OpSpec::new("demo.identity")
//!     }],
//!     ..DialectSpec::new("demo")
//! };
//!
//! let registry = DialectRegistry::new();
//! llopt_mlir::register_upstream_dialects(&registry);
//! DEMO.register(&registry)?;
//! let context = Context::new_with_registry(&registry, false);
//! let source = r#"
//!     %0 = arith.constant 1 : i32
//!     %1 = "demo.identity"(%0) : (i32) -> i32
//!     %2 = llvm.inline_asm has_side_effects "", "r,=r" %1 : (i32) -> i32
//! "#;
//! let module = llopt_mlir::parse_module(&context, source.as_bytes(), "demo.mlir")
//!     .map_err(|diagnostics| llopt_mlir::diagnostic::render(&diagnostics))?;
//! llopt_mlir::pass::register_upstream_passes();
//! llopt_mlir::pass::run_pipeline(module.as_operation(), "canonicalize", true)?;
//! assert!(!module.as_operation().to_string().contains("demo.identity"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What this crate must not know
//!
//! No dialect of this project, no GPU, no layout. `cpp/` contains no operation name except those that MLIR's own
//! interfaces define (`function_type`, `operandSegmentSizes`). A new operation never needs a line of C++.
//!
//! # Pitfalls
//!
//! - `InferTypeOpInterface` is called before the operation exists, and its functions receive neither operation nor
//!   name. The bridge keeps a pool of template instantiations, one slot per operation with inference; registration
//!   fails with a clear error when it is exhausted.
//! - Operations with properties need `BytecodeOpInterface`, or the bytecode writer crashes; every
//!   operation here has it.
//! - Interfaces that build on others look these up while they are inserted: bases go first
//!   (`ArgAndResultAttrs` before `Callable` before `Function`).
//! - Trait folds (operand order of commutative operations, involutions) belong to the fold hook
//!   of the operation, not to the driver; `RustOp` runs them after the hook.
//! - melior's `ContextRef::to_ref` and `OperationRef::to_ref` return a reference to the handle they are called on;
//!   called on a temporary, it dangles. Use [`ir::context`].
//! - melior's `try_from` between types, attributes and values prints what it cannot convert into its error, aliases
//!   of the whole context included. Where failure is common, test first ([`ir::TypeExt`], [`ir::AttributeExt`],
//!   [`ir::ValueExt`]).
//! - `mlirFreezeRewritePattern` moves out of the set but does not free it.
//! - MLIR's parser recurses without a limit and its bytecode reader does not check counts; [`parse_module`] says how
//!   this crate handles that.
//! - A diagnostic on an operation prints the whole operation in a note unless
//!   [`diagnostic::print_operations`] turns that off.
//! - `mlirIntegerAttrGetValueInt` returns -1 for `true`; [`ir::AttributeExt::as_i64`] returns 1.
//! - A kind's verifier runs once per attribute, a tensor type's once per encoding, shape and element type, although
//!   MLIR calls it each time a type is written: both must depend on their arguments only.
//!
//! # Alternatives rejected
//!
//! MLIR's dynamic dialects (`DynamicOpDefinition`, IRDL) cannot carry properties, inherent
//! attributes or traits with verifiers. melior's `dialect!` macro wraps operations that exist but
//! defines none. Generating C++ from TableGen would put domain content into C++ and a C++ build
//! into every change of an operation.

pub mod asm;
pub mod context_pool;
pub mod diagnostic;
pub mod dialect;
mod ffi;
mod guard;
pub mod ir;
pub mod pass;
pub mod rewrite;
mod tool;

pub use tool::{lsp_main, opt_main, parse_module, register_upstream_dialects};
