//! An explanation as text for the author of a kernel.

use std::fmt::{self, Write as _};

use llopt_codegen::walk::decision::{Gather, Product, Reduction, Scan};
use llopt_plan::priced::Priced;

use super::{
    Access, Alternative, ChosenLayouts, CopiedLoop, End, Explained, Explanation, Kind,
    LoopSchedule, Op, PlacedUnit, PlanJson, Prediction, Producer, SharedLoop, Width,
};

impl fmt::Display for Explanation {
    /// A heading, then a paragraph for each decision: the op and its line, the decision, the reason for the op, and
    /// the alternatives.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} on {}: {} warps of {} lanes, {} bytes of shared memory",
            self.kernel, self.target, self.num_warps, self.warp_size, self.shared_bytes
        )?;
        let moves = self.decisions.iter().filter(|one| one.costs()).count();
        writeln!(
            f,
            "{} decisions, {moves} of them move data between threads. Costs are cycles of one warp by the \
             target's table; a\nwavefront is one pass over the banks of shared memory.",
            self.decisions.len()
        )?;
        if let Some(layouts) = &self.layouts {
            write!(f, "{layouts}")?;
        } else if let Some(written) = &self.written {
            writeln!(
                f,
                "The layouts that it has cost {:.0} cycles.",
                written.cost
            )?;
        }
        for of in &self.copied {
            write!(f, "{of}")?;
        }
        if let Some(of) = &self.persistent {
            write!(f, "{of}")?;
        }
        if let Some(of) = &self.program_order {
            write!(f, "{of}")?;
        }
        for of in &self.shared_loops {
            write!(f, "{of}")?;
        }
        for of in &self.wide {
            write!(f, "{of}")?;
        }
        for of in &self.loops {
            write!(f, "{of}")?;
        }
        for limit in &self.limits {
            write!(f, "{limit}")?;
        }
        for one in &self.decisions {
            write!(f, "\n{one}")?;
        }
        Ok(())
    }
}

impl fmt::Display for ChosenLayouts {
    /// Cost and bound, and a line for each remaining conversion, and for each access that could be wider.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gap = match self.bound {
            bound if bound > 0.0 => 100.0 * (self.cost / bound - 1.0),
            _ => 0.0,
        };
        let candidates = match self.complete {
            true => "any of the candidates",
            false => "those candidates that were looked at, as there are too many",
        };
        writeln!(
            f,
            "Layouts were chosen: {:.0} cycles, at least {:.0} with {candidates} (gap {gap:.1} %).",
            self.cost, self.bound
        )?;
        for left in &self.conversions {
            let [from, to] = &left.demands;
            let removal = match left.removal {
                Some(removal) => format!("the kernel would cost {removal:.0} more without it"),
                None => "the kernel cannot do without it".to_owned(),
            };
            writeln!(
                f,
                "  converts   from {} ({}) to {} ({}) for {:.0} cycles; {removal}",
                from.op, from.location, to.op, to.location, left.cost
            )?;
        }
        for narrow in &self.accesses {
            let access = &narrow.access;
            writeln!(
                f,
                "  accesses   memory in {} instructions of {} ({}); with {} the kernel would cost {:.0} more",
                narrow.instructions, access.op, access.location, narrow.fewer, narrow.widening
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for SharedLoop {
    /// Whether blocks share the loop, and what comes after it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (location, blocks) = (&self.location, self.blocks);
        if let Some(reason) = &self.reason {
            return writeln!(f, "Loop ({location}) is not shared among blocks: {reason}.");
        }
        write!(
            f,
            "Loop ({location}) is shared among {blocks} blocks of a cluster; "
        )?;
        match (self.divided, &self.undivided) {
            (Some(dim), _) => writeln!(f, "each stores its part of the sum along dim{dim}."),
            (None, reason) => {
                let reason = reason.as_deref().unwrap_or_default();
                writeln!(f, "the first does what comes after it alone: {reason}.")
            }
        }
    }
}

impl fmt::Display for CopiedLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let location = &self.location;
        if let Some(reason) = &self.reason {
            return writeln!(f, "Loop ({location}) loads through pointers: {reason}.");
        }
        let otherwise = match self.is_rare {
            true => "the loop as it was is for extreme sizes, and not pipelined",
            false => "the loop as it was is as fast as before",
        };
        write!(
            f,
            "Loop ({location}) copies the tiles of {} loads",
            self.loads
        )?;
        if self.stores > 0 {
            write!(f, " and {} stores", self.stores)?;
        }
        if self.slices > 1 {
            write!(f, ", in {} slices along k", self.slices)?;
        }
        writeln!(f, ", under {} conditions; {otherwise}.", self.conditions)
    }
}

impl fmt::Display for Prediction {
    /// The time, and what it consists of.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cycles, blocks, .. } = self;
        write!(
            f,
            "  predicted  an iteration takes about {cycles} cycles, the share of each of {blocks} resident blocks:"
        )?;
        for (number, (name, cycles)) in self.terms.iter().enumerate() {
            let separator = if number > 0 { "," } else { "" };
            write!(f, "{separator} {name} {cycles}")?;
        }
        writeln!(f)
    }
}

/// The line of the partition that issues the copies, where there is one.
fn write_producer(f: &mut fmt::Formatter<'_>, producer: Option<&Producer>) -> fmt::Result {
    let Some(Producer {
        warps,
        loops,
        registers,
        ..
    }) = producer
    else {
        return Ok(());
    };
    write!(
        f,
        "  partitions {warps} warp issues the copies of {loops} loops; "
    )?;
    match registers {
        Some(kept) => writeln!(f, "its threads keep {kept} registers"),
        None => writeln!(f, "registers are the same for all"),
    }
}

impl fmt::Display for LoopSchedule {
    /// How the loop is pipelined or why it is not, and a line for each load that is not pipelined.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let location = &self.location;
        match (&self.pipeline, &self.reason) {
            (Some(of), _) => {
                write!(f, "Loop ({location}) is pipelined in {} stages", of.stages)?;
                if let Some(most) = of.iterations.filter(|most| *most < u64::from(of.wanted)) {
                    write!(f, " ({} are asked for, for {most} iterations)", of.wanted)?;
                } else if of.stages < of.wanted {
                    write!(f, " ({} do not fit)", of.wanted)?;
                } else if of.stages > of.wanted {
                    write!(f, " ({} are asked for, and more cost nothing)", of.wanted)?;
                }
                writeln!(
                    f,
                    ": {} copies and {} loads through registers{}, {} buffers for each, {} bytes; {} products run on \
                     into the next iteration.",
                    of.copies,
                    of.through_registers,
                    if of.held {
                        " held for an iteration"
                    } else {
                        ""
                    },
                    of.buffers,
                    of.bytes,
                    of.running_products
                )?;
                if of.feeders > 0 {
                    writeln!(
                        f,
                        "  addresses  depend on {} loads, which run ahead of the loads that need them",
                        of.feeders
                    )?;
                }
                if of.unrolled > 1 {
                    writeln!(
                        f,
                        "  registers  the loads of two iterations are outstanding, in registers that change places: {} \
                         iterations are unrolled to one",
                        of.unrolled
                    )?;
                }
                let limit = of.limit.as_deref();
                write!(
                    f,
                    "  interval   {} cycles, at least {} for {}; {} stages hide the latency of its loads",
                    of.interval,
                    of.bound,
                    limit.unwrap_or("results that the next iteration needs"),
                    of.needed
                )?;
                if of.loaded > of.needed {
                    write!(f, ", {} while all multiprocessors load", of.loaded)?;
                }
                writeln!(f)?;
                if let Some(predicted) = &self.predicted {
                    write!(f, "{predicted}")?;
                }
                if of.product_ahead == Some(true) {
                    writeln!(
                        f,
                        "  ahead      the first product and what follows from it, an iteration"
                    )?;
                }
                if let Some(reason) = &of.not_ahead {
                    writeln!(f, "  ahead      no product: {reason}")?;
                }
                match (&of.turns, &of.not_in_turns) {
                    (Some(turns), _) => write!(f, "{turns}")?,
                    (None, Some(reason)) => writeln!(f, "  turns      none: {reason}")?,
                    (None, None) => {}
                }
                write_producer(f, of.producer.as_ref())?;
            }
            (None, reason) => {
                let reason = reason.as_deref().unwrap_or_default();
                writeln!(f, "Loop ({location}) is not pipelined: {reason}.")?;
            }
        }
        if let Some(reason) = &self.undivided {
            writeln!(
                f,
                "  partitions none, though the program asks for them: {reason}"
            )?;
        }
        for late in &self.late {
            writeln!(
                f,
                "  stays      the load ({}): {}",
                late.location, late.reason
            )?;
        }
        for alternative in &self.alternatives {
            write!(f, "{alternative}")?;
        }
        match &self.pipeline {
            Some(of) => write_units(f, &of.units),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Alternative {
    /// What it would be, and at what price.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (warps, wanted) = (self.num_warps, self.wanted);
        write!(f, "  otherwise  {warps} warps, {wanted} stages asked for: ")?;
        let (Some(stages), Some(interval), Some(bytes)) = (self.stages, self.interval, self.bytes)
        else {
            let reason = self.reason.as_deref().unwrap_or_default();
            return writeln!(f, "not pipelined, {reason}");
        };
        write!(
            f,
            "{stages} stages, interval {interval}, buffers of {bytes} bytes, {} bytes of shared memory",
            self.shared_bytes
        )?;
        if let (Some(blocks), Some(cycles)) = (self.blocks, self.cycles) {
            write!(f, ", {blocks} resident blocks, about {cycles} cycles")?;
        }
        writeln!(f)
    }
}

/// The schedule as a table, cycle by cycle.
fn write_units(f: &mut fmt::Formatter<'_>, units: &[PlacedUnit]) -> fmt::Result {
    for unit in units {
        writeln!(
            f,
            "  cycle {:>5} stage {}: {} keeps {} busy for {} cycles",
            unit.start, unit.stage, unit.op, unit.resource, unit.cycles
        )?;
    }
    Ok(())
}

impl Explained {
    /// Whether data moves between threads.
    fn costs(&self) -> bool {
        match &self.decision {
            Kind::Movement { chosen, .. } => chosen.cost > 0.0,
            Kind::SharedLoad(_) | Kind::SharedStore(_) | Kind::Scan(_) | Kind::Gather(_) => true,
            Kind::Reduction(Reduction {
                lane_steps,
                partial_results,
                ..
            }) => *lane_steps > 0 || *partial_results > 1,
            Kind::GlobalLoad(_) | Kind::GlobalStore(_) | Kind::Product(_) => false,
        }
    }
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}  {}", self.location, self.op)?;
        let mut row = |name: &str, text: &str| writeln!(f, "  {name:<9} {text}");
        match &self.decision {
            Kind::Movement { chosen, rejected } => {
                ends(&mut row, self)?;
                row("plan", &plan(chosen))?;
                for other in rejected {
                    row("not", &plan(other))?;
                }
                if chosen.kind == "shared"
                    && chosen.store_wavefronts + chosen.load_wavefronts
                        == chosen.store_bound + chosen.load_bound
                {
                    row("banks", "no conflicts: the swizzle reaches the bound")?;
                }
            }
            Kind::SharedLoad(access) | Kind::SharedStore(access) => {
                ends(&mut row, self)?;
                row("access", &shared(access))?;
            }
            Kind::GlobalLoad(width) | Kind::GlobalStore(width) => row("access", &global(width))?,
            Kind::Reduction(reduction) => {
                ends(&mut row, self)?;
                reduction_rows(&mut row, reduction)?;
            }
            Kind::Scan(scan) => {
                ends(&mut row, self)?;
                scan_rows(&mut row, scan)?;
            }
            Kind::Gather(gather) => {
                ends(&mut row, self)?;
                gather_rows(&mut row, gather)?;
            }
            Kind::Product(product) => {
                ends(&mut row, self)?;
                row("unit", &multiplied(product))?;
            }
        }
        Ok(())
    }
}

/// The rows of a reduction: the work of threads, warps and the block.
fn reduction_rows(
    row: &mut impl FnMut(&str, &str) -> fmt::Result,
    reduction: &Reduction,
) -> fmt::Result {
    let Reduction {
        in_thread,
        values,
        lane_steps,
        shuffles,
        warp_instructions,
        partial_results,
        blocks,
        shared_bytes,
    } = reduction;

    row(
        "thread",
        &format!("{} in registers", counted(*in_thread, "combination")),
    )?;
    let steps = counted(*lane_steps, "step");
    row(
        "warp",
        &format!(
            "{steps} between lanes of {}, {}",
            counted(*values, "value"),
            if *warp_instructions > 0 {
                counted(*warp_instructions, "instruction") + " of the whole warp"
            } else {
                counted(*shuffles, "shuffle")
            }
        ),
    )?;
    row(
        "block",
        &if *partial_results > 1 {
            let others = match blocks {
                1 => String::new(),
                _ => format!(" of each of {blocks} blocks"),
            };
            format!(
                "{partial_results} partial results of each element through {shared_bytes} bytes of \
                             shared memory{others}"
            )
        } else {
            "nothing: each warp has all of the axis".to_owned()
        },
    )?;
    Ok(())
}

/// The rows of a scan: the work of threads, warps and the block.
fn scan_rows(row: &mut impl FnMut(&str, &str) -> fmt::Result, scan: &Scan) -> fmt::Result {
    let Scan {
        run,
        lanes,
        warps,
        chunks,
        shared_bytes,
    } = scan;

    row("thread", &format!("runs of {}", counted(*run, "element")))?;
    row(
        "warp",
        &format!(
            "{} between {}",
            counted(lanes.trailing_zeros(), "step"),
            counted(*lanes, "lane")
        ),
    )?;
    row(
        "block",
        &if *warps > 1 {
            format!("totals of {warps} warps through {shared_bytes} bytes of shared memory")
        } else {
            "nothing: each warp has all of the axis".to_owned()
        },
    )?;
    if *chunks > 1 {
        row("again", &format!("{chunks} times along the axis"))?;
    }
    Ok(())
}

/// The rows of a gather: the chosen plan, and the others.
fn gather_rows(row: &mut impl FnMut(&str, &str) -> fmt::Result, gather: &Gather) -> fmt::Result {
    let Gather {
        chosen,
        rejected,
        candidates,
        shared_bytes,
    } = gather;

    let mut text = priced(chosen);
    if *shared_bytes > 0 {
        let _ = write!(text, ", {shared_bytes} bytes of shared memory");
    } else {
        let _ = write!(text, ", one of {} each", counted(*candidates, "register"));
    }
    row("plan", &text)?;
    for other in rejected {
        row("not", &priced(other))?;
    }
    Ok(())
}

/// The rows with the sources and the uses of values.
fn ends(row: &mut impl FnMut(&str, &str) -> fmt::Result, of: &Explained) -> fmt::Result {
    let line = |end: &End, word: &str| -> String {
        if end.ops.is_empty() {
            return end.r#type.clone();
        }
        format!("{}  {word} {}", end.r#type, ops(&end.ops))
    };
    for operand in &of.operands {
        row("from", &line(operand, "made by"))?;
    }
    for result in &of.results {
        row("to", &line(result, "for"))?;
    }
    Ok(())
}

fn ops(list: &[Op]) -> String {
    const SHOWN: usize = 3;
    let mut all: Vec<String> = list
        .iter()
        .take(SHOWN)
        .map(|op| format!("{} ({})", op.op, op.location))
        .collect();
    if list.len() > SHOWN {
        all.push(format!("{} more", list.len() - SHOWN));
    }
    all.join(", ")
}

fn counted(count: u32, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn plan(plan: &PlanJson) -> String {
    let what = match plan.kind {
        "none" => "nothing moves",
        "register" => "registers are renamed",
        "shuffle" => "lanes exchange",
        "shared" => "through shared memory",
        _ => "through other blocks' shared memory",
    };
    let mut text = format!("{what}, cost {:.1}", plan.cost);
    let bound = plan.store_bound + plan.load_bound;
    for (count, word) in [
        (plan.shuffles, "shuffle"),
        (plan.swaps, "swap"),
        (plan.selects, "select"),
        (plan.permutes, "byte permute"),
        (plan.shared_stores, "store"),
        (plan.shared_loads, "load"),
        (plan.store_wavefronts + plan.load_wavefronts, "wavefront"),
        (plan.barriers, "barrier"),
        (plan.shared_bytes, "byte"),
    ] {
        if count > 0 {
            let _ = write!(text, ", {}", counted(count, word));
            match word {
                "wavefront" => {
                    let _ = write!(text, " (bound {bound})");
                }
                "store" => text.push_str(&by(plan.store_instruction, word)),
                "load" => text.push_str(&by(plan.load_instruction, word)),
                _ => {}
            }
        }
    }
    text
}

/// The name of an instruction, if it is not the plain one.
fn by(instruction: Option<&str>, plain: &str) -> String {
    instruction
        .filter(|name| *name != plain)
        .map_or_else(String::new, |name| format!(" by {name}"))
}

fn shared(access: &Access) -> String {
    let conflicts = if access.wavefronts > access.bound {
        let ratio = f64::from(access.wavefronts) / f64::from(access.bound.max(1));
        format!("bank conflicts: {ratio:.1} times the bound")
    } else {
        "no bank conflicts".to_owned()
    };
    format!(
        "{} of {} bits a thread ({}), {} (bound {}): {conflicts}",
        counted(access.instructions, "instruction"),
        access.bits,
        access.instruction,
        counted(access.wavefronts, "wavefront"),
        access.bound
    )
}

fn global(width: &Width) -> String {
    format!(
        "{} of {} bits a thread ({} each)",
        counted(width.accesses, "access").replace("accesss", "accesses"),
        width.bits,
        counted(width.elements, "element")
    )
}

fn multiplied(product: &Product) -> String {
    let [m, n, k] = product.extents;
    format!(
        "{} of {} ({m}x{n}x{k}{}), {} summed apart, {} cycles of the matrix unit",
        counted(product.executions, "execution"),
        product.instruction,
        if product.exchanged {
            ", operands exchanged"
        } else {
            ""
        },
        counted(product.tiles, "tile"),
        product.cycles
    )
}

fn priced(way: &Priced) -> String {
    let what = match way.way {
        "thread" => "in the thread's registers",
        "shuffle" => "by shuffles",
        _ => "through shared memory",
    };
    format!("{what}, cost {:.1}", way.cost)
}
