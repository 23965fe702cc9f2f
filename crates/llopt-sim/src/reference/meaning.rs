//! Which file has the meaning of which op. Ops of tile IR declare what they compute; one that does not is not known
//! to the interpreter, and its execution is an error that names it.

use llopt_dialects::meaning::facts::{Meaning, OpFacts};
use llopt_dialects::{Op, arith, cf, rocdl, scf};

/// Where the meaning of an op is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// Regions, calls and the ends of blocks: the interpreter's own file, and [`super::partitions`].
    Control,
    /// [`super::shape`]
    Shape,
    /// [`super::elementwise`]
    Elementwise,
    /// [`super::assembly`]
    Assembly,
    /// [`super::product`]
    Product,
    /// [`super::memory`]
    Memory,
    /// [`super::descriptor`]
    Descriptor,
    /// It does nothing that a program of whole tensors could see.
    Nothing,
    /// It is not known.
    Unknown,
}

/// Where the meaning of an op is.
pub(super) fn room(op: Op<'_, '_>) -> Room {
    match op {
        Op::Arith(arith::Op::Constant(_)) | Op::Ub(_) => Room::Shape,
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
        Op::Rocdl(rocdl::Op::ThreadIdX(_)) => Room::Shape,
        Op::Gpu(_) | Op::Llvm(_) | Op::Rocdl(_) => Room::Nothing,
        Op::Builtin(_) => Room::Unknown,
        Op::Tt(_) | Op::Ttg(_) | Op::Ttng(_) | Op::Amdg(_) | Op::Gluon(_) => {
            match OpFacts::of(op.operation()).meaning {
                Meaning::Unknown => Room::Unknown,
                Meaning::Nothing => Room::Nothing,
                Meaning::Control => Room::Control,
                Meaning::Shape => Room::Shape,
                Meaning::Elementwise(_) => Room::Elementwise,
                Meaning::Assembly => Room::Assembly,
                Meaning::Product => Room::Product,
                Meaning::Memory => Room::Memory,
                Meaning::Descriptor => Room::Descriptor,
            }
        }
    }
}
