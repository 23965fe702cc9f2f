//! Calls: of functions of the module, of intrinsics, of inline assembly, of the vendors' runtime.

use crate::error::{Decoded, Unknown};
use crate::machine::bytecode::{AccessKind, Call, Op, Print, Slot};
use crate::translate::assembly::{self, AsmOperands};
use crate::translate::intrinsics::{self, Argument, Invocation};
use crate::translate::ir::{TypeKind, Value, ValueKind};

use super::{Body, Leaf};

/// A function that code compiled for the sanitizer calls: its first argument is an index below the second.
const EXPECT_BELOW: &str = "llopt_expect_below";
/// Functions that it calls with the address and the bytes of a buffer of shared memory, where its live range begins
/// and ends.
const LIFE: [(&str, bool); 2] = [("llopt_buffer_begins", true), ("llopt_buffer_ends", false)];

impl<'m> Body<'_, '_, 'm> {
    pub(super) fn call(&mut self, inst: Value<'m>) -> Decoded<Vec<Slot>> {
        let callee = inst.callee();
        match callee.kind() {
            ValueKind::LLVMInlineAsmValueKind => self.inline_assembly(inst, callee),
            ValueKind::LLVMFunctionValueKind => {
                let name = callee.name();
                if let Some(slots) = self.runtime_call(inst, &name)? {
                    return Ok(slots);
                }
                if name == EXPECT_BELOW {
                    let value = self.scalar(inst.operand(0))?;
                    let bound = self.decoder.constant(inst.operand(1))?;
                    self.emitter.expect(value, bound.first().copied());
                    return Ok(Vec::new());
                }
                if let Some((_, begins)) = LIFE.iter().find(|(known, _)| *known == name) {
                    let address = self.scalar(inst.operand(0))?;
                    let bytes = self.decoder.constant(inst.operand(1))?;
                    let bytes = bytes.first().copied().unwrap_or(0);
                    self.emitter.life(address, bytes, *begins);
                    return Ok(Vec::new());
                }
                if name.starts_with("llvm.masked.load.") {
                    return self.masked_access(inst, AccessKind::Load);
                }
                if name.starts_with("llvm.masked.store.") {
                    return self.masked_access(inst, AccessKind::Store);
                }
                if callee.is_declaration() {
                    return self.intrinsic(inst, &name);
                }
                self.direct_call(inst, callee)
            }
            _ => Err(Unknown::new("an indirect call")),
        }
    }

    fn argument_count(inst: Value<'m>) -> u32 {
        // The last operand is the callee.
        inst.num_operands().saturating_sub(1)
    }

    fn direct_call(&mut self, inst: Value<'m>, callee: Value<'m>) -> Decoded<Vec<Slot>> {
        let number = self.decoder.function_number(callee)?;
        self.decoder
            .calls
            .entry(self.number)
            .or_default()
            .insert(number);
        let signature = self
            .decoder
            .signatures
            .get(&number)
            .cloned()
            .unwrap_or_default();
        let mut sources = Vec::new();
        for i in 0..Self::argument_count(inst) {
            sources.extend(self.value(inst.operand(i))?);
        }
        let here = self.emitter.slots(signature.results.len());
        let call = Call {
            callee: number,
            arguments: signature.parameters.iter().copied().zip(sources).collect(),
            results: here
                .iter()
                .copied()
                .zip(signature.results.iter().copied())
                .collect(),
        };
        self.emitter.push(Op::Call(Box::new(call)));
        Ok(here)
    }

    fn intrinsic(&mut self, inst: Value<'m>, name: &str) -> Decoded<Vec<Slot>> {
        let mut arguments = Vec::new();
        for i in 0..Self::argument_count(inst) {
            let value = inst.operand(i);
            if value.ty().kind() == TypeKind::LLVMMetadataTypeKind {
                continue;
            }
            let leaves = self.decoder.types.leaves(value.ty())?;
            let constant = if self.values.contains_key(&value) {
                None
            } else {
                match self.decoder.constant(value)?[..] {
                    [bits] => Some(bits),
                    _ => None,
                }
            };
            arguments.push(Argument {
                slots: self.value(value)?,
                leaves,
                constant,
                space: (value.ty().kind() == TypeKind::LLVMPointerTypeKind)
                    .then(|| value.ty().address_space()),
            });
        }
        let result = self.result_leaves(inst)?;
        let invocation = Invocation {
            name,
            arguments: &arguments,
            result: &result,
        };
        let slots = intrinsics::translate(&mut self.emitter, &invocation)?;
        debug_assert_eq!(slots.len(), result.len(), "{name}");
        Ok(slots)
    }

    fn result_leaves(&self, inst: Value<'m>) -> Decoded<Vec<Leaf>> {
        self.decoder.types.leaves(inst.ty())
    }

    fn inline_assembly(&mut self, inst: Value<'m>, callee: Value<'m>) -> Decoded<Vec<Slot>> {
        let (template, constraints) = callee.inline_asm();
        // Each operand of the assembly is one register: gather the leaves of every argument.
        let mut inputs = Vec::new();
        for i in 0..Self::argument_count(inst) {
            let value = inst.operand(i);
            let leaves = self.decoder.types.leaves(value.ty())?;
            let widths: Vec<u32> = leaves.iter().map(|l| l.bits).collect();
            let total: u32 = widths.iter().sum();
            let slots = self.value(value)?;
            let words = register_widths(total);
            inputs.push((self.regroup(&slots, &widths, &words)?, total));
        }
        let ty = inst.ty();
        let outputs: Vec<_> = match ty.kind() {
            TypeKind::LLVMVoidTypeKind => Vec::new(),
            TypeKind::LLVMStructTypeKind => (0..ty.count()).map(|i| ty.field(i)).collect(),
            _ => vec![ty],
        };
        let mut widths = Vec::new();
        for &output in &outputs {
            let leaves = self.decoder.types.leaves(output)?;
            widths.push(leaves.iter().map(|l| l.bits).sum::<u32>());
        }
        let operands = AsmOperands {
            constraints: &constraints,
            inputs,
            outputs: widths.clone(),
        };
        let results = assembly::translate(&mut self.emitter, &template, &operands)?;
        let mut slots = Vec::new();
        for ((register, output), total) in results.into_iter().zip(outputs).zip(widths) {
            let leaves = self.decoder.types.leaves(output)?;
            let wanted: Vec<u32> = leaves.iter().map(|l| l.bits).collect();
            slots.extend(self.regroup(&register, &register_widths(total), &wanted)?);
        }
        Ok(slots)
    }

    /// Functions of the vendors' device runtimes that the machine provides itself, defined in the module or not.
    fn runtime_call(&mut self, inst: Value<'m>, name: &str) -> Decoded<Option<Vec<Slot>>> {
        if !(name == "vprintf"
            || name == "__assertfail"
            || name.starts_with("__ockl_printf")
            || name.starts_with("__ockl_fprintf")
            || name == "__nvvm_reflect")
        {
            return Ok(None);
        }
        let mut slots = Vec::new();
        for i in 0..Self::argument_count(inst) {
            slots.push(self.scalar(inst.operand(i))?);
        }
        let dst = self.emitter.slot();
        let print = match (name, &slots[..]) {
            // Every query ("__CUDA_FTZ") returns 0: subnormals are kept.
            ("__nvvm_reflect", _) => {
                return Ok(Some(vec![self.emitter.constant(0)]));
            }
            ("vprintf", &[format, arguments]) => Print::Vprintf {
                dst: Some(dst),
                format,
                arguments,
            },
            ("__assertfail", &[message, file, line, function, _]) => {
                let print = Print::AssertFail {
                    message,
                    file,
                    line,
                    function,
                };
                self.emitter.push(Op::Print(Box::new(print)));
                return Ok(Some(Vec::new()));
            }
            (
                "__ockl_printf_begin"
                | "__ockl_fprintf_stderr_begin"
                | "__ockl_fprintf_stdout_begin",
                _,
            ) => Print::Begin { dst },
            (
                "__ockl_printf_append_string_n" | "__ockl_fprintf_append_string_n",
                &[_, string, length, last],
            ) => Print::AppendString {
                dst,
                string,
                length,
                last,
            },
            (
                "__ockl_printf_append_args" | "__ockl_fprintf_append_args",
                [_, count, arguments @ .., last],
            ) => Print::AppendArguments {
                dst,
                count: *count,
                arguments: arguments.to_vec(),
                last: *last,
            },
            _ => return Err(Unknown::new(format!("this form of @{name}"))),
        };
        self.emitter.push(Op::Print(Box::new(print)));
        Ok(Some(vec![dst]))
    }
}

/// A register as words of at most 64 bits.
fn register_widths(total: u32) -> Vec<u32> {
    let mut widths = vec![64; total as usize / 64];
    if !total.is_multiple_of(64) {
        widths.push(total % 64);
    }
    widths
}
