//! The module of a dialect that the build script writes.

/// Includes a generated file for a dialect, with everything that such a file refers to.
macro_rules! dialect {
    ($file:literal) => {
        #[allow(
            unused_imports,
            clippy::all,
            reason = "the generator imports for every dialect what any dialect may need"
        )]
        mod generated {
            //! The code that the build script generates from the `.td` files.

            use crate::{
                meaning::facts::{
                    Asynchronous, Control, ElementFunction, Integers, LayoutAnchor, Meaning,
                    OpFacts, ScratchUse, Step, Synchronization, Transfer, Unit,
                },
                tables::access,
                tables::definition::{
                    AttributeField, AttributeKind, DefaultValue, DialectDefinition, Effect,
                    EnumDefinition, Groups, KindDefinition, Multiplicity, OpDefinition, OpTrait,
                    Parameter, ParameterDefault, ParameterKind, Presence, RegionField, Relation,
                    Style, TypeConstraint, ValueField, ValueRef,
                },
                tables::make,
                tables::operation_builder::Building,
                tables::type_set::TypeSet,
                text::format::{
                    Anchor, Clause, CustomArgument, Element, FixedType, Format, TypeArgument,
                    TypeSource,
                },
            };
            use llopt_mlir::dialect::{
                Arity, AttributeSpec, DialectSpec, EffectKind, Effects, OpSpec, Speculation, Trait,
                TypeSpec,
            };
            use melior::ir::{
                Attribute, Location, Operation, OperationRef, Region, RegionRef, Type, Value,
            };

            include!(concat!(env!("OUT_DIR"), $file));
        }
    };
}

pub(crate) use dialect;
