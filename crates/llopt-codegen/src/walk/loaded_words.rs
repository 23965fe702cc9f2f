//! Arguments of blocks whose values are words that were loaded from global memory, perhaps iterations ahead.

use llopt_dialects::{Op, amdg, arith, cf, tt};
use llopt_mlir::ir::{AttributeExt, BlockExt, OperationExt, ValueExt};
use llopt_plan::element::Element;
use llopt_plan::words::{WORD, is_narrow};
use melior::ir::operation::OperationLike;
use melior::ir::{BlockLike, OperationRef, Value};

use crate::ops::memory::global;
use crate::walk::function::FunctionLowering;

/// The order of the registers of a block's argument in words that were loaded from global memory, if all incoming
/// values, through any blocks, are such loads with the same order.
pub(crate) fn loaded_order<'c: 'a, 'a>(
    lowering: &FunctionLowering<'_, '_>,
    argument: Value<'c, 'a>,
) -> Option<Vec<usize>> {
    let of = lowering.type_of(argument).ok()?;
    let element = of.element();
    let is_byte = matches!(element, Element::Float8(_));
    if of.registers() == 1 || !(is_narrow(element) || is_byte) {
        return None;
    }
    let parts = (WORD / element.bits()) as usize;
    let mut order: Option<Vec<usize>> = None;
    let mut open = vec![argument];
    let mut seen: Vec<Value<'c, 'a>> = Vec::new();
    while let Some(value) = open.pop() {
        if seen.contains(&value) {
            continue;
        }
        seen.push(value);
        let Some(made) = value.defining_op() else {
            open.extend(flowing_in(value)?);
            continue;
        };
        if has_replacements(made) {
            return None;
        }
        let loads = global::loaded_together(lowering, made)?;
        let own = loads.groups.concat();
        let is_other = order.as_ref().is_some_and(|order| *order != own);
        if loads.width % parts != 0 || own.len() != of.registers() || is_other {
            return None;
        }
        order = Some(own);
    }
    order
}

/// Whether a load has values other than zero for masked-off elements: these are selected element by element.
fn has_replacements(load: OperationRef<'_, '_>) -> bool {
    let other = match Op::of(load) {
        Some(Op::Tt(tt::Op::Load(load))) => load.other(),
        Some(Op::Amdg(amdg::Op::BufferLoad(load))) => load.other(),
        _ => None,
    };
    let is_zero = |other: Value<'_, '_>| {
        let constant = arith::ConstantOp::defining(other);
        let value = constant.and_then(arith::ConstantOp::value);
        value.and_then(AttributeExt::splat_bits) == Some(0)
    };
    other.is_some_and(|other| !is_zero(other))
}

/// The incoming values of a block's argument; `None` if they come from something other than branches.
fn flowing_in<'c: 'a, 'a>(argument: Value<'c, 'a>) -> Option<Vec<Value<'c, 'a>>> {
    let (block, number) = argument.argument_of()?;
    let mut found = Vec::new();
    for before in block.predecessor_blocks() {
        let branch = before.terminator()?;
        let passed: Vec<Value<'c, 'a>> = match Op::of(branch) {
            Some(Op::Cf(cf::Op::Branch(_))) => branch.operand_value(number).into_iter().collect(),
            Some(Op::Cf(cf::Op::CondBranch(_))) => {
                let then = branch.successor(0).ok()?;
                let otherwise = branch.successor(1).ok()?;
                let first = 1 + number;
                let second = 1 + then.argument_count() + number;
                let ways = [(then, first), (otherwise, second)].into_iter();
                ways.filter(|(to, _)| *to == block)
                    .filter_map(|(_, at)| branch.operand_value(at))
                    .collect()
            }
            _ => return None,
        };
        found.extend(passed);
    }
    (!found.is_empty()).then_some(found)
}
