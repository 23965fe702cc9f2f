//! Memory effects of tt operations that depend on the instance.

use super::{ElementwiseInlineAsmOp, ExternElementwiseOp, LoadOp};
use crate::meaning::resource::GLOBAL_MEMORY;
use llopt_mlir::dialect::{EffectKind, EffectSink, EffectTarget};

/// A volatile load counts as a write too, so that it is neither removed nor repeated.
pub fn load<'c, 'a>(operation: LoadOp<'c, 'a>, effects: &mut EffectSink<'c, 'a>) {
    effects.add(
        EffectKind::Read,
        EffectTarget::Operand(0),
        Some(&GLOBAL_MEMORY),
    );
    if operation.is_volatile() {
        effects.add(
            EffectKind::Write,
            EffectTarget::Nothing,
            Some(&GLOBAL_MEMORY),
        );
    }
}

/// An impure call may do anything to memory.
pub fn extern_elementwise<'c, 'a>(
    operation: ExternElementwiseOp<'c, 'a>,
    effects: &mut EffectSink<'c, 'a>,
) {
    if !operation.pure() {
        anything(effects);
    }
}

/// Impure assembly may do anything to memory.
pub fn elementwise_inline_asm<'c, 'a>(
    operation: ElementwiseInlineAsmOp<'c, 'a>,
    effects: &mut EffectSink<'c, 'a>,
) {
    if !operation.pure() {
        anything(effects);
    }
}

fn anything(effects: &mut EffectSink<'_, '_>) {
    effects.add(EffectKind::Write, EffectTarget::Nothing, None);
    effects.add(EffectKind::Read, EffectTarget::Nothing, None);
}
