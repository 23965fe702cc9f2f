//! Loops and branches, with closures as bodies.

use std::panic::Location as Caller;

use llopt_dialects::tables::types::element_or_self;
use llopt_mlir::ir::{BlockExt, OperationExt, RegionExt};
use melior::ir::{
    Block, BlockRef, OperationRef, Region, RegionLike, Type, Value as Raw, ValueLike,
};

use super::kernel::At;
use super::{Element, KernelBuilder, Operand, Value};

impl<'k> KernelBuilder<'k> {
    /// A loop over `start, start + step, …` below `end`. The body takes the number and the values carried by the
    /// loop, and returns the values for the next iteration; the last ones are the result. The numbers are `i32`
    /// unless one of the three is a value of another integer type; the step is positive.
    ///
    /// ```
    /// # use llopt::build::{Argument, Context, Element, KernelBuilder};
    /// # let context = Context::new()?;
    /// # let k = KernelBuilder::new(&context, "triangle");
    /// # let out = k.argument("out", Argument::pointer(Element::I32));
    /// # let n = k.argument("n", Argument::scalar(Element::I32));
    /// let zero = k.scalar(Element::I32, 0);
    /// let [sum] = k.for_range(0, n, 1, [zero], |i, [sum]| [sum + i]);
    /// out.store(sum);
    /// # k.finish()?;
    /// # Ok::<(), llopt::Error>(())
    /// ```
    #[track_caller]
    pub fn for_range<const N: usize>(
        &'k self,
        start: impl Operand<'k>,
        end: impl Operand<'k>,
        step: impl Operand<'k>,
        initial: [Value<'k>; N],
        body: impl FnOnce(Value<'k>, [Value<'k>; N]) -> [Value<'k>; N],
    ) -> [Value<'k>; N] {
        let at = Caller::caller();
        let broken = [self.broken(); N];
        let known = start
            .known_type()
            .or(end.known_type())
            .or(step.known_type());
        let Some(number) = known.or_else(|| Element::I32.to_type(self.mlir())) else {
            return broken;
        };
        let bounds = [
            start.place(self, number, at),
            end.place(self, number, at),
            step.place(self, number, at),
        ];
        let (Some(mut operands), Some(initial)) =
            (self.own_all(at, &bounds), self.own_all(at, &initial))
        else {
            return broken;
        };
        let integer = Element::of(number).is_some_and(|element| !element.is_float());
        if !integer || !self.same_types(at, "the range", &[number; 3], &operands) {
            if !integer {
                self.fail(at, format!("a loop does not count in {number}"));
            }
            return broken;
        }
        let types: Vec<Type<'k>> = initial.iter().map(|raw| raw.r#type()).collect();
        operands.extend(&initial);
        let arguments = [&[number], &types[..]].concat();
        let regions = vec![self.region(at, &arguments)];
        let Some(operation) = self.make(at, "scf.for", &operands, &types, &[], regions) else {
            return broken;
        };
        if let Some(block) = block_of(operation, 0) {
            self.fill(at, block, "scf.yield", &types, |mut arguments| {
                let rest = arguments.split_off(1);
                let carried = std::array::from_fn(|index| self.nth(&rest, index));
                body(self.nth(&arguments, 0), carried).to_vec()
            });
        }
        self.results(operation)
    }

    /// A loop that runs as long as the condition on its carried values holds. The condition is a scalar `i1`; it is
    /// computed before each iteration.
    #[track_caller]
    pub fn while_loop<const N: usize>(
        &'k self,
        initial: [Value<'k>; N],
        condition: impl FnOnce([Value<'k>; N]) -> Value<'k>,
        body: impl FnOnce([Value<'k>; N]) -> [Value<'k>; N],
    ) -> [Value<'k>; N] {
        let at = Caller::caller();
        let broken = [self.broken(); N];
        let Some(initial) = self.own_all(at, &initial) else {
            return broken;
        };
        let types: Vec<Type<'k>> = initial.iter().map(|raw| raw.r#type()).collect();
        let regions = vec![self.region(at, &types), self.region(at, &types)];
        let Some(operation) = self.make(at, "scf.while", &initial, &types, &[], regions) else {
            return broken;
        };
        let carried = |arguments: &[Value<'k>]| -> [Value<'k>; N] {
            std::array::from_fn(|index| self.nth(arguments, index))
        };
        if let (Some(before), Some(after), Some(truth)) = (
            block_of(operation, 0),
            block_of(operation, 1),
            Element::I1.to_type(self.mlir()),
        ) {
            let wanted = [&[truth], &types[..]].concat();
            self.fill(at, before, "scf.condition", &wanted, |arguments| {
                let goes_on = condition(carried(&arguments));
                [&[goes_on], &arguments[..]].concat()
            });
            self.fill(at, after, "scf.yield", &types, |arguments| {
                body(carried(&arguments)).to_vec()
            });
        }
        self.results(operation)
    }

    /// The values of one of two bodies, by a scalar condition of `i1`. Only that body is executed.
    #[track_caller]
    pub fn if_else<const N: usize>(
        &'k self,
        condition: Value<'k>,
        then: impl FnOnce() -> [Value<'k>; N],
        otherwise: impl FnOnce() -> [Value<'k>; N],
    ) -> [Value<'k>; N] {
        let at = Caller::caller();
        let broken = [self.broken(); N];
        let Some(condition) = self.condition(at, condition) else {
            return broken;
        };
        // The types of the results are known only once the bodies are built: so they are first built in an operation
        // without results.
        let regions = vec![self.region(at, &[]), self.region(at, &[])];
        let Some(draft) = self.make(at, "scf.if", &[condition], &[], &[], regions) else {
            return broken;
        };
        let [Some(first), Some(second)] = [0, 1].map(|index| block_of(draft, index)) else {
            return broken;
        };
        let given = self.within(first, then);
        let Some(given) = self.own_all(at, &given) else {
            return broken;
        };
        let types: Vec<Type<'k>> = given.iter().map(|raw| raw.r#type()).collect();
        self.within(first, || {
            self.make(at, "scf.yield", &given, &[], &[], Vec::new());
        });
        self.fill(at, second, "scf.yield", &types, |_| otherwise().to_vec());
        let regions = vec![Region::new(), Region::new()];
        let Some(operation) = self.make(at, "scf.if", &[condition], &types, &[], regions) else {
            return broken;
        };
        for index in 0..2 {
            if let (Some(to), Some(from)) = (operation.region_ref(index), draft.region_ref(index)) {
                to.take_body(from);
            }
        }
        draft.erase();
        self.results(operation)
    }

    /// A body that is executed if a scalar condition of `i1` holds.
    #[track_caller]
    pub fn when(&'k self, condition: Value<'k>, body: impl FnOnce()) {
        let at = Caller::caller();
        let Some(condition) = self.condition(at, condition) else {
            return;
        };
        let regions = vec![self.region(at, &[]), Region::new()];
        let operation = self.make(at, "scf.if", &[condition], &[], &[], regions);
        if let Some(block) = operation.and_then(|operation| block_of(operation, 0)) {
            self.fill(at, block, "scf.yield", &[], |_| {
                body();
                Vec::new()
            });
        }
    }

    fn condition(&'k self, at: At, condition: Value<'k>) -> Option<Raw<'k, 'k>> {
        let raw = self.own(at, condition)?;
        if Element::of(raw.r#type()) != Some(Element::I1) {
            let said = raw.r#type();
            let element = element_or_self(said);
            let hint = if element == said {
                ""
            } else {
                "; reduce it, or choose element by element with where_else"
            };
            self.fail(
                at,
                format!("a condition of {said}: it must be one i1{hint}"),
            );
            return None;
        }
        Some(raw)
    }

    /// A region with one block.
    fn region(&'k self, at: At, arguments: &[Type<'k>]) -> Region<'k> {
        let place = self.place(at);
        let arguments: Vec<_> = arguments.iter().map(|r#type| (*r#type, place)).collect();
        let region = Region::new();
        region.append_block(Block::new(&arguments));
        region
    }

    /// Builds a block: the body takes the block's arguments and returns the operands of the terminator, which must
    /// have these types.
    fn fill(
        &'k self,
        at: At,
        block: BlockRef<'k, 'k>,
        terminator: &str,
        types: &[Type<'k>],
        body: impl FnOnce(Vec<Value<'k>>) -> Vec<Value<'k>>,
    ) {
        let arguments = block
            .argument_values()
            .map(|raw| Value::new(self, Some(raw)))
            .collect();
        self.within(block, || {
            let given = body(arguments);
            if let Some(given) = self.own_all(at, &given)
                && self.same_types(at, "the body", types, &given)
            {
                self.make(at, terminator, &given, &[], &[], Vec::new());
            }
        });
    }

    fn results<const N: usize>(&'k self, operation: OperationRef<'k, 'k>) -> [Value<'k>; N] {
        std::array::from_fn(|index| Value::new(self, operation.result_value(index)))
    }

    fn nth(&'k self, values: &[Value<'k>], index: usize) -> Value<'k> {
        values.get(index).copied().unwrap_or_else(|| self.broken())
    }
}

fn block_of<'k>(operation: OperationRef<'k, 'k>, index: usize) -> Option<BlockRef<'k, 'k>> {
    operation.region_ref(index)?.entry()
}
