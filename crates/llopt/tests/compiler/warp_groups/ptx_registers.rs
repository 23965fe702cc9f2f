//! An independent check of emitted PTX: the uses of registers of warp-group products.
//!
//! `wgmma.mma_async` reads its first operand and writes its result at some time before `wgmma.wait_group` returns.
//! This causes two hazards that the semantics of PTX registers does not show:
//!
//! 1. *Read after write.* An ordinary instruction's write to a register that the product reads must be ordered before
//!    it by `wgmma.fence`; a write between fence and product may be too late.
//! 2. *Early reuse.* Until the wait, no other instruction may write a register of the first operand or access one of
//!    the result.
//!
//! The checker reads only the text of PTX, and knows nothing of the compiler: it finds the blocks of a function and
//! propagates along each edge the registers of outstanding products, and the number of groups committed since. Where
//! paths join, the youngest one counts. It must find nothing in emitted code, and the fault in code with a deliberate
//! fault.
//!
//! In a pair `mov a, b` both registers name the same result: a copy of an outstanding result is that result, as in
//! the simulated machine.

use std::collections::{BTreeMap, HashMap};

/// The use of a register by a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    Operand,
    Result,
}

/// Registers of products, with the number of commits since; none before the product's own.
type InFlight = BTreeMap<String, (Use, u32)>;

/// The state before an instruction.
#[derive(Clone, Debug, Default, PartialEq)]
struct State {
    in_flight: InFlight,
    /// Whether only products come after the last fence.
    is_fenced: bool,
}

impl State {
    /// The state where two paths join.
    fn meet(&mut self, other: &State) {
        for (register, (kind, age)) in &other.in_flight {
            let entry = self
                .in_flight
                .entry(register.clone())
                .or_insert((*kind, *age));
            *entry = ((entry.0).max(*kind), entry.1.min(*age));
        }
        self.is_fenced &= other.is_fenced;
    }
}

/// More commits than any wait leaves outstanding.
const OLD: u32 = 64;

/// One instruction.
#[derive(Clone, Debug)]
struct Instruction {
    text: String,
    opcode: String,
    /// The registers of each operand.
    operands: Vec<Vec<String>>,
    is_guarded: bool,
    /// The label of its possible branch.
    target: Option<String>,
}

/// The registers in a piece of text.
fn registers(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for part in text.split(|c: char| !(c.is_alphanumeric() || "%_$.".contains(c))) {
        let is_numbered = part.starts_with('%') && part.ends_with(|c: char| c.is_ascii_digit());
        if is_numbered && !part.contains('.') {
            found.push(part.to_owned());
        }
    }
    found
}

/// Operands at the commas outside of braces and brackets.
fn operands(text: &str) -> Vec<String> {
    let (mut depth, mut found) = (0, vec![String::new()]);
    for c in text.chars() {
        match c {
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' => depth -= 1,
            _ => {}
        }
        match found.last_mut() {
            _ if c == ',' && depth == 0 => found.push(String::new()),
            Some(last) => last.push(c),
            None => {}
        }
    }
    found
}

impl Instruction {
    fn of(text: &str) -> Option<Self> {
        let text = text.trim();
        let (guard, rest) = match text.strip_prefix('@') {
            Some(guarded) => guarded.split_once(char::is_whitespace)?,
            None => ("", text),
        };
        let rest = rest.trim();
        let (opcode, of) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        if opcode.is_empty() || opcode.starts_with('.') {
            return None;
        }
        let is_jump = opcode.starts_with("bra");
        let mut operands: Vec<Vec<String>> =
            operands(of).iter().map(|one| registers(one)).collect();
        // The guard is read, like the operands after the first.
        operands.push(registers(guard));
        Some(Self {
            text: text.to_owned(),
            opcode: opcode.to_owned(),
            operands,
            is_guarded: !guard.is_empty(),
            target: is_jump.then(|| of.trim().to_owned()),
        })
    }

    /// Whether it writes its first operand.
    fn writes(&self) -> bool {
        let without = [
            "st.",
            "red.",
            "bra",
            "ret",
            "exit",
            "bar.",
            "barrier.",
            "fence",
            "membar",
            "cp.",
            "prefetch",
            "trap",
            "setmaxnreg",
            "stmatrix",
            "nanosleep",
            "griddepcontrol",
            "discard",
            "wgmma.",
        ];
        !without.iter().any(|prefix| self.opcode.starts_with(prefix))
            && !self.opcode.starts_with("mbarrier.init")
    }

    /// Whether control never continues after it.
    fn ends(&self) -> bool {
        !self.is_guarded
            && ["bra", "ret", "exit", "trap"]
                .iter()
                .any(|opcode| self.opcode.starts_with(opcode))
    }
}

/// The instructions of each function, and the positions of its labels.
fn functions(ptx: &str) -> Vec<(Vec<Instruction>, HashMap<String, usize>)> {
    let mut found = Vec::new();
    let mut current: Option<(Vec<Instruction>, HashMap<String, usize>)> = None;
    let mut depth = 0usize;
    for line in ptx.lines() {
        let line = line.split("//").next().unwrap_or("").trim();
        let is_directive = line.starts_with('.');
        if line == "{" && depth == 0 {
            current = Some(Default::default());
        }
        // A brace on its own line opens or ends a scope; those of operands are in lines with other text.
        for c in line.chars().filter(|_| line == "{" || line == "}") {
            if c == '{' {
                depth += 1;
            } else {
                depth = depth.saturating_sub(1);
            }
        }
        if line == "}" && depth == 0 {
            found.extend(current.take());
        }
        let Some((instructions, labels)) = &mut current else {
            continue;
        };
        if let Some(label) = line.strip_suffix(':') {
            labels.insert(label.to_owned(), instructions.len());
        } else if !is_directive && line != "{" && line != "}" {
            let parts = line
                .split(';')
                .map(|part| part.trim_matches(['{', ' ', '\t']));
            // A list of registers begins with a brace only after an opcode.
            let of = |part: &str| Instruction::of(part);
            instructions.extend(
                parts
                    .filter(|part| !part.is_empty() && *part != "}")
                    .filter_map(of),
            );
        }
    }
    found
}

/// The effect of an instruction on the state; errors are passed to `say`.
fn step(state: &mut State, instruction: &Instruction, say: &mut dyn FnMut(String)) {
    let opcode = instruction.opcode.as_str();
    let age_of = |pending: &str| pending.trim().parse::<u32>().unwrap_or(0);
    if opcode.starts_with("wgmma.fence") {
        state.is_fenced = true;
        return;
    }
    if opcode.starts_with("wgmma.commit_group") {
        state.is_fenced = false;
        for (_, age) in state.in_flight.values_mut() {
            *age = (*age + 1).min(OLD);
        }
        return;
    }
    if opcode.starts_with("wgmma.wait_group") {
        state.is_fenced = false;
        let pending = age_of(
            instruction
                .text
                .rsplit(char::is_whitespace)
                .next()
                .unwrap_or("0"),
        );
        state.in_flight.retain(|_, (_, age)| *age <= pending);
        return;
    }
    if opcode.starts_with("wgmma.mma_async") {
        if !state.is_fenced {
            say(format!(
                "no fence orders what was written before '{}'",
                instruction.text
            ));
        }
        let (result, operand) = (&instruction.operands[0], &instruction.operands[1]);
        // A descriptor is one register of 64 bits, which is read when the product is issued.
        let in_registers = operand.iter().filter(|name| !name.starts_with("%rd"));
        for register in in_registers {
            if matches!(state.in_flight.get(register), Some((Use::Result, _))) {
                say(format!(
                    "{register} is not there yet in '{}'",
                    instruction.text
                ));
            }
            state.in_flight.insert(register.clone(), (Use::Operand, 0));
        }
        for register in result {
            if matches!(state.in_flight.get(register), Some((Use::Operand, _))) {
                say(format!(
                    "{register} is still read before '{}' writes it",
                    instruction.text
                ));
            }
            state.in_flight.insert(register.clone(), (Use::Result, 0));
        }
        return;
    }
    state.is_fenced = false;
    let writes = instruction.writes();
    let is_copy = opcode.starts_with("mov.") && instruction.operands.len() == 3;
    let copied =
        if is_copy && instruction.operands[0].len() == 1 && instruction.operands[1].len() == 1 {
            let (to, from) = (&instruction.operands[0][0], &instruction.operands[1][0]);
            let kind = state.in_flight.get(from).copied();
            kind.filter(|(kind, _)| *kind == Use::Result)
                .map(|kind| (to.clone(), kind))
        } else {
            None
        };
    for (at, names) in instruction.operands.iter().enumerate() {
        let is_written = writes && at == 0;
        for register in names {
            let Some((kind, _)) = state.in_flight.get(register).copied() else {
                continue;
            };
            match kind {
                Use::Operand if is_written => {
                    say(format!(
                        "'{}' writes {register}, which a product still reads",
                        instruction.text
                    ));
                }
                Use::Result if copied.is_none() => {
                    say(format!(
                        "'{}' touches {register}, which a product still writes",
                        instruction.text
                    ));
                }
                _ => {}
            }
        }
    }
    if let Some((to, kind)) = copied {
        state.in_flight.insert(to, kind);
    }
}

/// The hazards of products' registers in PTX.
pub(crate) fn hazards(ptx: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (instructions, labels) in functions(ptx) {
        let mut before: Vec<Option<State>> = vec![None; instructions.len() + 1];
        let mut todo = vec![0];
        before[0] = Some(State::default());
        while let Some(at) = todo.pop() {
            let (Some(instruction), Some(mut state)) = (instructions.get(at), before[at].clone())
            else {
                continue;
            };
            step(&mut state, instruction, &mut |_| {});
            let jump = instruction
                .target
                .as_ref()
                .and_then(|label| labels.get(label).copied());
            let next = (!instruction.ends()).then_some(at + 1);
            for to in jump.into_iter().chain(next) {
                let joined = match &before[to] {
                    None => state.clone(),
                    Some(known) => {
                        let mut both = known.clone();
                        both.meet(&state);
                        both
                    }
                };
                if before[to].as_ref() != Some(&joined) {
                    before[to] = Some(joined);
                    todo.push(to);
                }
            }
        }
        for (instruction, state) in instructions.iter().zip(&mut before) {
            if let Some(state) = state {
                step(state, instruction, &mut |said| found.push(said));
            }
        }
    }
    found
}

/// A product whose first operand is in registers, waited for at once.
const KERNEL: &str = ".visible .entry kernel(
)
{
	mov.b32 	%r5, 0;
	wgmma.fence.sync.aligned;
	wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r1, %r2, %r3, %r4}, {%r5, %r6, %r7, %r8}, %rd1, 0, 1, 1, 0;
	wgmma.commit_group.sync.aligned;
	add.s32 	%r9, %r5, 1;
	wgmma.wait_group.sync.aligned 0;
	st.global.b32 	[%rd2], %r1;
	mov.b32 	%r5, 1;
	ret;
}
";

#[test]
fn nothing_is_found_where_nothing_is_wrong() {
    assert_eq!(hazards(KERNEL), Vec::<String>::new());
}

#[test]
fn a_write_behind_the_fence_is_found() {
    let late = KERNEL.replace("	mov.b32 	%r5, 0;\n", "").replace(
        "fence.sync.aligned;\n",
        "fence.sync.aligned;\n	mov.b32 	%r5, 0;\n",
    );
    assert!(hazards(&late)[0].starts_with("no fence orders"));
    let none = KERNEL.replace("	wgmma.fence.sync.aligned;\n", "");
    assert!(hazards(&none)[0].starts_with("no fence orders"));
}

#[test]
fn an_operand_that_is_overwritten_before_the_wait_is_found() {
    let early = KERNEL.replace("add.s32 	%r9, %r5, 1", "add.s32 	%r5, %r9, 1");
    assert!(hazards(&early)[0].contains("writes %r5"));
}

#[test]
fn a_result_that_is_touched_before_the_wait_is_found() {
    let early = KERNEL.replace("add.s32 	%r9, %r5, 1", "add.s32 	%r9, %r2, 1");
    assert!(hazards(&early)[0].contains("touches %r2"));
    let weaker = KERNEL.replace("wait_group.sync.aligned 0", "wait_group.sync.aligned 1");
    assert_eq!(hazards(&weaker).len(), 2);
}

#[test]
fn what_is_under_way_is_carried_around_loops() {
    // The wait for the product of the last iteration comes after the write of the register that it reads.
    let wrapped = KERNEL
        .replace("	mov.b32 	%r5, 0;\n", "$L__BB0_1:\n	mov.b32 	%r5, 0;\n")
        .replace(
            "	wgmma.wait_group.sync.aligned 0;\n",
            "	@%p1 bra $L__BB0_1;\n	wgmma.wait_group.sync.aligned 0;\n",
        );
    let found = hazards(&wrapped);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("'mov.b32 	%r5, 0' writes %r5"));
}

mod emitted {
    //! The same for emitted code: loops in which products are outstanding while others are prepared.

    use llopt::{ArtifactKind, Compiler, Options, Source, Target};

    use super::hazards;

    /// Pointers to all elements of a row, the same for all rows.
    fn pointers(name: &str, rows: usize, columns: usize, of: &str, layout: &str) -> String {
        format!(
            "%{name}r = tt.make_range {{end = {columns} : i32, start = 0 : i32}} : tensor<{columns}xi32, #ttg.slice<{{dim = 0, parent = #{layout}}}>>
    %{name}e = tt.expand_dims %{name}r {{axis = 0 : i32}} : tensor<{columns}xi32, #ttg.slice<{{dim = 0, parent = #{layout}}}>> -> tensor<1x{columns}xi32, #{layout}>
    %{name}o = tt.broadcast %{name}e : tensor<1x{columns}xi32, #{layout}> -> tensor<{rows}x{columns}xi32, #{layout}>
    %{name}q = tt.splat %p{name} : !tt.ptr<{of}> -> tensor<{rows}x{columns}x!tt.ptr<{of}>, #{layout}>
    %{name} = tt.addptr %{name}q, %{name}o : tensor<{rows}x{columns}x!tt.ptr<{of}>, #{layout}>, tensor<{rows}x{columns}xi32, #{layout}>"
        )
    }

    /// A loop along k whose first operand is loaded to registers, multiplied by two, and passed to a product. It is
    /// waited for at once; or an iteration later, and then the operand is the same for all iterations.
    fn pipelined(element: &str, bits: usize, columns: usize, pending: u32, warps: usize) -> String {
        let (rows, depth) = (16 * warps, 64);
        let width = 32 / bits;
        let k = 256 / bits;
        let prepare = format!(
            "%v = tt.load %from : tensor<{rows}x{depth}x!tt.ptr<{element}>, #b>
      %o = ttg.convert_layout %v : tensor<{rows}x{depth}x{element}, #b> -> tensor<{rows}x{depth}x{element}, #a>
      %t = arith.addf %o, %o : tensor<{rows}x{depth}x{element}, #a>"
        );
        let (outside, inside) = if pending == 0 {
            (String::new(), prepare.replace("%from", "%p"))
        } else {
            (prepare.replace("%from", "%x"), String::new())
        };
        format!(
            "#b = #ttg.blocked<{{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [{warps}, 1], order = [1, 0]}}>
#mma = #ttg.nvidia_mma<{{versionMajor = 3, versionMinor = 0, warpsPerCTA = [{warps}, 1], instrShape = [16, {columns}, {k}]}}>
#a = #ttg.dot_op<{{opIdx = 0, parent = #mma, kWidth = {width}}}>
#s = #ttg.nvmma_shared<{{swizzlingByteWidth = 128, transposed = true, elementBitWidth = {bits}}}>
#smem = #ttg.shared_memory
module attributes {{\"ttg.num-ctas\" = 1 : i32, \"ttg.num-warps\" = {warps} : i32, ttg.target = \"cuda:90\", \"ttg.threads-per-warp\" = 32 : i32}} {{
  tt.func public @kernel(%px: !tt.ptr<{element}>, %py: !tt.ptr<{element}>, %pd: !tt.ptr<f32>, %n: i32) {{
    {}
    {}
    {}
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %step = arith.constant dense<{depth}> : tensor<{rows}x{depth}xi32, #b>
    %zero = arith.constant dense<0.0> : tensor<{rows}x{columns}xf32, #mma>
    %vy = tt.load %y : tensor<{depth}x{columns}x!tt.ptr<{element}>, #b>
    %mb = ttg.local_alloc %vy : (tensor<{depth}x{columns}x{element}, #b>) -> !ttg.memdesc<{depth}x{columns}x{element}, #s, #smem>
    ttng.fence_async_shared {{bCluster = false}}
    {outside}
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero, %p = %x) -> (tensor<{rows}x{columns}xf32, #mma>, tensor<{rows}x{depth}x!tt.ptr<{element}>, #b>) : i32 {{
      {inside}
      %q = ttng.warp_group_dot %t, %mb, %sum {{inputPrecision = 0 : i32, isAsync = true}} : tensor<{rows}x{depth}x{element}, #a> * !ttg.memdesc<{depth}x{columns}x{element}, #s, #smem> -> tensor<{rows}x{columns}xf32, #mma>
      %w:2 = ttng.warp_group_dot_wait %q, %t {{pendings = {pending} : i32}} : tensor<{rows}x{columns}xf32, #mma>, tensor<{rows}x{depth}x{element}, #a>
      %next = tt.addptr %p, %step : tensor<{rows}x{depth}x!tt.ptr<{element}>, #b>, tensor<{rows}x{depth}xi32, #b>
      scf.yield %w#0, %next : tensor<{rows}x{columns}xf32, #mma>, tensor<{rows}x{depth}x!tt.ptr<{element}>, #b>
    }}
    %end = ttng.warp_group_dot_wait %r#0 {{pendings = 0 : i32}} : tensor<{rows}x{columns}xf32, #mma>
    tt.store %d, %end : tensor<{rows}x{columns}x!tt.ptr<f32>, #mma>
    tt.return
  }}
}}
",
            pointers("x", rows, depth, element, "b"),
            pointers("y", depth, columns, element, "b"),
            pointers("d", rows, columns, "f32", "mma"),
        )
    }

    #[test]
    fn no_register_of_a_product_is_used_by_others_before_the_wait() {
        for (element, bits) in [("f16", 16), ("bf16", 16), ("f32", 32)] {
            for (columns, warps) in [(64, 4), (128, 4), (128, 8), (256, 8)] {
                for pending in [0, 1] {
                    let text = pipelined(element, bits, columns, pending, warps);
                    let source = Source::new("kernel.ttgir", text.as_str());
                    let options = Options::new(Target::parse("cuda:90").unwrap());
                    let compiled = Compiler::new(options)
                        .compile(&source, ArtifactKind::Ptx)
                        .unwrap_or_else(|error| panic!("{error}\n{text}"));
                    let ptx = compiled.artifact.text().unwrap();
                    assert!(ptx.contains("wgmma.mma_async"), "{ptx}");
                    let found = hazards(ptx);
                    assert!(found.is_empty(), "{found:#?}\n{ptx}");
                }
            }
        }
    }
}
