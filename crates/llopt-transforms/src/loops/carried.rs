//! Adding and dropping carried values.

use llopt_mlir::ir::{BlockExt, OperationExt, ValueExt};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::{OperationRef, Value, ValueLike};

use super::view::For;

/// Adds carried values: their initial values, and a closure that takes them as the body sees them and returns the
/// next ones. It is called with the rewriter at the end of the body. The old loop is erased.
pub fn add<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    old: For<'c, 'a>,
    initial: &[Value<'c, 'a>],
    next: impl FnOnce(&mut Rewriter<'c, 'a>, For<'c, 'a>, &[Value<'c, 'a>]) -> Vec<Value<'c, 'a>>,
) -> For<'c, 'a> {
    let results = old.results();
    let location = old.operation().loc();
    let new = old.rebuild(rewriter, &[&old.initial()[..], initial].concat());
    let arguments: Vec<Value> = initial
        .iter()
        .map(|value| new.body().append_argument(value.r#type(), location))
        .collect();
    let terminator = new.terminator();
    rewriter.set_before(terminator);
    for value in next(rewriter, new, &arguments) {
        terminator.insert_operand(terminator.operand_values().len(), value);
    }
    for (from, to) in results.into_iter().zip(new.results()) {
        from.replace_all_uses(to);
    }
    old.operation().erase();
    new
}

/// Drops carried values that are not needed: those that never change, which are replaced by their initial values, and
/// those without uses. Answers the loop, which is a new one if any were dropped.
pub fn drop_needless<'c: 'a, 'a>(rewriter: &mut Rewriter<'c, 'a>, old: For<'c, 'a>) -> For<'c, 'a> {
    let (initial, arguments) = (old.initial(), old.carried());
    let (yielded, results) = (old.yielded(), old.results());
    let mut kept = Vec::new();
    for index in 0..initial.len() {
        let never_changes = yielded[index] == arguments[index] || yielded[index] == initial[index];
        if never_changes {
            arguments[index].replace_all_uses(initial[index]);
            results[index].replace_all_uses(initial[index]);
        } else if arguments[index].has_uses() || results[index].has_uses() {
            kept.push(index);
        }
    }
    if kept.len() == initial.len() {
        return old;
    }
    let of_kept: Vec<Value> = kept.iter().map(|&index| initial[index]).collect();
    let new = old.rebuild(rewriter, &of_kept);
    for index in (0..initial.len())
        .rev()
        .filter(|index| !kept.contains(index))
    {
        new.terminator().erase_operand(index);
        new.body().remove_argument(1 + index);
    }
    for (&index, to) in kept.iter().zip(new.results()) {
        results[index].replace_all_uses(to);
    }
    old.operation().erase();
    new
}

/// Drops carried values from which nothing is computed but their own next values. Answers the loop, as
/// [`drop_needless`] does.
pub fn drop_unread<'c: 'a, 'a>(rewriter: &mut Rewriter<'c, 'a>, of: For<'c, 'a>) -> For<'c, 'a> {
    for (index, argument) in of.carried().into_iter().enumerate() {
        if of.results()[index].has_uses() {
            continue;
        }
        let Some(advance) = only_advance(of, index) else {
            continue;
        };
        of.terminator().set_operand_value(index, argument);
        let operations = of.operations().into_iter().rev();
        for operation in operations.filter(|operation| advance.contains(operation)) {
            operation.erase();
        }
    }
    drop_needless(rewriter, of)
}

/// The operations that use a carried value and what follows from it, if these only compute its next value.
fn only_advance<'c: 'a, 'a>(of: For<'c, 'a>, index: usize) -> Option<Vec<OperationRef<'c, 'a>>> {
    let terminator = of.terminator();
    let mut advance: Vec<OperationRef<'c, 'a>> = Vec::new();
    let mut queue = vec![of.carried()[index]];
    while let Some(value) = queue.pop() {
        for of_value in value.uses() {
            let operation = of_value.operation;
            if operation == terminator && of_value.operand == index {
                continue;
            }
            let is_own = operation.parent_op() == Some(of.operation()) && operation != terminator;
            if !is_own || operation.region_refs().len() > 0 || !operation.is_memory_effect_free() {
                return None;
            }
            if !advance.contains(&operation) {
                advance.push(operation);
                queue.extend(operation.result_values());
            }
        }
    }
    Some(advance)
}
