//! The check that rejects a kernel of excessive cost before the work is done.
//!
//! Nearly all work of a tile compiler is proportional to the number of *values*: any op on a tensor becomes at least
//! one instruction for each register of the tensor's layout. So two numbers that are known as soon as the module is
//! read bound the time and the memory of all phases:
//!
//! - the values of one op per thread: the registers of its results' layouts, or, without layouts, the elements
//!   divided by the threads that will share them;
//! - their sum over all ops, the size of the code. Ops that only give values other names or places in a tensor, such as
//!   broadcasts, become no instructions and do not count: where a sorting network is written as exchanges along the
//!   dimensions of a hypercube, they are half of all. A called function is counted for each call that will be inlined,
//!   so that an exponential number of calls is detected before they are expanded.
//!
//! Calls are checked here too: the functions of a kernel must have bodies and must not call themselves, which every
//! later phase assumes.

use std::collections::{HashMap, HashSet};

use llopt_dialects::layout::encoding;
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt;
use llopt_layout::Dim;
use llopt_mlir::ir::{AttributeExt, BlockExt, OperationExt, RegionExt, TypeExt, Walk};
use melior::ir::r#type::IntegerType;
use melior::ir::{Module, OperationRef, Type, ValueLike};

use crate::module::{has_layouts, location_of};
use crate::{Budget, Diagnostic, Error, Options};

/// Bits of the widest integer that is compiled. MLIR's own folding of wider ones takes time that grows with the square.
const WIDEST_INTEGER: u32 = 1024;

/// A function of the module, with its calls.
struct Function<'c, 'a> {
    op: OperationRef<'c, 'a>,
    calls: Vec<tt::CallOp<'c, 'a>>,
    /// Values of its own ops.
    own: u64,
    /// Whether its body will replace its calls.
    inlined: bool,
}

/// Checks a module before any phase works on it.
///
/// # Errors
/// Of class invalid input, located: a call that cannot be compiled, or an excess.
pub(crate) fn check(module: &Module<'_>, options: &Options) -> Result<(), Error> {
    let root = module.as_operation();
    let budget = &options.budget;
    let threads = (!has_layouts(module)).then(|| {
        u64::from(options.num_warps.filter(|&number| number > 0).unwrap_or(4))
            * u64::from(options.target.warp_size())
    });
    let mut measure = Measure {
        threads,
        known: HashMap::new(),
    };
    let mut functions = Vec::new();
    let mut excess = None;
    for op in top_level(root) {
        let mut calls = Vec::new();
        let mut own: u64 = 0;
        op.for_each_op(Walk::PreOrder, |inner| {
            calls.extend(tt::CallOp::of(inner));
            let (values, widest) = measure.of_op(inner);
            own = own.saturating_add(if is_renaming(inner) { 1 } else { values.max(1) });
            if excess.is_none() && widest > WIDEST_INTEGER {
                excess = Some(invalid(inner, format!(
                    "'{}' has an integer of {widest} bits; {WIDEST_INTEGER} are the most", inner.name_str()
                )));
            }
            if excess.is_none() && values > budget.values {
                excess = Some(invalid(inner, format!(
                    "'{}' gives {values} values to each thread, more than the {} of the budget (max_values)",
                    inner.name_str(), budget.values
                )));
            }
        });
        let inlined = tt::FuncOp::of(op).is_some_and(|_| {
            threads.is_some() && op.attr("noinline").and_then(AttributeExt::as_bool) != Some(true)
        });
        functions.push(Function {
            op,
            calls,
            own,
            inlined,
        });
    }
    if let Some(error) = excess {
        return Err(error);
    }
    check_functions(root, &functions, budget)
}

/// Checks only whether functions have bodies and do not call themselves.
///
/// # Errors
/// Of class invalid input, located.
pub(crate) fn check_calls(module: &Module<'_>) -> Result<(), Error> {
    let root = module.as_operation();
    let functions: Vec<Function<'_, '_>> = top_level(root)
        .map(|op| {
            let mut calls = Vec::new();
            op.for_each_op(Walk::PreOrder, |inner| calls.extend(tt::CallOp::of(inner)));
            Function {
                op,
                calls,
                own: 0,
                inlined: false,
            }
        })
        .collect();
    check_functions(root, &functions, &Budget::default())
}

fn top_level<'c: 'a, 'a>(root: OperationRef<'c, 'a>) -> impl Iterator<Item = OperationRef<'c, 'a>> {
    let body = root.region_ref(0).and_then(RegionExt::entry);
    body.into_iter().flat_map(BlockExt::operations)
}

/// Checks calls, and the size of their code.
fn check_functions(
    root: OperationRef<'_, '_>,
    functions: &[Function<'_, '_>],
    budget: &Budget,
) -> Result<(), Error> {
    let mut calls = Calls::of(functions, budget);
    let mut total: u64 = 0;
    for (index, function) in functions.iter().enumerate() {
        let size = calls.unfolded(index)?;
        // Inlined functions are counted with their callers.
        if !function.inlined || tt::FuncOp::of(function.op).is_some_and(is_kernel) {
            total = total.saturating_add(size);
        }
    }
    if total > budget.code {
        return Err(invalid(
            root,
            format!(
                "the module gives {total} values to each thread, more than the {} of the budget (max_code)",
                budget.code
            ),
        ));
    }
    Ok(())
}

/// The functions of a module, with what is known of the sizes of their code.
struct Calls<'f, 'c, 'a> {
    functions: &'f [Function<'c, 'a>],
    names: HashMap<&'f str, usize>,
    budget: &'f Budget,
    /// The size of each with what it inlines, once that is known.
    sizes: Vec<Option<u64>>,
}

impl<'f, 'c: 'a, 'a> Calls<'f, 'c, 'a> {
    fn of(functions: &'f [Function<'c, 'a>], budget: &'f Budget) -> Self {
        let names = functions.iter().enumerate();
        let names = names
            .filter_map(|(index, function)| Some((tt::FuncOp::of(function.op)?.sym_name(), index)));
        Self {
            functions,
            names: names.collect(),
            budget,
            sizes: vec![None; functions.len()],
        }
    }

    /// The size of a function with what it inlines. Depth first, without recursion: the input may have chains of calls of any
    /// length.
    fn unfolded(&mut self, start: usize) -> Result<u64, Error> {
        if let Some(size) = self.sizes[start] {
            return Ok(size);
        }
        let mut on_path = HashSet::from([start]);
        // A function, the number of its next call, and its size so far.
        let mut path = vec![(start, 0, self.functions[start].own)];
        while let Some((index, next, size)) = path.pop() {
            let function = &self.functions[index];
            let Some(&call) = function.calls.get(next) else {
                self.check_size(function, size)?;
                self.sizes[index] = Some(size);
                on_path.remove(&index);
                continue;
            };
            let callee = self.callee(call)?;
            let target = &self.functions[callee];
            match self.sizes[callee] {
                Some(inner) => {
                    let inner = if target.inlined { inner } else { 0 };
                    path.push((index, next + 1, size.saturating_add(inner)));
                }
                None if on_path.contains(&callee) => {
                    let name = call.callee();
                    return Err(invalid(
                        call.operation(),
                        format!(
                            "'{name}' calls itself, directly or through others, which no function of a kernel can"
                        ),
                    ));
                }
                None => {
                    on_path.insert(callee);
                    path.push((index, next, size));
                    path.push((callee, 0, target.own));
                }
            }
        }
        Ok(self.sizes[start].unwrap_or(0))
    }

    fn check_size(&self, function: &Function<'_, '_>, size: u64) -> Result<(), Error> {
        if size <= self.budget.code {
            return Ok(());
        }
        Err(invalid(
            function.op,
            format!(
                "with what it calls, this function gives {size} values to each thread, more than the {} of the budget \
                 (max_code)",
                self.budget.code
            ),
        ))
    }

    /// The function that is called, which has to have a body.
    fn callee(&self, call: tt::CallOp<'_, '_>) -> Result<usize, Error> {
        let (op, name) = (call.operation(), call.callee());
        let Some(&callee) = self.names.get(name) else {
            return Err(invalid(op, format!("there is no function '{name}'")));
        };
        let target = self.functions[callee].op;
        if target.region_ref(0).and_then(RegionExt::entry).is_none() {
            return Err(invalid(
                op,
                format!("'{name}' is declared and not defined: nothing links functions of tiles"),
            ));
        }
        Ok(callee)
    }
}

/// Whether an op becomes no instruction: its result is its operand under another type, or in more places.
fn is_renaming(op: OperationRef<'_, '_>) -> bool {
    tt::BroadcastOp::of(op).is_some()
        || tt::ExpandDimsOp::of(op).is_some()
        || tt::SplatOp::of(op).is_some()
        || tt::BitcastOp::of(op).is_some()
        || tt::TransOp::of(op).is_some()
}

fn is_kernel(function: tt::FuncOp<'_, '_>) -> bool {
    function
        .sym_visibility()
        .is_none_or(|visibility| visibility == "public")
}

fn invalid(op: OperationRef<'_, '_>, message: String) -> Error {
    Error::invalid(vec![Diagnostic::error(location_of(op), message)])
}

/// Counts values.
struct Measure {
    /// Threads that share a tensor that has no layout yet.
    threads: Option<u64>,
    /// Values and bits of the widest integer, by types seen before.
    known: HashMap<usize, (u64, u32)>,
}

impl Measure {
    /// The most values per thread of one result, or of one argument of a block of the op; and the widest integer.
    fn of_op(&mut self, op: OperationRef<'_, '_>) -> (u64, u32) {
        let mut most = (0, 0);
        let mut add = |(values, bits): (u64, u32)| most = (values.max(most.0), bits.max(most.1));
        for of in op.result_types() {
            add(self.of(of));
        }
        for region in op.region_refs() {
            for block in region.blocks() {
                for argument in block.argument_values() {
                    add(self.of(argument.r#type()));
                }
            }
        }
        most
    }

    fn of(&mut self, of: Type<'_>) -> (u64, u32) {
        use melior::ir::TypeLike;
        let key = of.to_raw().ptr as usize;
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let element = of.element_or_self();
        let bits = IntegerType::try_from(element).map_or(0, |integer| integer.width());
        let values = RankedTensor::of(of).map_or(1, |tensor| self.of_tensor(of, tensor));
        self.known.insert(key, (values, bits));
        (values, bits)
    }

    fn of_tensor(&self, of: Type<'_>, tensor: RankedTensor<'_>) -> u64 {
        let elements = tensor.extents().iter().fold(1u64, |count, &extent| {
            count.saturating_mul(u64::try_from(extent).unwrap_or(0))
        });
        match (tensor.encoding(), self.threads) {
            // An error in a layout is reported where the layout is used.
            (Some(_), _) => {
                encoding::layout_of(of).map_or(0, |layout| layout.in_dim_size(Dim::REGISTER))
            }
            (None, Some(threads)) => elements.div_ceil(threads),
            (None, None) => elements,
        }
    }
}
