//! Each transformation of loops preserves their meaning: random loops, run before and after it in the reference
//! interpreter.

use std::fmt::Write;

use llopt::sim::reference::Limits;
use llopt::sim::{Argument, Launch};
use llopt::{Source, run_reference};
use llopt_dialects::tt::{LoadOp, StoreOp};
use llopt_mlir::ir::{OperationExt, ValueExt, Walk, attr};
use llopt_mlir::rewrite::Rewriter;
use llopt_transforms::loops::induction::Numbers;
use llopt_transforms::loops::pipeline::{End, Staged};
use llopt_transforms::loops::view::For;
use llopt_transforms::loops::{carried, flatten, motion, peel, pipeline, rotate, unroll};
use llopt_transforms::pipelining::stages;
use melior::Context;
use melior::dialect::DialectRegistry;
use melior::ir::operation::OperationLike;
use melior::ir::{Module, OperationRef, Value};

/// Words of the buffer that programs read and write.
const WORDS: usize = 64;

/// The number of programs for a transformation.
const PROGRAMS: u64 = 40;
/// The number of programs for one that rarely applies.
const MANY_PROGRAMS: u64 = 150;

/// Pseudorandom numbers from a seed.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % bound
    }
}

/// A program under construction.
struct Text {
    body: String,
    random: Random,
    values: usize,
}

impl Text {
    fn line(&mut self, line: &str) {
        let _ = writeln!(self.body, "    {line}");
    }

    fn define(&mut self, operation: &str) -> String {
        self.values += 1;
        let name = format!("%v{}", self.values);
        self.line(&format!("{name} = {operation}"));
        name
    }

    fn constant(&mut self, value: i64) -> String {
        self.define(&format!("arith.constant {value} : i32"))
    }

    fn one_of(&mut self, known: &[String]) -> String {
        known[self.random.below(known.len())].clone()
    }

    /// A few operations that use known values; their results become known values.
    fn operations(&mut self, known: &mut Vec<String>, depth: usize) {
        for _ in 0..1 + self.random.below(5) {
            let (x, y) = (self.one_of(known), self.one_of(known));
            let made = match self.random.below(8) {
                kind @ 0..4 => {
                    let name = ["addi", "subi", "muli", "xori"][kind];
                    self.define(&format!("arith.{name} {x}, {y} : i32"))
                }
                4 => {
                    let pointer = self.pointer(&x);
                    self.define(&format!("tt.load {pointer} : !tt.ptr<i32>"))
                }
                5 => {
                    let pointer = self.pointer(&x);
                    self.line(&format!("tt.store {pointer}, {y} : !tt.ptr<i32>"));
                    continue;
                }
                6 => {
                    let condition = self.define(&format!("arith.cmpi slt, {x}, {y} : i32"));
                    self.values += 1;
                    let result = format!("%v{}", self.values);
                    self.line(&format!("{result} = scf.if {condition} -> (i32) {{"));
                    for otherwise in [false, true] {
                        if otherwise {
                            self.line("} else {");
                        }
                        let mut inner = known.clone();
                        if depth > 0 {
                            self.operations(&mut inner, depth - 1);
                        }
                        let value = self.one_of(&inner);
                        self.line(&format!("scf.yield {value} : i32"));
                    }
                    self.line("}");
                    result
                }
                _ if depth > 0 => {
                    let results = self.scf_for(known, depth - 1, "");
                    known.extend(results);
                    continue;
                }
                _ => continue,
            };
            known.push(made);
        }
    }

    /// A pointer to the word that a number selects.
    fn pointer(&mut self, number: &str) -> String {
        let mask = self.constant(WORDS as i64 - 1);
        let index = self.define(&format!("arith.andi {number}, {mask} : i32"));
        self.define(&format!("tt.addptr %memory, {index} : !tt.ptr<i32>, i32"))
    }

    /// A loop; returns its results.
    fn scf_for(&mut self, known: &[String], depth: usize, attributes: &str) -> Vec<String> {
        let lower = match self.random.below(3) {
            0 => "%a".to_owned(),
            _ => {
                let value = self.random.below(7) as i64 - 3;
                self.constant(value)
            }
        };
        let upper = match self.random.below(3) {
            0 => "%b".to_owned(),
            _ => {
                let value = self.random.below(12) as i64 - 3;
                self.constant(value)
            }
        };
        let step = match self.random.below(4) {
            0 => "%c".to_owned(),
            _ => {
                let value = 1 + self.random.below(3) as i64;
                self.constant(value)
            }
        };
        let count = self.random.below(4);
        self.values += 1;
        let number = self.values;
        let initial: Vec<String> = (0..count).map(|_| self.one_of(known)).collect();
        let arguments: Vec<String> = (0..count).map(|i| format!("%x{number}_{i}")).collect();
        let pairs: Vec<String> = arguments
            .iter()
            .zip(&initial)
            .map(|(argument, initial)| format!("{argument} = {initial}"))
            .collect();
        let types = vec!["i32"; count].join(", ");
        let (results, carried) = match count {
            0 => (String::new(), String::new()),
            _ => (
                format!("%r{number}:{count} = "),
                format!(" iter_args({}) -> ({types})", pairs.join(", ")),
            ),
        };
        self.line(&format!(
            "{results}scf.for %i{number} = {lower} to {upper} step {step}{carried} : i32 {{"
        ));
        let mut inner = known.to_vec();
        inner.push(format!("%i{number}"));
        inner.extend(arguments.iter().cloned());
        self.operations(&mut inner, depth);
        let next: Vec<String> = (0..count).map(|_| self.one_of(&inner)).collect();
        if count > 0 {
            self.line(&format!("scf.yield {} : {types}", next.join(", ")));
        }
        self.line(&format!("}}{attributes}"));
        (0..count).map(|i| format!("%r{number}#{i}")).collect()
    }
}

/// A program with loops, all results of which are in memory at the end.
fn program(seed: u64, attributes: &str) -> String {
    let mut text = Text {
        body: String::new(),
        random: Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        values: 0,
    };
    let mut known: Vec<String> = ["%a", "%b", "%c"].map(str::to_owned).into();
    text.operations(&mut known, 0);
    for _ in 0..2 {
        let results = text.scf_for(&known, 2, attributes);
        known.extend(results);
    }
    for (position, value) in known.iter().enumerate().take(WORDS) {
        let index = text.constant(position as i64);
        let pointer = text.define(&format!("tt.addptr %memory, {index} : !tt.ptr<i32>, i32"));
        let old = text.define(&format!("tt.load {pointer} : !tt.ptr<i32>"));
        let new = text.define(&format!("arith.xori {old}, {value} : i32"));
        text.line(&format!("tt.store {pointer}, {new} : !tt.ptr<i32>"));
    }
    format!(
        "module {{\n  tt.func public @kernel(%memory: !tt.ptr<i32>, %a: i32, %b: i32, %c: i32) {{\n{}    tt.return\n  }}\n}}\n",
        text.body
    )
}

/// The words that programs read, by their numbers.
pub fn scrambled(word: u32) -> u32 {
    word.wrapping_mul(2_654_435_761)
}

/// What the reference leaves of the arguments of a program.
pub fn left(text: &str, arguments: Vec<Argument>) -> Vec<Argument> {
    let mut launch = Launch::new([1, 1, 1], 32, arguments);
    run_reference(
        &Source::new("program", text),
        &mut launch,
        Limits::default(),
    )
    .unwrap_or_else(|error| panic!("{error}\n{text}"));
    launch.arguments
}

/// The contents of memory after a program.
pub fn run(text: &str, [a, b, c]: [i64; 3]) -> Vec<u8> {
    let words = (0..WORDS as u32).flat_map(|word| scrambled(word).to_le_bytes());
    let mut arguments = left(
        text,
        vec![
            Argument::Buffer(words.collect()),
            Argument::Int(a),
            Argument::Int(b),
            Argument::Int(c),
        ],
    );
    match arguments.swap_remove(0) {
        Argument::Buffer(bytes) => bytes,
        other => panic!("a buffer has become {other:?}"),
    }
}

/// What a program stores of its second parameter, of so many bytes; the first one points to so many words, and the third is 48.
pub fn stored(text: &str, words: u32, bytes: usize) -> Vec<u8> {
    let words = (0..words).map(|word| scrambled(word) >> 8);
    let arguments = vec![
        Argument::Buffer(words.flat_map(u32::to_le_bytes).collect()),
        Argument::Buffer(vec![0; bytes]),
        Argument::Int(48),
    ];
    match left(text, arguments).swap_remove(1) {
        Argument::Buffer(bytes) => bytes,
        other => panic!("a buffer has become {other:?}"),
    }
}

/// A program after a transformation, which has to be valid.
pub fn rewritten(text: &str, rewrite: impl FnOnce(OperationRef<'_, '_>)) -> String {
    let context = context();
    let module = llopt_mlir::parse_module(&context, text.as_bytes(), "program")
        .unwrap_or_else(|errors| panic!("{}\n{text}", llopt_mlir::diagnostic::render(&errors)));
    let module = module.as_operation();
    rewrite(module);
    assert!(module.verify(), "{module}");
    module.to_string()
}

pub fn context() -> Context {
    let registry = DialectRegistry::new();
    llopt_mlir::register_upstream_dialects(&registry);
    llopt_dialects::register(&registry).expect("the dialects are there");
    let context = Context::new();
    context.append_dialect_registry(&registry);
    for dialect in ["arith", "math", "scf", "ub", "ttg"] {
        context.get_or_load_dialect(dialect);
    }
    context
}

/// The loops of a module, inner ones first.
pub fn loops<'c: 'a, 'a>(module: &'a Module<'c>) -> Vec<For<'c, 'a>> {
    let mut loops = Vec::new();
    let root: OperationRef<'c, 'a> = module.as_operation();
    root.for_each_op(Walk::PostOrder, |operation| {
        loops.extend(For::of(operation))
    });
    loops
}

/// Runs programs as they are and transformed, with different arguments. The transformation returns the number of
/// changes, and must change some of them.
fn check(
    programs: u64,
    transform: impl for<'c, 'a> Fn(&mut Rewriter<'c, 'a>, For<'c, 'a>) -> usize,
) {
    let context = context();
    let mut done = 0;
    for seed in 0..programs {
        let text = program(seed, "");
        let module = llopt_mlir::parse_module(&context, text.as_bytes(), "program")
            .unwrap_or_else(|errors| panic!("{}\n{text}", llopt_mlir::diagnostic::render(&errors)));
        {
            let mut rewriter = Rewriter::new(&context);
            for of in loops(&module) {
                done += transform(&mut rewriter, of);
            }
        }
        assert!(
            module.as_operation().verify(),
            "{text}\n{}",
            module.as_operation()
        );
        let transformed = module.as_operation().to_string();
        for arguments in [[0, 5, 1], [-2, 9, 3], [4, 4, 2]] {
            assert!(
                run(&text, arguments) == run(&transformed, arguments),
                "with {arguments:?}\n{text}\n{transformed}"
            );
        }
    }
    assert!(done > 5, "{done} changes are too few");
}

#[test]
fn the_first_iteration_is_peeled() {
    check(PROGRAMS, |rewriter, of| {
        usize::from(peel::first(rewriter, of))
    });
}

#[test]
fn the_last_iteration_is_peeled() {
    check(PROGRAMS, |rewriter, of| {
        usize::from(peel::last(rewriter, of))
    });
}

#[test]
fn both_ends_are_peeled() {
    check(PROGRAMS, |rewriter, of| {
        usize::from(peel::first(rewriter, of)) + usize::from(peel::last(rewriter, of))
    });
}

#[test]
fn iterations_are_joined() {
    for factor in [2, 3] {
        check(PROGRAMS, |rewriter, of| {
            usize::from(unroll::unroll(rewriter, of, factor).is_some())
        });
    }
}

#[test]
fn a_loop_in_a_loop_becomes_one() {
    check(MANY_PROGRAMS, |rewriter, of| {
        usize::from(flatten::flatten(rewriter, of).is_some())
    });
}

/// Inner bounds that depend on the outer induction variable, with and without the assumption of at least one
/// iteration; values defined before the inner loop are used in it and after it.
#[test]
fn a_loop_as_long_as_the_outer_number_says_becomes_one() {
    for promise in ["", "llvm.intr.assume %runs : i1"] {
        let text = format!(
            "module {{
  tt.func public @kernel(%memory: !tt.ptr<i32>, %a: i32, %b: i32, %c: i32) {{
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c63 = arith.constant 63 : i32
    %sum = scf.for %i = %a to %b step %c iter_args(%x = %c2) -> (i32) : i32 {{
      %lower = arith.muli %i, %c2 : i32
      %more = arith.addi %lower, %i : i32
      %upper = arith.addi %more, %c1 : i32
      %runs = arith.cmpi sgt, %upper, %lower : i32
      {promise}
      %word = arith.andi %i, %c63 : i32
      %p = tt.addptr %memory, %word : !tt.ptr<i32>, i32
      %old = tt.load %p : !tt.ptr<i32>
      %y = scf.for %j = %lower to %upper step %c1 iter_args(%z = %x) -> (i32) : i32 {{
        %n = arith.muli %z, %old : i32
        %m = arith.addi %n, %j : i32
        scf.yield %m : i32
      }}
      %new = arith.xori %y, %old : i32
      tt.store %p, %new : !tt.ptr<i32>
      scf.yield %new : i32
    }}
    tt.store %memory, %sum : !tt.ptr<i32>
    tt.return
  }}
}}
"
        );
        let context = context();
        context.get_or_load_dialect("llvm");
        let module = llopt_mlir::parse_module(&context, text.as_bytes(), "program").expect("valid");
        let mut rewriter = Rewriter::new(&context);
        let outer = loops(&module).pop().expect("a loop");
        assert!(flatten::flatten(&mut rewriter, outer).is_some());
        assert!(module.as_operation().verify());
        // One counter, and one loop for all.
        assert_eq!(loops(&module).len(), 2);
        let transformed = module.as_operation().to_string();
        // Inner loops without an iteration are for programs without the assumption.
        let first = if promise.is_empty() { -3 } else { 0 };
        for arguments in [[first, 9, 1], [first, 8, 3], [4, 4, 2]] {
            assert!(
                run(&text, arguments) == run(&transformed, arguments),
                "with {arguments:?}\n{text}\n{transformed}"
            );
        }
    }
}

#[test]
fn a_loop_without_a_rest_has_none() {
    let context = context();
    let mut without = 0;
    for seed in 0..100 {
        let text = program(seed, "");
        let module = llopt_mlir::parse_module(&context, text.as_bytes(), "program").expect("valid");
        let mut rewriter = Rewriter::new(&context);
        for of in loops(&module) {
            let count = Numbers::of(of).map(Numbers::count);
            if let Some(unrolled) = unroll::unroll(&mut rewriter, of, 2) {
                let has_rest = count.is_none_or(|count| count % 2 == 1);
                assert_eq!(unrolled.rest.is_some(), has_rest, "{text}");
                without += usize::from(!has_rest);
            }
        }
    }
    assert!(without > 5, "{without} loops are too few");
}

/// Latencies of loads: what they load, and what they load it by, is ahead in as many stages.
#[test]
fn loads_are_ahead_by_their_latencies() {
    check(MANY_PROGRAMS, |_, of| {
        let mut latency = 0;
        for load in of.operations().into_iter().filter_map(LoadOp::of) {
            latency = (latency + 1) % 4;
            let latency = attr::i32(of.operation().ctx(), latency);
            load.operation().set_attr("tt.latency", latency);
        }
        let is_scheduled = stages::schedule(of);
        let expanded = stages::obey(of).expect("the stages are legal");
        assert_eq!(expanded.is_some(), is_scheduled);
        usize::from(is_scheduled)
    });
}

#[test]
fn a_part_is_computed_one_iteration_ahead() {
    check(PROGRAMS, |rewriter, of| {
        // All cases: uses of the induction variable, of carried values, and of values chosen before.
        let mut part = Vec::new();
        for operation in of.operations() {
            part.push(operation);
            let is_possible = part.iter().all(|operation| {
                operation.is_memory_effect_free()
                    && operation.is_speculatable()
                    && operation.region_refs().len() == 0
                    && operation.operand_values().all(|value| {
                        of.is_outside(value)
                            || value
                                .defining_op()
                                .is_none_or(|maker| part.contains(&maker))
                    })
            });
            if !is_possible {
                part.pop();
            }
        }
        usize::from(rotate::rotate(rewriter, of, &part).is_some())
    });
}

#[test]
fn a_part_that_cannot_be_ahead_stays() {
    let context = context();
    for seed in 0..50 {
        let text = program(seed, "");
        let module = llopt_mlir::parse_module(&context, text.as_bytes(), "program").expect("valid");
        let before = module.as_operation().to_string();
        let mut rewriter = Rewriter::new(&context);
        for of in loops(&module) {
            for operation in of.operations() {
                if !operation.is_memory_effect_free() {
                    assert!(rotate::rotate(&mut rewriter, of, &[operation]).is_none());
                }
            }
            assert!(rotate::rotate(&mut rewriter, of, &[]).is_none());
        }
        assert_eq!(module.as_operation().to_string(), before);
    }
}

#[test]
fn carried_values_come_and_go() {
    check(PROGRAMS, |rewriter, of| {
        // One that is used, one without a use, and one that never changes.
        let (lower, step) = (of.lower(), of.step());
        let count = of.initial().len();
        let more = carried::add(rewriter, of, &[lower, lower, step], |_, of, arguments| {
            vec![of.number(), arguments[0], arguments[2]]
        });
        assert_eq!(more.initial().len(), count + 3);
        let fewer = carried::drop_needless(rewriter, more);
        assert!(fewer.initial().len() <= count + 2);
        1
    });
}

#[test]
fn invariants_leave_the_loop() {
    check(PROGRAMS, |_, of| motion::hoist_invariants(of));
}

#[test]
fn what_one_branch_uses_sinks_into_it() {
    check(MANY_PROGRAMS, |_, of| {
        let operations = of.operations().into_iter().rev();
        operations
            .filter(|&operation| motion::sink_into_branch(operation))
            .count()
    });
}

/// Adds a condition to a load or a store.
fn mask<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    operation: OperationRef<'c, 'a>,
    condition: Value<'c, 'a>,
) -> OperationRef<'c, 'a> {
    let location = operation.loc();
    if let Some(load) = LoadOp::of(operation) {
        let masked = LoadOp::infer(
            location,
            load.ptr(),
            Some(condition),
            load.other(),
            &load.boundary_check(),
            load.padding(),
            load.cache(),
            load.evict(),
            load.is_volatile(),
        );
        return rewriter.replace_with(operation, masked.expect("a load of the same type"));
    }
    let store = StoreOp::of(operation).expect("only loads and stores are ahead");
    let masked = StoreOp::build(
        location,
        store.ptr(),
        store.value(),
        Some(condition),
        &store.boundary_check(),
        store.cache(),
        store.evict(),
    );
    rewriter.replace_with(operation, masked)
}

/// Stages for the operations of a loop: all memory accesses are in one stage, every other operation in a stage that
/// is at least that of its operands.
fn stages<'c: 'a, 'a>(of: For<'c, 'a>, random: &mut Random, count: usize) -> Vec<Staged<'c, 'a>> {
    let operations = of.operations();
    let touches = |operation: &OperationRef<'c, 'a>| !operation.is_memory_effect_free();
    let is_simple = |operation: &OperationRef<'c, 'a>| operation.region_refs().len() == 0;
    let memory = match operations.iter().filter(|op| touches(op)).all(is_simple) {
        true => random.below(count),
        false => count - 1,
    };
    let mut staged: Vec<Staged> = Vec::new();
    for operation in operations {
        let mut stage = random.below(count);
        operation.for_each_op(Walk::PreOrder, |inner| {
            for value in inner.operand_values() {
                let maker = staged
                    .iter()
                    .find(|staged| value.defining_op() == Some(staged.operation));
                stage = stage.max(maker.map_or(0, |maker| maker.stage));
            }
        });
        if touches(&operation) {
            stage = memory;
        }
        staged.push(Staged { operation, stage });
    }
    if random.below(2) == 0 {
        staged.sort_by_key(|staged| std::cmp::Reverse(staged.stage));
    }
    staged
}

#[test]
fn iterations_overlap() {
    let ends = [End::Guarded, End::Peeled, End::Apart];
    for (count, end) in (1..5).flat_map(|count| ends.map(|end| (count, end))) {
        let random = std::cell::RefCell::new(Random(count as u64));
        check(PROGRAMS / 2, |rewriter, of| {
            let pipelined = overlapping(rewriter, of, &mut random.borrow_mut(), count, end);
            usize::from(pipelined.is_some())
        });
    }
}

#[test]
fn iterations_overlap_in_groups_that_are_unrolled() {
    for (count, group) in (1..5).flat_map(|count| [(count, 2), (count, 3), (count, 4)]) {
        let random = std::cell::RefCell::new(Random(count as u64));
        check(PROGRAMS / 2, |rewriter, of| {
            let end = End::Groups(group);
            let pipelined = overlapping(rewriter, of, &mut random.borrow_mut(), count, end);
            let Some(new) = pipelined else {
                return 0;
            };
            unroll::unroll(rewriter, new, group);
            1
        });
    }
}

/// Pipelines a loop by random stages, if some that are tried are possible.
fn overlapping<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    of: For<'c, 'a>,
    random: &mut Random,
    count: usize,
    end: End,
) -> Option<For<'c, 'a>> {
    (0..8).find_map(|_| {
        let order = stages(of, random, count);
        pipeline::pipeline(rewriter, of, &order, count, end, mask).ok()
    })
}

#[test]
fn the_last_numbers_of_a_type_overlap_too() {
    for (lower, upper, step) in [
        (2_147_483_527, 2_147_483_607, 40),
        (-2_147_483_648, 2_147_483_647, 1_431_655_765),
        (-2_147_483_648, -2_147_483_647, 1_073_741_824),
        (5, 5, 2_147_483_647),
        (-2_147_483_648, 1_073_741_824, 1_073_741_824),
    ] {
        let ends = [End::Guarded, End::Peeled, End::Apart, End::Groups(2)];
        for (bounds, end) in ends
            .into_iter()
            .flat_map(|end| [("constants", end), ("values", end)])
        {
            let head = match bounds {
                "constants" => format!(
                    "%l = arith.constant {lower} : i32\n%u = arith.constant {upper} : i32\n%s = arith.constant {step} : i32\n"
                ),
                _ => "%z = arith.constant 0 : i32\n%l = arith.addi %a, %z : i32\n\
                      %u = arith.addi %b, %z : i32\n%s = arith.addi %c, %z : i32\n"
                    .to_owned(),
            };
            let text = format!(
                "module {{\n  tt.func public @kernel(%memory: !tt.ptr<i32>, %a: i32, %b: i32, %c: i32) {{\n{head}\
                 %one = arith.constant 1 : i32\n%none = arith.constant 0 : i32\n\
                 %n = scf.for %i = %l to %u step %s iter_args(%x = %none) -> (i32) : i32 {{\n\
                 %p = tt.addptr %memory, %x : !tt.ptr<i32>, i32\ntt.store %p, %i : !tt.ptr<i32>\n\
                 %y = arith.addi %x, %one : i32\nscf.yield %y : i32\n}}\n\
                 tt.store %memory, %n : !tt.ptr<i32>\ntt.return\n}}\n}}\n"
            );
            let context = context();
            let module =
                llopt_mlir::parse_module(&context, text.as_bytes(), "program").expect("valid");
            let mut rewriter = Rewriter::new(&context);
            for of in loops(&module) {
                let order: Vec<Staged> = of
                    .operations()
                    .into_iter()
                    .map(|operation| Staged {
                        operation,
                        stage: 0,
                    })
                    .collect();
                assert!(pipeline::pipeline(&mut rewriter, of, &order, 4, end, mask).is_ok());
            }
            assert!(module.as_operation().verify());
            let overlapping = module.as_operation().to_string();
            let arguments = [lower, upper, step];
            assert!(
                run(&text, arguments) == run(&overlapping, arguments),
                "{overlapping}"
            );
        }
    }
}
