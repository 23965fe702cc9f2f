//! Memory, calls, inline assembly and control flow.

use inkwell::AddressSpace;
use inkwell::attributes::AttributeLoc;
use inkwell::basic_block::BasicBlock;
use inkwell::intrinsics::Intrinsic;
use inkwell::module::Linkage;
use inkwell::types::{AsTypeRef, BasicMetadataTypeEnum, BasicType, BasicTypeEnum, FunctionType};
use inkwell::values::{
    BasicMetadataValueEnum, BasicValue, CallSiteValue, FunctionValue, PhiValue, PointerValue,
};

use crate::llvm::c_api;
use crate::targets::hooks::{Ordering, Update};

use super::{AsmEffect, BUILT, Emitter, MEMORY_NONE, MEMORY_READ, V, ValueKindOf, built};
use llopt_plan::element::space;

/// Reads and writes of memory that the module cannot reach, as LLVM's attribute has it.
const INACCESSIBLE: u64 = 3 << 2;
/// Reads and writes of what arguments point to.
const POINTED_TO: u64 = 3;

impl<'ctx> Emitter<'ctx> {
    // Memory.

    /// `base + index * size of element`; `index` is signed.
    pub fn gep(&self, element: BasicTypeEnum<'ctx>, base: V<'ctx>, index: V<'ctx>) -> V<'ctx> {
        if self.is_zero(index) {
            return base;
        }
        // SAFETY: one index into a sized element type; LLVM checks nothing else of it.
        built(unsafe {
            self.builder.build_gep(
                element,
                base.into_pointer_value(),
                &[index.into_int_value()],
                "",
            )
        })
        .into()
    }

    /// `base + bytes`, where the result stays inside of what `base` points into.
    pub fn byte_offset(&self, base: V<'ctx>, bytes: i64) -> V<'ctx> {
        if bytes == 0 {
            return base;
        }
        let index = self.context.i32_type().const_int(bytes as u64, true);
        // SAFETY: one index into a sized element type.
        built(unsafe {
            self.builder.build_in_bounds_gep(
                self.context.i8_type(),
                base.into_pointer_value(),
                &[index],
                "",
            )
        })
        .into()
    }

    /// A plain load.
    pub fn load(&self, of: BasicTypeEnum<'ctx>, pointer: V<'ctx>, align_bytes: u32) -> V<'ctx> {
        let value = built(
            self.builder
                .build_load(of, pointer.into_pointer_value(), ""),
        );
        if let Some(instruction) = value.as_instruction_value() {
            instruction
                .set_alignment(align_bytes)
                .expect("bug in llopt: alignments are powers of two");
        }
        value
    }

    /// A plain store.
    pub fn store(
        &self,
        value: V<'ctx>,
        pointer: V<'ctx>,
        align_bytes: u32,
    ) -> inkwell::values::InstructionValue<'ctx> {
        let store = built(
            self.builder
                .build_store(pointer.into_pointer_value(), value),
        );
        store
            .set_alignment(align_bytes)
            .expect("bug in llopt: alignments are powers of two");
        store
    }

    /// Stack space for one value, in the current block.
    pub fn alloca(&self, of: BasicTypeEnum<'ctx>) -> PointerValue<'ctx> {
        built(self.builder.build_alloca(of, ""))
    }

    /// Stack space for one value, in the entry block of the function.
    pub fn alloca_at_entry(&self, of: BasicTypeEnum<'ctx>) -> PointerValue<'ctx> {
        let here = self.block();
        let entry = self.function().get_first_basic_block();
        let entry = entry.expect("bug in llopt: the function has a block");
        match entry.get_first_instruction() {
            Some(first) => self.builder.position_before(&first),
            None => self.builder.position_at_end(entry),
        }
        let memory = self.alloca(of);
        self.enter(here);
        memory
    }

    /// The address of field `index` of a structure in memory.
    pub fn field(
        &self,
        of: BasicTypeEnum<'ctx>,
        pointer: PointerValue<'ctx>,
        index: u32,
    ) -> PointerValue<'ctx> {
        built(self.builder.build_struct_gep(of, pointer, index, ""))
    }

    // Calls.

    /// Calls an intrinsic that is overloaded on `overload` (empty for most).
    pub fn intrinsic(
        &self,
        name: &'static str,
        overload: &[BasicTypeEnum<'ctx>],
        arguments: &[V<'ctx>],
    ) -> V<'ctx> {
        self.intrinsic_call(name, overload, arguments)
            .expect_basic("bug in llopt: this intrinsic has a result")
    }

    /// The same for an intrinsic without a result.
    pub fn intrinsic_call(
        &self,
        name: &'static str,
        overload: &[BasicTypeEnum<'ctx>],
        arguments: &[V<'ctx>],
    ) -> ValueKindOf<'ctx> {
        // LLVM unifies types: their addresses name them.
        let key = (
            name,
            overload
                .iter()
                .map(|of| of.as_type_ref() as usize)
                .collect(),
        );
        let function = *self.intrinsics.borrow_mut().entry(key).or_insert_with(|| {
            Intrinsic::find(name)
                .and_then(|intrinsic| intrinsic.get_declaration(&self.module, overload))
                .unwrap_or_else(|| {
                    panic!("bug in llopt: LLVM has no intrinsic '{name}' with these types")
                })
        });
        self.call(function, arguments)
    }

    /// Calls a function.
    pub fn call(&self, function: FunctionValue<'ctx>, arguments: &[V<'ctx>]) -> ValueKindOf<'ctx> {
        let arguments: Vec<BasicMetadataValueEnum> =
            arguments.iter().map(|value| (*value).into()).collect();
        ValueKindOf(built(self.builder.build_call(function, &arguments, "")))
    }

    /// The declaration of an outside function, made on first use. Device libraries' functions do not
    /// unwind, return, and touch no memory when `pure`.
    pub fn declare(&self, name: &str, of: FunctionType<'ctx>, pure: bool) -> FunctionValue<'ctx> {
        if let Some(function) = self.module.get_function(name) {
            return function;
        }
        let function = self.module.add_function(name, of, Some(Linkage::External));
        function.add_attribute(
            AttributeLoc::Function,
            self.context.create_enum_attribute(self.kinds.nounwind, 0),
        );
        if pure {
            function.add_attribute(
                AttributeLoc::Function,
                self.context.create_enum_attribute(self.kinds.willreturn, 0),
            );
            function.add_attribute(
                AttributeLoc::Function,
                self.context.create_enum_attribute(self.kinds.memory, 0),
            );
        }
        function
    }

    /// Calls a pure outside function of the arguments' types.
    pub fn library_call(
        &self,
        name: &str,
        result: BasicTypeEnum<'ctx>,
        arguments: &[V<'ctx>],
    ) -> V<'ctx> {
        let parameters: Vec<BasicMetadataTypeEnum> = arguments
            .iter()
            .map(|value| value.get_type().into())
            .collect();
        let function = self.declare(name, result.fn_type(&parameters, false), true);
        self.call(function, arguments)
            .expect_basic("bug in llopt: library functions have results")
    }

    /// Calls the function that a simulator provides to check an index. It accesses only memory that nothing else can
    /// access, so the code around it does not change.
    pub fn expect_below(&self, index: V<'ctx>, bound: u32) {
        let attributes = [(self.kinds.memory, INACCESSIBLE)];
        self.tell_simulator("llopt_expect_below", index, bound, &attributes);
    }

    /// Calls the function that a simulator provides where a buffer of shared memory begins, or ends. To LLVM it reads
    /// and writes the buffer, so no access may be moved past it, and it is convergent: copied into two branches, the
    /// second call would end what the first branch has written.
    pub fn buffer_life(&self, begins: bool, buffer: V<'ctx>, bytes: u32) {
        let name = match begins {
            true => "llopt_buffer_begins",
            false => "llopt_buffer_ends",
        };
        let attributes = [
            (self.kinds.memory, INACCESSIBLE | POINTED_TO),
            (self.kinds.convergent, 0),
        ];
        self.tell_simulator(name, buffer, bytes, &attributes);
    }

    fn tell_simulator(&self, name: &str, what: V<'ctx>, number: u32, attributes: &[(u32, u64)]) {
        let word = self.context.i32_type();
        let parameters: [BasicMetadataTypeEnum<'ctx>; 2] = [what.get_type().into(), word.into()];
        let of = self.context.void_type().fn_type(&parameters, false);
        let function = self.declare(name, of, false);
        for (kind, value) in attributes.iter().chain(&[(self.kinds.willreturn, 0)]) {
            let attribute = self.context.create_enum_attribute(*kind, *value);
            function.add_attribute(AttributeLoc::Function, attribute);
        }
        self.call(
            function,
            &[what, word.const_int(number.into(), false).into()],
        );
    }

    /// Inline assembly with `results` (several come back as members of a structure).
    pub fn inline_asm(
        &self,
        text: &str,
        constraints: &str,
        results: &[BasicTypeEnum<'ctx>],
        arguments: &[V<'ctx>],
        effect: AsmEffect,
    ) -> Vec<V<'ctx>> {
        let parameters: Vec<BasicMetadataTypeEnum> = arguments
            .iter()
            .map(|value| value.get_type().into())
            .collect();
        let of = match results {
            [] => self.context.void_type().fn_type(&parameters, false),
            [single] => single.fn_type(&parameters, false),
            several => self
                .context
                .struct_type(several, false)
                .fn_type(&parameters, false),
        };
        // NVPTX's alias analysis assumes that assembly has no effects unless the constraints say otherwise; the
        // attributes below narrow that down.
        let constraints = match effect {
            AsmEffect::Reads => format!("{constraints},~{{memory}}"),
            _ => constraints.to_owned(),
        };
        let assembly = self.context.create_inline_asm(
            of,
            text.to_owned(),
            constraints,
            matches!(effect, AsmEffect::Anything | AsmEffect::Together),
            false,
            None,
            false,
        );
        let arguments: Vec<BasicMetadataValueEnum> =
            arguments.iter().map(|value| (*value).into()).collect();
        let call = built(
            self.builder
                .build_indirect_call(of, assembly, &arguments, ""),
        );
        call.add_attribute(
            AttributeLoc::Function,
            self.context.create_enum_attribute(self.kinds.nounwind, 0),
        );
        match effect {
            AsmEffect::Pure => self.limit_memory(call, MEMORY_NONE),
            AsmEffect::Reads => self.limit_memory(call, MEMORY_READ),
            AsmEffect::Anything => {}
            AsmEffect::Together => self.mark_convergent(call),
        }
        match results {
            [] => Vec::new(),
            [_] => vec![ValueKindOf(call).expect_basic("bug in llopt: assembly with a result")],
            several => {
                let all = ValueKindOf(call).expect_basic("bug in llopt: assembly with results");
                (0..several.len() as u32)
                    .map(|i| self.member(all, i))
                    .collect()
            }
        }
    }

    fn limit_memory(&self, call: CallSiteValue<'ctx>, effects: u64) {
        call.add_attribute(
            AttributeLoc::Function,
            self.context.create_enum_attribute(self.kinds.willreturn, 0),
        );
        call.add_attribute(
            AttributeLoc::Function,
            self.context
                .create_enum_attribute(self.kinds.memory, effects),
        );
    }

    /// Marks a call as one that all threads of a warp must reach together.
    pub fn mark_convergent(&self, call: CallSiteValue<'ctx>) {
        call.add_attribute(
            AttributeLoc::Function,
            self.context.create_enum_attribute(self.kinds.convergent, 0),
        );
    }

    // Control flow.

    /// A new block at the end of the current function.
    pub fn new_block(&self, function: FunctionValue<'ctx>) -> BasicBlock<'ctx> {
        self.context.append_basic_block(function, "")
    }

    /// The block that instructions are appended to.
    pub fn block(&self) -> BasicBlock<'ctx> {
        self.builder.get_insert_block().expect(BUILT)
    }

    /// The function that instructions are appended to.
    pub fn function(&self) -> FunctionValue<'ctx> {
        self.block()
            .get_parent()
            .expect("bug in llopt: blocks belong to functions")
    }

    /// Continues at the end of `block`.
    pub fn enter(&self, block: BasicBlock<'ctx>) {
        self.builder.position_at_end(block);
    }

    /// Jumps.
    pub fn branch(&self, to: BasicBlock<'ctx>) {
        built(self.builder.build_unconditional_branch(to));
    }

    /// Jumps by a condition.
    pub fn branch_if(
        &self,
        condition: V<'ctx>,
        then: BasicBlock<'ctx>,
        otherwise: BasicBlock<'ctx>,
    ) {
        built(
            self.builder
                .build_conditional_branch(condition.into_int_value(), then, otherwise),
        );
    }

    /// Returns from the function.
    pub fn return_(&self, value: Option<V<'ctx>>) {
        match value {
            Some(value) => built(self.builder.build_return(Some(&value))),
            None => built(self.builder.build_return(None)),
        };
    }

    /// Marks the current point as unreachable.
    pub fn unreachable(&self) {
        built(self.builder.build_unreachable());
    }

    /// A phi node.
    pub fn phi(&self, of: BasicTypeEnum<'ctx>) -> PhiValue<'ctx> {
        built(self.builder.build_phi(of, ""))
    }

    /// Runs `emit` under a condition: its value, of type `of`, or anything where the condition is false.
    pub fn masked(
        &self,
        mask: Option<V<'ctx>>,
        of: BasicTypeEnum<'ctx>,
        emit: impl FnOnce() -> V<'ctx>,
    ) -> V<'ctx> {
        let Some(mask) = mask else { return emit() };
        let (from, function) = (self.block(), self.function());
        let (then, after) = (self.new_block(function), self.new_block(function));
        self.branch_if(mask, then, after);
        self.enter(then);
        let value = emit();
        let then = self.block();
        self.branch(after);
        self.enter(after);
        let phi = self.phi(of);
        let otherwise = self.poison(of);
        phi.add_incoming(&[(&value, then), (&otherwise, from)]);
        phi.as_basic_value()
    }

    /// LLVM's atomic update.
    pub fn atomic_update(
        &self,
        update: Update,
        pointer: V<'ctx>,
        value: V<'ctx>,
        ordering: Ordering,
        scope: &str,
    ) -> V<'ctx> {
        c_api::atomic_update(
            self.context,
            &self.builder,
            update,
            pointer,
            value,
            ordering,
            scope,
        )
    }

    /// LLVM's compare-and-swap; returns the old value.
    pub fn compare_exchange(
        &self,
        pointer: V<'ctx>,
        expected: V<'ctx>,
        new: V<'ctx>,
        ordering: Ordering,
        scope: &str,
    ) -> V<'ctx> {
        let pair = c_api::compare_exchange(
            self.context,
            &self.builder,
            pointer,
            expected,
            new,
            ordering,
            scope,
        );
        self.member(pair, 0)
    }

    /// Tells LLVM that the result of the call `value` is below `end`.
    pub fn below(&self, value: V<'ctx>, end: u32) {
        let call = value.as_instruction_value().filter(|instruction| {
            instruction.get_opcode() == inkwell::values::InstructionOpcode::Call
        });
        if let Some(call) = call {
            let range = self
                .context
                .metadata_node(&[self.i32(0).into(), self.i32(i64::from(end)).into()]);
            call.set_metadata(range, self.context.get_kind_id("range"))
                .expect("bug in llopt: the metadata is a node");
        }
    }

    /// Attaches empty metadata of the given kinds to the instruction that defines `value`.
    pub fn annotate(&self, value: V<'ctx>, kinds: &[&str]) {
        if let Some(instruction) = value.as_instruction_value() {
            let empty = self.context.metadata_node(&[]);
            for kind in kinds {
                instruction
                    .set_metadata(empty, self.context.get_kind_id(kind))
                    .expect("bug in llopt: the metadata is a node");
            }
        }
    }

    /// Sixteen bytes of zeros in global memory, read in place of masked-off data.
    pub fn zeros(&self) -> V<'ctx> {
        const NAME: &str = "zeros";
        let global = self.module.get_global(NAME).unwrap_or_else(|| {
            let of = self.context.i8_type().array_type(16);
            let space = Some(AddressSpace::from(space::GLOBAL));
            let global = self.module.add_global(of, space, NAME);
            global.set_initializer(&of.const_zero());
            global.set_constant(true);
            global.set_linkage(Linkage::Internal);
            global.set_alignment(16);
            global
        });
        global.as_pointer_value().into()
    }

    /// A constant string in global memory, with a terminating zero.
    pub fn string(&self, text: &str, name: &str) -> V<'ctx> {
        let data = self.context.const_string(text.as_bytes(), true);
        let global = self.module.add_global(
            data.get_type(),
            Some(AddressSpace::from(space::GENERIC)),
            name,
        );
        global.set_initializer(&data);
        global.set_constant(true);
        global.set_linkage(Linkage::Internal);
        global.as_pointer_value().into()
    }
}
