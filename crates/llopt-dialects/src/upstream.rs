//! The ops that tile IR uses from MLIR's own dialects, and the enumeration of all ops of tile IR.
//!
//! `dialects/upstream.td` lists these ops. As for the dialects of this crate there is one module for each dialect,
//! with wrappers and an enumeration, generated from MLIR's `.td` files. [`Op`] has all of them, so that a match over
//! it without a wildcard is complete.

#[allow(
    unused_imports,
    clippy::all,
    reason = "the generator imports for every dialect what any dialect may need"
)]
mod generated {
    //! The code that the build script generates from MLIR's `.td` files.

    use super::mnemonic;
    use crate::{
        meaning::facts::{
            Asynchronous, Control, ElementFunction, Integers, LayoutAnchor, Meaning, OpFacts,
            ScratchUse, Step, Synchronization, Transfer, Unit,
        },
        tables::access,
    };
    use llopt_mlir::ir::{AttributeExt, OperationExt};
    use melior::ir::{Attribute, OperationRef, RegionRef, Value};

    include!(concat!(env!("OUT_DIR"), "/upstream.rs"));
}

pub use generated::*;

use crate::{
    amdg, gluon,
    meaning::facts::{Control, OpFacts},
    tables::definition::OpDefinition,
    tt, ttg, ttng,
};
use llopt_mlir::ir::OperationExt;
use melior::ir::OperationRef;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::{cell::RefCell, ffi::c_void, ptr::NonNull};

/// The name of an op without this dialect, `None` when it is of another.
fn mnemonic<'c>(operation: OperationRef<'c, '_>, dialect: &str) -> Option<&'c str> {
    operation
        .name_str()
        .strip_prefix(dialect)?
        .strip_prefix('.')
}

impl OpFacts {
    /// The facts about an op; none for one that is not an op of tile IR.
    ///
    /// All passes ask for them all the time, and ops of MLIR's dialects are found by their names, which takes as long as all
    /// else that is asked. So each thread keeps what it has found, by the address that MLIR knows the kind of an op by.
    pub fn of(operation: OperationRef<'_, '_>) -> &'static Self {
        let Some(kind) = operation.type_id() else {
            return found(operation);
        };
        FACTS.with_borrow_mut(|known| *known.entry(kind).or_insert_with(|| found(operation)))
    }
}

thread_local! {
    /// The facts about the kinds of ops that were asked for.
    static FACTS: RefCell<FxHashMap<NonNull<c_void>, &'static OpFacts>> =
        const { RefCell::new(FxHashMap::with_hasher(FxBuildHasher)) };
}

/// The facts about an op, by its tables or by its name.
fn found(operation: OperationRef<'_, '_>) -> &'static OpFacts {
    match OpDefinition::of(operation) {
        Some(definition) => &definition.facts,
        None => facts_of_mlir(operation).unwrap_or(&OpFacts::NONE),
    }
}

impl Control {
    /// The role of an op in control flow.
    pub fn of(operation: OperationRef<'_, '_>) -> Self {
        OpFacts::of(operation).control
    }
}

macro_rules! dialects {
    ($($variant:ident $dialect:ident $name:literal,)*) => {
        /// Every op of tile IR, by its dialect.
        #[derive(Clone, Copy, Debug)]
        pub enum Op<'c, 'a> {
            /// Of the dialect `tt`.
            Tt(tt::Op<'c, 'a>),
            /// Of the dialect `ttg`.
            Ttg(ttg::Op<'c, 'a>),
            /// Of the dialect `ttng`.
            Ttng(ttng::Op<'c, 'a>),
            /// Of the dialect `amdg`.
            Amdg(amdg::Op<'c, 'a>),
            /// Of the dialect `gluon`.
            Gluon(gluon::Op<'c, 'a>),
            $(
                #[doc = concat!("Of MLIR's dialect `", $name, "`.")]
                $variant($dialect::Op<'c, 'a>),
            )*
        }

        impl<'c, 'a> Op<'c, 'a> {
            /// The op, `None` when it is no op of tile IR.
            pub fn of(operation: OperationRef<'c, 'a>) -> Option<Self> {
                if OpDefinition::of(operation).is_some() {
                    return tt::Op::of(operation)
                        .map(Self::Tt)
                        .or_else(|| ttg::Op::of(operation).map(Self::Ttg))
                        .or_else(|| ttng::Op::of(operation).map(Self::Ttng))
                        .or_else(|| amdg::Op::of(operation).map(Self::Amdg))
                        .or_else(|| gluon::Op::of(operation).map(Self::Gluon));
                }
                let (dialect, mnemonic) = operation.name_str().split_once('.')?;
                match dialect {
                    $($name => {
                        let index = $dialect::position(mnemonic)?;
                        $dialect::Op::at(index, operation).map(Self::$variant)
                    })*
                    _ => None,
                }
            }

            /// The operation itself.
            pub fn operation(self) -> OperationRef<'c, 'a> {
                match self {
                    Self::Tt(op) => op.operation(),
                    Self::Ttg(op) => op.operation(),
                    Self::Ttng(op) => op.operation(),
                    Self::Amdg(op) => op.operation(),
                    Self::Gluon(op) => op.operation(),
                    $(Self::$variant(op) => op.operation(),)*
                }
            }
        }

        /// The facts about an op of MLIR's dialects.
        fn facts_of_mlir(operation: OperationRef<'_, '_>) -> Option<&'static OpFacts> {
            let (dialect, mnemonic) = operation.name_str().split_once('.')?;
            match dialect {
                $($name => $dialect::FACTS.get($dialect::position(mnemonic)?),)*
                _ => None,
            }
        }
    };
}

dialects! {
    Arith arith "arith",
    Builtin builtin "builtin",
    Cf cf "cf",
    Gpu gpu "gpu",
    Llvm llvm "llvm",
    Math math "math",
    Rocdl rocdl "rocdl",
    Scf scf "scf",
    Ub ub "ub",
}
