//! NVIDIA: emission for LLVM's NVPTX back end.
//!
//! Repeated because both vendors' hooks have the trait's signatures, and forward to files of the same names.

mod atomic;
mod back_end;
mod bulk;
mod elementwise;
mod kernel;
pub(crate) mod library;
mod matrix;
mod memory;
mod partition;
mod shared;
mod warp_group;
mod widen;

use llopt_plan::element::{Element, Float8};
use llopt_plan::reduction::warp::WarpCombination;
use llopt_target::{Feature, Target};

use crate::llvm::emitter::{AsmEffect, Emitter, V};
use crate::targets::hooks::{
    Access, AssemblyRules, AsyncCopy, Atomic, BulkHooks, FenceOrdering, GridDependency, Hooks,
    Launch, Math, MatrixAccess, MatrixHooks, PartitionHooks, Rounding, Scope, SourcePlace, Update,
    WarpGroupHooks,
};
use crate::values::words::packed;

/// The barrier of all threads of a block.
const BLOCK_BARRIER: &str = "llvm.nvvm.barrier.cta.sync.aligned.all";

/// The hooks of NVIDIA's architectures.
pub struct Nvptx {
    target: Target,
    flushes_denormals: bool,
}

impl Nvptx {
    /// Hooks for `target`, which is one of NVIDIA's.
    #[must_use]
    pub fn new(target: Target) -> Self {
        Self {
            target,
            flushes_denormals: true,
        }
    }

    /// Whether functions of a real variable flush denormal numbers of 32 bits to zero, as they do by
    /// default: with or without libdevice.
    #[must_use]
    pub fn flushing_denormals(mut self, flushes: bool) -> Self {
        self.flushes_denormals = flushes;
        self
    }
}

impl Hooks for Nvptx {
    fn target(&self) -> Target {
        self.target
    }

    fn assembly_rules(&self) -> AssemblyRules {
        AssemblyRules {
            comments: &["//"],
            separators: ";{}",
            directives: &[
                "branchtargets",
                "callprototype",
                "calltargets",
                "local",
                "param",
                "pragma",
                "reg",
                "shared",
            ],
            blocks: true,
        }
    }

    fn thread_in_block<'ctx>(&self, e: &Emitter<'ctx>) -> V<'ctx> {
        e.intrinsic("llvm.nvvm.read.ptx.sreg.tid.x", &[], &[])
    }

    fn block_in_cluster<'ctx>(&self, e: &Emitter<'ctx>) -> V<'ctx> {
        e.intrinsic("llvm.nvvm.read.ptx.sreg.cluster.ctarank", &[], &[])
    }

    fn program_id<'ctx>(&self, e: &Emitter<'ctx>, axis: u32, blocks_per_cluster: u32) -> V<'ctx> {
        kernel::program_id(e, axis, blocks_per_cluster)
    }

    fn num_programs<'ctx>(&self, e: &Emitter<'ctx>, axis: u32, blocks_per_cluster: u32) -> V<'ctx> {
        kernel::num_programs(e, axis, blocks_per_cluster)
    }

    fn copy_of<'ctx>(&self, e: &Emitter<'ctx>, word: V<'ctx>) -> V<'ctx> {
        let copied = e.inline_asm(
            "mov.b32 $0, $1;",
            "=r,r",
            &[word.get_type()],
            &[word],
            AsmEffect::Pure,
        );
        copied[0]
    }

    fn barrier<'ctx>(&self, e: &Emitter<'ctx>) {
        e.intrinsic_call(BLOCK_BARRIER, &[], &[e.i32(0)]);
    }

    fn warp_barrier<'ctx>(&self, e: &Emitter<'ctx>) {
        shared::warp_barrier(e);
    }

    fn shuffle_xor<'ctx>(&self, e: &Emitter<'ctx>, word: V<'ctx>, xor: u32) -> V<'ctx> {
        shared::shuffle_xor(e, self.target, word, xor)
    }

    fn shuffle_from<'ctx>(&self, e: &Emitter<'ctx>, word: V<'ctx>, lane: V<'ctx>) -> V<'ctx> {
        shared::shuffle_from(e, word, lane)
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

    fn combine_warp<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        combination: WarpCombination,
        word: V<'ctx>,
    ) -> Option<V<'ctx>> {
        let has_it = self.target.has(Feature::WarpReduceInteger);
        has_it.then(|| shared::combine_warp(e, combination, word))
    }

    /// As assembly, which no access to memory passes: LLVM's intrinsics of the same name access none.
    fn grid_dependency(&self, e: &Emitter<'_>, step: GridDependency) {
        let text = match step {
            GridDependency::Wait => "griddepcontrol.wait;",
            GridDependency::LaunchDependents => "griddepcontrol.launch_dependents;",
        };
        e.inline_asm(text, "~{memory}", &[], &[], AsmEffect::Anything);
    }

    fn block_scope(&self) -> &'static str {
        "block"
    }

    fn async_copy_bytes(&self) -> &'static [u32] {
        if self.target.has(Feature::AsyncCopy) {
            &[16, 8, 4]
        } else {
            &[]
        }
    }

    fn async_copy<'ctx>(&self, e: &Emitter<'ctx>, copy: &AsyncCopy<'ctx>) -> bool {
        self.target.has(Feature::AsyncCopy) && shared::async_copy(e, copy)
    }

    fn async_commit(&self, e: &Emitter<'_>) {
        if self.target.has(Feature::AsyncCopy) {
            e.intrinsic_call("llvm.nvvm.cp.async.commit.group", &[], &[]);
        }
    }

    fn async_wait(&self, e: &Emitter<'_>, groups: u32) {
        if self.target.has(Feature::AsyncCopy) {
            let groups = [e.i32(i64::from(groups))];
            e.intrinsic_call("llvm.nvvm.cp.async.wait.group", &[], &groups);
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
        memory::load(e, self.target, access, other)
    }

    fn store<'ctx>(&self, e: &Emitter<'ctx>, access: &Access<'ctx>, words: &[V<'ctx>]) {
        memory::store(e, self.target, access, words);
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
        elementwise::math(e, function, element, arguments, self.flushes_denormals)
    }

    fn divide<'ctx>(&self, e: &Emitter<'ctx>, element: Element, a: V<'ctx>, b: V<'ctx>) -> V<'ctx> {
        match element {
            Element::F32 => e.intrinsic("llvm.nvvm.div.full", &[], &[a, b]),
            _ => e.fdiv(a, b),
        }
    }

    fn divide_precisely<'ctx>(&self, e: &Emitter<'ctx>, a: V<'ctx>, b: V<'ctx>) -> V<'ctx> {
        e.intrinsic("llvm.nvvm.div.rn.f", &[], &[a, b])
    }

    fn clip<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        element: Element,
        x: V<'ctx>,
        limit: V<'ctx>,
        propagate_nan: bool,
    ) -> Option<V<'ctx>> {
        elementwise::clip(e, self.target, element, x, limit, propagate_nan)
    }

    fn convert_floats<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        from: Element,
        to: Element,
        rounding: Rounding,
        values: &[V<'ctx>],
    ) -> Option<Vec<V<'ctx>>> {
        if (from, to) == (Element::Float8(Float8::E5M2), Element::F16) && values.len() > 1 {
            let of_word = |four: &[V<'ctx>]| {
                let words = packed(e, self, four, four.len());
                let halves = words
                    .into_iter()
                    .flat_map(|word| widen::widen_e5m2(e, word));
                halves.take(four.len()).collect::<Vec<_>>()
            };
            return Some(values.chunks(4).flat_map(of_word).collect());
        }
        elementwise::convert_floats(e, self.target, from, to, rounding, values)
    }

    fn widen_fp4<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        word: V<'ctx>,
        to: Element,
    ) -> Option<Vec<V<'ctx>>> {
        widen::widen_fp4(e, self.target, word, to)
    }

    fn widen_int8<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        word: V<'ctx>,
        is_signed: bool,
        to: Element,
    ) -> Option<Vec<V<'ctx>>> {
        widen::widen_int8(e, self.target, word, is_signed, to)
    }

    fn print<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        format: V<'ctx>,
        _format_bytes: usize,
        arguments: &[(V<'ctx>, bool)],
    ) {
        kernel::print(e, format, arguments);
    }

    fn assert_fail<'ctx>(&self, e: &Emitter<'ctx>, message: &str, place: SourcePlace<'_>) {
        kernel::assert_fail(e, message, place);
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

    fn matrices(&self) -> Option<&dyn MatrixHooks> {
        Some(self)
    }

    fn bulk(&self) -> Option<&dyn BulkHooks> {
        Some(self)
    }

    fn warp_group(&self) -> Option<&dyn WarpGroupHooks> {
        Some(self)
    }

    fn partitions(&self) -> Option<&dyn PartitionHooks> {
        Some(self)
    }

    fn mark_kernel<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        function: inkwell::values::FunctionValue<'ctx>,
        launch: Launch,
    ) {
        kernel::mark_kernel(e, function, launch);
    }
}
