//! Values: uses, definitions, replacement.

use melior::ir::{BlockRef, OperationRef, Value, ValueLike};
use mlir_sys::*;
use std::marker::PhantomData;

/// One use of a value.
#[derive(Clone, Copy, Debug)]
pub struct Use<'c, 'a> {
    /// The operation that uses the value.
    pub operation: OperationRef<'c, 'a>,
    /// The position among its operands.
    pub operand: usize,
}

/// Values: uses, definitions, replacement.
pub trait ValueExt<'c: 'a, 'a>: Copy {
    /// The uses, most recent first. Changing a use while iterating is not allowed; collect first.
    fn uses(self) -> impl Iterator<Item = Use<'c, 'a>>;
    /// The operations behind the uses; an operation that uses the value twice occurs twice.
    fn users(self) -> impl Iterator<Item = OperationRef<'c, 'a>> {
        self.uses().map(|r#use| r#use.operation)
    }
    /// Whether there is any use.
    fn has_uses(self) -> bool {
        self.uses().next().is_some()
    }
    /// Whether there is exactly one use.
    fn has_one_use(self) -> bool {
        self.uses().take(2).count() == 1
    }
    /// The operation whose result this is; `None` for block arguments.
    fn defining_op(self) -> Option<OperationRef<'c, 'a>>;
    /// The position among the results; `None` for block arguments.
    fn result_index(self) -> Option<usize>;
    /// The block and the position among its arguments; `None` for results.
    fn argument_of(self) -> Option<(BlockRef<'c, 'a>, usize)>;
    /// The block in which the value is defined; `None` for results of detached operations.
    fn parent_block(self) -> Option<BlockRef<'c, 'a>>;
    /// Replaces every use.
    fn replace_all_uses(self, with: Value<'c, 'a>);
    /// Replaces every use outside of the given operations.
    fn replace_uses_except(self, with: Value<'c, 'a>, except: &[OperationRef<'c, 'a>]);
}

/// What identifies a value as the key of a map: no other value that exists at the same time has it.
pub fn key(value: Value<'_, '_>) -> usize {
    value.to_raw().ptr as usize
}

struct Uses<'c: 'a, 'a> {
    next: MlirOpOperand,
    ir: PhantomData<OperationRef<'c, 'a>>,
}

impl<'c: 'a, 'a> Iterator for Uses<'c, 'a> {
    type Item = Use<'c, 'a>;

    fn next(&mut self) -> Option<Self::Item> {
        // SAFETY: a use that is not null belongs to a live operation.
        unsafe {
            if mlirOpOperandIsNull(self.next) {
                return None;
            }
            let current = self.next;
            self.next = mlirOpOperandGetNextUse(current);
            Some(Use {
                operation: OperationRef::from_raw(mlirOpOperandGetOwner(current)),
                operand: mlirOpOperandGetOperandNumber(current) as usize,
            })
        }
    }
}

impl<'c: 'a, 'a> ValueExt<'c, 'a> for Value<'c, 'a> {
    fn uses(self) -> impl Iterator<Item = Use<'c, 'a>> {
        Uses {
            // SAFETY: the value is live.
            next: unsafe { mlirValueGetFirstUse(self.to_raw()) },
            ir: PhantomData,
        }
    }

    fn defining_op(self) -> Option<OperationRef<'c, 'a>> {
        let raw = self.to_raw();
        // SAFETY: the owner is queried only of results.
        unsafe {
            mlirValueIsAOpResult(raw).then(|| OperationRef::from_raw(mlirOpResultGetOwner(raw)))
        }
    }

    fn result_index(self) -> Option<usize> {
        let raw = self.to_raw();
        // SAFETY: the number is queried only of results.
        unsafe { mlirValueIsAOpResult(raw).then(|| mlirOpResultGetResultNumber(raw) as usize) }
    }

    fn argument_of(self) -> Option<(BlockRef<'c, 'a>, usize)> {
        let raw = self.to_raw();
        // SAFETY: owner and number are queried only of arguments.
        unsafe {
            mlirValueIsABlockArgument(raw).then(|| {
                (
                    BlockRef::from_raw(mlirBlockArgumentGetOwner(raw)),
                    mlirBlockArgumentGetArgNumber(raw) as usize,
                )
            })
        }
    }

    fn parent_block(self) -> Option<BlockRef<'c, 'a>> {
        match self.defining_op() {
            // SAFETY: the operation is live; null is checked.
            Some(operation) => unsafe {
                BlockRef::from_option_raw(mlirOperationGetBlock(operation.to_raw()))
            },
            None => self.argument_of().map(|(block, _)| block),
        }
    }

    fn replace_all_uses(self, with: Value<'c, 'a>) {
        // SAFETY: both values are live.
        unsafe { mlirValueReplaceAllUsesOfWith(self.to_raw(), with.to_raw()) }
    }

    fn replace_uses_except(self, with: Value<'c, 'a>, except: &[OperationRef<'c, 'a>]) {
        let mut except: Vec<_> = except.iter().map(|operation| operation.to_raw()).collect();
        // SAFETY: values and operations are live.
        unsafe {
            mlirValueReplaceAllUsesExcept(
                self.to_raw(),
                with.to_raw(),
                except.len() as isize,
                except.as_mut_ptr(),
            );
        }
    }
}
