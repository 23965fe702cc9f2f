//! The kernel under construction: the insertion point, the recorded mistakes, and its completion.

use std::cell::RefCell;
use std::panic::Location as Caller;

use llopt_dialects::layout::encoding::Encoding;
use llopt_dialects::tables::module::DIVISIBILITY;
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::{tables::module as launch, tt};
use llopt_mlir::diagnostic;
use llopt_mlir::ir::{BlockExt, Insertion, OperationExt, RegionExt, attr};
use llopt_target::Target;
use melior::ir::operation::{OperationBuilder, OperationLike, OperationPrintingFlags};
use melior::ir::r#type::FunctionType;
use melior::ir::{
    Attribute, Block, BlockLike, BlockRef, Identifier, Location, Operation, OperationRef, Region,
    RegionLike, Type, Value as Raw,
};

use super::{Argument, Context, Element};
use crate::{Diagnostic, Error, Source};

/// The line of the program that builds the kernel.
pub(super) type At = &'static Caller<'static>;

/// The number of mistakes after which no further ones are recorded.
const MOST_MISTAKES: usize = 20;

/// A kernel under construction; see [the module](super).
pub struct KernelBuilder<'k> {
    context: &'k Context,
    insertion: Insertion<'k>,
    name: String,
    arguments: RefCell<Vec<Argument>>,
    mistakes: RefCell<Vec<Diagnostic>>,
}

impl<'k> KernelBuilder<'k> {
    /// An empty kernel without arguments.
    #[track_caller]
    pub fn new(context: &'k Context, name: &str) -> Self {
        let location = location(context, Caller::caller());
        let insertion = Insertion::new(location);
        let body = Region::new();
        body.append_block(Block::new(&[]));
        let signature = FunctionType::new(context.mlir(), &[], &[]);
        let function = insertion.append(tt::FuncOp::build(
            location,
            name,
            attr::r#type(signature.into()),
            Some("public"),
            None,
            None,
            vec![body],
        ));
        if let Some(entry) = entry_of(function) {
            insertion.append_to(entry);
        }
        Self {
            context,
            insertion,
            name: name.into(),
            arguments: RefCell::default(),
            mistakes: RefCell::default(),
        }
    }

    /// A kernel whose tensors all have layouts, for blocks of `num_warps` warps of a target. It compiles only for
    /// targets of the same vendor with the same warp size.
    #[track_caller]
    pub fn with_layouts(context: &'k Context, name: &str, target: Target, num_warps: u32) -> Self {
        let kernel = Self::new(context, name);
        let module = kernel.insertion.module().as_operation();
        let number = |value: u32| attr::i32(context.mlir(), value.cast_signed());
        module.set_attr(launch::NUM_WARPS, number(num_warps));
        module.set_attr(launch::NUM_CTAS, number(1));
        module.set_attr(launch::THREADS_PER_WARP, number(target.warp_size()));
        let target = attr::string(context.mlir(), &target.to_string());
        module.set_attr(launch::TARGET, target);
        kernel
    }

    /// Appends an argument of a type.
    pub(super) fn append_argument(
        &'k self,
        argument: Argument,
        r#type: Type<'k>,
        place: Location<'k>,
    ) -> Option<Raw<'k, 'k>> {
        self.arguments.borrow_mut().push(argument);
        let entry = self.entry_function().and_then(entry_of)?;
        Some(entry.append_argument(r#type, place))
    }

    /// Completes the kernel: appends the return, verifies it, and writes its text.
    ///
    /// The source is text, with the lines of the program that built it as locations.
    ///
    /// # Errors
    /// Of class invalid input, with all recorded mistakes or, if there were none, with the messages of the verifiers.
    #[track_caller]
    pub fn finish(self) -> Result<Source, Error> {
        let place = location(self.context, Caller::caller());
        self.insertion.append(tt::ReturnOp::build(place, &[]));
        let mistakes = self.mistakes.take();
        if !mistakes.is_empty() {
            return Err(Error::invalid(mistakes));
        }
        self.set_signature();
        let module = self.insertion.into_module();
        let root = module.as_operation();
        let (well_formed, said) =
            diagnostic::capture(self.context.mlir(), || OperationLike::verify(&root));
        if !well_formed {
            let said = said.iter().map(Diagnostic::from_mlir).collect();
            return Err(Error::invalid(said));
        }
        let flags = OperationPrintingFlags::new().enable_debug_info(true, false);
        let text = root
            .to_string_with_flags(flags)
            .map_err(|error| Error::bug(error.to_string()))?;
        Ok(Source::new(self.name, text))
    }

    /// Writes the arguments into the function's type and attributes.
    fn set_signature(&self) {
        let function = self.entry_function();
        let (Some(entry), Some(function)) = (
            function.and_then(entry_of),
            function.and_then(tt::FuncOp::of),
        ) else {
            return;
        };
        let context = self.context.mlir();
        let types: Vec<Type> = entry
            .argument_values()
            .map(|value| melior::ir::ValueLike::r#type(&value))
            .collect();
        let signature = FunctionType::new(context, &types, &[]);
        function.set_function_type(attr::r#type(signature.into()));
        let attributes: Vec<Attribute> = self
            .arguments
            .borrow()
            .iter()
            .map(|argument| {
                let by = argument.divisibility;
                let by = by.map(|by| (DIVISIBILITY, attr::i32(context, by.cast_signed())));
                attr::dictionary(context, by.as_slice())
            })
            .collect();
        function.set_arg_attrs(Some(attr::array(context, &attributes)));
    }

    fn entry_function(&self) -> Option<OperationRef<'k, '_>> {
        self.insertion.module().body().first_operation()
    }

    /// MLIR's context.
    pub(super) fn mlir(&self) -> &'k melior::Context {
        self.context.mlir()
    }

    /// A line of the program as a location of IR.
    pub(super) fn place(&self, at: At) -> Location<'k> {
        location(self.context, at)
    }

    /// Records a mistake.
    pub(super) fn note(&self, at: At, message: impl Into<String>) {
        let mut mistakes = self.mistakes.borrow_mut();
        if mistakes.len() < MOST_MISTAKES {
            let place = format!("{}:{}:{}", at.file(), at.line(), at.column());
            mistakes.push(Diagnostic::error(place, message));
        }
    }

    /// Runs a closure that reports mistakes through MLIR, and records them.
    pub(super) fn noting<T>(&'k self, at: At, build: impl FnOnce() -> Option<T>) -> Option<T> {
        let (result, said) = diagnostic::capture(self.mlir(), build);
        if result.is_none() {
            for diagnostic in &said {
                self.note(at, diagnostic.message.clone());
            }
        }
        result
    }

    /// Appends an operation.
    pub(super) fn append(&'k self, operation: Operation<'k>) -> OperationRef<'k, 'k> {
        self.insertion.append(operation)
    }

    /// The block that contains functions.
    pub(super) fn module_body(&'k self) -> BlockRef<'k, 'k> {
        self.insertion.module().body()
    }

    /// While `body` runs, operations are appended to a block.
    pub(super) fn within<T>(&'k self, block: BlockRef<'k, 'k>, body: impl FnOnce() -> T) -> T {
        self.insertion.within(block, body)
    }

    /// Appends an operation of one of MLIR's own dialects.
    pub(super) fn make(
        &'k self,
        at: At,
        name: &str,
        operands: &[Raw<'k, 'k>],
        results: &[Type<'k>],
        attributes: &[(&str, Attribute<'k>)],
        regions: Vec<Region<'k>>,
    ) -> Option<OperationRef<'k, 'k>> {
        let attributes: Vec<_> = attributes
            .iter()
            .map(|(name, value)| (Identifier::new(self.mlir(), name), *value))
            .collect();
        let operation = OperationBuilder::new(name, self.place(at))
            .add_operands(operands)
            .add_results(results)
            .add_attributes(&attributes)
            .add_regions_vec(regions)
            .build();
        match operation {
            Ok(operation) => Some(self.append(operation)),
            Err(error) => {
                self.note(at, format!("{name}: {error}"));
                None
            }
        }
    }

    /// The type of a tensor, after checking that there is one.
    pub(super) fn tensor_type(
        &'k self,
        at: At,
        shape: &[u64],
        element: Element,
        layout: Option<&Encoding>,
    ) -> Option<Type<'k>> {
        let scalar = element.to_type(self.mlir())?;
        self.tensor_of(at, shape, scalar, layout)
    }

    /// The type of a tensor of numbers or pointers.
    pub(super) fn tensor_of(
        &'k self,
        at: At,
        shape: &[u64],
        scalar: Type<'k>,
        layout: Option<&Encoding>,
    ) -> Option<Type<'k>> {
        let elements = shape.iter().try_fold(1_u64, |product, &extent| {
            extent
                .is_power_of_two()
                .then(|| product.checked_mul(extent))
                .flatten()
        });
        if shape.is_empty() || elements.is_none_or(|count| count > 1 << 20) {
            let said = "a tensor has one extent or more, each a power of two, and at most 2^20 \
                        elements, which";
            self.note(at, format!("{said} {shape:?} does not say"));
            return None;
        }
        if let Some(layout) = layout
            && let Err(error) = layout.linear_layout(shape)
        {
            self.note(at, format!("{shape:?} has no such layout: {error}"));
            return None;
        }
        let extents: Vec<i64> = shape.iter().map(|&extent| extent.cast_signed()).collect();
        let encoding = layout.map(|layout| layout.to_attribute(self.mlir()));
        Some(RankedTensor::get(&extents, scalar, encoding))
    }
}

impl std::fmt::Debug for KernelBuilder<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "KernelBuilder({})", self.name)
    }
}

/// A line of the program as a location of IR.
fn location<'k>(context: &'k Context, at: At) -> Location<'k> {
    let [line, column] = [at.line(), at.column()].map(|number| number as usize);
    Location::new(context.mlir(), at.file(), line, column)
}

/// The first block of a function.
fn entry_of<'c, 'a>(function: OperationRef<'c, 'a>) -> Option<BlockRef<'c, 'a>> {
    function.region_ref(0)?.entry()
}
