//! `--triton-nvidia-optimize-descriptor-encoding`: which part of the tensor of an access through a descriptor belongs
//! to each block of a cluster.
//!
//! The blocks of a cluster compute one tensor together. Each has its own copy unit and shared memory, and a copy
//! moves *boxes*, whose extents are part of the descriptor's object. So it has to be decided how the blocks divide
//! the tensor of an access before the object is created: by a launcher for a parameter, by the kernel for a
//! descriptor of its own. The decision is the layout of the descriptor's block (`CGALayout`), and all accesses
//! through it have buffers in this layout:
//!
//! ```text
//! tensor<128x64xf16> of two blocks    CGALayout = [[1, 0]]    each block copies 64 rows, boxes of 64 x 64
//!                                     CGALayout = [[0, 0]]    each block copies all, boxes of 128 x 64
//! ```
//!
//! The best division depends on how the tensor is used:
//!
//! - A *factor* of a product is needed where the corresponding part of the result is computed. The blocks divide rows
//!   and columns of the result (`shares_of`), so each needs some of the rows of the first factor, or of the columns
//!   of the second, and all of k: data that several blocks need, each of them copies for itself.
//! - The *result* of a product is stored by the block that computes it, also behind the choice between loops that copy
//!   and that load.
//! - All others are divided as accesses through pointers are: along the outermost dimension that is long enough, so
//!   that rows stay whole. If there is less than one element per block (or less than 16 bytes of a row), some blocks
//!   hold copies.
//!
//! A descriptor that control flow passes on shares its layout with all other such descriptors of its type: wherever
//! one of them goes, the type there is the same.

use llopt_dialects::layout::encoding::CgaLayout;
use llopt_dialects::layout::{tensor_descriptor, transfer};
use llopt_dialects::meaning::facts::{OpFacts, Transfer};
use llopt_dialects::tables::types::{RankedTensor, TensorDesc};
use llopt_dialects::tt;
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{BlockExt, OperationExt, RegionExt, TypeExt, ValueExt, Walk};
use llopt_mlir::pass::{PassOption, PassRun, PassSpec};
use melior::ir::{OperationRef, Type, Value, ValueLike};

use crate::layouts::{retype_function, shares_of};
use crate::loops::view::{For, If};

/// The least number of bytes of a row that a copy moves.
const LEAST_ROW: u64 = 16;

/// The pass.
pub static SHARE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["ttg"],
    options: &[PassOption::integer(
        "num-ctas",
        "the number of blocks of a cluster",
        "1",
    )],
    ..PassSpec::new(
        "triton-nvidia-optimize-descriptor-encoding",
        "say which part of what a tensor descriptor moves each block of a cluster has",
        run,
    )
};

fn run(module: OperationRef<'_, '_>, run: &mut PassRun) -> Result<(), Complaint> {
    let blocks = run.integer("num-ctas");
    let blocks = u32::try_from(blocks)
        .ok()
        .filter(|blocks| blocks.is_power_of_two() && *blocks <= 64);
    let blocks = blocks
        .ok_or_else(|| Complaint::new("num-ctas is not a power of two up to 64".to_owned()))?;
    share(module, blocks);
    Ok(())
}

/// Descriptors that have one layout.
struct Class<'c, 'a> {
    r#type: Type<'c>,
    values: Vec<Value<'c, 'a>>,
}

/// Divides the tensors of descriptors among the blocks of a cluster, except where their division is given.
pub fn share(module: OperationRef<'_, '_>, blocks: u32) {
    if blocks == 1 {
        return;
    }
    let mut functions = Vec::new();
    for class in classes(module, &mut functions) {
        let Some(block) = TensorDesc::of(class.r#type).and_then(TensorDesc::block) else {
            continue;
        };
        let cga = class.wanted(block, blocks);
        let Some(encoding) = tensor_descriptor::encoding_over(block, cga) else {
            continue;
        };
        let encoding = encoding.to_attribute(module.ctx());
        let r#type = RankedTensor::get(&block.shape(), block.element(), Some(encoding));
        for value in class.values {
            value.set_type(TensorDesc::get(r#type));
        }
    }
    for function in functions {
        retype_function(function);
    }
}

/// The descriptors of a module without layouts, and its functions.
fn classes<'c: 'a, 'a>(
    module: OperationRef<'c, 'a>,
    functions: &mut Vec<OperationRef<'c, 'a>>,
) -> Vec<Class<'c, 'a>> {
    let mut values: Vec<(Value<'c, 'a>, bool)> = Vec::new();
    let mut has_calls = false;
    module.for_each_op(Walk::PreOrder, |operation| {
        has_calls |= tt::CallOp::of(operation).is_some();
        let is_maker = tt::MakeTensorDescOp::of(operation).is_some();
        values.extend(operation.result_values().map(|value| (value, is_maker)));
        let is_kernel = tt::FuncOp::of(operation).is_some_and(|function| {
            functions.push(operation);
            function
                .sym_visibility()
                .is_none_or(|visibility| visibility == "public")
        });
        for region in operation.region_refs() {
            for block in region.blocks() {
                values.extend(block.argument_values().map(|value| (value, is_kernel)));
            }
        }
    });
    let mut classes: Vec<Class> = Vec::new();
    let mut handed_on: Vec<Class> = Vec::new();
    for (value, begins) in values {
        let r#type = value.r#type();
        let block = TensorDesc::of(r#type).and_then(TensorDesc::block);
        if block.is_none_or(|block| block.encoding().is_some()) {
            continue;
        }
        let stays = value.users().all(|user| accessed(user).is_some());
        if begins && stays && !(has_calls && value.argument_of().is_some()) {
            classes.push(Class {
                r#type,
                values: vec![value],
            });
            continue;
        }
        match handed_on.iter_mut().find(|class| class.r#type == r#type) {
            Some(class) => class.values.push(value),
            None => handed_on.push(Class {
                r#type,
                values: vec![value],
            }),
        }
    }
    classes.extend(handed_on);
    classes
}

/// The tensor that an access through a descriptor moves, and whether it comes from memory.
fn accessed<'c: 'a, 'a>(operation: OperationRef<'c, 'a>) -> Option<(Value<'c, 'a>, bool)> {
    let load = tt::DescriptorLoadOp::of(operation).map(|load| (load.result(), true));
    let store = || tt::DescriptorStoreOp::of(operation).map(|store| (store.src(), false));
    let reduce = || tt::DescriptorReduceOp::of(operation).map(|reduce| (reduce.src(), false));
    load.or_else(store).or_else(reduce)
}

impl<'c: 'a, 'a> Class<'c, 'a> {
    /// How the blocks divide the tensor: as the first access that has a preference prefers, or along the outermost
    /// dimensions.
    fn wanted(&self, block: RankedTensor<'c>, blocks: u32) -> CgaLayout {
        let bits = block.element().bit_width().unwrap_or(8);
        let accesses = self.values.iter().flat_map(|value| value.users());
        let mut asked = accesses.filter_map(|user| {
            let (tensor, is_loaded) = accessed(user)?;
            let own = match is_loaded {
                true => share_of_factor(tensor, blocks),
                false => share_of_result(tensor, blocks),
            };
            // Leading extents of 1 that a load drops are not divided.
            let rank = RankedTensor::of(tensor.r#type())?.rank();
            let before = block.rank().checked_sub(rank)?;
            let bases = own?.into_iter();
            let bases = bases.map(|basis| [vec![0; before], basis].concat());
            CgaLayout::from_bases(block.rank(), bases.collect()).ok()
        });
        let shape = transfer::extents(&block.shape());
        let found = asked.find(|cga| is_possible(cga, &shape, bits));
        found.unwrap_or_else(|| outermost(&shape, bits, blocks))
    }
}

/// Whether each block has at least an element, and 16 bytes of a row.
fn is_possible(cga: &CgaLayout, shape: &[u64], bits: u32) -> bool {
    let Ok(split) = cga.split() else {
        return false;
    };
    let mut parts = shape.iter().zip(&split);
    let fits = parts.all(|(extent, pieces)| u64::from(*pieces) <= *extent);
    let row = shape.last().zip(split.last());
    fits && row.is_some_and(|(extent, pieces)| {
        *pieces == 1 || extent / u64::from(*pieces) * u64::from(bits) >= 8 * LEAST_ROW
    })
}

/// The division along the outermost dimensions that are long enough; blocks for which nothing is left hold copies.
fn outermost(shape: &[u64], bits: u32, blocks: u32) -> CgaLayout {
    let rank = shape.len();
    let mut split = vec![1; rank];
    let mut left = blocks;
    for (dim, extent) in shape.iter().enumerate() {
        let useful = match dim + 1 == rank {
            true => extent * u64::from(bits) / (8 * LEAST_ROW),
            false => *extent,
        };
        let useful = useful.clamp(1, u64::from(left)) as u32;
        split[dim] = 1 << useful.ilog2();
        left /= split[dim];
    }
    let mut per_dim = split.clone();
    if let Some(last) = per_dim.last_mut() {
        *last *= left;
    }
    let order: Vec<u32> = (0..rank as u32).rev().collect();
    CgaLayout::from_split(&per_dim, &split, &order)
        .unwrap_or_else(|error| panic!("bug in llopt: the blocks are no power of two: {error}"))
}

/// A tensor on the way between an access and a product.
#[derive(Clone)]
struct Step<'c, 'a> {
    tensor: Value<'c, 'a>,
    /// For each of its dimensions, the dimension of the moved tensor.
    dims: Vec<Option<usize>>,
}

impl<'c: 'a, 'a> Step<'c, 'a> {
    fn at(tensor: Value<'c, 'a>) -> Self {
        let rank = RankedTensor::of(tensor.r#type()).map_or(0, RankedTensor::rank);
        Self {
            tensor,
            dims: (0..rank).map(Some).collect(),
        }
    }

    /// A division of this tensor as a division of the moved one, which has `rank` dimensions; `None` if it divides a
    /// dimension that the moved one does not have.
    fn moved(&self, share: &CgaLayout, rank: usize) -> Option<Vec<Vec<u32>>> {
        let bases = share.bases().iter().map(|basis| {
            let mut moved = vec![0; rank];
            for (&piece, dim) in basis
                .iter()
                .zip(&self.dims)
                .filter(|(piece, _)| **piece != 0)
            {
                moved[(*dim)?] = piece;
            }
            Some(moved)
        });
        bases.collect()
    }

    /// The tensor on the other side of an op, from its operand to its result or back.
    fn through(
        &self,
        operation: OperationRef<'c, 'a>,
        other: Value<'c, 'a>,
        is_forward: bool,
    ) -> Option<Self> {
        let shape = |value: Value<'c, 'a>| Some(RankedTensor::of(value.r#type())?.shape());
        let (here, there) = (shape(self.tensor)?, shape(other)?);
        let dims = match OpFacts::of(operation).layouts {
            Transfer::Same => (here == there).then(|| self.dims.clone())?,
            Transfer::Transpose => {
                let order = tt::TransOp::of(operation)?.order();
                let order = order.into_iter().map(|dim| usize::try_from(dim).ok());
                let order: Vec<usize> = order.collect::<Option<_>>()?;
                let mut dims = vec![None; there.len()];
                for (result, &operand) in order.iter().enumerate() {
                    let (to, from) = match is_forward {
                        true => (result, operand),
                        false => (operand, result),
                    };
                    *dims.get_mut(to)? = *self.dims.get(from)?;
                }
                dims
            }
            // Extents of 1 may be added and dropped.
            Transfer::Reshape => {
                let long = |shape: &[i64]| -> Vec<i64> {
                    shape
                        .iter()
                        .copied()
                        .filter(|extent| *extent != 1)
                        .collect()
                };
                if long(&here) != long(&there) {
                    return None;
                }
                let mut own = here
                    .iter()
                    .zip(&self.dims)
                    .filter(|(extent, _)| **extent != 1);
                there
                    .iter()
                    .map(|extent| (*extent != 1).then(|| *own.next()?.1).flatten())
                    .collect()
            }
            Transfer::Unknown
            | Transfer::ExpandDims
            | Transfer::Join
            | Transfer::Split
            | Transfer::Unpack
            | Transfer::Reduce
            | Transfer::Gather
            | Transfer::Histogram
            | Transfer::Product => return None,
        };
        Some(Self {
            tensor: other,
            dims,
        })
    }
}

/// The largest number of tensors that are followed.
const FAR: usize = 64;

/// How the blocks divide a tensor that is a factor of a product, by the dimensions of the tensor.
fn share_of_factor<'c: 'a, 'a>(loaded: Value<'c, 'a>, blocks: u32) -> Option<Vec<Vec<u32>>> {
    let rank = RankedTensor::of(loaded.r#type())?.rank();
    let mut queue = vec![Step::at(loaded)];
    let mut next = 0;
    while let Some(step) = queue.get(next).cloned().filter(|_| next < FAR) {
        next += 1;
        for user in step.tensor.users() {
            if let Some(dot) = tt::DotOp::of(user) {
                let operand = [dot.a(), dot.b()].iter().position(|of| *of == step.tensor);
                let result = RankedTensor::of(dot.d().r#type())?;
                let share = shares_of(&transfer::extents(&result.shape()), blocks);
                let other = operand.and_then(|operand| result.rank().checked_sub(1 + operand));
                if let Some((share, other)) = share.first().zip(other) {
                    return step.moved(&share.shared_along(other), rank);
                }
            }
            let results = user.result_values();
            queue.extend(results.filter_map(|result| step.through(user, result, true)));
        }
    }
    None
}

/// How the blocks divide a tensor that a product computed, by the dimensions of the tensor.
fn share_of_result<'c: 'a, 'a>(stored: Value<'c, 'a>, blocks: u32) -> Option<Vec<Vec<u32>>> {
    let rank = RankedTensor::of(stored.r#type())?.rank();
    let mut queue = vec![Step::at(stored)];
    let mut next = 0;
    while let Some(step) = queue.get(next).cloned().filter(|_| next < FAR) {
        next += 1;
        let Some(maker) = step.tensor.defining_op() else {
            continue;
        };
        if tt::DotOp::of(maker).is_some() {
            let result = RankedTensor::of(step.tensor.r#type())?;
            let share = shares_of(&transfer::extents(&result.shape()), blocks);
            return step.moved(share.first()?, rank);
        }
        if let Some(of) = For::of(maker) {
            let results = of.results();
            let carried = results.iter().position(|result| *result == step.tensor);
            queue.extend(carried.map(|carried| Step {
                tensor: of.yielded()[carried],
                dims: step.dims.clone(),
            }));
            continue;
        }
        if let Some(of) = If::of(maker) {
            let results = of.results();
            let index = results.iter().position(|result| *result == step.tensor);
            let ends = of.blocks().into_iter().flatten();
            let ends = ends.filter_map(|block| block.operations().last());
            let yielded = ends.filter_map(|end| end.operand_value(index?));
            queue.extend(yielded.map(|tensor| Step {
                tensor,
                dims: step.dims.clone(),
            }));
            continue;
        }
        let operands = maker.operand_values();
        queue.extend(operands.filter_map(|operand| step.through(maker, operand, false)));
    }
    None
}
