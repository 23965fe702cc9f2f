//! PTX in inline assembly: control flow, and the selection of each instruction's family.
//!
//! A guard makes an instruction execute in some lanes only; a guarded branch ends a block of bytecode, as branches of
//! LLVM do.

use std::collections::HashMap;

use crate::error::{Decoded, Unknown};
use crate::machine::bytecode::{BlockId, EdgeId, Slot, Terminator};
use crate::translate::emit::Emitter;

use super::Bound;
use super::ptx_operands::{Translator, Type, unknown};
use super::ptx_parse::{Instruction, Operand, Statement, parse};
use super::{ptx_arithmetic, ptx_bulk, ptx_convert, ptx_memory, ptx_sync, ptx_wgmma};

/// Translates a template.
pub(super) fn translate(e: &mut Emitter<'_>, template: &str, bound: &[Bound]) -> Decoded<()> {
    let statements = parse(template)?;
    let mut labels = HashMap::new();
    for statement in &statements {
        if let Statement::Label(name) = statement {
            let block = e.new_block();
            if labels.insert(name.clone(), block).is_some() {
                return Err(Unknown::new(format!("the PTX label '{name}' twice")));
            }
        }
    }
    let mut translator = Translator {
        e,
        bound,
        registers: HashMap::new(),
        labels,
        carry: None,
    };
    for statement in &statements {
        match statement {
            Statement::Label(name) => {
                let block = translator.labels[name];
                let edge = translator.e.edge(block);
                translator.e.terminate(Terminator::Jump(edge));
                translator.e.enter(block);
            }
            Statement::Registers(names) => {
                for (ty, name) in names {
                    let ty = Type::parse(ty.trim_start_matches('.'))
                        .ok_or_else(|| Unknown::new(format!("the PTX type '{ty}'")))?;
                    let slot = translator.e.slot();
                    translator
                        .registers
                        .insert(name.clone(), (slot, ty.register_bits()));
                }
            }
            Statement::Instruction(instruction) => translator.instruction(instruction)?,
        }
    }
    Ok(())
}

impl Translator<'_, '_> {
    fn instruction(&mut self, instruction: &Instruction) -> Decoded<()> {
        let guard = match &instruction.guard {
            Some((negate, operand)) => Some((*negate, self.read(operand, 1)?)),
            None => None,
        };
        match instruction.opcode[0].as_str() {
            "bra" => return self.branch(instruction, guard),
            "exit" | "ret" => return self.exit(guard),
            _ => {}
        }
        let mark = self.e.mark();
        let known = ptx_bulk::translate(self, instruction)?
            || ptx_wgmma::translate(self, instruction)?
            || ptx_memory::translate(self, instruction)?
            || ptx_sync::translate(self, instruction)?
            || ptx_convert::translate(self, instruction)?
            || ptx_arithmetic::translate(self, instruction)?;
        if !known {
            return Err(unknown(instruction));
        }
        if let Some((negate, predicate)) = guard {
            self.e.guard_since(mark, predicate, negate);
        }
        Ok(())
    }

    fn branch(&mut self, instruction: &Instruction, guard: Option<(bool, Slot)>) -> Decoded<()> {
        let [Operand::Name(label)] = &instruction.operands[..] else {
            return Err(unknown(instruction));
        };
        let target = *self
            .labels
            .get(label)
            .ok_or_else(|| Unknown::new(format!("the PTX label '{label}'")))?;
        let next = self.e.new_block();
        let edge = self.e.edge(target);
        self.leave(guard, edge, next);
        self.e.enter(next);
        Ok(())
    }

    /// Ends the block: along `edge` where the guard holds, else to `next`.
    fn leave(&mut self, guard: Option<(bool, Slot)>, edge: EdgeId, next: BlockId) {
        let terminator = match guard {
            None => Terminator::Jump(edge),
            Some((negate, condition)) => {
                let through = self.e.edge(next);
                let (then, otherwise) = if negate {
                    (through, edge)
                } else {
                    (edge, through)
                };
                Terminator::Branch {
                    condition,
                    then,
                    otherwise,
                }
            }
        };
        self.e.terminate(terminator);
    }

    fn exit(&mut self, guard: Option<(bool, Slot)>) -> Decoded<()> {
        let (gone, next) = (self.e.new_block(), self.e.new_block());
        let edge = self.e.edge(gone);
        self.leave(guard, edge, next);
        self.e.enter(gone);
        self.e.terminate(Terminator::Exit);
        self.e.enter(next);
        Ok(())
    }
}
