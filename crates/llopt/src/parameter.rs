//! What a kernel in tile IR takes, for whoever puts its arguments together.

use llopt_dialects::tables::types::Pointer;
use llopt_mlir::ir::{AttributeExt, BlockExt, FloatKind, OperationExt, RegionExt, TypeExt, Walk};
use melior::ir::{Type, ValueLike};

use crate::{Error, Source, module, session};

/// A parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its type, as MLIR prints it.
    pub ty: String,
    /// What it points to, if it is a pointer.
    pub pointee: Option<Pointee>,
}

/// An element of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointee {
    /// Bytes in memory.
    pub bytes: u32,
    /// How they are to be read.
    pub format: Format,
}

/// How the bits of a number are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// An integer of either sign, or a pointer.
    Integer,
    /// A floating-point number of IEEE 754: 16, 32 or 64 bits.
    Ieee,
    /// Another floating-point format.
    OtherFloat,
}

/// The parameters of the only public function of a module, in order; none if there is no such function.
///
/// # Errors
/// The source does not parse or verify.
pub fn parameters(source: &Source) -> Result<Vec<Parameter>, Error> {
    let context = session::context()?;
    let module = module::parse(&context, source)?;
    let mut kernels = Vec::new();
    module.as_operation().for_each_op(Walk::PreOrder, |op| {
        let private = op.attr("sym_visibility").and_then(AttributeExt::as_str) == Some("private");
        if op.is_named("tt.func") && !private {
            kernels.push(op);
        }
    });
    let [kernel] = kernels[..] else {
        return Ok(Vec::new());
    };
    let entry = kernel.region_ref(0).and_then(RegionExt::entry);
    Ok(entry.map_or_else(Vec::new, |entry| {
        entry
            .argument_values()
            .map(|value| Parameter {
                ty: value.r#type().to_string(),
                pointee: Pointer::of(value.r#type()).and_then(|p| pointee(p.pointee())),
            })
            .collect()
    }))
}

fn pointee(ty: Type<'_>) -> Option<Pointee> {
    if Pointer::of(ty).is_some() {
        return Some(Pointee {
            bytes: 8,
            format: Format::Integer,
        });
    }
    let format = match ty.float_kind() {
        None => Format::Integer,
        Some(FloatKind::F16 | FloatKind::F32 | FloatKind::F64) => Format::Ieee,
        Some(_) => Format::OtherFloat,
    };
    Some(Pointee {
        bytes: ty.bit_width()?.div_ceil(8),
        format,
    })
}
