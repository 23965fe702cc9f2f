//! Rewriting: patterns written in Rust, the rewriter they use, and the greedy driver.
//!
//! A [`PatternSpec`] is a `static`, like everything else that MLIR calls back. A [`Rewriter`] is MLIR's
//! `RewriterBase`: inside a pattern it is the driver's own and updates the worklist; outside of a pattern it is an
//! independent builder. All changes inside a pattern must go through it; a pattern that returns [`NoMatch`] must not
//! have changed anything.

mod driver;

pub use driver::{GreedyConfig, NotConverged, Patterns};

use crate::{ffi, ir};
use melior::{
    Context,
    ir::{
        Attribute, BlockLike, BlockRef, Identifier, Location, Operation, OperationRef, RegionLike,
        RegionRef, Type, TypeLike, Value, ValueLike,
        operation::{OperationBuilder, OperationLike},
    },
};
use mlir_sys::*;
use std::marker::PhantomData;

/// The pattern does not apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoMatch;

/// The result of a pattern.
pub type Rewritten = Result<(), NoMatch>;

/// A rewrite pattern as data.
pub struct PatternSpec {
    /// A name for debugging output.
    pub name: &'static str,
    /// The operation that the pattern is rooted at; `None` for any, or, in
    /// `OpSpec::canonicalization`, for the operation of the spec.
    pub root: Option<&'static str>,
    /// Patterns of higher benefit are tried first.
    pub benefit: u16,
    /// Rewrites.
    pub rewrite: for<'c, 'a> fn(OperationRef<'c, 'a>, &mut Rewriter<'c, 'a>) -> Rewritten,
}

impl PatternSpec {
    /// A pattern of benefit 1 for its context's operation.
    pub const fn new(
        name: &'static str,
        rewrite: for<'c, 'a> fn(OperationRef<'c, 'a>, &mut Rewriter<'c, 'a>) -> Rewritten,
    ) -> Self {
        Self {
            name,
            root: None,
            benefit: 1,
            rewrite,
        }
    }

    /// The same pattern rooted at an operation.
    pub const fn at(mut self, root: &'static str) -> Self {
        self.root = Some(root);
        self
    }
}

/// MLIR's rewriter: a builder with an insertion point that reports changes to the driver.
pub struct Rewriter<'c, 'a> {
    raw: mlir_sys::MlirRewriterBase,
    owned: bool,
    ir: PhantomData<OperationRef<'c, 'a>>,
}

impl Drop for Rewriter<'_, '_> {
    fn drop(&mut self) {
        if self.owned {
            // SAFETY: created in `new`, destroyed once.
            unsafe { mlirIRRewriterDestroy(self.raw) }
        }
    }
}

/// A block and, for an insertion before an operation, that operation.
#[derive(Clone, Copy, Debug)]
pub struct InsertionPoint<'c, 'a> {
    block: BlockRef<'c, 'a>,
    before: Option<OperationRef<'c, 'a>>,
}

// SAFETY, for all of the impl: the rewriter is live for `self`, handles are live by the contract
// of their types.
impl<'c: 'a, 'a> Rewriter<'c, 'a> {
    /// An independent rewriter, for code outside of patterns. It has no insertion point yet.
    pub fn new(context: &'c Context) -> Self {
        Self {
            // SAFETY: the context is live.
            raw: unsafe { mlirIRRewriterCreate(context.to_raw()) },
            owned: true,
            ir: PhantomData,
        }
    }

    /// The context.
    pub fn context(&self) -> &'c Context {
        unsafe { ir::context_from_raw(mlirRewriterBaseGetContext(self.raw)) }
    }

    /// Inserts before an operation from now on.
    pub fn set_before(&mut self, operation: OperationRef<'c, 'a>) {
        unsafe { mlirRewriterBaseSetInsertionPointBefore(self.raw, operation.to_raw()) }
    }

    /// Inserts after an operation from now on.
    pub fn set_after(&mut self, operation: OperationRef<'c, 'a>) {
        unsafe { mlirRewriterBaseSetInsertionPointAfter(self.raw, operation.to_raw()) }
    }

    /// Inserts after the definition of a value from now on.
    pub fn set_after_value(&mut self, value: Value<'c, 'a>) {
        unsafe { mlirRewriterBaseSetInsertionPointAfterValue(self.raw, value.to_raw()) }
    }

    /// Inserts at the start of a block from now on.
    pub fn set_to_start(&mut self, block: BlockRef<'c, 'a>) {
        unsafe { mlirRewriterBaseSetInsertionPointToStart(self.raw, block.to_raw()) }
    }

    /// Inserts at the end of a block from now on.
    pub fn set_to_end(&mut self, block: BlockRef<'c, 'a>) {
        unsafe { mlirRewriterBaseSetInsertionPointToEnd(self.raw, block.to_raw()) }
    }

    /// Where operations are inserted; `None` when nowhere.
    pub fn insertion_point(&self) -> Option<InsertionPoint<'c, 'a>> {
        unsafe {
            Some(InsertionPoint {
                block: BlockRef::from_option_raw(mlirRewriterBaseGetInsertionBlock(self.raw))?,
                before: OperationRef::from_option_raw(mlirRewriterBaseGetOperationAfterInsertion(
                    self.raw,
                )),
            })
        }
    }

    /// Restores an insertion point; the operation that it is before must still exist.
    pub fn restore(&mut self, point: InsertionPoint<'c, 'a>) {
        match point.before {
            Some(operation) => self.set_before(operation),
            None => self.set_to_end(point.block),
        }
    }

    /// Runs a closure and then restores the current insertion point.
    pub fn at<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        let point = self.insertion_point();
        let value = run(self);
        if let Some(point) = point {
            self.restore(point);
        }
        value
    }

    /// Inserts a detached operation at the insertion point.
    ///
    /// # Panics
    /// Without an insertion point. That is a bug of the caller, on which MLIR leaks the operation.
    pub fn insert(&mut self, operation: Operation<'c>) -> OperationRef<'c, 'a> {
        assert!(
            self.insertion_point().is_some(),
            "the rewriter has no insertion point"
        );
        unsafe { OperationRef::from_raw(mlirRewriterBaseInsert(self.raw, operation.into_raw())) }
    }

    /// Inserts a deep copy of an operation.
    pub fn clone_op(&mut self, operation: OperationRef<'c, 'a>) -> OperationRef<'c, 'a> {
        unsafe { OperationRef::from_raw(mlirRewriterBaseClone(self.raw, operation.to_raw())) }
    }

    /// Inserts a copy of an operation with empty regions.
    pub fn clone_op_without_regions(
        &mut self,
        operation: OperationRef<'c, 'a>,
    ) -> OperationRef<'c, 'a> {
        unsafe {
            OperationRef::from_raw(mlirRewriterBaseCloneWithoutRegions(
                self.raw,
                operation.to_raw(),
            ))
        }
    }

    /// Makes a block before another and inserts at its end from now on.
    pub fn create_block_before(
        &mut self,
        before: BlockRef<'c, 'a>,
        arguments: &[(Type<'c>, Location<'c>)],
    ) -> BlockRef<'c, 'a> {
        let types: Vec<_> = arguments
            .iter()
            .map(|(r#type, _)| r#type.to_raw())
            .collect();
        let locations: Vec<_> = arguments.iter().map(|(_, l)| l.to_raw()).collect();
        unsafe {
            BlockRef::from_raw(mlirRewriterBaseCreateBlockBefore(
                self.raw,
                before.to_raw(),
                types.len() as isize,
                types.as_ptr(),
                locations.as_ptr(),
            ))
        }
    }

    /// Replaces the results of an operation by values and erases it.
    pub fn replace(&mut self, operation: OperationRef<'c, 'a>, values: &[Value<'c, 'a>]) {
        assert_eq!(
            values.len(),
            operation.result_count(),
            "one value for each result of `{}`",
            operation
                .name()
                .as_string_ref()
                .as_str()
                .unwrap_or_default()
        );
        let values: Vec<_> = values.iter().map(|value| value.to_raw()).collect();
        unsafe {
            mlirRewriterBaseReplaceOpWithValues(
                self.raw,
                operation.to_raw(),
                values.len() as isize,
                values.as_ptr(),
            );
        }
    }

    /// Inserts a detached operation before another, replaces the other's results by the new ones and erases the
    /// other.
    pub fn replace_with(
        &mut self,
        operation: OperationRef<'c, 'a>,
        with: Operation<'c>,
    ) -> OperationRef<'c, 'a> {
        self.set_before(operation);
        let inserted = self.insert(with);
        let values: Vec<_> = (0..inserted.result_count() as isize)
            .map(|result| unsafe {
                Value::from_raw(mlirOperationGetResult(inserted.to_raw(), result))
            })
            .collect();
        self.replace(operation, &values);
        inserted
    }

    /// Erases an operation without uses.
    pub fn erase(&mut self, operation: OperationRef<'c, 'a>) {
        unsafe { mlirRewriterBaseEraseOp(self.raw, operation.to_raw()) }
    }

    /// Erases a block with its content.
    pub fn erase_block(&mut self, block: BlockRef<'c, 'a>) {
        unsafe { mlirRewriterBaseEraseBlock(self.raw, block.to_raw()) }
    }

    /// Replaces all uses of a value.
    pub fn replace_all_uses(&mut self, of: Value<'c, 'a>, with: Value<'c, 'a>) {
        unsafe { mlirRewriterBaseReplaceAllUsesWith(self.raw, of.to_raw(), with.to_raw()) }
    }

    /// Replaces all uses of a value except those by one operation.
    pub fn replace_all_uses_except(
        &mut self,
        of: Value<'c, 'a>,
        with: Value<'c, 'a>,
        except: OperationRef<'c, 'a>,
    ) {
        unsafe {
            mlirRewriterBaseReplaceAllUsesExcept(
                self.raw,
                of.to_raw(),
                with.to_raw(),
                except.to_raw(),
            );
        }
    }

    /// Changes an operation in place: attributes, operands, result types.
    pub fn modify(&mut self, operation: OperationRef<'c, 'a>, change: impl FnOnce()) {
        unsafe {
            mlirRewriterBaseStartOpModification(self.raw, operation.to_raw());
            change();
            mlirRewriterBaseFinalizeOpModification(self.raw, operation.to_raw());
        }
    }

    /// Moves an operation before another.
    pub fn move_before(&mut self, operation: OperationRef<'c, 'a>, other: OperationRef<'c, 'a>) {
        unsafe { mlirRewriterBaseMoveOpBefore(self.raw, operation.to_raw(), other.to_raw()) }
    }

    /// Moves an operation after another.
    pub fn move_after(&mut self, operation: OperationRef<'c, 'a>, other: OperationRef<'c, 'a>) {
        unsafe { mlirRewriterBaseMoveOpAfter(self.raw, operation.to_raw(), other.to_raw()) }
    }

    /// Moves the operations of a block before an operation, replaces the block's arguments by values and erases the
    /// block. The caller handles its terminator.
    pub fn inline_block_before(
        &mut self,
        block: BlockRef<'c, 'a>,
        before: OperationRef<'c, 'a>,
        arguments: &[Value<'c, 'a>],
    ) {
        let arguments: Vec<_> = arguments.iter().map(|value| value.to_raw()).collect();
        unsafe {
            mlirRewriterBaseInlineBlockBefore(
                self.raw,
                block.to_raw(),
                before.to_raw(),
                arguments.len() as isize,
                arguments.as_ptr(),
            );
        }
    }

    /// Appends the operations of a block to another and erases the emptied block.
    pub fn merge_blocks(
        &mut self,
        source: BlockRef<'c, 'a>,
        destination: BlockRef<'c, 'a>,
        arguments: &[Value<'c, 'a>],
    ) {
        let arguments: Vec<_> = arguments.iter().map(|value| value.to_raw()).collect();
        unsafe {
            mlirRewriterBaseMergeBlocks(
                self.raw,
                source.to_raw(),
                destination.to_raw(),
                arguments.len() as isize,
                arguments.as_ptr(),
            );
        }
    }

    /// Moves the blocks of a region before a block of another.
    pub fn inline_region_before(&mut self, region: RegionRef<'c, 'a>, before: BlockRef<'c, 'a>) {
        unsafe {
            mlirRewriterBaseInlineRegionBefore(
                self.raw,
                RegionLike::to_raw(&region),
                before.to_raw(),
            );
        }
    }

    /// Makes an operation of a registered dialect at the insertion point, its result types
    /// inferred where `results` is `None`.
    ///
    /// # Errors
    /// When inference fails, which has been reported, or the operation has none.
    pub fn create(
        &mut self,
        name: &str,
        location: Location<'c>,
        operands: &[Value<'c, 'a>],
        results: Option<&[Type<'c>]>,
        attributes: &[(&str, Attribute<'c>)],
    ) -> Result<OperationRef<'c, 'a>, melior::Error> {
        let context = self.context();
        let attributes: Vec<_> = attributes
            .iter()
            .map(|(name, value)| (Identifier::new(context, name), *value))
            .collect();
        let builder = OperationBuilder::new(name, location)
            .add_operands(operands)
            .add_attributes(&attributes);
        let builder = match results {
            Some(types) => builder.add_results(types),
            None => builder.enable_result_type_inference(),
        };
        Ok(self.insert(builder.build()?))
    }
}

impl Rewriter<'_, '_> {
    /// # Safety
    /// The rewriter is live for the life of the returned value.
    pub(crate) unsafe fn from_raw(raw: mlir_sys::MlirRewriterBase) -> Self {
        Self {
            raw,
            owned: false,
            ir: PhantomData,
        }
    }
}

impl PatternSpec {
    /// The C view of the pattern; `root` when the pattern has none.
    pub(crate) fn to_raw(&'static self, root: &'static str) -> ffi::LloptPattern {
        ffi::LloptPattern {
            spec: std::ptr::from_ref(self).cast(),
            name: ffi::string_ref(self.name),
            root: ffi::string_ref(self.root.unwrap_or(root)),
            benefit: self.benefit,
        }
    }
}
