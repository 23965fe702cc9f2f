//! Reading a source: parses text into a verified module, and records the location of the kernel for error messages.

use llopt_mlir::ir::{AttributeExt, BlockExt, OperationExt, RegionExt, Walk};
use melior::Context;
use melior::ir::{Module, OperationRef};

use crate::budget::check;
use crate::module::{location_of, parse};
use crate::{Error, Options, Source, isolation, own_thread};

/// Parses and verifies a source to be compiled, and rejects a module that cannot be compiled or would cost too much.
///
/// # Errors
/// Of class invalid input.
pub(crate) fn read<'c>(
    context: &'c Context,
    source: &Source,
    options: &Options,
) -> Result<Module<'c>, Error> {
    isolation::note_source(source);
    let module = parse(context, source)?;
    let place = kernel(&module).map_or_else(String::new, location_of);
    own_thread::at(&place);
    own_thread::has_assembly(assembly(&module));
    check::check(&module, options)?;
    Ok(module)
}

/// The same for a module to be interpreted, where nothing depends on threads.
///
/// # Errors
/// Of class invalid input.
pub(crate) fn read_to_interpret<'c>(
    context: &'c Context,
    source: &Source,
) -> Result<Module<'c>, Error> {
    isolation::note_source(source);
    let module = parse(context, source)?;
    check::check_calls(&module)?;
    Ok(module)
}

/// The locations of inline assembly.
fn assembly(module: &Module<'_>) -> Vec<String> {
    let mut places = Vec::new();
    module.as_operation().for_each_op(Walk::PreOrder, |op| {
        if op.is_named("tt.elementwise_inline_asm") {
            places.push(location_of(op));
        }
    });
    places
}

/// The module's first public function.
fn kernel<'c, 'a>(module: &'a Module<'c>) -> Option<OperationRef<'c, 'a>> {
    let body = module.as_operation().region_ref(0)?.entry()?;
    body.operations().find(|op| {
        op.is_named("tt.func")
            && op.attr("sym_visibility").and_then(AttributeExt::as_str) != Some("private")
    })
}
