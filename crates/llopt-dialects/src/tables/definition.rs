//! The contents of the `.td` files, as static data.
//!
//! The build script turns every operation into an [`OpDefinition`] and attaches it to the [`OpSpec`] that MLIR sees.
//! The format engine, the verifier, the accessors and the reference pages all read these tables; nothing about an
//! operation is defined twice.

pub use super::relation::{Relation, TypeTransform, ValueRef};
use crate::{
    meaning::facts::OpFacts, tables::make, tables::type_set::TypeSet, text::format::Format,
};
use llopt_mlir::{
    diagnostic::Complaint,
    dialect::{AttributeSpec, EffectKind, OpSpec, Resource, TypeSpec},
};
use melior::{
    Context,
    ir::{Attribute, OperationRef},
};

/// An operation of a `.td` file.
pub struct OpDefinition {
    /// The full name, e.g. `tt.load`.
    pub name: &'static str,
    /// Position in the tables of its dialect.
    pub index: usize,
    /// The name of the Rust wrapper, e.g. `LoadOp`.
    pub class: &'static str,
    /// The family that reference pages file it under.
    pub family: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Markdown.
    pub description: &'static str,
    /// Operands.
    pub operands: &'static [ValueField],
    /// How operands fall into groups.
    pub operand_groups: Groups,
    /// Inherent attributes, in the order of their slots.
    pub attributes: &'static [AttributeField],
    /// Results.
    pub results: &'static [ValueField],
    /// How results fall into groups.
    pub result_groups: Groups,
    /// Regions.
    pub regions: &'static [RegionField],
    /// Traits that this crate verifies or that passes query.
    pub traits: &'static [OpTrait],
    /// All traits and interfaces by name, for the reference.
    pub trait_names: &'static [&'static str],
    /// The facts that passes query.
    pub facts: OpFacts,
    /// Relations between types.
    pub relations: &'static [Relation],
    /// Effects, by operand or result group.
    pub effects: &'static [Effect],
    /// The declarative format.
    pub format: Option<&'static Format>,
    /// Its text, empty for none.
    pub format_text: &'static str,
    /// Verifies rules that the tables cannot express.
    pub verify: Option<VerifyHook>,
}

/// A verifier of one kind of operation.
pub type VerifyHook = for<'c, 'a> fn(OperationRef<'c, 'a>) -> Result<(), Complaint>;

impl OpDefinition {
    /// The definition of an operation, `None` if it is of no dialect of this crate.
    pub fn of(operation: OperationRef<'_, '_>) -> Option<&'static Self> {
        Self::of_spec(OpSpec::of(operation)?)
    }

    /// The definition behind a spec.
    pub fn of_spec(spec: &'static OpSpec) -> Option<&'static Self> {
        spec.data?.downcast_ref()
    }

    /// Whether the operation has a trait.
    pub fn has_trait(&self, name: OpTrait) -> bool {
        self.traits.contains(&name)
    }

    /// Whether an operation has a trait of the `.td` files.
    pub fn operation_has_trait(operation: OperationRef<'_, '_>, name: OpTrait) -> bool {
        Self::of(operation).is_some_and(|definition| definition.has_trait(name))
    }
}

/// An operand or result.
pub struct ValueField {
    /// Name.
    pub name: &'static str,
    /// What it may be.
    pub constraint: TypeConstraint,
    /// A description of the constraint.
    pub summary: &'static str,
    /// How many values it stands for.
    pub multiplicity: Multiplicity,
}

/// How many values an operand or result stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Multiplicity {
    /// Exactly one.
    One,
    /// None or one.
    Optional,
    /// Any number.
    Variadic,
}

/// What a type may be.
pub struct TypeConstraint {
    /// Anything.
    pub any: bool,
    /// Scalar classes.
    pub scalar: TypeSet,
    /// Element classes of ranked tensors.
    pub tensor: TypeSet,
    /// Kinds of these dialects.
    pub kinds: &'static [&'static TypeSpec],
}

/// How a flat list of values falls into the groups of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Groups {
    /// Every group is one value.
    Fixed,
    /// One group takes what the others leave.
    OneVariable,
    /// All variable groups have the same size.
    Equal,
    /// The attribute in this slot lists the sizes.
    Sized(usize),
}

/// An inherent attribute.
pub struct AttributeField {
    /// Name.
    pub name: &'static str,
    /// What it may be.
    pub kind: AttributeKind,
    /// Whether it must be there.
    pub presence: Presence,
    /// Bounds of an integer, both included.
    pub range: Option<(i64, i64)>,
}

/// What an attribute may be.
#[derive(Clone, Copy)]
pub enum AttributeKind {
    /// `true` or `false`.
    Bool,
    /// Present or absent.
    Unit,
    /// A signless integer of this many bits.
    Integer(u32),
    /// A string.
    String,
    /// A string written as `@name`.
    SymbolName,
    /// A reference to a symbol.
    FlatSymbolRef,
    /// `array<i32: …>`
    DenseI32Array,
    /// `array<i64: …>`
    DenseI64Array,
    /// A 32-bit integer written as a keyword.
    Enum(&'static EnumDefinition),
    /// A function type.
    FunctionType,
    /// An array of dictionaries.
    DictionaryArray,
    /// An attribute kind of these dialects.
    Kind(&'static AttributeSpec),
}

/// Whether an attribute must be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Always.
    Required,
    /// Not always.
    Optional,
    /// When absent, this value is meant.
    Default(DefaultValue),
}

/// The value of an attribute that is not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultValue {
    /// An integer, or the value of an enumeration.
    Integer(i64),
    /// `true` or `false`.
    Bool(bool),
    /// An array without elements.
    EmptyArray,
}

impl DefaultValue {
    /// The value as an attribute of a kind.
    pub fn attribute<'c>(self, context: &'c Context, kind: &AttributeKind) -> Attribute<'c> {
        match (self, kind) {
            (Self::Bool(value), _) => make::bool(context, value),
            (Self::EmptyArray, AttributeKind::DenseI64Array) => make::i64_array(context, &[]),
            (Self::EmptyArray, _) => make::i32_array(context, &[]),
            (Self::Integer(value), AttributeKind::Integer(width)) => {
                make::integer(context, *width, value)
            }
            (Self::Integer(value), _) => make::integer(context, 32, value),
        }
    }
}

/// An enumeration.
pub struct EnumDefinition {
    /// Rust name.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// (keyword, value).
    pub cases: &'static [(&'static str, i64)],
    /// The keywords alone.
    pub keywords: &'static [&'static str],
}

impl EnumDefinition {
    /// The keyword of a value.
    pub fn keyword(&self, value: i64) -> Option<&'static str> {
        self.cases
            .iter()
            .find(|(_, known)| *known == value)
            .map(|(keyword, _)| *keyword)
    }

    /// The value of a keyword.
    pub fn value(&self, keyword: &str) -> Option<i64> {
        self.cases
            .iter()
            .find(|(known, _)| *known == keyword)
            .map(|(_, value)| *value)
    }
}

/// A region.
pub struct RegionField {
    /// Name.
    pub name: &'static str,
    /// Exactly this many blocks.
    pub blocks: Option<u32>,
    /// Whether it must have a block.
    pub at_least_one: bool,
    /// Whether there may be any number of such regions.
    pub variadic: bool,
}

/// Traits of the `.td` files that MLIR does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpTrait {
    /// Tensors have a power-of-two number of elements, at most 2^20.
    TensorSize,
    /// Layouts fit the warps, lanes and blocks of the module.
    VerifyTensorLayouts,
    /// Operands that have an encoding have the same.
    SameOperandsEncoding,
    /// Operands and results that have an encoding have the same.
    SameOperandsAndResultEncoding,
    /// As MLIR's, looking through pointers to tensors.
    SameLoadStoreOperandsShape,
    /// As MLIR's, looking through pointers to tensors.
    SameLoadStoreOperandsAndResultShape,
    /// As [`OpTrait::SameOperandsEncoding`], looking through pointers to tensors.
    SameLoadStoreOperandsEncoding,
    /// As [`OpTrait::SameOperandsAndResultEncoding`], looking through pointers to tensors.
    SameLoadStoreOperandsAndResultEncoding,
    /// Regions run on other warps at the same time.
    AsyncRegions,
    /// Inferred results are compared by layout, not by attribute.
    InferUpToLayoutEquality,
    /// Memory descriptors have one element type.
    SameMemDescElementType,
}

/// A memory effect.
pub struct Effect {
    /// The kind of effect.
    pub kind: EffectKind,
    /// The value that is affected; `None` for none in particular.
    pub on: Option<ValueRef>,
    /// The memory; `None` for any.
    pub resource: Option<&'static Resource>,
}

/// A parameter of an attribute or type kind.
pub struct Parameter {
    /// The name in the text.
    pub name: &'static str,
    /// How it is written and stored.
    pub kind: ParameterKind,
    /// The value if it is not written.
    pub default: Option<ParameterDefault>,
    /// Whether it is printed even when it equals the default.
    pub always_printed: bool,
    /// One line.
    pub summary: &'static str,
}

/// How a parameter is written and stored.
#[derive(Clone, Copy)]
pub enum ParameterKind {
    /// An unsigned 32-bit integer; stored as `IntegerAttr` of `i32`.
    UInt,
    /// `true` or `false`; stored as `BoolAttr`.
    Bool,
    /// `[1, 2]`; stored as `DenseI32ArrayAttr`.
    UInts,
    /// Extents; stored as `DenseI64ArrayAttr`.
    Shape,
    /// `[[1, 0], [0, 1]]`; stored as `ArrayAttr` of `DenseI32ArrayAttr`.
    Bases,
    /// An attribute.
    Attribute,
    /// A type; stored as `TypeAttr`.
    Type,
    /// A keyword; stored as `IntegerAttr` of `i32`.
    Enum(&'static EnumDefinition),
}

/// The value of a parameter that is not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterDefault {
    /// An unsigned integer.
    UInt(u32),
    /// `true` or `false`.
    Bool(bool),
    /// A list of unsigned integers.
    UInts(&'static [i32]),
    /// As many ones as the instruction shape or the warp grid has dimensions.
    Ones,
    /// No basis vector.
    NoBases,
}

/// How the parameters of a kind are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Not at all.
    Bare,
    /// `<name = value, …>`
    Named,
    /// `<{name = value, …}>`
    Braced,
    /// `<value, …>`
    Positional,
    /// By hand-written code.
    Custom,
}

/// An attribute or type kind of a `.td` file.
pub struct KindDefinition {
    /// Namespace and mnemonic.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Markdown.
    pub description: &'static str,
    /// Parameters in printing order.
    pub parameters: &'static [Parameter],
    /// How they are written.
    pub style: Style,
}

/// A dialect of the `.td` files.
pub struct DialectDefinition {
    /// The namespace.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Markdown.
    pub description: &'static str,
    /// Operations.
    pub operations: &'static [OpDefinition],
    /// Attribute kinds.
    pub attributes: &'static [KindDefinition],
    /// Type kinds.
    pub types: &'static [KindDefinition],
    /// Enumerations.
    pub enumerations: &'static [&'static EnumDefinition],
}
