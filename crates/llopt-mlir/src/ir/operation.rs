//! Operations: names, attributes, operands, walks, effects, structure.

use super::{context_from_raw, raw_attribute};
use crate::{
    diagnostic::{Complaint, Reported},
    dialect::{EffectKind, FoldResult, OpSpec, Resource, Trait, effect_kind},
    ffi,
};
use melior::{
    Context,
    ir::{
        Attribute, AttributeLike, BlockRef, Location, Operation, OperationRef, RegionRef, Type,
        Value, ValueLike, operation::OperationLike,
    },
};
use mlir_sys::*;
use std::{
    ffi::{c_int, c_void},
    ops::ControlFlow,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    ptr::NonNull,
};

/// An operation that is in no block, as others refer to it.
pub fn detached<'c, 'a>(operation: &'a Operation<'c>) -> OperationRef<'c, 'a> {
    // SAFETY: the operation outlives the reference to it.
    unsafe { OperationRef::from_raw(operation.to_raw()) }
}

/// The order of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walk {
    /// An operation before those in its regions.
    PreOrder,
    /// An operation after those in its regions; it may then be erased.
    PostOrder,
}

/// A memory effect of an operation.
#[derive(Clone, Copy, Debug)]
pub struct Effect<'c, 'a> {
    /// The kind of effect.
    pub kind: EffectKind,
    /// The value that refers to the memory, if one does.
    pub value: Option<Value<'c, 'a>>,
    /// The resource, if it is one defined from Rust; `None` for MLIR's own, such as the default resource.
    pub resource: Option<&'static Resource>,
}

/// Operations: names, attributes, operands, walks, effects, structure.
pub trait OperationExt<'c: 'a, 'a>: Copy {
    /// The context.
    fn ctx(self) -> &'c Context;
    /// The full name, e.g. `tt.load`.
    fn name_str(self) -> &'c str;
    /// Whether the operation has this full name.
    fn is_named(self, name: &str) -> bool;
    /// The address that MLIR knows the operation's kind by, the same one for as long as the process runs; `None` for an
    /// operation that is not registered.
    fn type_id(self) -> Option<NonNull<c_void>>;
    /// The spec, for operations of dialects defined from Rust.
    fn spec(self) -> Option<&'static OpSpec>;
    /// Whether the operation's dialect is loaded and knows it.
    fn is_registered(self) -> bool;
    /// Whether the operation has a trait.
    fn has_trait(self, r#trait: Trait) -> bool;

    /// An attribute by name, inherent or discardable.
    fn attr(self, name: &str) -> Option<Attribute<'c>>;
    /// Sets an attribute, inherent or discardable as the operation has it.
    fn set_attr(self, name: &str, attribute: Attribute<'c>);
    /// Removes an attribute; nothing happens when there is none.
    fn remove_attr(self, name: &str);
    /// A discardable attribute by name.
    fn discardable_attr(self, name: &str) -> Option<Attribute<'c>>;
    /// Sets a discardable attribute.
    fn set_discardable_attr(self, name: &str, attribute: Attribute<'c>);
    /// All discardable attributes.
    fn discardable_attrs(self) -> Vec<(&'c str, Attribute<'c>)>;
    /// All attributes, inherent ones included.
    fn attrs(self) -> Vec<(&'c str, Attribute<'c>)>;

    /// The operands.
    fn operand_values(self) -> impl ExactSizeIterator<Item = Value<'c, 'a>>;
    /// An operand.
    fn operand_value(self, index: usize) -> Option<Value<'c, 'a>>;
    /// The types of the operands.
    fn operand_types(self) -> impl ExactSizeIterator<Item = Type<'c>>;
    /// Sets an operand; ignores a position past the end.
    fn set_operand_value(self, index: usize, value: Value<'c, 'a>);
    /// Inserts an operand before a position (or at the end). Segment sizes are the caller's.
    fn insert_operand(self, index: usize, value: Value<'c, 'a>);
    /// Removes an operand; ignores a position past the end. Segment sizes are the caller's.
    fn erase_operand(self, index: usize);
    /// The results.
    fn result_values(self) -> impl ExactSizeIterator<Item = Value<'c, 'a>>;
    /// A result.
    fn result_value(self, index: usize) -> Option<Value<'c, 'a>>;
    /// The types of the results.
    fn result_types(self) -> impl ExactSizeIterator<Item = Type<'c>>;
    /// Whether any result has a use.
    fn has_result_uses(self) -> bool;
    /// The regions.
    fn region_refs(self) -> impl ExactSizeIterator<Item = RegionRef<'c, 'a>>;
    /// A region.
    fn region_ref(self, index: usize) -> Option<RegionRef<'c, 'a>>;
    /// The successors.
    fn successor_refs(self) -> impl ExactSizeIterator<Item = BlockRef<'c, 'a>>;

    /// The location.
    fn loc(self) -> Location<'c>;
    /// Sets the location.
    fn set_loc(self, location: Location<'c>);
    /// The block that holds the operation.
    fn parent_block(self) -> Option<BlockRef<'c, 'a>>;
    /// The operation that holds this one.
    fn parent_op(self) -> Option<OperationRef<'c, 'a>>;
    /// The nearest enclosing operation of a name.
    fn parent_named(self, name: &str) -> Option<OperationRef<'c, 'a>>;
    /// Whether this operation is, directly or not, inside another (or is it).
    fn is_within(self, ancestor: OperationRef<'c, 'a>) -> bool;
    /// The next operation of the block.
    fn next_op(self) -> Option<OperationRef<'c, 'a>>;
    /// The previous operation of the block.
    fn previous_op(self) -> Option<OperationRef<'c, 'a>>;
    /// Whether this operation comes before another of the same block.
    fn is_before(self, other: OperationRef<'c, 'a>) -> bool;

    /// Visits the operation and all below it until the visitor breaks.
    fn walk_ops<B>(
        self,
        order: Walk,
        visit: impl FnMut(OperationRef<'c, 'a>) -> ControlFlow<B>,
    ) -> ControlFlow<B>;
    /// Visits the operation and all below it.
    fn for_each_op(self, order: Walk, mut visit: impl FnMut(OperationRef<'c, 'a>)) {
        let _: ControlFlow<()> = self.walk_ops(order, |operation| {
            visit(operation);
            ControlFlow::Continue(())
        });
    }

    /// Removes the operation from its block and destroys it. Its results must have no uses. No
    /// handle to it or anything inside may be used afterwards.
    fn erase(self);
    /// Moves the operation before another.
    fn move_op_before(self, other: OperationRef<'c, 'a>);
    /// Moves the operation after another.
    fn move_op_after(self, other: OperationRef<'c, 'a>);
    /// A detached deep copy that uses the same operands.
    fn clone_op(self) -> Operation<'c>;

    /// The memory effects including those of nested operations where they are inherited; `None` if some operation
    /// does not declare its effects.
    fn effects(self) -> Option<Vec<Effect<'c, 'a>>>;
    /// Whether the operation is known to have no memory effects.
    fn is_memory_effect_free(self) -> bool;
    /// Whether the operation may be executed although the program would not have.
    fn is_speculatable(self) -> bool;
    /// Whether nothing is lost by erasing the operation.
    fn is_trivially_dead(self) -> bool;
    /// Folds: `Some` of values or constants for the results (empty when the operation was changed
    /// in place), `None` when nothing folds.
    fn fold(self, operands: &[Option<Attribute<'c>>]) -> Option<Vec<FoldResult<'c, 'a>>>;
    /// Whether two operations are equal on the same operands.
    fn is_equivalent(self, other: OperationRef<'c, 'a>, ignore_locations: bool) -> bool;
    /// The operation that a symbol reference refers to, as seen from here.
    fn lookup_symbol(self, symbol: Attribute<'c>) -> Option<OperationRef<'c, 'a>>;

    /// Reports an error, `'name' op message`.
    fn error(self, message: impl Into<String>) -> Reported;
}

/// # Safety
/// Count and element functions are MLIR's for this operation.
unsafe fn list<T>(
    raw: MlirOperation,
    count: unsafe extern "C" fn(MlirOperation) -> isize,
    mut element: impl FnMut(isize) -> T,
) -> impl ExactSizeIterator<Item = T> {
    // SAFETY: by contract.
    let count = unsafe { count(raw) } as usize;
    (0..count).map(move |index| element(index as isize))
}

// SAFETY, for all of the impl: handles are live by the contract of `OperationRef`; positions are checked before they
// are passed to MLIR.
impl<'c: 'a, 'a> OperationExt<'c, 'a> for OperationRef<'c, 'a> {
    fn ctx(self) -> &'c Context {
        unsafe { context_from_raw(mlirOperationGetContext(self.to_raw())) }
    }

    fn name_str(self) -> &'c str {
        unsafe { ffi::text(ffi::llopt_operation_name(self.to_raw())) }
    }

    fn is_named(self, name: &str) -> bool {
        unsafe { ffi::bytes(ffi::llopt_operation_name(self.to_raw())) == name.as_bytes() }
    }

    fn type_id(self) -> Option<NonNull<c_void>> {
        NonNull::new(unsafe { ffi::llopt_operation_type_id(self.to_raw()) }.cast_mut())
    }

    fn spec(self) -> Option<&'static OpSpec> {
        OpSpec::of(self)
    }

    fn is_registered(self) -> bool {
        unsafe { ffi::llopt_operation_is_registered(self.to_raw()) }
    }

    fn has_trait(self, r#trait: Trait) -> bool {
        unsafe { ffi::llopt_operation_has_trait(self.to_raw(), r#trait as c_int) }
    }

    fn attr(self, name: &str) -> Option<Attribute<'c>> {
        unsafe {
            Attribute::from_option_raw(mlirOperationGetAttributeByName(
                self.to_raw(),
                ffi::string_ref(name),
            ))
        }
    }

    fn set_attr(self, name: &str, attribute: Attribute<'c>) {
        unsafe {
            mlirOperationSetAttributeByName(
                self.to_raw(),
                ffi::string_ref(name),
                attribute.to_raw(),
            );
        }
    }

    fn remove_attr(self, name: &str) {
        unsafe {
            mlirOperationRemoveAttributeByName(self.to_raw(), ffi::string_ref(name));
        }
    }

    fn discardable_attr(self, name: &str) -> Option<Attribute<'c>> {
        unsafe {
            Attribute::from_option_raw(mlirOperationGetDiscardableAttributeByName(
                self.to_raw(),
                ffi::string_ref(name),
            ))
        }
    }

    fn set_discardable_attr(self, name: &str, attribute: Attribute<'c>) {
        unsafe {
            mlirOperationSetDiscardableAttributeByName(
                self.to_raw(),
                ffi::string_ref(name),
                attribute.to_raw(),
            );
        }
    }

    fn discardable_attrs(self) -> Vec<(&'c str, Attribute<'c>)> {
        let raw = self.to_raw();
        unsafe {
            (0..mlirOperationGetNumDiscardableAttributes(raw))
                .map(|index| named(mlirOperationGetDiscardableAttribute(raw, index)))
                .collect()
        }
    }

    fn attrs(self) -> Vec<(&'c str, Attribute<'c>)> {
        let raw = self.to_raw();
        unsafe {
            (0..mlirOperationGetNumAttributes(raw))
                .map(|index| named(mlirOperationGetAttribute(raw, index)))
                .collect()
        }
    }

    fn operand_values(self) -> impl ExactSizeIterator<Item = Value<'c, 'a>> {
        let raw = self.to_raw();
        unsafe {
            list(raw, mlirOperationGetNumOperands, move |index| {
                Value::from_raw(mlirOperationGetOperand(raw, index))
            })
        }
    }

    fn operand_value(self, index: usize) -> Option<Value<'c, 'a>> {
        self.operand_values().nth(index)
    }

    fn operand_types(self) -> impl ExactSizeIterator<Item = Type<'c>> {
        self.operand_values().map(|value| value.r#type())
    }

    fn set_operand_value(self, index: usize, value: Value<'c, 'a>) {
        unsafe {
            if (index as isize) < mlirOperationGetNumOperands(self.to_raw()) {
                mlirOperationSetOperand(self.to_raw(), index as isize, value.to_raw());
            }
        }
    }

    fn insert_operand(self, index: usize, value: Value<'c, 'a>) {
        unsafe {
            ffi::llopt_operation_insert_operand(self.to_raw(), index as isize, value.to_raw());
        }
    }

    fn erase_operand(self, index: usize) {
        unsafe { ffi::llopt_operation_erase_operand(self.to_raw(), index as isize) }
    }

    fn result_values(self) -> impl ExactSizeIterator<Item = Value<'c, 'a>> {
        let raw = self.to_raw();
        unsafe {
            list(raw, mlirOperationGetNumResults, move |index| {
                Value::from_raw(mlirOperationGetResult(raw, index))
            })
        }
    }

    fn result_value(self, index: usize) -> Option<Value<'c, 'a>> {
        self.result_values().nth(index)
    }

    fn result_types(self) -> impl ExactSizeIterator<Item = Type<'c>> {
        self.result_values().map(|value| value.r#type())
    }

    fn has_result_uses(self) -> bool {
        self.result_values()
            .any(|result| unsafe { !mlirOpOperandIsNull(mlirValueGetFirstUse(result.to_raw())) })
    }

    fn region_refs(self) -> impl ExactSizeIterator<Item = RegionRef<'c, 'a>> {
        let raw = self.to_raw();
        unsafe {
            list(raw, mlirOperationGetNumRegions, move |index| {
                RegionRef::from_raw(mlirOperationGetRegion(raw, index))
            })
        }
    }

    fn region_ref(self, index: usize) -> Option<RegionRef<'c, 'a>> {
        self.region_refs().nth(index)
    }

    fn successor_refs(self) -> impl ExactSizeIterator<Item = BlockRef<'c, 'a>> {
        let raw = self.to_raw();
        unsafe {
            list(raw, mlirOperationGetNumSuccessors, move |index| {
                BlockRef::from_raw(mlirOperationGetSuccessor(raw, index))
            })
        }
    }

    fn loc(self) -> Location<'c> {
        unsafe { Location::from_raw(mlirOperationGetLocation(self.to_raw())) }
    }

    fn set_loc(self, location: Location<'c>) {
        unsafe { mlirOperationSetLocation(self.to_raw(), location.to_raw()) }
    }

    fn parent_block(self) -> Option<BlockRef<'c, 'a>> {
        unsafe { BlockRef::from_option_raw(mlirOperationGetBlock(self.to_raw())) }
    }

    fn parent_op(self) -> Option<OperationRef<'c, 'a>> {
        unsafe { OperationRef::from_option_raw(mlirOperationGetParentOperation(self.to_raw())) }
    }

    fn parent_named(self, name: &str) -> Option<OperationRef<'c, 'a>> {
        std::iter::successors(self.parent_op(), |operation| operation.parent_op())
            .find(|operation| operation.is_named(name))
    }

    fn is_within(self, ancestor: OperationRef<'c, 'a>) -> bool {
        std::iter::successors(Some(self), |operation| operation.parent_op())
            .any(|operation| operation == ancestor)
    }

    fn next_op(self) -> Option<OperationRef<'c, 'a>> {
        self.parent_block()?;
        unsafe { OperationRef::from_option_raw(mlirOperationGetNextInBlock(self.to_raw())) }
    }

    fn previous_op(self) -> Option<OperationRef<'c, 'a>> {
        let block = self.parent_block()?;
        use super::BlockExt;
        let mut previous = None;
        for operation in block.operations() {
            if operation == self {
                return previous;
            }
            previous = Some(operation);
        }
        None
    }

    fn is_before(self, other: OperationRef<'c, 'a>) -> bool {
        unsafe { mlirOperationIsBeforeInBlock(self.to_raw(), other.to_raw()) }
    }

    fn walk_ops<B>(
        self,
        order: Walk,
        visit: impl FnMut(OperationRef<'c, 'a>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        /// The state of the callback; `answer` stays `Ok(Continue)` until the walk ends early.
        struct State<F, B> {
            visit: F,
            answer: std::thread::Result<ControlFlow<B>>,
        }
        unsafe extern "C" fn callback<'c: 'a, 'a, B, F>(
            user: *mut c_void,
            raw: MlirOperation,
        ) -> c_int
        where
            F: FnMut(OperationRef<'c, 'a>) -> ControlFlow<B>,
        {
            // SAFETY: the bridge passes the state below back, and live operations.
            let state = unsafe { &mut *user.cast::<State<F, B>>() };
            let operation = unsafe { OperationRef::from_raw(raw) };
            match catch_unwind(AssertUnwindSafe(|| (state.visit)(operation))) {
                Ok(ControlFlow::Continue(())) => ffi::LLOPT_WALK_ADVANCE as c_int,
                early => {
                    state.answer = early;
                    ffi::LLOPT_WALK_INTERRUPT as c_int
                }
            }
        }
        fn callback_of<'c: 'a, 'a, B, F>(_: &State<F, B>) -> ffi::LloptWalkCallback
        where
            F: FnMut(OperationRef<'c, 'a>) -> ControlFlow<B>,
        {
            Some(callback::<'c, 'a, B, F>)
        }
        let mut state = State {
            visit,
            answer: Ok(ControlFlow::Continue(())),
        };
        let callback = callback_of(&state);
        unsafe {
            ffi::llopt_operation_walk(
                self.to_raw(),
                order == Walk::PostOrder,
                callback,
                (&raw mut state).cast(),
            );
        }
        // A panic of the visitor is stored, so that it does not pass through C++.
        state
            .answer
            .unwrap_or_else(|payload| resume_unwind(payload))
    }

    fn erase(self) {
        unsafe { mlirOperationDestroy(self.to_raw()) }
    }

    fn move_op_before(self, other: OperationRef<'c, 'a>) {
        unsafe { mlirOperationMoveBefore(self.to_raw(), other.to_raw()) }
    }

    fn move_op_after(self, other: OperationRef<'c, 'a>) {
        unsafe { mlirOperationMoveAfter(self.to_raw(), other.to_raw()) }
    }

    fn clone_op(self) -> Operation<'c> {
        unsafe { Operation::from_raw(mlirOperationClone(self.to_raw())) }
    }

    fn effects(self) -> Option<Vec<Effect<'c, 'a>>> {
        type List = Vec<(c_int, MlirValue, *const c_void)>;
        unsafe extern "C" fn collect(
            user: *mut c_void,
            kind: c_int,
            value: MlirValue,
            resource: *const c_void,
            _name: MlirStringRef,
        ) {
            // SAFETY: the bridge passes the list below back.
            unsafe { (*user.cast::<List>()).push((kind, value, resource)) }
        }
        let mut list: List = Vec::new();
        let known = unsafe {
            ffi::llopt_operation_effects(self.to_raw(), Some(collect), (&raw mut list).cast())
        };
        known.then(|| {
            list.into_iter()
                .map(|(kind, value, resource)| Effect {
                    kind: effect_kind(kind),
                    value: (!value.ptr.is_null()).then(|| unsafe { Value::from_raw(value) }),
                    resource: unsafe { resource.cast::<Resource>().as_ref() },
                })
                .collect()
        })
    }

    fn is_memory_effect_free(self) -> bool {
        unsafe { ffi::llopt_operation_is_memory_effect_free(self.to_raw()) }
    }

    fn is_speculatable(self) -> bool {
        unsafe { ffi::llopt_operation_is_speculatable(self.to_raw()) }
    }

    fn is_trivially_dead(self) -> bool {
        unsafe { ffi::llopt_operation_is_trivially_dead(self.to_raw()) }
    }

    fn fold(self, operands: &[Option<Attribute<'c>>]) -> Option<Vec<FoldResult<'c, 'a>>> {
        let operands: Vec<_> = operands
            .iter()
            .map(|operand| raw_attribute(*operand))
            .collect();
        let mut results: Vec<(MlirAttribute, MlirValue)> = Vec::new();
        let folded = unsafe {
            ffi::llopt_operation_fold(
                self.to_raw(),
                operands.as_ptr(),
                operands.len() as isize,
                ffi::collector(&mut results),
            )
        };
        folded.then(|| {
            results
                .into_iter()
                .map(|(attribute, value)| unsafe {
                    match Attribute::from_option_raw(attribute) {
                        Some(attribute) => FoldResult::Attribute(attribute),
                        None => FoldResult::Value(Value::from_raw(value)),
                    }
                })
                .collect()
        })
    }

    fn is_equivalent(self, other: OperationRef<'c, 'a>, ignore_locations: bool) -> bool {
        unsafe {
            ffi::llopt_operation_is_equivalent(self.to_raw(), other.to_raw(), ignore_locations)
        }
    }

    fn lookup_symbol(self, symbol: Attribute<'c>) -> Option<OperationRef<'c, 'a>> {
        unsafe {
            OperationRef::from_option_raw(ffi::llopt_symbol_lookup_nearest(
                self.to_raw(),
                symbol.to_raw(),
            ))
        }
    }

    fn error(self, message: impl Into<String>) -> Reported {
        Complaint::new(message).report_on(self)
    }
}

/// # Safety
/// The attribute is one that MLIR returned.
unsafe fn named<'c>(raw: MlirNamedAttribute) -> (&'c str, Attribute<'c>) {
    unsafe {
        (
            ffi::text(mlirIdentifierStr(raw.name)),
            Attribute::from_raw(raw.attribute),
        )
    }
}
