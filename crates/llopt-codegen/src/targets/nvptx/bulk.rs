//! mbarriers and bulk tensor copies on NVIDIA.
//!
//! PTX ISA, "Asynchronous Barriers: mbarrier", "Data Movement and Conversion Instructions: Bulk copy" and
//! "tensormap.replace". Each instruction is executed by one thread under a predicate, so that there are no branches
//! between them.

use inkwell::IntPredicate;
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::types::AnyType;
use inkwell::values::{FunctionValue, InstructionOpcode};

use super::Nvptx;
use super::memory::cache_policy;
use super::shared::warp_barrier;
use crate::llvm::emitter::{AsmEffect, Emitter, V};
use crate::targets::hooks::{BoxCopy, BulkHooks, Caching, Descriptor};

/// Bytes of a descriptor object.
const DESCRIPTOR_BYTES: u32 = 128;

/// Inline assembly without results.
fn assembly<'ctx>(e: &Emitter<'ctx>, text: &str, constraints: &[&str], arguments: &[V<'ctx>]) {
    e.inline_asm(
        text,
        &constraints.join(","),
        &[],
        arguments,
        AsmEffect::Anything,
    );
}

/// `{$first, $first+1, …}` for the coordinates, and their constraints.
fn coordinates(first: usize, count: usize) -> (String, Vec<&'static str>) {
    let names: Vec<String> = (first..first + count).map(|i| format!("${i}")).collect();
    (format!("{{{}}}", names.join(", ")), vec!["r"; count])
}

impl BulkHooks for Nvptx {
    fn elected<'ctx>(&self, e: &Emitter<'ctx>) -> V<'ctx> {
        let both = e.intrinsic("llvm.nvvm.elect.sync", &[], &[e.i32(-1)]);
        e.member(both, 1)
    }

    fn make_barrier<'ctx>(&self, e: &Emitter<'ctx>, barrier: V<'ctx>, count: i64, acts: V<'ctx>) {
        let text = format!("@$1 mbarrier.init.shared::cta.b64 [$0], {count};");
        assembly(e, &text, &["r", "b"], &[barrier, acts]);
    }

    fn end_barrier<'ctx>(&self, e: &Emitter<'ctx>, barrier: V<'ctx>, acts: V<'ctx>) {
        let text = "@$1 mbarrier.inval.shared::cta.b64 [$0];";
        assembly(e, text, &["r", "b"], &[barrier, acts]);
    }

    fn expect<'ctx>(&self, e: &Emitter<'ctx>, barrier: V<'ctx>, bytes: i64, acts: V<'ctx>) {
        let text = format!("@$1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], {bytes};");
        assembly(e, &text, &["r", "b"], &[barrier, acts]);
    }

    fn arrive<'ctx>(&self, e: &Emitter<'ctx>, barrier: V<'ctx>, count: i64, acts: V<'ctx>) {
        let text = format!("@$1 mbarrier.arrive.shared::cta.b64 _, [$0], {count};");
        assembly(e, &text, &["r", "b"], &[barrier, acts]);
    }

    fn arrive_after_copies<'ctx>(&self, e: &Emitter<'ctx>, barrier: V<'ctx>, increment: bool) {
        let counted = if increment { "" } else { ".noinc" };
        let text = format!("cp.async.mbarrier.arrive{counted}.shared::cta.b64 [$0];");
        assembly(e, &text, &["r"], &[barrier]);
    }

    fn wait<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        barrier: V<'ctx>,
        phase: V<'ctx>,
        condition: Option<V<'ctx>>,
    ) {
        // try_wait may suspend the thread for a while; its predecessor test_wait needs a loop.
        let test = if self.target.has(llopt_target::Feature::TransactionBarrier) {
            "try_wait"
        } else {
            "test_wait"
        };
        let skip = match condition {
            Some(_) => "@!$2 bra.uni DONE;\n\t",
            None => "",
        };
        let text = format!(
            "{{\n\t.reg .pred complete;\n\t{skip}WAIT:\n\t\
             mbarrier.{test}.parity.shared::cta.b64 complete, [$0], $1;\n\t\
             @!complete bra.uni WAIT;\n\tDONE:\n\t}}"
        );
        match condition {
            Some(condition) => assembly(e, &text, &["r", "r", "b"], &[barrier, phase, condition]),
            None => assembly(e, &text, &["r", "r"], &[barrier, phase]),
        }
    }

    fn fence(&self, e: &Emitter<'_>, cluster: bool) {
        let whose = if cluster { "cluster" } else { "cta" };
        let text = format!("fence.proxy.async.shared::{whose};");
        assembly(e, &text, &[], &[]);
    }

    fn copy_in<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        copy: &BoxCopy<'ctx>,
        barrier: V<'ctx>,
        caching: Caching,
    ) {
        let rank = copy.coordinates.len();
        let (at, classes) = coordinates(4, rank);
        let policy = cache_policy(e, self.target, caching);
        let (hint, operand) = match policy {
            Some(_) => (".L2::cache_hint", format!(", ${}", 4 + rank)),
            None => ("", String::new()),
        };
        let text = format!(
            "@$0 cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile\
             .mbarrier::complete_tx::bytes{hint} [$1], [$2, {at}], [$3]{operand};"
        );
        let mut constraints = vec!["b", "r", "l", "r"];
        constraints.extend(classes);
        let mut arguments = vec![copy.acts, copy.shared, copy.descriptor, barrier];
        arguments.extend(&copy.coordinates);
        if let Some(policy) = policy {
            constraints.push("l");
            arguments.push(policy);
        }
        assembly(e, &text, &constraints, &arguments);
    }

    fn prefetch<'ctx>(&self, e: &Emitter<'ctx>, copy: &BoxCopy<'ctx>) {
        let rank = copy.coordinates.len();
        let (at, classes) = coordinates(2, rank);
        let text = format!("@$0 cp.async.bulk.prefetch.tensor.{rank}d.L2.global.tile [$1, {at}];");
        let mut constraints = vec!["b", "l"];
        constraints.extend(classes);
        let mut arguments = vec![copy.acts, copy.descriptor];
        arguments.extend(&copy.coordinates);
        assembly(e, &text, &constraints, &arguments);
    }

    fn copy_out<'ctx>(&self, e: &Emitter<'ctx>, copy: &BoxCopy<'ctx>, combine: Option<&str>) {
        let rank = copy.coordinates.len();
        let (at, classes) = coordinates(3, rank);
        let (what, how) = match combine {
            Some(operation) => ("cp.reduce", format!(".{operation}")),
            None => ("cp", String::new()),
        };
        let text = format!(
            "@$0 {what}.async.bulk.tensor.{rank}d.global.shared::cta{how}.tile.bulk_group \
             [$2, {at}], [$1];"
        );
        let mut constraints = vec!["b", "r", "l"];
        constraints.extend(classes);
        let mut arguments = vec![copy.acts, copy.shared, copy.descriptor];
        arguments.extend(&copy.coordinates);
        assembly(e, &text, &constraints, &arguments);
    }

    fn commit_copies_out(&self, e: &Emitter<'_>) {
        e.intrinsic_call("llvm.nvvm.cp.async.bulk.commit.group", &[], &[]);
    }

    fn wait_for_reads(&self, e: &Emitter<'_>, groups: i64) {
        let groups = [e.i32(groups)];
        e.intrinsic_call("llvm.nvvm.cp.async.bulk.wait.group.read", &[], &groups);
    }

    fn make_descriptor<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        fields: &Descriptor<'ctx>,
        shared: V<'ctx>,
        global: V<'ctx>,
        lane: V<'ctx>,
    ) {
        // Fields that are not set are zero.
        let word = e.gep(e.int(32).into(), shared, lane);
        e.store(e.i32(0), word, DESCRIPTOR_BYTES / 32);
        warp_barrier(e);
        let first = e.icmp(IntPredicate::EQ, lane, e.i32(0));
        // tensormap.replace takes a generic or a shared address, both of 64 bits.
        let at = e.cast(InstructionOpcode::PtrToInt, shared, e.int(64).into());
        let replace = |field: &str, bits: u32, position: Option<usize>, value: V<'ctx>| {
            let position = position.map_or(String::new(), |i| format!("{i}, "));
            let text = format!(
                "@$0 tensormap.replace.tile.{field}.shared::cta.b1024.b{bits} [$1], {position}$2;"
            );
            let class = if bits == 64 { "l" } else { "r" };
            assembly(e, &text, &["b", "l", class], &[first, at, value]);
        };
        let constant = |field: &str, value: i64| {
            let text =
                format!("@$0 tensormap.replace.tile.{field}.shared::cta.b1024.b32 [$1], {value};");
            assembly(e, &text, &["b", "l"], &[first, at]);
        };
        replace("global_address", 64, None, fields.address);
        // The hardware counts ranks from zero.
        constant("rank", fields.box_dim.len() as i64 - 1);
        for (i, size) in fields.box_dim.iter().enumerate() {
            replace("box_dim", 32, Some(i), *size);
        }
        for (i, size) in fields.global_dim.iter().enumerate() {
            replace("global_dim", 32, Some(i), *size);
        }
        for (i, stride) in fields.global_stride.iter().enumerate() {
            replace("global_stride", 64, Some(i), *stride);
        }
        for (i, stride) in fields.element_stride.iter().enumerate() {
            replace("element_stride", 32, Some(i), *stride);
        }
        constant("elemtype", fields.elem_type);
        constant("interleave_layout", fields.interleave_layout);
        constant("swizzle_mode", fields.swizzle_mode);
        constant("fill_mode", fields.fill_mode);
        let text = format!(
            "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned \
             [$0], [$1], {DESCRIPTOR_BYTES};"
        );
        assembly(e, &text, &["l", "l"], &[global, at]);
    }

    fn acquire_descriptor<'ctx>(&self, e: &Emitter<'ctx>, descriptor: V<'ctx>) {
        // The empty group and the wait for it prevent ptxas from moving copies over the fence.
        let text = format!(
            "fence.proxy.tensormap::generic.acquire.gpu [$0], {DESCRIPTOR_BYTES};\n\t\
             cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group.read 0;"
        );
        assembly(e, &text, &["l"], &[descriptor]);
    }

    fn mark_descriptor<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        kernel: FunctionValue<'ctx>,
        parameter: u32,
    ) {
        let object = e.context.i8_type().array_type(DESCRIPTOR_BYTES);
        let by_value = Attribute::get_named_enum_kind_id("byval");
        let at = AttributeLoc::Param(parameter);
        kernel.add_attribute(
            at,
            e.context
                .create_type_attribute(by_value, object.as_any_type_enum()),
        );
        let alignment = Attribute::get_named_enum_kind_id("align");
        kernel.add_attribute(at, e.context.create_enum_attribute(alignment, 64));
        // The copy unit reads the object where the launcher put it: a copy of it would not do.
        kernel.add_attribute(
            at,
            e.context.create_string_attribute("nvvm.grid_constant", ""),
        );
    }

    fn in_other_block<'ctx>(&self, e: &Emitter<'ctx>, address: V<'ctx>, block: V<'ctx>) -> V<'ctx> {
        e.intrinsic("llvm.nvvm.mapa.shared.cluster", &[], &[address, block])
    }

    fn cluster_arrive(&self, e: &Emitter<'_>, relaxed: bool) {
        let name = if relaxed {
            "llvm.nvvm.barrier.cluster.arrive.relaxed.aligned"
        } else {
            "llvm.nvvm.barrier.cluster.arrive.aligned"
        };
        e.intrinsic_call(name, &[], &[]);
    }

    fn cluster_wait(&self, e: &Emitter<'_>) {
        e.intrinsic_call("llvm.nvvm.barrier.cluster.wait.aligned", &[], &[]);
    }
}
