//! The stores after a loop that store whole tiles.

use llopt_dialects::layout::argument_tensor::ArgumentTensor;
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt;
use llopt_mlir::ir::{OperationExt, Walk};
use melior::ir::{OperationRef, Value, ValueLike};

use super::parameter;
use super::reading::Reading;
use super::tile::Tile;
use crate::axis::AxisAnalysis;
use crate::loops::view::For;
use crate::pipelining::stores;

/// The stores of tiles after a loop in the same block, with the tensor of each. Their conditions are added to those of
/// the loop; others remain as they are. So do those to memory from which the function loads or to which it has other
/// stores, since the program does not order a copy with them.
pub(super) fn tiles<'c: 'a, 'a>(
    function: OperationRef<'c, 'a>,
    of: For<'c, 'a>,
    stored: &[Option<Value<'c, 'a>>],
    reading: &mut Reading<'c, 'a>,
    facts: &AxisAnalysis,
) -> Vec<(Tile<'c, 'a>, ArgumentTensor)> {
    let loaded = loaded_from(function);
    let stored: Vec<_> = stored.iter().map(|of| of.map(parameter::base_of)).collect();
    let mut found = Vec::new();
    let mut next = of.operation().next_op();
    while let Some(operation) = next {
        next = operation.next_op();
        let Some(store) = tt::StoreOp::of(operation) else {
            continue;
        };
        let is_tile = RankedTensor::of(store.value().r#type()).is_some_and(|of| of.rank() > 1);
        let memory = stores::parameter(store.ptr());
        let meeting = stored.iter().filter(|of| stores::may_meet(memory, &[**of]));
        // It meets itself.
        if !is_tile || stores::may_meet(memory, &loaded) || meeting.count() > 1 {
            continue;
        }
        let before = reading.conditions.clone();
        let tile = Tile::of_store(store, reading, facts);
        let tensor = tile.and_then(|tile| {
            let tensor = parameter::tensor_of(&tile, reading)?;
            Ok((tile, tensor))
        });
        match tensor {
            Ok(tile) => found.push(tile),
            Err(_) => reading.conditions = before,
        }
    }
    found
}

/// The parameters whose memory a function loads from, and `None` for an unknown one.
fn loaded_from<'c: 'a, 'a>(function: OperationRef<'c, 'a>) -> Vec<Option<Value<'c, 'a>>> {
    let mut loaded = Vec::new();
    function.for_each_op(Walk::PreOrder, |operation| {
        let load = tt::LoadOp::of(operation).map(|load| load.ptr());
        let copy = tt::DescriptorLoadOp::of(operation).map(|load| load.desc());
        let of = load.or(copy).map(stores::parameter);
        loaded.extend(of.map(|parameter| parameter.map(parameter::base_of)));
    });
    loaded
}
