//! Inline assembly: PTX and AMD's, translated to the same bytecode as all other code.
//!
//! LLVM's constraint string specifies the outputs, the inputs, and the inputs that share a register with an output.
//! The vendor's module parses and translates the template. An unknown mnemonic, modifier or operand is an error that
//! names it.

mod gcn;
pub(crate) mod matrix;
mod ptx;
mod ptx_arithmetic;
mod ptx_bulk;
mod ptx_convert;
mod ptx_memory;
mod ptx_operands;
mod ptx_parse;
mod ptx_sync;
mod ptx_wgmma;

use crate::error::{Decoded, Unknown};
use crate::machine::bytecode::Slot;
use crate::translate::emit::Emitter;

/// Operands of an inline assembly call.
pub(crate) struct AsmOperands<'a> {
    pub(crate) constraints: &'a str,
    /// Words of each input and its width in bits.
    pub(crate) inputs: Vec<(Vec<Slot>, u32)>,
    /// Width of each output in bits.
    pub(crate) outputs: Vec<u32>,
}

/// A register that a placeholder of the template stands for.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    /// Words of at most 64 bits, lowest first.
    pub(crate) words: Vec<Slot>,
    pub(crate) bits: u32,
    pub(crate) writable: bool,
}

/// Translates an inline assembly call; returns the words of each output.
pub(crate) fn translate(
    e: &mut Emitter<'_>,
    template: &str,
    operands: &AsmOperands<'_>,
) -> Decoded<Vec<Vec<Slot>>> {
    let bound = bind(e, operands)?;
    if e.is_nvptx() {
        ptx::translate(e, template, &bound)?;
    } else {
        gcn::translate(e, template, &bound)?;
    }
    Ok(bound[..operands.outputs.len()]
        .iter()
        .map(|b| b.words.clone())
        .collect())
}

/// Registers of all placeholders: outputs first, then inputs.
fn bind(e: &mut Emitter<'_>, operands: &AsmOperands<'_>) -> Decoded<Vec<Bound>> {
    let mut bound: Vec<Bound> = operands
        .outputs
        .iter()
        .map(|&bits| Bound {
            words: e.slots(bits.div_ceil(64) as usize),
            bits,
            writable: true,
        })
        .collect();
    let mut inputs = operands.inputs.iter();
    let mut outputs = 0;
    for constraint in split_constraints(operands.constraints) {
        if constraint.starts_with('~') {
            continue;
        }
        if let Some(output) = constraint.strip_prefix('=') {
            if output.contains('*') {
                return Err(Unknown::new("an indirect output of inline assembly"));
            }
            outputs += 1;
            continue;
        }
        let (words, bits) = inputs.next().ok_or_else(|| {
            Unknown::new(format!(
                "the assembly constraints '{}'",
                operands.constraints
            ))
        })?;
        if let Ok(tied) = constraint.parse::<usize>() {
            let target = bound
                .get(tied)
                .cloned()
                .ok_or_else(|| Unknown::new(format!("the assembly constraint '{constraint}'")))?;
            for (&to, &from) in target.words.iter().zip(words) {
                e.copy(to, from);
            }
            bound.push(target);
        } else {
            bound.push(Bound {
                words: words.clone(),
                bits: *bits,
                writable: false,
            });
        }
    }
    if outputs != operands.outputs.len() {
        return Err(Unknown::new(format!(
            "the assembly constraints '{}'",
            operands.constraints
        )));
    }
    Ok(bound)
}

/// The constraints between commas, outside of braces.
fn split_constraints(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|c| !c.is_empty())
}
