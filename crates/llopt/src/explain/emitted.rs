//! The loops with products of emitted PTX: what each iteration of a warp executes.
//!
//! Counting starts where decisions end: addresses that LLVM computes in the loop or outside of it, conversions that it
//! merges, and copies of values are in the text and nowhere else. An instruction of PTX is about one of the machine:
//! 64-bit integer arithmetic is two, a conversion to tf32 is four, and moves mostly vanish when registers are assigned.
//!
//! A *loop* is a label and a branch back to it; those that contain no other loop with products are counted, in the
//! order of the text, which is that of the program.
//!
//! # Registers
//!
//! The registers that are live at a point of a loop are found as usual, backwards, twice around. Instructions are
//! taken in the order of the text. The assembler orders them anew, with fewer registers live, so what is counted is
//! more than it needs.

use std::collections::{HashMap, HashSet};

/// What a warp executes in an iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct EmittedLoop {
    /// Instructions that take a slot of issue, except products.
    pub(super) issued: u32,
    /// Products of four warps: cycles for which all of them keep the matrix units busy.
    pub(super) group_cycles: f64,
    /// Products of four warps.
    pub(super) group_products: u32,
    /// Products of one warp.
    pub(super) warp_products: u32,
    /// Waits for products of four warps.
    pub(super) waits: u32,
    /// Fences between what threads store and what products read.
    pub(super) fences: u32,
    /// Asynchronous copies by threads.
    pub(super) copies: u32,
    /// Copies of tiles whose descriptors the kernel makes itself.
    pub(super) own_descriptors: u32,
    /// Loads of global memory into registers.
    pub(super) loads: u32,
    /// Loads of shared memory.
    pub(super) shared_loads: u32,
    /// Stores to shared memory.
    pub(super) shared_stores: u32,
    /// Special functions.
    pub(super) special: u32,
    /// Arithmetic on floats.
    pub(super) arithmetic: u32,
    /// Conversions.
    pub(super) conversions: u32,
    /// Registers of a thread that are live at the same time.
    pub(super) live: u32,
}

/// The loops with products that contain no other such loop.
pub(super) fn of_text(text: &str) -> Vec<EmittedLoop> {
    let (statements, labels) = statements(text);
    let mut loops: Vec<(usize, usize)> = Vec::new();
    for (end, statement) in statements.iter().enumerate() {
        let target = statement.target().and_then(|label| labels.get(label));
        let Some(&begin) = target.filter(|begin| **begin <= end) else {
            continue;
        };
        if statements[begin..=end].iter().any(Statement::is_product) {
            loops.push((begin, end));
        }
    }
    let is_innermost = |own: &(usize, usize)| {
        let mut others = loops.iter().filter(|other| *other != own);
        !others.any(|other| other.0 >= own.0 && other.1 <= own.1)
    };
    let innermost = loops.iter().filter(|own| is_innermost(own));
    let makes_descriptors = statements
        .iter()
        .any(|statement| statement.opcode.starts_with("tensormap.replace"));
    let tile_copies = |of: &[Statement]| {
        let copies = of
            .iter()
            .filter(|one| one.opcode.starts_with(TILE_COPY) && one.opcode.contains("mbarrier"));
        copies.count() as u32
    };
    innermost
        .map(|(begin, end)| {
            let body = &statements[*begin..=*end];
            let mut found = EmittedLoop::of(body);
            if makes_descriptors {
                found.own_descriptors = match tile_copies(body) {
                    // Other warps may copy, in a loop of their own.
                    0 if found.copies == 0 => tile_copies(&statements),
                    copies => copies,
                };
            }
            found
        })
        .collect()
}

/// Copies of tiles; those into shared memory arrive at an `mbarrier`.
const TILE_COPY: &str = "cp.async.bulk.tensor";

/// An instruction.
struct Statement {
    /// With its qualifiers.
    opcode: String,
    operands: String,
    is_conditional: bool,
}

/// The instructions of a text, and the index of the first one after each label.
fn statements(text: &str) -> (Vec<Statement>, HashMap<String, usize>) {
    let (mut all, mut labels) = (Vec::new(), HashMap::new());
    let mut begun = String::new();
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or_default().trim();
        if line.starts_with('.') {
            continue;
        }
        if let Some(label) = line.strip_suffix(':').filter(|name| name.starts_with('$')) {
            labels.insert(label.to_owned(), all.len());
            begun.clear();
            continue;
        }
        begun.push(' ');
        begun.push_str(line);
        while let Some((one, rest)) = begun.split_once(';') {
            all.extend(Statement::of(one));
            begun = rest.to_owned();
        }
    }
    (all, labels)
}

impl Statement {
    fn of(text: &str) -> Option<Self> {
        let mut text = text.trim_start_matches(|c: char| c.is_whitespace() || "(){}".contains(c));
        // A label within inline assembly.
        if let Some((label, rest)) = text.split_once(':') {
            let is_label = label.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            text = if is_label { rest.trim_start() } else { text };
        }
        let is_conditional = text.starts_with('@');
        if is_conditional {
            text = text.split_once(char::is_whitespace)?.1.trim_start();
        }
        if text.is_empty() || text.starts_with('.') {
            return None;
        }
        let (opcode, operands) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        Some(Self {
            opcode: opcode.to_owned(),
            operands: operands.trim().to_owned(),
            is_conditional,
        })
    }

    /// The label to which it branches.
    fn target(&self) -> Option<&str> {
        self.opcode.starts_with("bra").then_some(&*self.operands)
    }

    fn is_group_product(&self) -> bool {
        self.opcode.starts_with("wgmma.mma_async")
    }

    fn is_warp_product(&self) -> bool {
        self.opcode.starts_with("mma.")
    }

    fn is_product(&self) -> bool {
        self.is_group_product() || self.is_warp_product()
    }

    /// The registers that it writes, and those that it reads.
    fn registers(&self) -> (Vec<&str>, Vec<&str>) {
        let all: Vec<&str> = names(&self.operands).collect();
        let first = match self.operands.strip_prefix('{') {
            Some(list) => list.split('}').next().unwrap_or_default(),
            None => self.operands.split(',').next().unwrap_or_default(),
        };
        let stores = [
            "st", "cp.", "bra", "red", "mbarrier", "bar", "fence", "wgmma.w",
        ];
        let writes_none = stores.iter().any(|prefix| self.opcode.starts_with(prefix));
        let written: Vec<&str> = if writes_none {
            Vec::new()
        } else {
            names(first).collect()
        };
        // Sums are read and written. What a predicate skips keeps its value.
        let keeps = self.is_group_product() || self.is_conditional;
        let read = if keeps {
            all
        } else {
            all[written.len()..].to_vec()
        };
        (written, read)
    }
}

/// The registers of a list of operands.
fn names(operands: &str) -> impl Iterator<Item = &str> {
    let parts = operands.split(|c: char| !(c.is_ascii_alphanumeric() || c == '%' || c == '_'));
    parts.filter(|part| part.starts_with("%r") || part.starts_with("%f"))
}

/// Halves of a register of the machine.
fn halves(register: &str) -> u32 {
    match register.trim_end_matches(|c: char| c.is_ascii_digit()) {
        "%rd" | "%fd" => 4,
        "%rs" => 1,
        _ => 2,
    }
}

impl EmittedLoop {
    fn of(body: &[Statement]) -> Self {
        let mut counts = Self::default();
        for statement in body {
            counts.add(&statement.opcode);
        }
        counts.live = live(body);
        counts
    }

    fn add(&mut self, opcode: &str) {
        let name = opcode.split('.').next().unwrap_or_default();
        let is_of = |types: &[&str]| opcode.split('.').skip(1).any(|part| types.contains(&part));
        let is_float = is_of(&["f32", "f16", "bf16", "f16x2", "bf16x2", "f32x2"]);
        if let Some(shape) = opcode.strip_prefix("wgmma.mma_async") {
            self.group_products += 1;
            self.group_cycles += group_cycles(shape);
            return;
        }
        if opcode.starts_with("wgmma") {
            self.waits += u32::from(opcode.starts_with("wgmma.wait"));
            self.issued += u32::from(opcode.starts_with("wgmma.wait"));
            return;
        }
        match name {
            // Registers are assigned such that there are few of these.
            "mov" | "cvta" => return,
            "mma" => self.warp_products += 1,
            "cp" => {
                self.copies += u32::from(opcode.starts_with("cp.async.c") && is_of(&["shared"]))
            }
            "fence" => self.fences += u32::from(is_of(&["proxy"])),
            "ldmatrix" => self.shared_loads += 1,
            "stmatrix" => self.shared_stores += 1,
            "ld" => {
                self.shared_loads += u32::from(is_of(&["shared"]));
                self.loads += u32::from(is_of(&["global"]));
            }
            "st" => self.shared_stores += u32::from(is_of(&["shared"])),
            "ex2" | "lg2" | "rcp" | "sqrt" | "rsqrt" | "sin" | "cos" | "tanh" => self.special += 1,
            "fma" | "mul" | "add" | "sub" | "neg" | "abs" if is_float => self.arithmetic += 1,
            "cvt" => self.conversions += 1,
            _ => {}
        }
        let is_wide = matches!(name, "add" | "sub" | "or" | "and" | "shl" | "shr")
            && is_of(&["s64", "u64", "b64"]);
        self.issued += match () {
            () if is_wide => 2,
            () if is_of(&["rna"]) => 4,
            () => 1,
        };
    }
}

/// Cycles for which a product of four warps keeps the matrix units busy: half a cycle for each column, and more if
/// there are so few that reads of shared memory are exposed (as measured on an H100 for 8, 16, 32 and 64 columns: 18.9,
/// 20.7, 24.7, 32.8).
fn group_cycles(shape: &str) -> f64 {
    let columns = shape.split('.').find_map(|part| {
        let (_, columns) = part.strip_prefix('m')?.split_once('n')?;
        columns.split('k').next()?.parse::<u32>().ok()
    });
    let columns = f64::from(columns.unwrap_or_default());
    if columns < 64.0 {
        16.4 + 0.26 * columns
    } else {
        columns / 2.0
    }
}

/// The registers that are live at the same time in a loop.
fn live(body: &[Statement]) -> u32 {
    let registers: Vec<_> = body.iter().map(Statement::registers).collect();
    let mut live: HashSet<&str> = HashSet::new();
    let (mut now, mut most) = (0, 0);
    for (written, read) in registers.iter().rev().chain(registers.iter().rev()) {
        for register in written {
            if live.remove(register) {
                now -= halves(register);
            }
        }
        for register in read {
            if live.insert(register) {
                now += halves(register);
            }
        }
        most = most.max(now);
    }
    most.div_ceil(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
.visible .entry kernel(
	.param .u64 kernel_param_0
)
{
	.reg .b32 	%r<9>;
	mov.b32 	%r1, 0;
$L__BB0_1:                              // =>This Inner Loop Header
	.loc	1 30 25
	cp.async.wait_group 	1;
	bar.sync 	0;
	// begin inline asm
	{
	.reg .pred always;
	setp.ne.b32 always, 1, 0;
	wgmma.fence.sync.aligned;
	wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%r1, %r2,
	 %r3}, %rd1, %rd2, always, 1, 1, 0, 0;
	wgmma.commit_group.sync.aligned;
	}
	// end inline asm
	wgmma.wait_group.sync.aligned 1;
	cp.async.cg.shared.global [ %r5 + 0 ], [ %rd3 + 0 ], 16, %r6;
	add.s64 	%rd3, %rd3, 128;
	cvt.rna.tf32.f32 	%r7, %r8;
	ex2.approx.ftz.f32 	%r7, %r7;
	fma.rn.f32 	%r7, %r7, %r8, %r8;
	@%p1 bra 	$L__BB0_1;
	ret;
}
";

    #[test]
    fn instructions_of_a_loop_are_counted_by_kind() {
        let loops = of_text(TEXT);
        let [found] = loops[..] else {
            panic!("{} loops", loops.len());
        };
        assert!((found.group_cycles - 64.0).abs() < 1e-9);
        assert_eq!(found.group_products, 1);
        assert_eq!([found.waits, found.copies, found.warp_products], [1, 1, 0]);
        assert_eq!(
            [found.special, found.arithmetic, found.conversions],
            [1, 1, 1]
        );
        // A wait for copies, a barrier, a predicate, a wait, a copy, two for an addition, four for a conversion, two,
        // and a branch.
        assert_eq!(found.issued, 14);
        // Around the loop three sums, the descriptors of two factors, an address of two registers, two operands of a
        // copy, and a float; and within it a result.
        assert_eq!(found.live, 3 + 4 + 2 + 2 + 1 + 1);
    }

    #[test]
    fn descriptors_are_the_kernels_own_if_it_makes_any() {
        let copy = "\tcp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r5], [%rd3, {%r1, %r2}], [%r6];\n";
        let from_host = TEXT.replace("\twgmma.wait_group", &format!("{copy}\twgmma.wait_group"));
        assert_eq!(of_text(&from_host)[0].own_descriptors, 0);
        let made = "\ttensormap.replace.tile.rank.shared::cta.b1024.b32 [%r5], 1;\n$L__BB0_1:";
        let own = from_host.replace("$L__BB0_1:", made);
        assert_eq!(of_text(&own)[0].own_descriptors, 1);
    }

    #[test]
    fn a_loop_around_another_is_not_counted() {
        let nested = TEXT.replace("mov.b32 \t%r1, 0;", "mov.b32 %r1, 0;\n$L__BB0_0:");
        let nested = nested.replace("\tret;", "\t@%p2 bra $L__BB0_0;\n\tret;");
        assert_eq!(of_text(&nested), of_text(TEXT));
        assert!(of_text(&TEXT.replace("wgmma.mma_async", "wgmma.other")).is_empty());
    }

    #[test]
    fn few_columns_take_longer() {
        for (columns, cycles) in [(8, 18.9), (16, 20.7), (32, 24.7), (64, 32.8), (256, 129.3)] {
            let found = group_cycles(&format!(".sync.aligned.m64n{columns}k16.f32.bf16.bf16"));
            assert!((found / cycles - 1.0).abs() < 0.03, "{columns}: {found}");
        }
    }

    #[test]
    fn a_value_is_live_from_its_definition_to_its_last_use() {
        let body = |text: &str| statements(text).0;
        // Around the loop the address and the sum; within it also what both loads return.
        let text = "ld.global.f32 %f1, [%rd1];\nld.global.f32 %f2, [%rd1];\nfma.rn.f32 %f3, %f1, %f2, %f3;";
        assert_eq!(live(&body(text)), 2 + 1 + 2);
        assert_eq!(live(&body("mov.b64 %rd1, %rd2;\nmov.b64 %rd2, %rd1;")), 2);
    }
}
