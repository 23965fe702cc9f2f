//! `scf.for`, `scf.while` and `scf.if` by the names of their parts.

use llopt_dialects::scf;
use llopt_dialects::tt::LoadOp;
use llopt_mlir::ir::{BlockExt, OperationExt, RegionExt, ValueExt, Walk};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::attribute::Attribute;
use melior::ir::operation::OperationBuilder;
use melior::ir::{
    Block, BlockRef, Identifier, Location, OperationRef, Region, RegionLike, Type, TypeLike, Value,
    ValueLike,
};

use super::builder::IN_CONTEXT;
use crate::products::is_product;

/// The operands of a loop before the carried ones: lower bound, upper bound, step.
pub(crate) const BOUNDS: usize = 3;

/// The loops in an operation, those in others first.
pub(crate) fn inner_first<'c: 'a, 'a>(within: OperationRef<'c, 'a>) -> Vec<For<'c, 'a>> {
    let mut loops = Vec::new();
    within.for_each_op(Walk::PostOrder, |operation| {
        loops.extend(For::of(operation));
    });
    loops
}

/// The loops in an operation that have none in them.
pub(crate) fn innermost<'c: 'a, 'a>(within: OperationRef<'c, 'a>) -> Vec<For<'c, 'a>> {
    let loops = inner_first(within).into_iter();
    loops.filter(|of| !of.has_loops()).collect()
}

/// An `scf.for`.
#[derive(Clone, Copy)]
pub struct For<'c, 'a> {
    operation: OperationRef<'c, 'a>,
    body: BlockRef<'c, 'a>,
}

impl<'c: 'a, 'a> For<'c, 'a> {
    /// The operation as a loop, if it is one.
    pub fn of(operation: OperationRef<'c, 'a>) -> Option<Self> {
        let region = operation.region_ref(0)?;
        let body = region.single_block()?;
        let is_loop =
            scf::ForOp::of(operation).is_some() && operation.operand_values().len() >= BOUNDS;
        is_loop.then_some(Self { operation, body })
    }

    /// The operation.
    pub fn operation(self) -> OperationRef<'c, 'a> {
        self.operation
    }

    fn operand(self, index: usize) -> Value<'c, 'a> {
        // The operands of a loop begin with its bounds, by `of`.
        self.operation.operand_value(index).expect("a bound")
    }

    /// The first number.
    pub fn lower(self) -> Value<'c, 'a> {
        self.operand(0)
    }

    /// All numbers are below it.
    pub fn upper(self) -> Value<'c, 'a> {
        self.operand(1)
    }

    /// The difference of consecutive numbers.
    pub fn step(self) -> Value<'c, 'a> {
        self.operand(2)
    }

    /// The first number, what all are below, and the step.
    pub fn bounds(self) -> [Value<'c, 'a>; 3] {
        [self.lower(), self.upper(), self.step()]
    }

    /// Sets one of the bounds: 0 for the lower, 1 for the upper, 2 for the step.
    pub(crate) fn set_bound(self, index: usize, value: Value<'c, 'a>) {
        self.operation.set_operand_value(index, value);
    }

    /// Whether numbers are compared as unsigned.
    pub fn is_unsigned(self) -> bool {
        self.operation.attr("unsignedCmp").is_some()
    }

    /// The initial carried values.
    pub fn initial(self) -> Vec<Value<'c, 'a>> {
        self.operation.operand_values().skip(BOUNDS).collect()
    }

    /// Sets the initial carried values.
    pub(crate) fn set_initial(self, values: &[Value<'c, 'a>]) {
        for (index, &value) in values.iter().enumerate() {
            self.operation.set_operand_value(BOUNDS + index, value);
        }
    }

    /// The body.
    pub fn body(self) -> BlockRef<'c, 'a> {
        self.body
    }

    /// The induction variable.
    pub fn number(self) -> Value<'c, 'a> {
        // The verifier of `scf.for` asks for it.
        self.body.argument_value(0).expect("an induction variable")
    }

    /// The carried values as the body sees them.
    pub fn carried(self) -> Vec<Value<'c, 'a>> {
        self.body.argument_values().skip(1).collect()
    }

    /// The end of the body.
    pub fn terminator(self) -> OperationRef<'c, 'a> {
        self.body.operations().last().expect("a terminator")
    }

    /// The carried values of the next iteration.
    pub fn yielded(self) -> Vec<Value<'c, 'a>> {
        self.terminator().operand_values().collect()
    }

    /// The final carried values.
    pub fn results(self) -> Vec<Value<'c, 'a>> {
        self.operation.result_values().collect()
    }

    /// Whether there is another loop in it, except those that only search ([`While::is_search`]).
    pub(crate) fn has_loops(self) -> bool {
        let mut found = false;
        self.operation.for_each_op(Walk::PreOrder, |operation| {
            let searches = || While::of(operation).is_some_and(While::is_search);
            found |= operation != self.operation && is_loop(operation) && !searches();
        });
        found
    }

    /// Whether a value is loop-invariant because it is defined outside.
    pub fn is_outside(self, value: Value<'c, 'a>) -> bool {
        let block = llopt_mlir::ir::ValueExt::parent_block(value);
        let owner = block.and_then(|block| melior::ir::BlockLike::parent_operation(&block));
        owner.is_none_or(|owner| !owner.is_within(self.operation))
    }

    /// The operations of the body except the terminator.
    pub fn operations(self) -> Vec<OperationRef<'c, 'a>> {
        let mut operations: Vec<_> = self.body.operations().collect();
        operations.pop();
        operations
    }

    /// Inserts a loop with an empty body, which has no terminator yet.
    pub(crate) fn build(
        rewriter: &mut Rewriter<'c, 'a>,
        location: Location<'c>,
        bounds: [Value<'c, 'a>; BOUNDS],
        initial: &[Value<'c, 'a>],
        attributes: &[(&'c str, Attribute<'c>)],
    ) -> Self {
        let types: Vec<Type<'c>> = initial.iter().map(|value| value.r#type()).collect();
        let mut arguments = vec![(bounds[0].r#type(), location)];
        arguments.extend(types.iter().map(|&r#type| (r#type, location)));
        let region = Region::new();
        region.append_block(Block::new(&arguments));
        let operation = insert_loop(rewriter, location, bounds, initial, attributes, region);
        Self::of(operation).expect("it was just made")
    }

    /// The same loop with other carried values: inserts a new one before it and moves the body there; the caller
    /// changes the body's arguments and terminator. The old loop remains without a body, with its results in use.
    pub(super) fn rebuild(
        self,
        rewriter: &mut Rewriter<'c, 'a>,
        initial: &[Value<'c, 'a>],
    ) -> Self {
        let old = self.operation;
        rewriter.set_before(old);
        let bounds = self.bounds();
        let attributes = old.attrs();
        let operation = insert_loop(
            rewriter,
            old.loc(),
            bounds,
            initial,
            &attributes,
            Region::new(),
        );
        if let (Some(to), Some(from)) = (operation.region_ref(0), old.region_ref(0)) {
            to.take_body(from);
        }
        Self::of(operation).expect("it has the body of a loop")
    }
}

fn insert_loop<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    location: Location<'c>,
    bounds: [Value<'c, 'a>; BOUNDS],
    initial: &[Value<'c, 'a>],
    attributes: &[(&'c str, Attribute<'c>)],
    region: Region<'c>,
) -> OperationRef<'c, 'a> {
    let context = rewriter.context();
    let types: Vec<Type<'c>> = initial.iter().map(|value| value.r#type()).collect();
    let attributes: Vec<_> = attributes
        .iter()
        .map(|&(name, attribute)| (Identifier::new(context, name), attribute))
        .collect();
    let operation = OperationBuilder::new(scf::ForOp::NAME, location)
        .add_operands(&bounds)
        .add_operands(initial)
        .add_results(&types)
        .add_attributes(&attributes)
        .add_regions([region])
        .build()
        .expect(IN_CONTEXT);
    rewriter.insert(operation)
}

/// An `scf.while`.
#[derive(Clone, Copy)]
pub(crate) struct While<'c, 'a> {
    operation: OperationRef<'c, 'a>,
    before: BlockRef<'c, 'a>,
    after: BlockRef<'c, 'a>,
}

impl<'c: 'a, 'a> While<'c, 'a> {
    /// The operation as such a loop, if it is one.
    pub(crate) fn of(operation: OperationRef<'c, 'a>) -> Option<Self> {
        scf::WhileOp::of(operation)?;
        let block = |index| operation.region_ref(index)?.single_block();
        Some(Self {
            operation,
            before: block(0)?,
            after: block(1)?,
        })
    }

    /// The end of the first region, whose first operand says whether the loop goes on.
    pub(crate) fn condition(self) -> Option<OperationRef<'c, 'a>> {
        self.before.operations().last()
    }

    /// The loads in it.
    pub(crate) fn loads(self) -> Vec<LoadOp<'c, 'a>> {
        let mut loads = Vec::new();
        self.operation.for_each_op(Walk::PreOrder, |operation| {
            loads.extend(LoadOp::of(operation));
        });
        loads
    }

    /// Whether it only finds numbers: its results are no tensors, and it does nothing to memory but load, while what decides
    /// whether it goes on does not even that. With a condition that does not hold it ends at once.
    pub(crate) fn is_search(self) -> bool {
        let is_number =
            |value: Value<'c, 'a>| value.r#type().is_integer() || value.r#type().is_index();
        let decides = |operation: OperationRef<'c, 'a>| {
            operation.is_memory_effect_free() && operation.is_speculatable()
        };
        let mut only_loads = true;
        self.operation.for_each_op(Walk::PreOrder, |operation| {
            let has_regions = operation.region_refs().len() > 0;
            let loads = LoadOp::of(operation).is_some();
            only_loads &= has_regions || loads || operation.is_memory_effect_free();
            only_loads &= !is_product(operation);
        });
        let end = self.condition();
        let mut before = self.before.operations();
        only_loads
            && self.operation.result_values().all(is_number)
            && before.all(|operation| Some(operation) == end || decides(operation))
    }

    /// Inserts a loop that goes on with these values for as long as a condition on them holds. The closures build the
    /// condition and the next values. The rewriter is after the loop then.
    pub(crate) fn build(
        rewriter: &mut Rewriter<'c, 'a>,
        location: Location<'c>,
        initial: &[Value<'c, 'a>],
        goes_on: impl FnOnce(&mut Rewriter<'c, 'a>, &[Value<'c, 'a>]) -> Value<'c, 'a>,
        next: impl FnOnce(&mut Rewriter<'c, 'a>, &[Value<'c, 'a>]) -> Vec<Value<'c, 'a>>,
    ) -> OperationRef<'c, 'a> {
        let types: Vec<Type<'c>> = initial.iter().map(|value| value.r#type()).collect();
        let arguments: Vec<_> = types.iter().map(|&r#type| (r#type, location)).collect();
        let regions = [Region::new(), Region::new()];
        for region in &regions {
            region.append_block(Block::new(&arguments));
        }
        let operation = OperationBuilder::new(scf::WhileOp::NAME, location)
            .add_operands(initial)
            .add_results(&types)
            .add_regions(regions)
            .build()
            .expect(IN_CONTEXT);
        let of = Self::of(rewriter.insert(operation)).expect("it was just made");
        rewriter.set_to_end(of.before);
        let values: Vec<Value> = of.before.argument_values().collect();
        let condition = goes_on(rewriter, &values);
        let operands = [&[condition], &values[..]].concat();
        rewriter
            .create(scf::ConditionOp::NAME, location, &operands, Some(&[]), &[])
            .expect(IN_CONTEXT);
        rewriter.set_to_end(of.after);
        let values: Vec<Value> = of.after.argument_values().collect();
        let values = next(rewriter, &values);
        super::builder::yield_values(rewriter, location, &values);
        rewriter.set_after(of.operation);
        of.operation
    }
}

/// An `scf.if`.
#[derive(Clone, Copy)]
pub struct If<'c, 'a> {
    operation: OperationRef<'c, 'a>,
}

impl<'c: 'a, 'a> If<'c, 'a> {
    /// The operation as a conditional, if it is one.
    pub fn of(operation: OperationRef<'c, 'a>) -> Option<Self> {
        scf::IfOp::of(operation).map(|_| Self { operation })
    }

    /// The operation.
    pub fn operation(self) -> OperationRef<'c, 'a> {
        self.operation
    }

    /// The blocks for a true and a false condition; the second may be missing.
    pub fn blocks(self) -> [Option<BlockRef<'c, 'a>>; 2] {
        [0, 1].map(|region| self.operation.region_ref(region)?.single_block())
    }

    /// The values of the block that was executed.
    pub fn results(self) -> Vec<Value<'c, 'a>> {
        self.operation.result_values().collect()
    }

    /// Puts one of its blocks in its place.
    pub(crate) fn keep(self, rewriter: &mut Rewriter<'c, 'a>, index: usize) {
        let Some(block) = self.blocks()[index] else {
            return;
        };
        if let Some(end) = block.operations().last() {
            let values: Vec<Value<'c, 'a>> = end.operand_values().collect();
            for (result, value) in self.operation.result_values().zip(values) {
                result.replace_all_uses(value);
            }
            end.erase();
        }
        rewriter.inline_block_before(block, self.operation, &[]);
        self.operation.erase();
    }

    /// Inserts a conditional whose blocks are built by the closures, which return its values. The rewriter is after
    /// it then. Without values there is no second block.
    pub(crate) fn build(
        rewriter: &mut Rewriter<'c, 'a>,
        location: Location<'c>,
        condition: Value<'c, 'a>,
        types: &[Type<'c>],
        then: impl FnOnce(&mut Rewriter<'c, 'a>) -> Vec<Value<'c, 'a>>,
        otherwise: impl FnOnce(&mut Rewriter<'c, 'a>) -> Vec<Value<'c, 'a>>,
    ) -> Self {
        let blocks = if types.is_empty() { 1 } else { 2 };
        Self::with_blocks(
            rewriter, location, condition, types, blocks, then, otherwise,
        )
    }

    /// The same without values, but with both blocks.
    pub(crate) fn between(
        rewriter: &mut Rewriter<'c, 'a>,
        location: Location<'c>,
        condition: Value<'c, 'a>,
        then: impl FnOnce(&mut Rewriter<'c, 'a>),
        otherwise: impl FnOnce(&mut Rewriter<'c, 'a>),
    ) -> Self {
        let then = |rewriter: &mut Rewriter<'c, 'a>| {
            then(rewriter);
            Vec::new()
        };
        let otherwise = |rewriter: &mut Rewriter<'c, 'a>| {
            otherwise(rewriter);
            Vec::new()
        };
        Self::with_blocks(rewriter, location, condition, &[], 2, then, otherwise)
    }

    fn with_blocks(
        rewriter: &mut Rewriter<'c, 'a>,
        location: Location<'c>,
        condition: Value<'c, 'a>,
        types: &[Type<'c>],
        blocks: usize,
        then: impl FnOnce(&mut Rewriter<'c, 'a>) -> Vec<Value<'c, 'a>>,
        otherwise: impl FnOnce(&mut Rewriter<'c, 'a>) -> Vec<Value<'c, 'a>>,
    ) -> Self {
        let regions = [Region::new(), Region::new()];
        for region in &regions[..blocks] {
            region.append_block(Block::new(&[]));
        }
        let operation = OperationBuilder::new(scf::IfOp::NAME, location)
            .add_operands(&[condition])
            .add_results(types)
            .add_regions(regions)
            .build()
            .expect(IN_CONTEXT);
        let branch = Self {
            operation: rewriter.insert(operation),
        };
        let [first, second] = branch.blocks();
        if let Some(block) = first {
            rewriter.set_to_end(block);
            let values = then(rewriter);
            super::builder::yield_values(rewriter, location, &values);
        }
        if let Some(block) = second {
            rewriter.set_to_end(block);
            let values = otherwise(rewriter);
            super::builder::yield_values(rewriter, location, &values);
        }
        rewriter.set_after(branch.operation);
        branch
    }
}

/// Whether an operation is a loop, with an induction variable or not.
pub fn is_loop(operation: OperationRef<'_, '_>) -> bool {
    use llopt_dialects::scf::{ForOp, WhileOp};
    ForOp::of(operation).is_some() || WhileOp::of(operation).is_some()
}
