//! From an LLVM module to [bytecode](crate::machine::bytecode), once per module.
//!
//! Functions are decoded on demand, starting from the kernel, so that unused library code costs nothing and may
//! contain unknown constructs. Blocks are visited in reverse post-order: every definition precedes its uses, except
//! those of phi nodes, whose slots exist beforehand and whose moves are attached to edges at the end.

mod access;
mod call;
mod cast;
mod constant;
mod instruction;
mod types;

use std::collections::{HashMap, HashSet};

use inkwell::module::Module;
use llopt_target::{Target, Vendor};

use crate::error::{Decoded, Error, Unknown};
use crate::machine::bytecode::{BlockId, EdgeId, Function, Global, Line, Parameter, Program, Slot};
use crate::machine::row::Real;
use crate::memory::global::region_base;
use crate::translate::emit::{Emitter, Tables};
use crate::translate::ir::{self, Block, Opcode, TypeKind, Value};

pub(crate) use instruction::space_of;
pub(crate) use types::{Leaf, Types};

/// LLVM's numbers of the calling conventions of kernels.
const KERNEL_CONVENTIONS: [u32; 2] = [71, 91];

/// The addresses of the module's globals.
pub(crate) struct Globals<'m> {
    /// Address of each global: an offset for shared memory, a full address otherwise.
    addresses: HashMap<Value<'m>, u64>,
    memory: Vec<Global>,
    shared_static: u64,
    shared_dynamic: u64,
}

/// State of decoding a module.
pub(crate) struct Decoder<'m> {
    pub(crate) target: Target,
    pub(crate) types: Types<'m>,
    pub(crate) globals: Globals<'m>,
    tables: Tables,
    functions: Vec<Option<Function>>,
    numbers: HashMap<Value<'m>, usize>,
    queue: Vec<Value<'m>>,
    /// Leaves of each function's parameters and result, known before its body.
    signatures: HashMap<usize, Signature>,
    /// Functions in the call chain from the kernel to the current one, by number: calls of them would be recursive.
    calls: HashMap<usize, HashSet<usize>>,
}

/// Slots in which a call passes values; they are the first slots of a frame.
#[derive(Clone, Default)]
struct Signature {
    parameters: Vec<Slot>,
    results: Vec<Slot>,
}

/// Decodes the kernel `name` (or the only one) with everything it calls.
pub(crate) fn decode(
    module: &Module<'_>,
    target: Target,
    name: Option<&str>,
) -> Result<Program, Error> {
    let layout = ir::layout(module);
    let functions = ir::functions(module);
    let kernels: Vec<Value<'_>> = functions
        .iter()
        .copied()
        .filter(|f| !f.is_declaration())
        .collect();
    let marked: Vec<Value<'_>> = kernels
        .iter()
        .copied()
        .filter(|f| KERNEL_CONVENTIONS.contains(&f.calling_convention()))
        .collect();
    let kernel = match name {
        Some(name) => kernels.iter().find(|f| f.name() == name),
        None if marked.len() == 1 => marked.first(),
        None if marked.is_empty() && kernels.len() == 1 => kernels.first(),
        None => None,
    };
    let Some(&kernel) = kernel else {
        let listed = if marked.is_empty() { &kernels } else { &marked };
        return Err(Error::NoKernel {
            wanted: name.map(str::to_owned),
            available: listed.iter().map(|f| f.name()).collect(),
        });
    };
    let types = Types::new(layout);
    let at_module = |what: Unknown| Error::Unsupported {
        what: what.0,
        function: kernel.name(),
        instruction: "a global variable".to_owned(),
    };
    let globals = place_globals(module, types).map_err(at_module)?;
    let mut tables = Tables::default();
    tables.line(Line {
        file: String::new(),
        line: 0,
        column: 0,
    });
    let mut decoder = Decoder {
        target,
        types,
        globals,
        tables,
        functions: Vec::new(),
        numbers: HashMap::new(),
        queue: Vec::new(),
        signatures: HashMap::new(),
        calls: HashMap::new(),
    };
    decoder.initialize_globals().map_err(at_module)?;
    let kernel_number = decoder.function_number(kernel).map_err(at_module)?;
    while let Some(function) = decoder.queue.pop() {
        decoder.decode_function(function)?;
    }
    if let Some(cycle) = decoder.recursion() {
        return Err(Error::Unsupported {
            what: "recursion".to_owned(),
            function: cycle,
            instruction: "a call".to_owned(),
        });
    }
    let parameters = kernel
        .params()
        .iter()
        .enumerate()
        .map(|(i, p)| decoder.parameter(kernel, i as u32, *p))
        .collect();
    Ok(Program {
        functions: decoder.functions.into_iter().flatten().collect(),
        kernel: kernel_number,
        parameters,
        globals: decoder.globals.memory,
        shared_static: decoder.globals.shared_static,
        shared_dynamic: decoder.globals.shared_dynamic,
        sites: decoder.tables.sites,
        lines: decoder.tables.lines,
        global_atomics: decoder.tables.global_atomics,
        cluster: cluster_blocks(kernel).map_err(at_module)?,
        registers: kernel
            .function_attribute("nvvm.maxnreg")
            .and_then(|text| text.trim().parse().ok()),
    })
}

/// Blocks of a cluster, from the attribute that NVPTX uses.
fn cluster_blocks(kernel: Value<'_>) -> Decoded<u32> {
    let Some(text) = kernel.function_attribute("nvvm.cluster_dim") else {
        return Ok(1);
    };
    let extents: Vec<u32> = text
        .split(',')
        .filter_map(|n| n.trim().parse().ok())
        .collect();
    match extents[..] {
        [x @ 1..=16] | [x @ 1..=16, 1] | [x @ 1..=16, 1, 1] => Ok(x),
        _ => Err(Unknown::new(format!("clusters of {text} blocks"))),
    }
}

/// Assigns an address to every global: shared ones an offset, sized ones first, the others a region each.
fn place_globals<'m>(module: &'m Module<'_>, types: Types<'m>) -> Decoded<Globals<'m>> {
    let mut globals = Globals {
        addresses: HashMap::new(),
        memory: Vec::new(),
        shared_static: 0,
        shared_dynamic: 0,
    };
    let all = ir::globals(module);
    let short_constants = types.layout.pointer_bits(4) == 32;
    if short_constants {
        globals.memory.push(Global {
            bytes: Vec::new(),
            constant: true,
        });
    }
    let mut dynamic = Vec::new();
    let mut dynamic_align = 16;
    for &global in &all {
        let ty = global.global_type();
        let space = global.ty().address_space();
        let align = global.alignment().max(types.layout.align(ty)).max(1);
        let size = types.layout.size(ty);
        if space == 3 {
            if size == 0 || global.is_declaration() {
                dynamic.push(global);
                dynamic_align = dynamic_align.max(align);
            } else {
                let offset = globals.shared_static.next_multiple_of(align);
                globals.addresses.insert(global, offset);
                globals.shared_static = offset + size;
            }
            continue;
        }
        let bytes = usize::try_from(size).map_err(|_| Unknown::new("a global of this size"))?;
        if space == 4 && short_constants {
            // Offset 0 is not used: it is the null pointer.
            let segment = &mut globals.memory[0].bytes;
            let offset = segment.len().max(1).next_multiple_of(align as usize);
            globals.addresses.insert(global, offset as u64);
            segment.resize(offset + bytes, 0);
            continue;
        }
        let region = globals.memory.len();
        globals.addresses.insert(global, region_base(region));
        globals.memory.push(Global {
            bytes: vec![0; bytes],
            constant: space == 4,
        });
    }
    globals.shared_dynamic = globals.shared_static.next_multiple_of(dynamic_align);
    for global in dynamic {
        globals.addresses.insert(global, globals.shared_dynamic);
    }
    Ok(globals)
}

impl<'m> Decoder<'m> {
    fn initialize_globals(&mut self) -> Decoded<()> {
        let mut placed: Vec<(Value<'m>, u64)> = self
            .globals
            .addresses
            .iter()
            .map(|(&g, &a)| (g, a))
            .collect();
        placed.sort_by_key(|&(_, address)| address);
        for (global, address) in placed {
            let Some(initializer) = global.initializer() else {
                continue;
            };
            if global.ty().address_space() == 3 {
                continue;
            }
            let (region, offset) = match crate::memory::global::region_of(address) {
                Some(region) => (region, 0),
                None => (0, address as usize),
            };
            let mut bytes = std::mem::take(&mut self.globals.memory[region].bytes);
            self.write_constant(initializer, &mut bytes[offset..])?;
            self.globals.memory[region].bytes = bytes;
        }
        Ok(())
    }

    fn parameter(&self, kernel: Value<'m>, index: u32, value: Value<'m>) -> Parameter {
        let ty = value.ty();
        if let Some(pointee) = kernel.byval(index) {
            return Parameter::ByValue(self.types.layout.size(pointee));
        }
        match ty.kind() {
            TypeKind::LLVMPointerTypeKind => {
                Parameter::Pointer(self.types.layout.pointer_bits(ty.address_space()))
            }
            TypeKind::LLVMIntegerTypeKind if ty.int_width() <= 64 => Parameter::Int(ty.int_width()),
            TypeKind::LLVMHalfTypeKind => Parameter::Real(Real::F16),
            TypeKind::LLVMBFloatTypeKind => Parameter::Real(Real::BF16),
            TypeKind::LLVMFloatTypeKind => Parameter::Real(Real::F32),
            TypeKind::LLVMDoubleTypeKind => Parameter::Real(Real::F64),
            _ => Parameter::Other(ty.to_string()),
        }
    }

    /// Number of a function of the module, which will be decoded unless it already is.
    fn function_number(&mut self, function: Value<'m>) -> Decoded<usize> {
        if let Some(&number) = self.numbers.get(&function) {
            return Ok(number);
        }
        let number = self.functions.len();
        self.functions.push(None);
        self.numbers.insert(function, number);
        self.queue.push(function);
        let mut next = 0;
        let mut take = |count: usize| -> Vec<Slot> {
            let slots = (next..next + count as Slot).collect();
            next += count as Slot;
            slots
        };
        let mut signature = Signature::default();
        for parameter in function.params() {
            let leaves = self.types.leaves(parameter.ty())?;
            signature.parameters.extend(take(leaves.len()));
        }
        let result = function.global_type().result();
        if result.kind() != TypeKind::LLVMVoidTypeKind {
            let leaves = self.types.leaves(result)?;
            signature.results.extend(take(leaves.len()));
        }
        self.signatures.insert(number, signature);
        Ok(number)
    }

    fn decode_function(&mut self, function: Value<'m>) -> Result<(), Error> {
        let number = self.numbers[&function];
        let signature = self.signatures.get(&number).cloned().unwrap_or_default();
        let flushes = function
            .function_attribute("denormal-fp-math-f32")
            .is_some_and(|mode| mode.starts_with("preserve-sign"));
        let single = match (self.target.vendor(), flushes) {
            (Vendor::Nvptx, false) => Real::F32,
            (Vendor::Nvptx, true) => Real::F32Flush,
            (Vendor::Amdgpu, false) => Real::F32Quiet,
            (Vendor::Amdgpu, true) => Real::F32FlushQuiet,
        };
        let mut tables = std::mem::take(&mut self.tables);
        let mut emitter = Emitter::new(self.target, &mut tables, &function.name(), single);
        emitter.slots(signature.parameters.len() + signature.results.len());
        let mut values = HashMap::new();
        let mut next = 0;
        for parameter in function.params() {
            let count = self
                .types
                .leaves(parameter.ty())
                .map_or(0, |leaves| leaves.len());
            values.insert(parameter, signature.parameters[next..next + count].to_vec());
            next += count;
        }
        let blocks = reverse_post_order(function.entry());
        let mut body = Body {
            decoder: self,
            emitter,
            texts: function.print_instructions(),
            values,
            first: HashMap::new(),
            edges: Vec::new(),
            number,
        };
        let outcome = body.blocks(&blocks);
        let emitter = body.emitter;
        let decoded = outcome.map(|()| emitter.finish(signature.parameters, signature.results));
        self.tables = tables;
        match decoded {
            Ok(finished) => {
                self.functions[number] = Some(finished);
                Ok(())
            }
            Err((what, instruction)) => Err(Error::Unsupported {
                what: what.0,
                function: function.name(),
                instruction,
            }),
        }
    }

    /// Name of a function that can call itself, directly or through others.
    fn recursion(&self) -> Option<String> {
        for &start in self.calls.keys() {
            let mut seen = HashSet::new();
            let mut work: Vec<usize> = self.calls[&start].iter().copied().collect();
            while let Some(next) = work.pop() {
                if next == start {
                    return self.functions[start].as_ref().map(|f| f.name.clone());
                }
                if seen.insert(next) {
                    work.extend(self.calls.get(&next).into_iter().flatten());
                }
            }
        }
        None
    }
}

/// State of decoding one function's body.
pub(crate) struct Body<'d, 'e, 'm> {
    decoder: &'d mut Decoder<'m>,
    pub(crate) emitter: Emitter<'e>,
    texts: HashMap<Value<'m>, String>,
    /// Slots of every value's leaves.
    values: HashMap<Value<'m>, Vec<Slot>>,
    /// First bytecode block of each LLVM block.
    first: HashMap<Block<'m>, BlockId>,
    /// Edges whose phi moves are still to be attached.
    edges: Vec<(EdgeId, Block<'m>, Block<'m>)>,
    number: usize,
}

impl<'m> Body<'_, '_, 'm> {
    fn blocks(&mut self, blocks: &[Block<'m>]) -> Result<(), (Unknown, String)> {
        for &block in blocks {
            let id = self.emitter.new_block();
            self.first.insert(block, id);
            for phi in phis(block) {
                let leaves = self
                    .decoder
                    .types
                    .leaves(phi.ty())
                    .map_err(|e| (e, self.text(phi)))?;
                let slots = self.emitter.slots(leaves.len());
                self.values.insert(phi, slots);
            }
        }
        for &block in blocks {
            let id = self.first[&block];
            self.emitter.enter(id);
            for instruction in block.instructions() {
                if instruction.opcode() == Opcode::LLVMPHI {
                    continue;
                }
                let line = match instruction.debug_location() {
                    Some((file, line, column)) => {
                        self.emitter.tables.line(Line { file, line, column })
                    }
                    None => 0,
                };
                let text = if instruction::needs_text(instruction) {
                    self.text(instruction)
                } else {
                    String::new()
                };
                self.emitter.at(line, text);
                self.instruction(block, instruction)
                    .map_err(|e| (e, self.text(instruction)))?;
            }
        }
        for (edge, from, to) in std::mem::take(&mut self.edges) {
            let mut moves = Vec::new();
            for phi in phis(to) {
                let Some((value, _)) = phi.incoming().into_iter().find(|(_, b)| *b == from) else {
                    continue;
                };
                let sources = self.value(value).map_err(|e| (e, self.text(phi)))?;
                let targets = &self.values[&phi];
                moves.extend(
                    targets
                        .iter()
                        .copied()
                        .zip(sources)
                        .filter(|(target, source)| target != source),
                );
            }
            self.emitter.set_moves(edge, moves);
        }
        Ok(())
    }

    /// An instruction's text without trailing metadata.
    fn text(&self, instruction: Value<'m>) -> String {
        let text = self.texts.get(&instruction).map_or("", String::as_str);
        text.split(", !").next().unwrap_or(text).trim().to_owned()
    }

    /// An edge from the LLVM block `from` to `to`.
    fn edge(&mut self, from: Block<'m>, to: Block<'m>) -> EdgeId {
        let edge = self.emitter.edge(self.first[&to]);
        self.edges.push((edge, from, to));
        edge
    }

    /// Slots of a value's leaves.
    pub(crate) fn value(&mut self, value: Value<'m>) -> Decoded<Vec<Slot>> {
        if let Some(slots) = self.values.get(&value) {
            return Ok(slots.clone());
        }
        let bits = self.decoder.constant(value)?;
        Ok(bits.into_iter().map(|b| self.emitter.constant(b)).collect())
    }

    /// Slot of a value with one leaf.
    pub(crate) fn scalar(&mut self, value: Value<'m>) -> Decoded<Slot> {
        let slots = self.value(value)?;
        match slots[..] {
            [slot] => Ok(slot),
            _ => Err(Unknown::new(format!("a scalar of type {}", value.ty()))),
        }
    }

    fn vendor(&self) -> Vendor {
        self.decoder.target.vendor()
    }
}

fn phis<'m>(block: Block<'m>) -> impl Iterator<Item = Value<'m>> {
    block
        .instructions()
        .into_iter()
        .take_while(|i| i.opcode() == Opcode::LLVMPHI)
}

/// The blocks reachable from `entry`, each before its successors except along back edges.
fn reverse_post_order(entry: Block<'_>) -> Vec<Block<'_>> {
    fn targets<'m>(block: Block<'m>) -> Vec<Block<'m>> {
        let terminator = block.instructions().pop();
        terminator.map(Value::successors).unwrap_or_default()
    }
    let mut order = Vec::new();
    let mut seen = HashSet::from([entry]);
    let mut stack = vec![(entry, targets(entry))];
    while let Some((block, remaining)) = stack.last_mut() {
        if let Some(next) = remaining.pop() {
            if seen.insert(next) {
                let further = targets(next);
                stack.push((next, further));
            }
        } else {
            order.push(*block);
            stack.pop();
        }
    }
    order.reverse();
    order
}
