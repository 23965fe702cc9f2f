//! Loaded tensors that are converted after a transposition: converted before it.
//!
//! One product may take a tile as it was loaded, and another one its transpose, as in the backward pass of attention. A
//! transposition moves nothing. Each layout of its result is one of its operand, so a conversion costs the same on either
//! side of it:
//!
//! ```text
//!   t = trans (load)               f = convert (load)
//!   f = convert t             →    t = trans f
//! ```
//!
//! On the side of the load, however, a conversion becomes a read of the ring in the layout of the product
//! ([`loads`](super::loads)). On the other side the tile would be read in the layout of its copy, stored a second time,
//! and read again.

use llopt_dialects::layout::encoding::Encoding;
use llopt_dialects::layout::transfer;
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt::{LoadOp, TransOp};
use llopt_dialects::ttg::ConvertLayoutOp;
use llopt_mlir::ir::{OperationExt, ValueExt};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::{Type, ValueLike};

use crate::loops::view::For;

/// Converts what a loop loads and transposes before the transpositions.
pub(super) fn convert_before(of: For<'_, '_>) {
    let mut rewriter = Rewriter::new(of.operation().ctx());
    for load in of.operations().into_iter().filter_map(LoadOp::of) {
        let turned: Vec<TransOp> = load.result().users().filter_map(TransOp::of).collect();
        for trans in turned {
            let users = trans.result().users();
            let conversions: Vec<ConvertLayoutOp> = users.filter_map(ConvertLayoutOp::of).collect();
            for conversion in conversions {
                exchange(trans, conversion, &mut rewriter);
            }
            if !trans.operation().has_result_uses() {
                trans.operation().erase();
            }
        }
    }
}

/// Replaces a conversion of a transpose by the transpose of a conversion.
fn exchange<'c: 'a, 'a>(
    trans: TransOp<'c, 'a>,
    conversion: ConvertLayoutOp<'c, 'a>,
    rewriter: &mut Rewriter<'c, 'a>,
) -> Option<()> {
    let result = conversion.result();
    let to = operand_type(trans, result.r#type())?;
    let (early, late) = (conversion.operation(), trans.operation());
    rewriter.set_before(early);
    let converted = ConvertLayoutOp::build(early.loc(), to, trans.src());
    let converted = rewriter.insert(converted).result_value(0)?;
    let turned = TransOp::build(late.loc(), result.r#type(), converted, &trans.order());
    let turned = rewriter.insert(turned).result_value(0)?;
    result.replace_all_uses(turned);
    early.erase();
    Some(())
}

/// The type that the operand of a transposition needs for its result to have a type.
fn operand_type<'c>(trans: TransOp<'c, '_>, result: Type<'c>) -> Option<Type<'c>> {
    let result = RankedTensor::of(result)?;
    let encoding = Encoding::from_attribute(result.encoding()?).ok()?;
    let order = transfer::inverse(&trans.order());
    let turned = transfer::trans(&encoding, &result.shape(), &order).ok()?;
    let operand = RankedTensor::of(trans.src().r#type())?;
    let turned = turned.to_attribute(trans.operation().ctx());
    Some(operand.with_encoding(Some(turned)))
}
