//! `tt.elementwise_inline_asm`: the text runs on the machine, one lane for each group of elements.
//!
//! The machine defines the meaning of assembly. A kernel is generated around the text that loads the elements of each
//! operand, packed into registers as the op specifies, and stores the results. Where the text is impure nothing is
//! known of its results (it may read a clock), so their bound is infinite.

use std::fmt::Write;

use llopt_dialects::tables::module::TARGET;
use llopt_dialects::tt;
use llopt_mlir::ir::{AttributeExt, OperationExt};
use llopt_target::{Target, Vendor};
use melior::ir::OperationRef;

use crate::machine::entry::Machine;
use crate::machine::launch::{Argument, Launch, Options};
use crate::machine::row::Real;

use super::failure::{Interpreted, unknown, wrong};
use super::program::Program;
use super::value::{Element, Tensor, Value};

/// LLVM's name of a type, and its bytes in memory.
fn llvm_type(element: Element) -> Option<(String, usize)> {
    Some(match element {
        Element::Int(1) => return None,
        Element::Int(bits) => (format!("i{bits}"), bits.div_ceil(8) as usize),
        Element::Real(Real::F16) => ("half".into(), 2),
        Element::Real(Real::BF16) => ("bfloat".into(), 2),
        Element::Real(Real::F32 | Real::F32Flush | Real::F32Quiet | Real::F32FlushQuiet) => {
            ("float".into(), 4)
        }
        Element::Real(Real::F64) => ("double".into(), 8),
        Element::Small(_) => ("i8".into(), 1),
        Element::Pointer(_) => ("i64".into(), 8),
    })
}

/// How elements of a type are packed into registers: the register's type, and how many elements are in one.
struct Registers {
    ty: String,
    bytes: usize,
    each: usize,
}

impl Registers {
    fn of(element: Element, pack: usize) -> Interpreted<Self> {
        let Some((ty, bytes)) = llvm_type(element) else {
            return unknown("inline assembly on truth values");
        };
        let each = (4 / bytes).clamp(1, pack);
        Ok(Self {
            ty: if each > 1 {
                format!("<{each} x {ty}>")
            } else {
                ty
            },
            bytes,
            each,
        })
    }
}

/// A text in LLVM's quotes.
fn quoted(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        match byte {
            b'"' | b'\\' | 0..=31 | 127..=255 => {
                let _ = write!(out, "\\{byte:02X}");
            }
            _ => out.push(char::from(byte)),
        }
        out
    })
}

/// The kernel: a lane for each group of `pack` elements.
fn kernel(
    target: Target,
    op: tt::ElementwiseInlineAsmOp<'_, '_>,
    pack: usize,
    inputs: &[Registers],
    outputs: &[Registers],
) -> String {
    let (convention, thread, block) = match target.vendor() {
        Vendor::Nvptx => (
            "ptx_kernel",
            "llvm.nvvm.read.ptx.sreg.tid.x",
            "llvm.nvvm.read.ptx.sreg.ctaid.x",
        ),
        Vendor::Amdgpu => (
            "amdgpu_kernel",
            "llvm.amdgcn.workitem.id.x",
            "llvm.amdgcn.workgroup.id.x",
        ),
    };
    let lanes = target.warp_size();
    let mut body = format!(
        "  %t = call i32 @{thread}()\n  %b = call i32 @{block}()\n  %s = mul i32 %b, {lanes}\n  %n = add i32 %s, %t\n"
    );
    let mut operands = Vec::new();
    let address = |body: &mut String, name: String, buffer: usize, r: &Registers, k: usize| {
        let group = pack * r.bytes;
        let _ = writeln!(
            body,
            "  %o{name} = mul i32 %n, {group}\n  %q{name} = add i32 %o{name}, {}\n  \
             %a{name} = getelementptr i8, ptr addrspace(1) %p{buffer}, i32 %q{name}",
            k * r.each * r.bytes
        );
    };
    for (i, input) in inputs.iter().enumerate() {
        for k in 0..pack / input.each {
            let name = format!("i{i}.{k}");
            address(&mut body, name.clone(), i, input, k);
            let ty = &input.ty;
            let _ = writeln!(
                body,
                "  %v{name} = load {ty}, ptr addrspace(1) %a{name}, align {}",
                input.bytes
            );
            operands.push(format!("{ty} %v{name}"));
        }
    }
    let results: Vec<(usize, usize)> = outputs
        .iter()
        .enumerate()
        .flat_map(|(i, output)| (0..pack / output.each).map(move |k| (i, k)))
        .collect();
    let types: Vec<&str> = results
        .iter()
        .map(|&(i, _)| outputs[i].ty.as_str())
        .collect();
    let whole = match types[..] {
        [one] => one.to_owned(),
        _ => format!("{{ {} }}", types.join(", ")),
    };
    let _ = writeln!(
        body,
        "  %r = call {whole} asm sideeffect \"{}\", \"{}\"({})",
        quoted(op.asm_string()),
        quoted(op.constraints()),
        operands.join(", ")
    );
    for (number, &(i, k)) in results.iter().enumerate() {
        let name = format!("r{i}.{k}");
        let output = &outputs[i];
        address(&mut body, name.clone(), inputs.len() + i, output, k);
        let value = if results.len() == 1 {
            "%r".to_owned()
        } else {
            let _ = writeln!(body, "  %e{name} = extractvalue {whole} %r, {number}");
            format!("%e{name}")
        };
        let _ = writeln!(
            body,
            "  store {} {value}, ptr addrspace(1) %a{name}, align {}",
            output.ty, output.bytes
        );
    }
    let parameters: Vec<String> = (0..inputs.len() + outputs.len())
        .map(|i| format!("ptr addrspace(1) %p{i}"))
        .collect();
    format!(
        "define {convention} void @assembly({}) {{\n{body}  ret void\n}}\n\
         declare i32 @{thread}()\ndeclare i32 @{block}()\n",
        parameters.join(", ")
    )
}

impl<'c, 'a> Program<'c, 'a, '_> {
    /// The results of inline assembly.
    pub(super) fn inline_assembly(
        &self,
        op: tt::ElementwiseInlineAsmOp<'c, 'a>,
    ) -> Interpreted<Vec<Value>> {
        let operation: OperationRef<'c, 'a> = op.operation();
        let target = self.module.attr(TARGET);
        let Some(target) = target
            .and_then(|t| t.as_str())
            .and_then(|t| Target::parse(t).ok())
        else {
            return unknown("inline assembly in a module without ttg.target");
        };
        let pack = usize::try_from(op.packed_element()).unwrap_or(1).max(1);
        let operands: Vec<Tensor> = op
            .args()
            .into_iter()
            .map(|value| self.tensor(value))
            .collect::<Interpreted<_>>()?;
        let mut elements = Vec::new();
        for ty in operation.result_types() {
            match Element::of_tensor(ty) {
                Some(element) => elements.push(element),
                None => return unknown(format!("inline assembly with results of type {ty}")),
            }
        }
        let inputs: Vec<Registers> = operands
            .iter()
            .map(|t| Registers::of(t.element, pack))
            .collect::<Interpreted<_>>()?;
        let outputs: Vec<Registers> = elements
            .iter()
            .map(|&element| Registers::of(element, pack))
            .collect::<Interpreted<_>>()?;
        let shape = operation
            .result_types()
            .next()
            .map(super::value::shape_of)
            .unwrap_or_default();
        let count = super::value::count(&shape);
        let groups = count.div_ceil(pack);
        let lanes = target.warp_size() as usize;
        let room = groups.next_multiple_of(lanes) * pack;

        let mut arguments = Vec::new();
        for (tensor, registers) in operands.iter().zip(&inputs) {
            let mut bytes = Vec::with_capacity(room * registers.bytes);
            for i in 0..room {
                let at = if tensor.data.len() == 1 { 0 } else { i };
                let bits = tensor.data.get(at).copied().unwrap_or(0);
                bytes.extend(&bits.to_le_bytes()[..registers.bytes]);
            }
            arguments.push(Argument::Buffer(bytes));
        }
        for registers in &outputs {
            arguments.push(Argument::Buffer(vec![0; room * registers.bytes]));
        }
        let text = kernel(target, op, pack, &inputs, &outputs);
        let blocks = u32::try_from(room / pack / lanes).unwrap_or(u32::MAX);
        let mut launch = Launch::new([blocks, 1, 1], lanes as u32, arguments);
        let options = Options {
            threads: Some(1),
            ..Options::default()
        };
        let ran = Machine::from_ir(text.as_bytes(), target, None)
            .and_then(|machine| machine.run(&mut launch, &options));
        if let Err(error) = ran {
            return wrong(format!("inline assembly: {error}"));
        }
        let bound = if op.pure() && operands.iter().all(|t| t.bound.is_empty()) {
            0.0
        } else {
            f64::INFINITY
        };
        let results = elements.iter().zip(&outputs).enumerate();
        Ok(results
            .map(|(i, (&element, registers))| {
                let Argument::Buffer(bytes) = &launch.arguments[inputs.len() + i] else {
                    return Value::Token;
                };
                let data = bytes
                    .chunks_exact(registers.bytes)
                    .take(count)
                    .map(crate::memory::global::read_bytes)
                    .collect();
                let mut tensor = Tensor::new(shape.clone(), element, data);
                if bound > 0.0 {
                    tensor.bound = vec![bound; count];
                }
                Value::Tensor(tensor)
            })
            .collect())
    }
}
