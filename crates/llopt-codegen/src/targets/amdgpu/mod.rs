//! AMD: emission for LLVM's AMDGPU back end.

mod atomic;
mod back_end;
mod copy;
mod elementwise;
mod kernel;
pub(crate) mod library;
mod matrix;
mod memory;
mod overflow;
mod schedule;
mod shared;

use inkwell::types::{BasicType, BasicTypeEnum};
use inkwell::values::InstructionValue;
use llopt_plan::element::Element;
use llopt_target::{Feature, Target};

use crate::llvm::c_api::fence;
use crate::llvm::emitter::{AsmEffect, Emitter, V};
use crate::targets::hooks::{
    Access, AccessCounts, AssemblyRules, Atomic, BufferAccess, BufferHooks, BufferPlace,
    FenceOrdering, Hooks, Launch, MaskedLoad, Math, MatrixAccess, MatrixHooks, Rounding,
    Scheduling, Scope, SmallFloat, SourcePlace, Update, WarpCopies, WarpCopy,
};

/// The hooks of AMD's architectures.
pub struct Amdgpu {
    target: Target,
}

impl Amdgpu {
    /// Hooks for `target`, which is one of AMD's.
    #[must_use]
    pub fn new(target: Target) -> Self {
        Self { target }
    }
}

impl Hooks for Amdgpu {
    fn target(&self) -> Target {
        self.target
    }

    fn assembly_rules(&self) -> AssemblyRules {
        AssemblyRules {
            comments: &[";", "//"],
            separators: "\n",
            directives: &[
                "2byte", "4byte", "8byte", "byte", "hword", "int", "long", "quad", "short", "word",
            ],
            blocks: false,
        }
    }

    fn thread_in_block<'ctx>(&self, e: &Emitter<'ctx>) -> V<'ctx> {
        e.intrinsic("llvm.amdgcn.workitem.id.x", &[], &[])
    }

    fn block_in_cluster<'ctx>(&self, e: &Emitter<'ctx>) -> V<'ctx> {
        if self.target.has(Feature::AsyncLoadToLds) {
            e.intrinsic("llvm.amdgcn.cluster.workgroup.id.x", &[], &[])
        } else {
            e.i32(0)
        }
    }

    fn program_id<'ctx>(&self, e: &Emitter<'ctx>, axis: u32, blocks_per_cluster: u32) -> V<'ctx> {
        kernel::program_id(e, axis, blocks_per_cluster)
    }

    fn num_programs<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        axis: u32,
        _blocks_per_cluster: u32,
    ) -> V<'ctx> {
        kernel::num_programs(e, axis)
    }

    fn barrier<'ctx>(&self, e: &Emitter<'ctx>) {
        fence(e.context, e.builder(), FenceOrdering::Release, "workgroup");
        e.intrinsic_call("llvm.amdgcn.s.barrier", &[], &[]);
        fence(e.context, e.builder(), FenceOrdering::Acquire, "workgroup");
    }

    fn shared_memory_barrier(&self, e: &Emitter<'_>) {
        shared::block_barrier(e);
    }

    fn execution_barrier(&self, e: &Emitter<'_>) {
        e.intrinsic_call("llvm.amdgcn.s.barrier", &[], &[]);
    }

    fn wait_for_accesses(&self, e: &Emitter<'_>, most: AccessCounts) -> bool {
        memory::wait(e, self.target, most);
        true
    }

    fn schedule(&self, e: &Emitter<'_>, guide: Scheduling) -> bool {
        match guide {
            Scheduling::Barrier { may_pass } => {
                e.intrinsic_call("llvm.amdgcn.sched.barrier", &[], &[e.i32(may_pass)])
            }
            Scheduling::Group {
                kinds,
                instructions,
                pipeline,
            } => {
                let fields = [kinds, instructions, pipeline].map(|field| e.i32(field));
                e.intrinsic_call("llvm.amdgcn.sched.group.barrier", &[], &fields)
            }
            Scheduling::BesideProducts(products) => {
                return schedule::beside_products(e, self.target, products);
            }
            Scheduling::Priority(priority) => {
                let priority = e.int(16).const_int(priority as u64, false).into();
                e.intrinsic_call("llvm.amdgcn.s.setprio", &[], &[priority])
            }
        };
        true
    }

    fn copy_of<'ctx>(&self, e: &Emitter<'ctx>, word: V<'ctx>) -> V<'ctx> {
        let copied = e.inline_asm(
            "v_mov_b32 $0, $1",
            "=v,v",
            &[word.get_type()],
            &[word],
            AsmEffect::Anything,
        );
        copied[0]
    }

    fn private_memory<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        of: BasicTypeEnum<'ctx>,
        count: u32,
    ) -> Option<V<'ctx>> {
        let memory = e.alloca_at_entry(of.array_type(count).into());
        // By a copy of the address; otherwise LLVM would keep the values in registers.
        Some(self.copy_of(e, memory.into()))
    }

    fn warp_barrier<'ctx>(&self, e: &Emitter<'ctx>) {
        shared::warp_barrier(e);
    }

    fn shuffle_xor<'ctx>(&self, e: &Emitter<'ctx>, word: V<'ctx>, xor: u32) -> V<'ctx> {
        shared::shuffle_xor(e, self.target, word, xor)
    }

    fn map_lanes<'ctx>(&self, e: &Emitter<'ctx>, word: V<'ctx>, source: &[u32]) -> Option<V<'ctx>> {
        shared::map_lanes(e, self.target(), word, source)
    }

    fn shuffle_from<'ctx>(&self, e: &Emitter<'ctx>, word: V<'ctx>, lane: V<'ctx>) -> V<'ctx> {
        shared::shuffle_from(e, word, lane)
    }

    fn swap_lanes<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        words: [V<'ctx>; 2],
        lane: u32,
    ) -> Option<[V<'ctx>; 2]> {
        shared::swap_lanes(e, self.target, words, lane)
    }

    fn permute_selector<'ctx>(&self, e: &Emitter<'ctx>, bytes: [u8; 4]) -> V<'ctx> {
        shared::permute_selector(e, bytes)
    }

    fn permute_bytes_by<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        low: V<'ctx>,
        high: V<'ctx>,
        selector: V<'ctx>,
    ) -> V<'ctx> {
        shared::permute_bytes_by(e, low, high, selector)
    }

    fn async_copy_bytes(&self) -> &'static [u32] {
        if self.target.has(Feature::DirectToLdsWide) {
            &[16, 4]
        } else if self.target.has(Feature::DirectToLds) {
            &[4]
        } else {
            &[]
        }
    }

    fn warp_copies(&self) -> Option<&dyn WarpCopies> {
        match self.target.has(Feature::DirectToLds) {
            true => Some(self),
            false => None,
        }
    }

    fn load_matrix<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        access: &MatrixAccess,
        address: V<'ctx>,
    ) -> Option<Vec<V<'ctx>>> {
        shared::load_matrix(e, access, address)
    }

    fn store_matrix<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        access: &MatrixAccess,
        address: V<'ctx>,
        registers: &[V<'ctx>],
    ) -> bool {
        shared::store_matrix(e, access, address, registers)
    }

    fn load<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        access: &Access<'ctx>,
        other: Option<&[V<'ctx>]>,
    ) -> Vec<V<'ctx>> {
        memory::load(e, access, other)
    }

    fn share_condition(&self, one: &Access<'_>, next: &Access<'_>) -> bool {
        memory::share_condition(one, next)
    }

    fn load_all<'ctx>(&self, e: &Emitter<'ctx>, loads: &[MaskedLoad<'ctx>]) -> Vec<Vec<V<'ctx>>> {
        memory::load_all(e, loads)
    }

    fn store<'ctx>(&self, e: &Emitter<'ctx>, access: &Access<'ctx>, words: &[V<'ctx>]) {
        memory::store(e, access, words);
    }

    fn order_memory(&self, e: &Emitter<'_>, ordering: FenceOrdering, scope: Scope) {
        atomic::order_memory(e, ordering, scope);
    }

    fn atomic_update<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        update: Update,
        atomic: &Atomic<'ctx>,
        values: &[V<'ctx>],
    ) -> Vec<V<'ctx>> {
        atomic::update(e, self.target, update, atomic, values)
    }

    fn compare_and_swap<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        atomic: &Atomic<'ctx>,
        expected: V<'ctx>,
        new: V<'ctx>,
    ) -> V<'ctx> {
        atomic::compare_and_swap(e, atomic, expected, new)
    }

    fn math<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        function: Math,
        element: Element,
        arguments: &[V<'ctx>],
    ) -> Option<V<'ctx>> {
        elementwise::math(e, function, element, arguments)
    }

    fn divide<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        _element: Element,
        a: V<'ctx>,
        b: V<'ctx>,
    ) -> V<'ctx> {
        e.fdiv(a, b)
    }

    fn divide_precisely<'ctx>(&self, e: &Emitter<'ctx>, a: V<'ctx>, b: V<'ctx>) -> V<'ctx> {
        e.fdiv(a, b)
    }

    fn clip<'ctx>(
        &self,
        _e: &Emitter<'ctx>,
        _element: Element,
        _x: V<'ctx>,
        _limit: V<'ctx>,
        _propagate_nan: bool,
    ) -> Option<V<'ctx>> {
        None
    }

    fn convert_floats<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        from: Element,
        to: Element,
        rounding: Rounding,
        values: &[V<'ctx>],
    ) -> Option<Vec<V<'ctx>>> {
        elementwise::convert_floats(e, self.target, from, to, rounding, values)
    }

    fn computes_bf16_as_singles(&self) -> bool {
        !self.target.has(Feature::PackedBf16Convert)
    }

    fn narrowed_to_bf16<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        single: V<'ctx>,
        is_exact: bool,
    ) -> V<'ctx> {
        elementwise::narrowed_to_bf16(e, single, is_exact)
    }

    fn widen_fp4<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        word: V<'ctx>,
        to: Element,
    ) -> Option<Vec<V<'ctx>>> {
        elementwise::widen_fp4(e, self.target, word, to)
    }

    fn widen_scaled_pair<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        from: SmallFloat,
        word: V<'ctx>,
        place: u32,
        scale: V<'ctx>,
        to: Element,
    ) -> Option<V<'ctx>> {
        elementwise::widen_scaled_pair(e, self.target, from, word, place, scale, to)
    }

    fn print<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        format: V<'ctx>,
        format_bytes: usize,
        arguments: &[(V<'ctx>, bool)],
    ) {
        kernel::print(e, kernel::Stream::Output, format, format_bytes, arguments);
    }

    fn assert_fail<'ctx>(&self, e: &Emitter<'ctx>, message: &str, place: SourcePlace<'_>) {
        let text = format!(
            "device assertion failed: '{message}', in unknown at {}:{}\n",
            place.file, place.line
        );
        let format = e.string(&text, "printfFormat_");
        kernel::print(e, kernel::Stream::Error, format, text.len() + 1, &[]);
        // All threads must be able to report before the first one stops the kernel.
        self.barrier(e);
        e.intrinsic_call("llvm.trap", &[], &[]);
    }

    fn library_function<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        symbol: &str,
        result: Element,
        arguments: &[V<'ctx>],
    ) -> Option<V<'ctx>> {
        elementwise::library_function(e, symbol, result, arguments)
    }

    fn mark_kernel<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        function: inkwell::values::FunctionValue<'ctx>,
        launch: Launch,
    ) {
        kernel::mark_kernel(e, function, launch);
    }

    fn block_scope(&self) -> &'static str {
        "workgroup"
    }

    fn matrices(&self) -> Option<&dyn MatrixHooks> {
        Some(self)
    }

    fn of_all_lanes<'ctx>(&self, e: &Emitter<'ctx>, number: V<'ctx>) -> V<'ctx> {
        shared::of_all_lanes(e, number)
    }

    fn buffers(&self) -> Option<&dyn BufferHooks> {
        Some(self)
    }
}

impl WarpCopies for Amdgpu {
    fn of_first_lane<'ctx>(&self, e: &Emitter<'ctx>, word: V<'ctx>) -> V<'ctx> {
        shared::of_first_lane(e, word)
    }

    fn copy<'ctx>(&self, e: &Emitter<'ctx>, copy: &WarpCopy<'ctx>) {
        copy::start(e, self.target, copy);
    }

    fn end_group<'ctx>(&self, e: &Emitter<'ctx>) -> InstructionValue<'ctx> {
        copy::end_group(e)
    }

    fn wait<'ctx>(&self, e: &Emitter<'ctx>) -> InstructionValue<'ctx> {
        copy::wait(e)
    }

    fn set_wait<'ctx>(&self, e: &Emitter<'ctx>, wait: InstructionValue<'ctx>, instructions: u32) {
        copy::set_wait(e, wait, instructions);
    }

    fn keep_apart(&self, e: &Emitter<'_>) {
        copy::keep_apart(e);
    }
}

impl BufferHooks for Amdgpu {
    fn descriptor<'ctx>(&self, e: &Emitter<'ctx>, base: V<'ctx>) -> V<'ctx> {
        memory::descriptor(e, self.target, base)
    }

    fn masked_offset<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        mask: Option<V<'ctx>>,
        offset: V<'ctx>,
    ) -> V<'ctx> {
        memory::masked_offset(e, mask, offset)
    }

    fn load<'ctx>(&self, e: &Emitter<'ctx>, access: &BufferAccess<'ctx>) -> Vec<V<'ctx>> {
        memory::buffer_load(e, self.target, access)
    }

    fn atomic_update<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        update: Update,
        place: BufferPlace<'ctx>,
        atomic: &Atomic<'ctx>,
        values: &[V<'ctx>],
    ) -> Vec<V<'ctx>> {
        atomic::buffer_update(e, self.target, update, place, atomic, values)
    }

    fn compare_and_swap<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        place: BufferPlace<'ctx>,
        atomic: &Atomic<'ctx>,
        expected: V<'ctx>,
        new: V<'ctx>,
    ) -> V<'ctx> {
        atomic::buffer_compare_and_swap(e, self.target, place, atomic, expected, new)
    }

    fn store<'ctx>(&self, e: &Emitter<'ctx>, access: &BufferAccess<'ctx>, words: &[V<'ctx>]) {
        memory::buffer_store(e, self.target, access, words);
    }
}
