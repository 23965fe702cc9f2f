//! Kernels built from Rust, without text.
//!
//! A [`KernelBuilder`] makes the operations of one kernel, [`KernelBuilder::finish`] verifies them and returns a
//! [`Source`](crate::Source) that [`Compiler`](crate::Compiler) compiles like any other.
//!
//! ```
//! use llopt::build::{Argument, Axis, Context, Element, KernelBuilder};
//!
//! let context = Context::new()?;
//! let k = KernelBuilder::new(&context, "scale");
//! let x = k.argument("x", Argument::pointer(Element::F32).divisible_by(16));
//! let factor = k.argument("factor", Argument::scalar(Element::F32));
//! let n = k.argument("n", Argument::scalar(Element::I32));
//!
//! let index = k.program_id(Axis::X) * 256 + k.range(0..256);
//! let mask = index.lt(n);
//! let place = x + index;
//! place.store_where(place.load_where(mask, 0.0) * factor, mask);
//!
//! let source = k.finish()?;
//! # use llopt::{ArtifactKind, Compiler, Options, Target};
//! let compiler = Compiler::new(Options::new(Target::parse("hip:gfx942")?));
//! let compilation = compiler.compile(&source, ArtifactKind::Amdgcn)?;
//! assert_eq!(compilation.metadata.name, "scale");
//! # Ok::<(), llopt::Error>(())
//! ```
//!
//! # Values
//!
//! A [`Value`] is a scalar, a pointer, or a tensor of either; it refers to its kernel, so operators and methods
//! append operations at the kernel's insertion point. A Rust number becomes a constant of the other operand's type.
//! Shapes broadcast as in NumPy: scalars are splatted, extents of 1 are repeated. Element types never change
//! implicitly; [`Value::to`] converts.
//!
//! Integers are signless. Operators and comparisons treat them as signed; those for unsigned integers have separate
//! names, such as [`Value::lt_unsigned`].
//!
//! # Mistakes
//!
//! Building never panics, and steps do not return a `Result`. A mistake is recorded, with the line of *your* program
//! that made it; its result is a broken value, and any operation on a broken value gives a broken value without a
//! further message. [`KernelBuilder::finish`] then returns the diagnostics. The same lines are the kernel's debug
//! information, so errors of later stages, and profilers, point into your program as well.
//!
//! ```
//! # use llopt::build::{Argument, Context, Element, KernelBuilder};
//! # let context = Context::new()?;
//! let k = KernelBuilder::new(&context, "mistaken");
//! let nonsense = k.range(0..256) + k.range(0..100);
//! (nonsense * 3).to(Element::F32);
//! let error = k.finish().unwrap_err();
//! let said: Vec<String> = error.diagnostics().iter().map(|d| d.message.clone()).collect();
//! assert_eq!(said, ["a range of 100 elements: tensors have a power of two"]);
//! # Ok::<(), llopt::Error>(())
//! ```
//!
//! # Layouts
//!
//! By default tensors have no layouts, and the compiler chooses them. With [`KernelBuilder::with_layouts`] every
//! tensor has one, an [`Encoding`]: [`blocked`], [`linear`] from any linear layout, [`slice`](sliced) of another.
//! Results have the layouts of their operands; mixing two layouts needs a [`Value::with_layout`], a conversion that
//! the compiler then plans.
//!
//! # Other operations
//!
//! Operations without a method here are made with the builders generated from the dialects'
//! definitions, [`llopt::dialects`](crate::dialects), through [`KernelBuilder::operation`].
//!
//! # Alternative rejected
//!
//! Values could borrow from their operations, as in MLIR's own bindings; every function on kernels would then have
//! two lifetimes, and a loop body could not be a closure. Here a value borrows from its builder and nothing else.

mod argument;
mod arithmetic;
mod broadcast;
mod context;
mod control_flow;
mod element;
mod function;
mod inputs;
mod kernel;
mod layout;
mod memory;
mod operand;
mod reduction;
mod shape;
mod value;

pub use argument::Argument;
pub use context::Context;
pub use element::Element;
pub use function::Function;
pub use kernel::KernelBuilder;
pub use layout::{blocked, linear, sliced};
pub use llopt_dialects::layout::encoding::Encoding;
pub use llopt_dialects::tt::{
    CacheModifier, EvictionPolicy, MemSemantic, MemSyncScope, ProgramDim as Axis, RmwOp,
};
pub use llopt_layout::LinearLayout;
pub use memory::{AtomicOptions, LoadOptions, StoreOptions};
pub use operand::Operand;
pub use value::Value;
