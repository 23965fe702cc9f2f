//! The ttng dialect: matrix units, barriers, bulk copies and tensor memory of NVIDIA GPUs.

mod canonicalize;
pub mod effects;
pub mod infer;
mod messages;
pub mod verify;

pub use generated::*;

use llopt_mlir::dialect::DialectSpec;

#[allow(
    unused_imports,
    clippy::all,
    reason = "the generator imports for every dialect what any dialect may need"
)]
mod generated {
    //! What the build script makes of the `.td` files.

    use crate::{
        meaning::facts::{
            Asynchronous, Control, LayoutAnchor, OpFacts, ScratchUse, Step, Synchronization,
            Transfer, Unit,
        },
        tables::access,
        tables::definition::{
            AttributeField, AttributeKind, DefaultValue, DialectDefinition, Effect, EnumDefinition,
            Groups, KindDefinition, Multiplicity, OpDefinition, OpTrait, Parameter,
            ParameterDefault, ParameterKind, Presence, RegionField, Relation, Style,
            TypeConstraint, ValueField, ValueRef,
        },
        tables::make,
        tables::operation_builder::Building,
        tables::type_set::TypeSet,
        text::format::{
            Anchor, Clause, CustomArgument, Element, FixedType, Format, TypeArgument, TypeSource,
        },
    };
    use llopt_mlir::dialect::{
        Arity, AttributeSpec, DialectSpec, EffectKind, Effects, OpSpec, Speculation, Trait,
        TypeSpec,
    };
    use melior::ir::{
        Attribute, Location, Operation, OperationRef, Region, RegionRef, Type, Value,
    };

    include!(concat!(env!("OUT_DIR"), "/ttng.rs"));
}

/// What the dialect answers beyond its tables.
const fn dialect_hooks() -> DialectSpec {
    DialectSpec {
        canonicalization: canonicalize::OF_CONVERT,
        ..DialectSpec::new("ttng")
    }
}
