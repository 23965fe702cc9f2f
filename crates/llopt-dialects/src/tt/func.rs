//! Functions: their syntax, and the hooks of the inliner.

use llopt_mlir::{
    asm::{OpParser, OpPrinter, Parsed},
    dialect::InlinerSpec,
};
use melior::ir::{OperationRef, RegionLike, operation::OperationLike};

/// `public @name(%arg: type {…}) -> (type) attributes {…} {body}`
///
/// # Errors
/// When the text does not match.
pub fn parse(parser: &mut OpParser<'_, '_>) -> Parsed<()> {
    parser.function()
}

/// The counterpart of [`parse`].
pub fn print<'c>(operation: OperationRef<'c, '_>, printer: &mut OpPrinter<'c, '_>) {
    printer.function(operation);
}

/// The hooks of the inliner: functions of one block without `noinline` may be inlined, and every operation may be
/// moved with them.
pub static INLINER: InlinerSpec = InlinerSpec {
    legal_call: |_, callable, _| {
        let one_block = callable
            .region(0)
            .ok()
            .and_then(|region| region.first_block())
            .is_some_and(|block| {
                use melior::ir::BlockLike;
                block.next_in_region().is_none()
            });
        let kept = callable
            .attribute("noinline")
            .ok()
            .and_then(crate::tables::access::bool_value)
            .unwrap_or(false);
        one_block && !kept
    },
    legal_operation: |_, _| true,
    branch: |_, _| None,
};
