//! The gluon dialect: layouts that are still to be chosen.

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

    include!(concat!(env!("OUT_DIR"), "/gluon.rs"));
}

/// What the dialect answers beyond its tables.
const fn dialect_hooks() -> DialectSpec {
    DialectSpec::new("gluon")
}

/// Whether an encoding stands for a layout that is yet to be chosen.
pub fn is_open(encoding: melior::ir::Attribute<'_>) -> bool {
    attribute::AUTO_ENCODING.is(encoding) || attribute::COALESCED_ENCODING.is(encoding)
}
