//! How values flow through control flow: along which edges, and which values come from outside.
//!
//! Branches, structured loops and conditionals, calls and warp specialisation pass values on to block arguments and
//! results. Forward analyses over values ([`crate::axis`], [`crate::allocation`]) share this one description. An op
//! that declares no control flow ([`Control`]) computes its results; if it has successors or regions all the same,
//! the arguments of those blocks come from outside, and nothing is known of them.

use std::collections::HashMap;

use llopt_dialects::meaning::facts::Control;
use llopt_dialects::tt::FuncOp;
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{AttributeExt, BlockExt, OperationExt, RegionExt, Walk};
use melior::ir::{BlockRef, OperationRef, Value};

/// Where the results of an op come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// From the operands, by a transfer function.
    Computes,
    /// Along edges only.
    HandsOn,
}

/// What flows along an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carry {
    /// The one source, unchanged.
    Value,
    /// The induction variable of a loop with the sources as lower bound and step.
    Induction,
}

/// An edge: the target may take what the sources carry.
#[derive(Clone, Debug)]
pub(crate) struct Edge<V> {
    pub(crate) sources: Vec<V>,
    /// The position of the first source among the operands of the op.
    pub(crate) operand: usize,
    pub(crate) target: V,
    pub(crate) carry: Carry,
}

impl<V> Edge<V> {
    /// The same edge between other names of the values.
    pub(crate) fn map<W>(self, mut number: impl FnMut(V) -> W) -> Edge<W> {
        Edge {
            sources: self.sources.into_iter().map(&mut number).collect(),
            operand: self.operand,
            target: number(self.target),
            carry: self.carry,
        }
    }
}

/// What one op contributes to the flow of values.
pub(crate) struct Step<'c, 'a> {
    pub(crate) flow: Flow,
    pub(crate) edges: Vec<Edge<Value<'c, 'a>>>,
    /// Values that come from outside.
    pub(crate) entries: Vec<Value<'c, 'a>>,
}

/// The functions of a module, and the calls of each.
pub(crate) struct Symbols<'c, 'a> {
    functions: HashMap<&'c str, OperationRef<'c, 'a>>,
    calls: HashMap<&'c str, Vec<OperationRef<'c, 'a>>>,
    /// The names of the functions, in the order of the text.
    order: Vec<&'c str>,
}

impl<'c: 'a, 'a> Symbols<'c, 'a> {
    /// Looks for functions and calls below `root`.
    pub(crate) fn of(root: OperationRef<'c, 'a>) -> Self {
        let mut symbols = Self {
            functions: HashMap::new(),
            calls: HashMap::new(),
            order: Vec::new(),
        };
        root.for_each_op(Walk::PreOrder, |operation| {
            let control = Control::of(operation);
            if control == Control::Call
                && let Some(symbol) = callee(operation)
            {
                symbols.calls.entry(symbol).or_default().push(operation);
            }
            if control == Control::Function
                && let Some(symbol) = symbol_name(operation)
            {
                symbols.functions.insert(symbol, operation);
                symbols.order.push(symbol);
            }
        });
        symbols
    }

    /// No functions: no values that calls pass on are tracked.
    pub(crate) fn none() -> Self {
        Self {
            functions: HashMap::new(),
            calls: HashMap::new(),
            order: Vec::new(),
        }
    }

    /// All functions, each after those that it calls; otherwise in the order of the text.
    ///
    /// # Errors
    /// A function that calls itself, directly or through others.
    pub(crate) fn callees_first(&self) -> Result<Vec<OperationRef<'c, 'a>>, Complaint> {
        let position: HashMap<&'c str, usize> =
            (0..).zip(&self.order).map(|(i, &n)| (n, i)).collect();
        let mut callers = vec![Vec::new(); self.order.len()];
        let mut callees_left = vec![0; self.order.len()];
        for (callee, calls) in &self.calls {
            let Some(&callee) = position.get(callee) else {
                continue;
            };
            for &call in calls {
                let caller = call.parent_named(FuncOp::NAME).and_then(symbol_name);
                if let Some(&caller) = caller.and_then(|name| position.get(name)) {
                    callers[callee].push(caller);
                    callees_left[caller] += 1;
                }
            }
        }
        let mut done: Vec<usize> = Vec::with_capacity(self.order.len());
        let is_ready = |&function: &usize| callees_left[function] == 0;
        let mut ready: Vec<usize> = (0..self.order.len()).filter(is_ready).collect();
        while !ready.is_empty() {
            done.extend(&ready);
            let mut next = Vec::new();
            for callee in ready {
                for &caller in &callers[callee] {
                    callees_left[caller] -= 1;
                    if callees_left[caller] == 0 {
                        next.push(caller);
                    }
                }
            }
            next.sort_unstable();
            ready = next;
        }
        if let Some(waiting) = callees_left.iter().position(|&left| left > 0) {
            return Err(Complaint::new(format!(
                "has a function that calls itself: '{}'",
                self.order[waiting]
            )));
        }
        Ok(done
            .into_iter()
            .filter_map(|function| self.functions.get(self.order[function]).copied())
            .collect())
    }

    /// The calls to a function.
    pub(crate) fn calls_of(&self, function: OperationRef<'c, 'a>) -> &[OperationRef<'c, 'a>] {
        symbol_name(function)
            .and_then(|symbol| self.calls.get(symbol))
            .map_or(&[], Vec::as_slice)
    }

    /// Whether the function may be entered other than by the calls that are seen: it is a kernel,
    /// or nothing calls it.
    fn is_entered_from_outside(&self, function: OperationRef<'c, 'a>) -> bool {
        !is_private(function) || self.calls_of(function).is_empty()
    }
}

/// Whether only functions of the module call a function; others are kernels.
pub(crate) fn is_private(function: OperationRef<'_, '_>) -> bool {
    let visibility = function.attr("sym_visibility");
    visibility.and_then(AttributeExt::as_str) == Some("private")
}

/// What an op contributes to the flow of values.
pub(crate) fn step<'c: 'a, 'a>(
    operation: OperationRef<'c, 'a>,
    symbols: &Symbols<'c, 'a>,
) -> Step<'c, 'a> {
    let control = Control::of(operation);
    let operands: Vec<Value> = match control {
        // Most ops hand nothing on.
        Control::Computes | Control::Masked => Vec::new(),
        _ => operation.operand_values().collect(),
    };
    let mut step = Step {
        flow: Flow::HandsOn,
        edges: Vec::new(),
        entries: Vec::new(),
    };
    match control {
        Control::Function => {
            if symbols.is_entered_from_outside(operation) {
                step.enter(&region_arguments(operation, 0));
            }
        }
        Control::Call => match callee(operation).and_then(|name| symbols.functions.get(name)) {
            Some(&function) => step.hand_on(0, &operands, &region_arguments(function, 0)),
            None => step.enter(&results(operation)),
        },
        Control::Return => {
            let calls = operation.parent_op().map(|f| symbols.calls_of(f));
            for &call in calls.unwrap_or_default() {
                step.hand_on(0, &operands, &results(call));
            }
        }
        Control::For => {
            let arguments = region_arguments(operation, 0);
            if let ([lower, _, stride, carried @ ..], [induction, iterated @ ..]) =
                (&operands[..], &arguments[..])
            {
                step.edges.push(Edge {
                    sources: vec![*lower, *stride],
                    operand: 0,
                    target: *induction,
                    carry: Carry::Induction,
                });
                step.hand_on(3, carried, iterated);
                step.hand_on(3, carried, &results(operation));
            }
        }
        Control::While => step.hand_on(0, &operands, &region_arguments(operation, 0)),
        Control::Condition => {
            if let (Some(parent), [_, carried @ ..]) = (operation.parent_op(), &operands[..]) {
                step.hand_on(1, carried, &region_arguments(parent, 1));
                step.hand_on(1, carried, &results(parent));
            }
        }
        Control::Yield => {
            if let Some(parent) = operation.parent_op() {
                let of = Control::of(parent);
                if of == Control::While {
                    step.hand_on(0, &operands, &region_arguments(parent, 0));
                } else {
                    if of == Control::For
                        && let [_, iterated @ ..] = &region_arguments(parent, 0)[..]
                    {
                        step.hand_on(0, &operands, iterated);
                    }
                    step.hand_on(0, &operands, &results(parent));
                }
            }
        }
        Control::Choice | Control::Concurrent => {}
        Control::Partitions => {
            if let Some(parent) = operation.parent_op() {
                let captured: Vec<Value> = parent.operand_values().collect();
                for region in 0..operation.region_refs().len() {
                    step.hand_on(0, &captured, &region_arguments(operation, region));
                }
            }
        }
        Control::ConcurrentYield => {
            if let Some(parent) = operation.parent_op() {
                step.hand_on(0, &operands, &results(parent));
            }
        }
        Control::Branch => {
            if let Some(target) = operation.successor_refs().next() {
                step.hand_on(0, &operands, &arguments(target));
            }
        }
        Control::ConditionalBranch => step.conditional_branch(operation, &operands),
        Control::Computes | Control::Masked | Control::Result | Control::PartitionEnd => {
            step.flow = Flow::Computes;
            // Any other op with successors or regions: nothing is known of the values that it passes on.
            for target in operation.successor_refs() {
                step.enter(&arguments(target));
            }
            for region in operation.region_refs() {
                for block in region.blocks() {
                    step.enter(&arguments(block));
                }
            }
        }
    }
    step
}

impl<'c: 'a, 'a> Step<'c, 'a> {
    /// Each source flows into the target at the same position. The sources are operands of the op
    /// from `first` on.
    fn hand_on(&mut self, first: usize, sources: &[Value<'c, 'a>], targets: &[Value<'c, 'a>]) {
        let pairs = sources.iter().zip(targets).enumerate();
        let edges = pairs.map(|(position, (&source, &target))| Edge {
            sources: vec![source],
            operand: first + position,
            target,
            carry: Carry::Value,
        });
        self.edges.extend(edges);
    }

    /// The values come from outside.
    fn enter(&mut self, values: &[Value<'c, 'a>]) {
        self.entries.extend_from_slice(values);
    }

    fn conditional_branch(&mut self, operation: OperationRef<'c, 'a>, operands: &[Value<'c, 'a>]) {
        let segments = operation
            .attr("operandSegmentSizes")
            .and_then(AttributeExt::as_integers);
        let successors: Vec<BlockRef> = operation.successor_refs().collect();
        if let (Some([_, taken, _]), [then, otherwise], [_, passed @ ..]) =
            (segments.as_deref(), &successors[..], operands)
        {
            let taken = usize::try_from(*taken).unwrap_or(0).min(passed.len());
            let (first, second) = passed.split_at(taken);
            self.hand_on(1, first, &arguments(*then));
            self.hand_on(1 + taken, second, &arguments(*otherwise));
        }
    }
}

fn results<'c: 'a, 'a>(operation: OperationRef<'c, 'a>) -> Vec<Value<'c, 'a>> {
    operation.result_values().collect()
}

fn region_arguments<'c: 'a, 'a>(
    operation: OperationRef<'c, 'a>,
    region: usize,
) -> Vec<Value<'c, 'a>> {
    let entry = operation.region_ref(region).and_then(RegionExt::entry);
    entry.map(arguments).unwrap_or_default()
}

/// The parameters of a function.
pub(crate) fn parameters<'c: 'a, 'a>(function: OperationRef<'c, 'a>) -> Vec<Value<'c, 'a>> {
    region_arguments(function, 0)
}

fn arguments<'c: 'a, 'a>(block: BlockRef<'c, 'a>) -> Vec<Value<'c, 'a>> {
    block.argument_values().collect()
}

/// The name of a function.
pub(crate) fn symbol_name<'c>(function: OperationRef<'c, '_>) -> Option<&'c str> {
    function.attr("sym_name")?.as_str()
}

/// The name of the called function.
pub(crate) fn callee<'c>(call: OperationRef<'c, '_>) -> Option<&'c str> {
    call.attr("callee")?.as_symbol()
}
