//! Memory effects that the `.td` files list.

use crate::{
    tables::access,
    tables::definition::{OpDefinition, ValueRef},
};
use llopt_mlir::dialect::{EffectSink, EffectTarget, OpSpec};
use melior::ir::OperationRef;

/// The effects hook of operations with a list of effects.
pub fn listed<'c, 'a>(
    spec: &'static OpSpec,
    operation: OperationRef<'c, 'a>,
    effects: &mut EffectSink<'c, 'a>,
) {
    let Some(definition) = OpDefinition::of_spec(spec) else {
        return;
    };
    for effect in definition.effects {
        match effect.on {
            None => effects.add(effect.kind, EffectTarget::Nothing, effect.resource),
            Some(ValueRef::Operand(index)) => {
                for position in access::operand_positions(operation, definition, index) {
                    effects.add(
                        effect.kind,
                        EffectTarget::Operand(position),
                        effect.resource,
                    );
                }
            }
            Some(ValueRef::Result(index)) => {
                for position in access::result_positions(operation, definition, index) {
                    effects.add(effect.kind, EffectTarget::Result(position), effect.resource);
                }
            }
        }
    }
}
