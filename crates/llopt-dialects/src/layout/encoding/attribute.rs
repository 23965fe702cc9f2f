//! Conversion between encodings and the attributes of the IR.

use llopt_layout::LinearLayout;
use llopt_mlir::dialect::{AttributeSpec, Parameters};
use melior::{
    Context,
    ir::{Attribute, Type},
};

use super::fields::{Fields, Writer};
use super::{Encoding, EncodingError};
use crate::tables::types::{MemDesc, RankedTensor};

impl Encoding {
    /// The encoding that an attribute is.
    ///
    /// # Errors
    /// [`EncodingError::NotAnEncoding`] for other attributes; for an encoding with inconsistent parameters, the first
    /// field at fault.
    pub fn from_attribute(attribute: Attribute<'_>) -> Result<Self, EncodingError> {
        let not_an_encoding = || EncodingError::NotAnEncoding {
            attribute: attribute.to_string(),
        };
        let spec = AttributeSpec::of(attribute).ok_or_else(not_an_encoding)?;
        Self::from_parameters(spec, AttributeSpec::parameters_of(attribute))?
            .ok_or_else(not_an_encoding)
    }

    /// The encoding of a kind with these parameters, `None` for kinds that are not encodings.
    ///
    /// # Errors
    /// The first field at fault.
    pub fn from_parameters(
        spec: &'static AttributeSpec,
        parameters: Parameters<'_>,
    ) -> Result<Option<Self>, EncodingError> {
        let fields = Fields { spec, parameters };
        let encoding = Self::read(&fields)?;
        if let Some(encoding) = &encoding {
            encoding.verify()?;
        }
        Ok(encoding)
    }

    /// The attribute that the encoding is. The dialects must be loaded.
    #[must_use]
    pub fn to_attribute<'c>(&self, context: &'c Context) -> Attribute<'c> {
        let values = self.write(&Writer { context });
        let spec = self.spec();
        let parameters: Vec<_> = spec
            .parameters
            .iter()
            .map(|name| {
                let value = values.iter().find(|(field, _)| field == name);
                value.and_then(|(_, value)| *value)
            })
            .collect();
        spec.get(context, &parameters)
    }
}

/// The layout of a tensor, or of the buffer behind a memory descriptor.
///
/// A descriptor of several buffers has the layout of one; a descriptor of a part of a buffer that of
/// the whole buffer.
///
/// # Errors
/// When the type has no encoding, or the encoding no layout on the shape.
pub fn layout_of(r#type: Type<'_>) -> Result<LinearLayout, EncodingError> {
    let no_encoding = || EncodingError::NotAnEncoding {
        attribute: r#type.to_string(),
    };
    let (attribute, shape) = if let Some(tensor) = RankedTensor::of(r#type) {
        (tensor.encoding(), tensor.shape())
    } else if let Some(buffer) = MemDesc::of(r#type) {
        (buffer.encoding(), buffer.alloc_shape())
    } else {
        (None, Vec::new())
    };
    let encoding = Encoding::from_attribute(attribute.ok_or_else(no_encoding)?)?;
    let leading = if encoding.is_distributed() {
        0
    } else {
        shape.len().saturating_sub(encoding.rank())
    };
    // A dynamic size is negative; no layout has such a size.
    let shape: Vec<u64> = shape[leading..]
        .iter()
        .map(|&size| u64::try_from(size).unwrap_or(0))
        .collect();
    encoding.linear_layout(&shape)
}
