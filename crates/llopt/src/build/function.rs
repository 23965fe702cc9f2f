//! Functions in the module of the kernel, which it calls.

use std::panic::Location as Caller;

use llopt_dialects::tt;
use llopt_mlir::ir::{OperationExt, RegionExt, attr};
use melior::ir::r#type::FunctionType;
use melior::ir::{Block, Location, Region, RegionLike, Type, ValueLike};

use super::{KernelBuilder, Value};

/// A function of the module of a kernel, from `N` values to `R`; see [`KernelBuilder::function`].
#[derive(Clone)]
pub struct Function<'k, const N: usize, const R: usize> {
    kernel: &'k KernelBuilder<'k>,
    name: String,
    parameters: Vec<Type<'k>>,
    results: Vec<Type<'k>>,
}

impl<'k> KernelBuilder<'k> {
    /// A function that takes values of the types of `like`, and returns what `body` returns. Values of the kernel are
    /// not visible in it: it takes all that it needs as arguments.
    ///
    /// The compiler chooses whether a call is inlined.
    ///
    /// ```
    /// # use llopt::build::{Argument, Context, Element, KernelBuilder};
    /// # let context = Context::new()?;
    /// # let k = KernelBuilder::new(&context, "between");
    /// # let out = k.argument("out", Argument::pointer(Element::I32));
    /// let index = k.range(0..256);
    /// let clamp = k.function("clamp", [index, index], |[x, most]| [x.minimum(most).maximum(0)]);
    /// let [low] = clamp.call([index - 100, index * 0 + 7]);
    /// let [high] = clamp.call([index, index * 0 + 200]);
    /// (out + index).store(low + high);
    /// assert_eq!(k.finish()?.text().unwrap().matches("tt.call @clamp").count(), 2);
    /// # Ok::<(), llopt::Error>(())
    /// ```
    #[track_caller]
    pub fn function<const N: usize, const R: usize>(
        &'k self,
        name: &str,
        like: [Value<'k>; N],
        body: impl FnOnce([Value<'k>; N]) -> [Value<'k>; R],
    ) -> Function<'k, N, R> {
        let at = Caller::caller();
        let place = self.place(at);
        let mut function = Function {
            kernel: self,
            name: name.to_owned(),
            parameters: Vec::new(),
            results: Vec::new(),
        };
        let Some(like) = self.own_all(at, &like) else {
            return function;
        };
        function.parameters = like.iter().map(|raw| raw.r#type()).collect();
        let arguments: Vec<(Type<'k>, Location<'k>)> = function
            .parameters
            .iter()
            .map(|r#type| (*r#type, place))
            .collect();
        let region = Region::new();
        region.append_block(Block::new(&arguments));
        let signature = |results: &[Type<'k>]| {
            let signature = FunctionType::new(self.mlir(), &function.parameters, results);
            attr::r#type(signature.into())
        };
        let operation = self.within(self.module_body(), || {
            self.append(tt::FuncOp::build(
                place,
                name,
                signature(&[]),
                Some("private"),
                None,
                None,
                vec![region],
            ))
        });
        let Some(entry) = operation.region_ref(0).and_then(RegionExt::entry) else {
            return function;
        };
        let results = self.within(entry, || {
            let arguments = std::array::from_fn(|index| {
                Value::new(self, llopt_mlir::ir::BlockExt::argument_value(entry, index))
            });
            let results = self.own_all(at, &body(arguments))?;
            self.append(tt::ReturnOp::build(place, &results));
            Some(results.iter().map(|raw| raw.r#type()).collect::<Vec<_>>())
        });
        if let (Some(results), Some(made)) = (results, tt::FuncOp::of(operation)) {
            made.set_function_type(signature(&results));
            function.results = results;
        }
        function
    }
}

impl<'k, const N: usize, const R: usize> Function<'k, N, R> {
    /// Calls the function. The values have the types of those that it was created with.
    #[track_caller]
    pub fn call(&self, arguments: [Value<'k>; N]) -> [Value<'k>; R] {
        let (at, kernel) = (Caller::caller(), self.kernel);
        let broken = [kernel.broken(); R];
        let Some(raw) = kernel.own_all(at, &arguments) else {
            return broken;
        };
        // An error in the function has already been reported.
        let known = self.results.len() == R;
        let what = format!("a call of '{}'", self.name);
        if !known || !kernel.same_types(at, &what, &self.parameters, &raw) {
            return broken;
        }
        let place = kernel.place(at);
        let operation = kernel.append(tt::CallOp::build(
            place,
            &self.results,
            &self.name,
            &raw,
            None,
            None,
        ));
        std::array::from_fn(|index| Value::new(kernel, operation.result_value(index)))
    }
}
