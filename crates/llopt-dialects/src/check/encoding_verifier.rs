//! Checks of encodings: of their parameters alone, and against the tensor that carries them.

use crate::{
    gluon,
    layout::encoding::{Encoding, EncodingError, Threads},
    tables::module,
    tables::types::RankedTensor,
};
use llopt_mlir::{
    diagnostic::Complaint,
    dialect::{AttributeSpec, Parameters},
    ir::OperationExt,
};
use melior::ir::{Attribute, OperationRef, Type};

/// Checks the parameters of an attribute kind against each other.
///
/// # Errors
/// The first parameter of an encoding at fault.
pub fn parameters<'c>(
    spec: &'static AttributeSpec,
    parameters: Parameters<'c>,
) -> Result<(), Complaint> {
    match Encoding::from_parameters(spec, parameters) {
        Ok(_) => Ok(()),
        Err(error) => Err(Complaint::new(error.to_string())),
    }
}

/// Checks an attribute as the encoding of a tensor: a layout of registers has its rank. A layout of memory is allowed
/// here, since the block of a tensor descriptor carries one; operations reject it.
///
/// # Errors
/// A layout of another rank.
pub fn tensor<'c>(
    _spec: &'static AttributeSpec,
    attribute: Attribute<'c>,
    shape: &[i64],
    _element: Type<'c>,
) -> Result<(), Complaint> {
    if is_open(attribute) {
        return Ok(());
    }
    let encoding = match Encoding::from_attribute(attribute) {
        Ok(encoding) => encoding,
        Err(error) => return Err(Complaint::new(error.to_string())),
    };
    let rank = encoding.rank();
    if encoding.is_distributed() && rank != shape.len() {
        return Err(Complaint::new(format!(
            "the layout {attribute} has rank {rank}, the tensor {}",
            shape.len()
        )));
    }
    Ok(())
}

/// The [threads](Encoding::threads) of the encoding that an attribute is. The answer is stored with the attribute,
/// since a module queries few attributes, at every operand of every operation.
///
/// # Errors
/// The attribute is not an encoding.
fn threads_of_attribute(attribute: Attribute<'_>) -> Result<Option<Threads>, EncodingError> {
    if let Some(known) = Threads::unpack(AttributeSpec::memo(attribute)) {
        return Ok(Some(known));
    }
    let found = Encoding::from_attribute(attribute)?.threads();
    if let Some(memo) = found.and_then(Threads::pack) {
        AttributeSpec::set_memo(attribute, memo);
    }
    Ok(found)
}

impl Threads {
    /// Bits of each number in a memo.
    const FIELD: u32 = 21;

    /// Packs the numbers into one that is not zero; `None` if one of the three is too large for its field.
    fn pack(self) -> Option<u64> {
        [self.lanes, self.warps, self.blocks]
            .into_iter()
            .try_fold(1, |memo: u64, number| {
                (number >> Self::FIELD == 0).then(|| memo << Self::FIELD | u64::from(number))
            })
    }

    /// The inverse of [`Threads::pack`]; `None` for zero.
    fn unpack(memo: u64) -> Option<Self> {
        let field = |index: u32| (memo >> (index * Self::FIELD)) as u32 & ((1 << Self::FIELD) - 1);
        (memo != 0).then(|| Self {
            lanes: field(2),
            warps: field(1),
            blocks: field(0),
        })
    }
}

/// Checks that the layout of every tensor of an operation has the warps, lanes and blocks that execute it.
///
/// # Errors
/// The first operand or result whose layout is not.
pub fn operation(operation: OperationRef<'_, '_>) -> Result<(), Complaint> {
    let mut around: Option<(Option<u32>, u32, u32)> = None;
    // Most tensors of an operation share their layout.
    let mut last: Option<Attribute<'_>> = None;
    let side = |side: &'static str| move |(index, r#type)| (side, index, r#type);
    let operands = operation.operand_types().enumerate().map(side("operand"));
    let results = operation.result_types().enumerate().map(side("result"));
    for (side, index, r#type) in operands.chain(results) {
        let Some(tensor) = RankedTensor::of(r#type) else {
            continue;
        };
        let Some(attribute) = tensor.encoding() else {
            continue;
        };
        if let Some(extent) = tensor
            .extents()
            .iter()
            .find(|extent| **extent < 1 || **extent & (**extent - 1) != 0)
        {
            return Err(Complaint::new(format!(
                "{side} #{index} has a layout and an extent of {extent}, which is no power of two"
            )));
        }
        if last == Some(attribute) {
            continue;
        }
        last = Some(attribute);
        if is_open(attribute) {
            continue;
        }
        let found = threads_of_attribute(attribute)
            .map_err(|error| Complaint::new(format!("{side} #{index}: {error}")))?;
        let Some(found) = found else {
            return Err(Complaint::new(format!(
                "{side} #{index} has the layout {attribute} of memory; a tensor needs one of registers"
            )));
        };
        let (warps, lanes, blocks) = *around.get_or_insert_with(|| {
            (
                module::num_warps(operation),
                module::threads_per_warp(operation),
                module::num_ctas(operation),
            )
        });
        let Some(warps) = warps else {
            return Err(Complaint::new(format!(
                "{side} #{index} has a layout, but nothing around the operation says `{}`",
                module::NUM_WARPS
            )));
        };
        for (what, found, expected) in [
            ("lanes per warp", found.lanes, lanes),
            ("warps per block", found.warps, warps),
            ("blocks per cluster", found.blocks, blocks),
        ] {
            if found != expected {
                return Err(Complaint::new(format!(
                    "{side} #{index} has a layout for {found} {what} ({attribute}); here are {expected}"
                )));
            }
        }
    }
    Ok(())
}

/// Whether a layout has not been chosen yet.
fn is_open(attribute: Attribute<'_>) -> bool {
    gluon::attribute::AUTO_ENCODING.is(attribute)
        || gluon::attribute::COALESCED_ENCODING.is(attribute)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_remembered_whole_or_not_at_all() {
        assert_eq!(Threads::unpack(0), None);
        for (lanes, warps, blocks) in [(0, 0, 0), (64, 8, 16), (1 << 20, (1 << 21) - 1, 1)] {
            let threads = Threads {
                lanes,
                warps,
                blocks,
            };
            assert_eq!(threads.pack().and_then(Threads::unpack), Some(threads));
        }
        let many = Threads {
            lanes: 32,
            warps: 1 << 21,
            blocks: 1,
        };
        assert_eq!(many.pack(), None);
    }
}
