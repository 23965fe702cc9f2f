//! `--unswitch-conditions`: what all iterations of a loop decide alike is decided before the loop.
//!
//! ```text
//! for i …                                   if p == 2
//!   x = load a[i]                             for i …
//!   if p == 2                                   x = load a[i]
//!     y = x x                                   sum += x x
//!   else                            →       else
//!     y = pow(x, p)                           for i …
//!   sum += y                                    x = load a[i]
//!                                               sum += pow(x, p)
//! ```
//!
//! Neither loop has control flow any more, so each is pipelined, and gets layouts, as if it were the only one; and no
//! iteration decides what is known. LLVM would do this, but for all conditions or for none: it does not know which of them
//! all lanes of a warp share, and where lanes differ a warp would execute both loops. A condition of a tile program is one
//! number for all lanes.
//!
//! The condition is computed before the loop from values that are there already, by operations without effects. A loop in
//! which the loop is then sees a conditional of its own, so a condition moves out as far as it can.
//!
//! Each condition doubles its loop, whose results are those of the version that runs, so loops of more than some
//! hundred operations, all versions together, stay as they are.

use std::cell::RefCell;

use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{OperationExt, ValueExt, Walk};
use llopt_mlir::pass::{PassRun, PassSpec};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::{OperationRef, Type, Value, ValueLike};

use crate::loops::clone::Mapping;
use crate::loops::motion::{hoist, invariant_slice};
use crate::loops::view::{For, If, inner_first};

/// Operations of a loop in all its versions, at most.
const LARGEST: usize = 512;

/// The pass.
pub static REWRITE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["arith", "scf"],
    ..PassSpec::new(
        "unswitch-conditions",
        "decide before a loop what all of its iterations decide alike",
        run,
    )
};

fn run(module: OperationRef<'_, '_>, _run: &mut PassRun) -> Result<(), Complaint> {
    rewrite(module);
    Ok(())
}

/// Decides before the loops of a module what all of their iterations decide alike.
pub fn rewrite(module: OperationRef<'_, '_>) {
    let mut rewriter = Rewriter::new(module.ctx());
    for of in inner_first(module) {
        let mut versions = vec![of];
        let mut room = LARGEST.saturating_sub(size(of));
        while let Some(of) = versions.pop() {
            let size = size(of);
            if size <= room
                && let Some(decision) = Decision::of(of)
            {
                room -= size;
                versions.extend(decision.unswitch(&mut rewriter));
            }
        }
    }
}

/// The number of operations in a loop.
fn size(of: For<'_, '_>) -> usize {
    let mut count = 0;
    of.operation().for_each_op(Walk::PreOrder, |_| count += 1);
    count
}

/// A conditional that goes the same way in all iterations of a loop.
struct Decision<'c, 'a> {
    of: For<'c, 'a>,
    branch: If<'c, 'a>,
    condition: Value<'c, 'a>,
    /// The operations of the body that compute the condition, in their order.
    slice: Vec<OperationRef<'c, 'a>>,
}

impl<'c: 'a, 'a> Decision<'c, 'a> {
    /// The first one of a loop.
    fn of(of: For<'c, 'a>) -> Option<Self> {
        of.operations().into_iter().find_map(|operation| {
            let branch = If::of(operation)?;
            let condition = operation.operand_value(0)?;
            let slice = invariant_slice(of, condition)?;
            Some(Self {
                of,
                branch,
                condition,
                slice,
            })
        })
    }

    /// Puts both versions of the loop into a conditional before it, and returns them.
    fn unswitch(self, rewriter: &mut Rewriter<'c, 'a>) -> Vec<For<'c, 'a>> {
        let operation = self.of.operation();
        hoist(self.of, self.slice);
        let body = self.of.operations();
        let position = body.iter().position(|own| *own == self.branch.operation());
        let results = self.of.results();
        let types: Vec<Type<'c>> = results.iter().map(|result| result.r#type()).collect();
        let copies = RefCell::new(Vec::new());
        let version = |rewriter: &mut Rewriter<'c, 'a>| {
            let copy = Mapping::new().copy(rewriter, operation);
            copies.borrow_mut().push(copy);
            copy.result_values().collect::<Vec<_>>()
        };
        rewriter.set_before(operation);
        let location = operation.loc();
        let alone = |rewriter: &mut Rewriter<'c, 'a>| drop(version(rewriter));
        let condition = self.condition;
        let made = match types.is_empty() {
            true => If::between(rewriter, location, condition, alone, alone),
            false => If::build(rewriter, location, condition, &types, version, version),
        };
        let values = made.results();
        for (result, value) in results.into_iter().zip(values) {
            result.replace_all_uses(value);
        }
        operation.erase();
        let versions = copies.into_inner().into_iter();
        let versions: Vec<For<'c, 'a>> = versions.filter_map(For::of).collect();
        for (index, version) in versions.iter().enumerate() {
            let branch = position.and_then(|position| If::of(*version.operations().get(position)?));
            let Some(branch) = branch else { continue };
            match branch.blocks()[index] {
                Some(_) => branch.keep(rewriter, index),
                None => branch.operation().erase(),
            }
        }
        versions
    }
}
