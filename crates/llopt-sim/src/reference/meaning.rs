//! The file that has the meaning of each op. Ops of tile IR declare what they compute; one that does not is not known
//! to the interpreter, and its execution is an error that names it.

use llopt_dialects::meaning::facts::{Meaning, OpFacts};
use llopt_dialects::meaning::kinds::{AssemblyOp, DescriptorOp, MemoryOp, ProductOp, ShapeOp};
use llopt_dialects::{Op, arith, cf, rocdl, scf, ub};

/// The file with the meaning of an op.
#[derive(Clone, Copy, Debug)]
pub(super) enum Room<'c, 'a> {
    /// Regions, calls and terminators: the interpreter's own file, and [`super::partitions`].
    Control,
    /// [`super::shape`]: a value that an op of MLIR's own dialects makes without operands.
    Made(Made),
    /// [`super::shape`]
    Shape(ShapeOp<'c, 'a>),
    /// [`super::elementwise`]
    Elementwise,
    /// [`super::assembly`]
    Assembly(AssemblyOp<'c, 'a>),
    /// [`super::product`]
    Product(ProductOp<'c, 'a>),
    /// [`super::memory`]
    Memory(MemoryOp<'c, 'a>),
    /// [`super::descriptor`]
    Descriptor(DescriptorOp<'c, 'a>),
    /// It has no effect that a program of whole tensors can observe.
    Nothing,
    /// It is unknown.
    Unknown,
}

/// The result of an op without operands.
#[derive(Clone, Copy, Debug)]
pub(super) enum Made {
    /// The value of an attribute.
    Constant,
    /// Any value.
    Poison,
    /// The number of the thread.
    Thread,
}

/// The file with the meaning of an op.
pub(super) fn room<'c, 'a>(op: Op<'c, 'a>) -> Room<'c, 'a> {
    match op {
        Op::Arith(arith::Op::Constant(_)) => Room::Made(Made::Constant),
        Op::Ub(ub::Op::Poison(_)) => Room::Made(Made::Poison),
        Op::Arith(_) | Op::Math(_) => Room::Elementwise,
        Op::Scf(op) => match op {
            scf::Op::For(_)
            | scf::Op::If(_)
            | scf::Op::While(_)
            | scf::Op::Condition(_)
            | scf::Op::Yield(_) => Room::Control,
            scf::Op::ExecuteRegion(_) | scf::Op::IndexSwitch(_) => Room::Unknown,
        },
        Op::Cf(op) => match op {
            cf::Op::Branch(_) | cf::Op::CondBranch(_) => Room::Control,
            cf::Op::Switch(_) | cf::Op::Assert(_) => Room::Unknown,
        },
        Op::Rocdl(rocdl::Op::ThreadIdX(_)) => Room::Made(Made::Thread),
        Op::Gpu(_) | Op::Llvm(_) | Op::Rocdl(_) => Room::Nothing,
        Op::Builtin(_) => Room::Unknown,
        Op::Tt(_) | Op::Ttg(_) | Op::Ttng(_) | Op::Amdg(_) | Op::Gluon(_) => {
            let room = match OpFacts::of(op.operation()).meaning {
                Meaning::Unknown => None,
                Meaning::Nothing => Some(Room::Nothing),
                Meaning::Control => Some(Room::Control),
                Meaning::Shape => ShapeOp::of(op).map(Room::Shape),
                Meaning::Elementwise(_) => Some(Room::Elementwise),
                Meaning::Assembly => AssemblyOp::of(op).map(Room::Assembly),
                Meaning::Product => ProductOp::of(op).map(Room::Product),
                Meaning::Memory => MemoryOp::of(op).map(Room::Memory),
                Meaning::Descriptor => DescriptorOp::of(op).map(Room::Descriptor),
            };
            room.unwrap_or(Room::Unknown)
        }
    }
}
