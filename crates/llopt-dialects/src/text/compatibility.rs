//! Spellings of Triton 3.9 for attributes that 3.6 writes differently.
//!
//! They are read wherever an operation with a declarative format is read, and never printed.

use crate::tables::make;
use llopt_mlir::{
    asm::{OpParser, Parsed},
    dialect::{AttributeSpec, OpSpec},
    ir::AttributeExt,
};

/// Replaces attributes of 3.9 by those of 3.6.
///
/// # Errors
/// When an attribute is given in both spellings.
pub fn normalize(spec: &'static OpSpec, parser: &mut OpParser<'_, '_>) -> Parsed<()> {
    if spec.attributes.contains(&"cache")
        && let Some(policy) = parser.op_attribute("cachePolicy")
        && AttributeSpec::of(policy).is_some_and(|kind| kind.mnemonic == "cache_policy")
    {
        let parameters = AttributeSpec::parameters_of(policy);
        for (index, name) in ["cache", "evict"].into_iter().enumerate() {
            if parser.op_attribute(name).is_some() {
                let location = parser.name_location();
                return Err(parser.error(
                    location,
                    format!("`cachePolicy` and `{name}` are both given"),
                ));
            }
            if spec.attributes.contains(&name)
                && let Some(value) = parameters.get(index)
            {
                parser.add_attribute(name, value);
            }
        }
        parser.remove_attribute("cachePolicy");
    }
    if spec.name == "ttng.tmem_subslice"
        && parser.op_attribute("N").is_none()
        && let Some(offset) = parser.op_attribute("offset")
    {
        parser.remove_attribute("offset");
        let value = offset.as_i64();
        let attribute = value.map_or(offset, |value| make::integer(parser.context(), 32, value));
        parser.add_attribute("N", attribute);
    }
    Ok(())
}
