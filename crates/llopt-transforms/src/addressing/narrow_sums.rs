//! `--narrow-sums`: what rows have in common is added to the pointers of rows, before they become those of elements.
//!
//! The pointers of a tile are a sum of terms that belong to rows, to columns, or to all elements. A program that adds a
//! term of rows behind one of columns adds it to each element:
//!
//! ```text
//!   p: one for each row, c: for each column, r: for each row
//!
//!   (broadcast p + broadcast c) + broadcast r        broadcast (p + r) + broadcast c
//! ```
//!
//! A thread with 32 elements of one row has 32 additions of 64 bits on the left for `r`, and one on the right. It also needs
//! fewer registers wherever one of the terms stays the same and another one does not, as in nested loops over the window of
//! a convolution: on the left the pointers of all elements without `r` are computed in front of the loop and kept, two
//! registers for each; on the right that is one pointer, and the terms of columns.
//!
//! # Correctness
//!
//! `tt.addptr` extends each offset to 64 bits before it adds it, and addition modulo 2^64 is associative and commutative.
//! So the order of offsets is free. Two offsets are never added to each other: their sum might wrap.
//!
//! # What stays as it is
//!
//! - Sums with other uses, which are needed in any case.
//! - Terms in front of a loop: a sum that does not change in it is computed once, whatever its order, and what is added in
//!   the loop would be added before it.
//! - Constants, which an access adds itself.

use llopt_dialects::arith::ConstantOp;
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt::{AddPtrOp, BroadcastOp, SplatOp};
use llopt_mlir::ir::{OperationExt, ValueExt, Walk};
use llopt_mlir::pass::PassSpec;
use llopt_mlir::rewrite::Rewriter;
use melior::ir::{OperationRef, Value, ValueLike};

/// The pass.
pub static REWRITE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["tt"],
    ..PassSpec::new(
        "narrow-sums",
        "add to the pointers of rows what all elements of a row add",
        |module, _run| {
            let mut sums = Vec::new();
            module.for_each_op(Walk::PreOrder, |operation| {
                sums.extend(Sum::of(operation));
            });
            let mut rewriter = Rewriter::new(module.ctx());
            for sum in sums {
                sum.rewrite(&mut rewriter);
            }
            Ok(())
        },
    )
};

/// Pointers of a tile: those of its rows, or of its columns, and what is added to them.
struct Sum<'c, 'a> {
    /// The additions, the last one first.
    additions: Vec<AddPtrOp<'c, 'a>>,
    /// The pointers before they are broadcast.
    pointers: Value<'c, 'a>,
    /// Offsets of the tile, in the order in which they are added; and which of them are added before the broadcast.
    terms: Vec<(Value<'c, 'a>, Option<Narrow<'c, 'a>>)>,
}

/// An offset that can be added to the pointers before they are broadcast.
#[derive(Clone, Copy)]
enum Narrow<'c, 'a> {
    /// A tensor of the same shape.
    Same(Value<'c, 'a>),
    /// A number, the same for all elements.
    Number(Value<'c, 'a>),
}

impl<'c: 'a, 'a> Sum<'c, 'a> {
    /// The sum that ends here, if another order is narrower.
    fn of(operation: OperationRef<'c, 'a>) -> Option<Self> {
        let last = AddPtrOp::of(operation).filter(|_| !is_continued(operation))?;
        let block = operation.parent_block();
        let mut additions = vec![last];
        let mut head = last.ptr();
        while let Some(add) = AddPtrOp::defining(head)
            && head.has_one_use()
            && add.operation().parent_block() == block
        {
            additions.push(add);
            head = add.ptr();
        }
        let broadcast = BroadcastOp::defining(head)?;
        let pointers = broadcast.src();
        let offsets = additions.iter().rev().map(|add| add.offset());
        let terms: Vec<_> = offsets
            .map(|offset| (offset, Narrow::of(offset, pointers)))
            .collect();
        // Where nothing wide comes first the order is narrow already: broadcasts are moved behind such sums.
        let wide = terms.iter().position(|(_, narrow)| narrow.is_none())?;
        let is_late = terms[wide..].iter().any(|(_, narrow)| narrow.is_some());
        is_late.then_some(Self {
            additions,
            pointers,
            terms,
        })
    }

    fn rewrite(self, rewriter: &mut Rewriter<'c, 'a>) -> Option<()> {
        let last = self.additions.first()?;
        let (operation, location) = (last.operation(), last.operation().loc());
        let of = last.result().r#type();
        rewriter.set_before(operation);
        let mut put = |made| rewriter.insert(made).result_value(0);
        let mut pointers = self.pointers;
        for offset in self.terms.iter().filter_map(|(_, narrow)| *narrow) {
            let offset = match offset {
                Narrow::Same(offset) => offset,
                Narrow::Number(number) => {
                    let tensor = RankedTensor::of(pointers.r#type())?;
                    let repeated = tensor.with_element(number.r#type());
                    put(SplatOp::build(location, repeated, number))?
                }
            };
            pointers = put(AddPtrOp::build(location, pointers, offset))?;
        }
        let mut sum = put(BroadcastOp::build(location, of, pointers))?;
        for (offset, _) in self.terms.iter().filter(|(_, narrow)| narrow.is_none()) {
            sum = put(AddPtrOp::build(location, sum, *offset))?;
        }
        rewriter.replace(operation, &[sum]);
        for add in &self.additions[1..] {
            rewriter.erase(add.operation());
        }
        Some(())
    }
}

impl<'c: 'a, 'a> Narrow<'c, 'a> {
    fn of(offset: Value<'c, 'a>, pointers: Value<'c, 'a>) -> Option<Self> {
        if let Some(splat) = SplatOp::defining(offset) {
            let is_constant = ConstantOp::defining(splat.src()).is_some();
            return (!is_constant).then_some(Self::Number(splat.src()));
        }
        let source = BroadcastOp::defining(offset)?.src();
        let layout = |value: Value<'c, 'a>| {
            RankedTensor::of(value.r#type()).map(|tensor| (tensor.shape(), tensor.encoding()))
        };
        (layout(source) == layout(pointers)).then_some(Self::Same(source))
    }
}

/// Whether the only use of a sum is to add to it, in the same block.
fn is_continued(operation: OperationRef<'_, '_>) -> bool {
    let Some(result) = operation.result_value(0) else {
        return false;
    };
    let is_next = |user: OperationRef<'_, '_>| {
        AddPtrOp::of(user).is_some_and(|add| add.ptr() == result)
            && user.parent_block() == operation.parent_block()
    };
    result.has_one_use() && result.users().all(is_next)
}
