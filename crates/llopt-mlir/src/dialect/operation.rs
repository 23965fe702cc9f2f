//! Operations as data: [`OpSpec`] and the types of its hooks.
//!
//! Inherent attributes live in slots, one per name in `OpSpec::attributes`: reading the third
//! one is an indexed load, not a search. MLIR sees them as properties.

use crate::{
    asm::{OpParser, OpPrinter, Parsed},
    diagnostic::Complaint,
    dialect::SpecData,
    ffi,
    ir::raw_attribute,
    rewrite::PatternSpec,
};
use melior::{
    Context,
    ir::{
        Attribute, AttributeLike, Location, OperationRef, RegionRef, Type, TypeLike, Value,
        ValueLike,
    },
};
use std::marker::PhantomData;

/// An operation as data.
///
/// ```
/// use llopt_mlir::dialect::{Arity, Effects, OpSpec, Speculation, Trait};
///
/// static ADD: OpSpec = OpSpec {
///     traits: &[Trait::Commutative, Trait::SameOperandsAndResultType],
///     operands: Arity::exactly(2),
///     results: Arity::exactly(1),
///     effects: Effects::None,
///     speculation: Speculation::Always,
///     ..OpSpec::new("demo.add")
/// };
/// # assert_eq!(ADD.name, "demo.add");
/// ```
pub struct OpSpec {
    /// The full name, e.g. `tt.load`.
    pub name: &'static str,
    /// Data for the generic hooks of a table.
    pub data: Option<SpecData>,
    /// Names of the inherent attributes, in the order of their slots. The segment sizes of
    /// `AttrSizedOperandSegments` (`operandSegmentSizes`) are one of them.
    pub attributes: &'static [&'static str],
    /// Traits without parameters.
    pub traits: &'static [Trait],
    /// The number of operands; verified with MLIR's own messages before `verify` runs.
    pub operands: Arity,
    /// The number of results.
    pub results: Arity,
    /// The number of regions.
    pub regions: Arity,
    /// The number of successor blocks.
    pub successors: Arity,
    /// The operations that may hold this one directly; empty for any.
    pub parents: &'static [&'static str],
    /// Parses what follows the name; without it only the generic form is read.
    pub parse: Option<for<'c> fn(&'static OpSpec, &mut OpParser<'c, '_>) -> Parsed<()>>,
    /// Prints what follows the name; without it the generic form is printed.
    pub print:
        Option<for<'c, 'a> fn(&'static OpSpec, OperationRef<'c, 'a>, &mut OpPrinter<'c, '_>)>,
    /// Verifies the operation alone, before its regions. Must not look into regions.
    pub verify: Option<VerifyFn>,
    /// Verifies the operation with its regions, which are valid by then.
    pub verify_regions: Option<VerifyFn>,
    /// Folds; the third argument holds the operands' constant values where known.
    pub fold: Option<FoldFn>,
    /// Canonicalisation patterns rooted at this operation (their `root` may stay `None`).
    pub canonicalization: &'static [PatternSpec],
    /// Memory effects.
    pub effects: Effects,
    /// Whether the operation may be executed although the program would not have executed it.
    pub speculation: Speculation,
    /// Result types from operands, attributes and regions.
    pub infer: Option<InferFn>,
    /// Whether inferred (first) and given (second) result types may stand for each other;
    /// equality when absent. Only asked of operations with `infer`.
    pub compatible: Option<CompatibleFn>,
    /// Suggests names for results, e.g. `%outLHS`.
    pub result_names:
        Option<for<'c, 'a> fn(&'static OpSpec, OperationRef<'c, 'a>, &mut NameSink<'c, 'a>)>,
    /// Suggests names for the entry arguments of a region (by number).
    pub argument_names:
        Option<for<'c, 'a> fn(&'static OpSpec, OperationRef<'c, 'a>, usize, &mut NameSink<'c, 'a>)>,
    /// Control flow between the regions of this operation.
    pub region_branch: Option<&'static RegionBranch>,
    /// Whether this terminator passes all its operands to the region that comes next.
    pub region_terminator: bool,
    /// Whether the operation defines a symbol (`sym_name`, optionally `sym_visibility`).
    pub symbol: bool,
    /// Whether the operation is a function (`sym_name`, `function_type`, `arg_attrs`,
    /// `res_attrs`, one region); implies `symbol`.
    pub function: bool,
    /// For calls: the inherent attribute that names the callee. `arg_attrs` and `res_attrs` are
    /// used where they are inherent attributes. All operands are arguments.
    pub callee: Option<&'static str>,
    /// Integer ranges of the results.
    pub integer_ranges:
        Option<for<'c, 'a> fn(&'static OpSpec, OperationRef<'c, 'a>, &mut RangeSink<'c, 'a>)>,
}

/// Folds an operation; the third argument holds the operands' constant values where known.
pub type FoldFn =
    for<'c, 'a> fn(&'static OpSpec, OperationRef<'c, 'a>, &[Option<Attribute<'c>>]) -> Fold<'c, 'a>;

/// Infers result types; a complaint is reported at the location of the input.
pub type InferFn =
    for<'c, 'i> fn(&'static OpSpec, &InferInput<'c, 'i>) -> Result<Vec<Type<'c>>, Complaint>;

/// Compares inferred with given result types.
pub type CompatibleFn = for<'c> fn(&'static OpSpec, &[Type<'c>], &[Type<'c>]) -> bool;

/// A verifier of operations.
pub type VerifyFn = for<'c, 'a> fn(&'static OpSpec, OperationRef<'c, 'a>) -> Result<(), Complaint>;

impl OpSpec {
    /// An operation with any number of operands and results, no region, no successor, unknown
    /// effects and the generic form; for `..OpSpec::new("dialect.name")`.
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            data: None,
            attributes: &[],
            traits: &[],
            operands: Arity::ANY,
            results: Arity::ANY,
            regions: Arity::exactly(0),
            successors: Arity::exactly(0),
            parents: &[],
            parse: None,
            print: None,
            verify: None,
            verify_regions: None,
            fold: None,
            canonicalization: &[],
            effects: Effects::Unknown,
            speculation: Speculation::Unknown,
            infer: None,
            compatible: None,
            result_names: None,
            argument_names: None,
            region_branch: None,
            region_terminator: false,
            symbol: false,
            function: false,
            callee: None,
            integer_ranges: None,
        }
    }

    /// The spec of an operation, `None` if its dialect is not defined from Rust.
    pub fn of(operation: OperationRef<'_, '_>) -> Option<&'static Self> {
        // SAFETY: the bridge returns null or the address of a registered spec.
        unsafe {
            ffi::llopt_operation_spec(operation.to_raw())
                .cast::<Self>()
                .as_ref()
        }
    }

    /// Whether an operation is of this spec.
    pub fn is(&'static self, operation: OperationRef<'_, '_>) -> bool {
        // MLIR knows operations of a spec by its address.
        // SAFETY: the bridge only reads the operation.
        let kind = unsafe { ffi::llopt_operation_type_id(operation.to_raw()) };
        kind == std::ptr::from_ref(self).cast()
    }

    /// The inherent attribute in a slot; `None` when absent, past the end, or if the operation's dialect is not
    /// defined from Rust.
    pub fn slot<'c>(operation: OperationRef<'c, '_>, index: usize) -> Option<Attribute<'c>> {
        // SAFETY: the bridge checks operation and index.
        unsafe {
            Attribute::from_option_raw(ffi::llopt_operation_slot(
                operation.to_raw(),
                index as isize,
            ))
        }
    }

    /// Sets or removes the inherent attribute in a slot; nothing happens past the end.
    pub fn set_slot<'c>(
        operation: OperationRef<'c, '_>,
        index: usize,
        attribute: Option<Attribute<'c>>,
    ) {
        // SAFETY: the bridge checks operation and index; null removes.
        unsafe {
            ffi::llopt_operation_set_slot(
                operation.to_raw(),
                index as isize,
                raw_attribute(attribute),
            );
        }
    }
}

/// A count of operands, results, regions or successors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arity {
    /// At least this many.
    pub min: u32,
    /// At most this many, `None` for no bound.
    pub max: Option<u32>,
}

impl Arity {
    /// Any count.
    pub const ANY: Self = Self::at_least(0);

    /// Exactly `count`.
    pub const fn exactly(count: u32) -> Self {
        Self {
            min: count,
            max: Some(count),
        }
    }

    /// At least `min`.
    pub const fn at_least(min: u32) -> Self {
        Self { min, max: None }
    }

    /// Between `min` and `max`, both included.
    pub const fn between(min: u32, max: u32) -> Self {
        Self {
            min,
            max: Some(max),
        }
    }

    pub(crate) fn to_raw(self) -> ffi::LloptArity {
        let clamp = |value: u32| i32::try_from(value).unwrap_or(i32::MAX);
        ffi::LloptArity {
            min: clamp(self.min),
            max: self.max.map_or(-1, clamp),
        }
    }
}

/// MLIR's traits without parameters. Those with a verifier are verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Trait {
    /// Ends a block.
    IsTerminator = ffi::LLOPT_TRAIT_IS_TERMINATOR,
    /// Regions use no value from outside.
    IsolatedFromAbove = ffi::LLOPT_TRAIT_ISOLATED_FROM_ABOVE,
    /// Operands may be exchanged; constants are sorted to the right.
    Commutative = ffi::LLOPT_TRAIT_COMMUTATIVE,
    /// `f(f(x)) = f(x)`.
    Idempotent = ffi::LLOPT_TRAIT_IDEMPOTENT,
    /// `f(f(x)) = x`.
    Involution = ffi::LLOPT_TRAIT_INVOLUTION,
    /// Returns its operands to the enclosing operation.
    ReturnLike = ffi::LLOPT_TRAIT_RETURN_LIKE,
    /// Folds to an attribute and can be hoisted.
    ConstantLike = ffi::LLOPT_TRAIT_CONSTANT_LIKE,
    /// Effects are those of the operations in the regions.
    RecursiveMemoryEffects = ffi::LLOPT_TRAIT_RECURSIVE_MEMORY_EFFECTS,
    /// Holds symbols.
    SymbolTable = ffi::LLOPT_TRAIT_SYMBOL_TABLE,
    /// A scope of the affine dialect.
    AffineScope = ffi::LLOPT_TRAIT_AFFINE_SCOPE,
    /// Stack allocations end here.
    AutomaticAllocationScope = ffi::LLOPT_TRAIT_AUTOMATIC_ALLOCATION_SCOPE,
    /// Each region has one block.
    SingleBlock = ffi::LLOPT_TRAIT_SINGLE_BLOCK,
    /// Blocks in regions need no terminator.
    NoTerminator = ffi::LLOPT_TRAIT_NO_TERMINATOR,
    /// Regions have no arguments.
    NoRegionArguments = ffi::LLOPT_TRAIT_NO_REGION_ARGUMENTS,
    /// Works on each element of tensors alike.
    Elementwise = ffi::LLOPT_TRAIT_ELEMENTWISE,
    /// The tensor form can become the scalar form.
    Scalarizable = ffi::LLOPT_TRAIT_SCALARIZABLE,
    /// The scalar form can become the vector form.
    Vectorizable = ffi::LLOPT_TRAIT_VECTORIZABLE,
    /// The scalar form can become the tensor form.
    Tensorizable = ffi::LLOPT_TRAIT_TENSORIZABLE,
    /// All operands have one type.
    SameTypeOperands = ffi::LLOPT_TRAIT_SAME_TYPE_OPERANDS,
    /// Operands and results have one type.
    SameOperandsAndResultType = ffi::LLOPT_TRAIT_SAME_OPERANDS_AND_RESULT_TYPE,
    /// All operands have one shape.
    SameOperandsShape = ffi::LLOPT_TRAIT_SAME_OPERANDS_SHAPE,
    /// Operands and results have one shape.
    SameOperandsAndResultShape = ffi::LLOPT_TRAIT_SAME_OPERANDS_AND_RESULT_SHAPE,
    /// All operands have one element type.
    SameOperandsElementType = ffi::LLOPT_TRAIT_SAME_OPERANDS_ELEMENT_TYPE,
    /// Operands and results have one element type.
    SameOperandsAndResultElementType = ffi::LLOPT_TRAIT_SAME_OPERANDS_AND_RESULT_ELEMENT_TYPE,
    /// Operands and results have one rank.
    SameOperandsAndResultRank = ffi::LLOPT_TRAIT_SAME_OPERANDS_AND_RESULT_RANK,
    /// `operandSegmentSizes` tells the operand groups apart.
    AttrSizedOperandSegments = ffi::LLOPT_TRAIT_ATTR_SIZED_OPERAND_SEGMENTS,
    /// `resultSegmentSizes` tells the result groups apart.
    AttrSizedResultSegments = ffi::LLOPT_TRAIT_ATTR_SIZED_RESULT_SEGMENTS,
}

/// The result of a fold hook.
#[derive(Clone, Debug, PartialEq)]
pub enum Fold<'c, 'a> {
    /// Nothing to fold.
    None,
    /// The operation was changed in place (attributes or operands).
    InPlace,
    /// One value or constant for each result.
    Results(Vec<FoldResult<'c, 'a>>),
}

impl<'c, 'a> Fold<'c, 'a> {
    /// The single result is this value.
    pub fn value(value: impl ValueLike<'c>) -> Self {
        // SAFETY: the value is live for as long as the IR that it came from.
        Self::Results(vec![FoldResult::Value(unsafe {
            Value::from_raw(value.to_raw())
        })])
    }

    /// The single result is this constant.
    pub fn attribute(attribute: impl AttributeLike<'c>) -> Self {
        // SAFETY: the attribute lives as long as its context.
        Self::Results(vec![FoldResult::Attribute(unsafe {
            Attribute::from_raw(attribute.to_raw())
        })])
    }
}

/// The value or constant of one result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FoldResult<'c, 'a> {
    /// A constant; the dialect's `materialize_constant` makes the operation.
    Attribute(Attribute<'c>),
    /// A value that exists.
    Value(Value<'c, 'a>),
}

/// Memory effects.
#[derive(Clone, Copy)]
pub enum Effects {
    /// Not declared: passes do not move or remove the operation.
    Unknown,
    /// None at all.
    None,
    /// The same for every instance: (kind, target, resource).
    Listed(&'static [(EffectKind, EffectTarget, Option<&'static Resource>)]),
    /// Computed for each instance.
    Computed(for<'c, 'a> fn(&'static OpSpec, OperationRef<'c, 'a>, &mut EffectSink<'c, 'a>)),
}

/// The kind of a memory effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EffectKind {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Allocates.
    Allocate,
    /// Frees.
    Free,
}

impl EffectKind {
    fn to_raw(self) -> i32 {
        (match self {
            Self::Read => ffi::LLOPT_EFFECT_READ,
            Self::Write => ffi::LLOPT_EFFECT_WRITE,
            Self::Allocate => ffi::LLOPT_EFFECT_ALLOCATE,
            Self::Free => ffi::LLOPT_EFFECT_FREE,
        }) as i32
    }
}

/// The kind behind a number of the bridge.
pub(crate) fn effect_kind(raw: i32) -> EffectKind {
    match raw as u32 {
        ffi::LLOPT_EFFECT_READ => EffectKind::Read,
        ffi::LLOPT_EFFECT_ALLOCATE => EffectKind::Allocate,
        ffi::LLOPT_EFFECT_FREE => EffectKind::Free,
        // The bridge sends no other number than the fourth.
        _ => EffectKind::Write,
    }
}

/// The target of an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffectTarget {
    /// No value in particular.
    Nothing,
    /// The memory behind an operand (flat index).
    Operand(usize),
    /// The memory behind a result.
    Result(usize),
}

/// A memory that is disjoint from all other resources, e.g. shared memory. Its address is its
/// identity: make it a `static`.
#[derive(Debug)]
pub struct Resource {
    /// The name that MLIR prints.
    pub name: &'static str,
}

/// Collects effects.
pub struct EffectSink<'c, 'a> {
    raw: ffi::LloptSink,
    operation: OperationRef<'c, 'a>,
}

impl<'c, 'a> EffectSink<'c, 'a> {
    pub(super) fn new(raw: ffi::LloptSink, operation: OperationRef<'c, 'a>) -> Self {
        Self { raw, operation }
    }

    /// Adds an effect; `None` is MLIR's default resource, which may alias everything.
    pub fn add(
        &mut self,
        kind: EffectKind,
        target: EffectTarget,
        resource: Option<&'static Resource>,
    ) {
        let (target, index) = match target {
            EffectTarget::Nothing => (ffi::LLOPT_EFFECT_ON_NOTHING, 0),
            EffectTarget::Operand(index) => (ffi::LLOPT_EFFECT_ON_OPERAND, index),
            EffectTarget::Result(index) => (ffi::LLOPT_EFFECT_ON_RESULT, index),
        };
        // SAFETY: the sink is live during the hook; the bridge checks the index.
        unsafe {
            ffi::llopt_effect_push(
                self.raw,
                self.operation.to_raw(),
                kind.to_raw(),
                target as i32,
                index as isize,
                resource.map_or(std::ptr::null(), |resource| {
                    std::ptr::from_ref(resource).cast()
                }),
                ffi::string_ref(resource.map_or("", |resource| resource.name)),
            );
        }
    }
}

/// Whether an operation may be executed although the program would not have executed it.
#[derive(Clone, Copy)]
pub enum Speculation {
    /// Not declared: never hoisted over a condition.
    Unknown,
    /// Never.
    Never,
    /// Always.
    Always,
    /// When all operations in the regions may be.
    Recursive,
    /// Computed for each instance; answering [`Speculation::Unknown`] or
    /// [`Speculation::Computed`] counts as never.
    Computed(for<'c, 'a> fn(&'static OpSpec, OperationRef<'c, 'a>) -> Speculation),
}

/// The input of type inference: an operation that does not exist yet.
pub struct InferInput<'c: 'i, 'i> {
    raw: &'i ffi::LloptInferInput,
    context: PhantomData<&'c Context>,
}

impl<'c: 'i, 'i> InferInput<'c, 'i> {
    pub(super) fn new(raw: &'i ffi::LloptInferInput) -> Self {
        Self {
            raw,
            context: PhantomData,
        }
    }

    /// The context.
    pub fn context(&self) -> &'c Context {
        // SAFETY: MLIR passes its live context; `'c` is the life of that context.
        unsafe { crate::ir::context_from_raw(self.raw.context) }
    }

    /// The location of the operation; unknown if the builder does not give it.
    pub fn location(&self) -> Location<'c> {
        // SAFETY: the bridge passes a live location.
        unsafe { Location::from_raw(self.raw.location) }
    }

    /// The number of operands.
    pub fn operand_count(&self) -> usize {
        self.raw.operandCount.max(0) as usize
    }

    /// An operand.
    pub fn operand(&self, index: usize) -> Option<Value<'c, 'i>> {
        // SAFETY: the array and the values outlive the hook.
        unsafe {
            ffi::slice(self.raw.operands, self.raw.operandCount)
                .get(index)
                .map(|raw| Value::from_raw(*raw))
        }
    }

    /// The type of an operand.
    pub fn operand_type(&self, index: usize) -> Option<Type<'c>> {
        self.operand(index).map(|value| value.r#type())
    }

    /// The inherent attribute in a slot.
    pub fn slot(&self, index: usize) -> Option<Attribute<'c>> {
        // SAFETY: the array outlives the hook; elements are live attributes or null.
        unsafe {
            ffi::slice(self.raw.attributes, self.raw.attributeCount)
                .get(index)
                .and_then(|raw| Attribute::from_option_raw(*raw))
        }
    }

    /// The inherent attribute of a name.
    pub fn attribute(&self, spec: &'static OpSpec, name: &str) -> Option<Attribute<'c>> {
        let index = spec.attributes.iter().position(|known| *known == name)?;
        self.slot(index)
    }

    /// The regions.
    pub fn regions(&self) -> impl ExactSizeIterator<Item = RegionRef<'c, 'i>> + use<'c, 'i> {
        // SAFETY: the array and the regions outlive the hook.
        unsafe { ffi::slice(self.raw.regions, self.raw.regionCount) }
            .iter()
            .map(|raw| unsafe { RegionRef::from_raw(*raw) })
    }
}

/// Collects names for values.
pub struct NameSink<'c, 'a> {
    raw: ffi::LloptSink,
    ir: PhantomData<OperationRef<'c, 'a>>,
}

impl<'c, 'a> NameSink<'c, 'a> {
    pub(super) fn new(raw: ffi::LloptSink) -> Self {
        Self {
            raw,
            ir: PhantomData,
        }
    }

    /// Suggests a name without `%`; MLIR makes it unique.
    pub fn name(&mut self, value: impl ValueLike<'c>, name: &str) {
        // SAFETY: the sink is live during the hook.
        unsafe { ffi::llopt_name_value(self.raw, value.to_raw(), ffi::string_ref(name)) }
    }
}

/// Control flow between the regions of an operation.
#[derive(Clone, Copy)]
pub struct RegionBranch {
    /// The successors of a point: fills in regions or the parent.
    pub successors: for<'c, 'a> fn(
        &'static OpSpec,
        OperationRef<'c, 'a>,
        RegionPoint,
        &mut SuccessorSink<'c, 'a>,
    ),
    /// The operands (flat index of the first, count) that enter a region as its arguments, or
    /// skip all regions and become the results.
    pub entry_operands:
        for<'c, 'a> fn(&'static OpSpec, OperationRef<'c, 'a>, RegionPoint) -> (usize, usize),
}

/// A source or destination of control flow between regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionPoint {
    /// The operation itself: before all regions, or after them.
    Parent,
    /// A region by number: its end as a source, its entry as a destination.
    Region(usize),
}

impl RegionPoint {
    pub(super) fn from_raw(raw: isize) -> Self {
        usize::try_from(raw).map_or(Self::Parent, Self::Region)
    }

    fn to_raw(self) -> isize {
        match self {
            Self::Parent => ffi::LLOPT_PARENT as isize,
            Self::Region(index) => index as isize,
        }
    }
}

/// Collects the destinations of control flow.
pub struct SuccessorSink<'c, 'a> {
    raw: ffi::LloptSink,
    operation: OperationRef<'c, 'a>,
}

impl<'c, 'a> SuccessorSink<'c, 'a> {
    pub(super) fn new(raw: ffi::LloptSink, operation: OperationRef<'c, 'a>) -> Self {
        Self { raw, operation }
    }

    /// Adds a destination; a region number past the end is ignored.
    pub fn add(&mut self, point: RegionPoint) {
        // SAFETY: the sink is live during the hook; the bridge checks the number.
        unsafe {
            ffi::llopt_successor_push(self.raw, self.operation.to_raw(), point.to_raw());
        }
    }
}

/// Gives operand ranges and takes result ranges.
pub struct RangeSink<'c, 'a> {
    raw: ffi::LloptSink,
    ir: PhantomData<OperationRef<'c, 'a>>,
}

impl<'c, 'a> RangeSink<'c, 'a> {
    pub(super) fn new(raw: ffi::LloptSink) -> Self {
        Self {
            raw,
            ir: PhantomData,
        }
    }

    /// The signed range of an operand, both ends included.
    pub fn operand(&self, index: usize) -> Option<(i64, i64)> {
        let (mut min, mut max) = (0, 0);
        // SAFETY: the sink is live during the hook; the bridge checks the index.
        unsafe { ffi::llopt_range_get(self.raw, index as isize, &mut min, &mut max) }
            .then_some((min, max))
    }

    /// Sets the signed range of a result, both ends included.
    pub fn set(&mut self, result: impl ValueLike<'c>, min: i64, max: i64) {
        // SAFETY: the sink is live during the hook.
        unsafe { ffi::llopt_range_set(self.raw, result.to_raw(), min, max) }
    }
}

impl InferInput<'_, '_> {
    /// The raw types behind `types`, to be returned to the bridge.
    pub(super) fn push(sink: ffi::LloptSink, types: &[Type<'_>]) {
        for r#type in types {
            // SAFETY: the sink is live during the hook.
            unsafe { ffi::llopt_types_push(sink, r#type.to_raw()) }
        }
    }
}
