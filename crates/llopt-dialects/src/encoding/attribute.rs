//! From the attribute in the IR to the plain encoding, and from a tensor type to its layout.

use llopt_layout::LinearLayout;
use llopt_mlir::dialect::AttributeSpec;
use melior::ir::{Attribute, Type};

use super::{
    AmdMfma, AmdRotatingShared, AmdWmma, Blocked, CgaLayout, DotOperand, Encoding, EncodingError,
    Linear, NvidiaMma, NvmmaShared, PaddedShared, SharedLinear, Slice, SwizzledShared,
    TensorMemory, TensorMemoryScales,
};
use crate::access::{bool_value, i32_values, integer_value};
use crate::kind::bases_of;
use crate::types::RankedTensor;
use crate::{ttg, ttng};

/// Why an attribute or a type has no layout.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttributeError {
    /// The attribute is no encoding.
    #[error("{0} is not a layout")]
    NotAnEncoding(String),
    /// The type is no tensor, or one without an encoding.
    #[error("it has no layout")]
    NoEncoding,
    /// An extent is not known or too large.
    #[error("its extents are not known")]
    Shape,
    /// The encoding itself is wrong, or does not fit the shape.
    #[error(transparent)]
    Encoding(#[from] EncodingError),
}

/// The parameters of an attribute by name.
struct Fields<'c> {
    spec: &'static AttributeSpec,
    attribute: Attribute<'c>,
}

impl<'c> Fields<'c> {
    fn get(&self, name: &str) -> Option<Attribute<'c>> {
        let index = self
            .spec
            .parameters
            .iter()
            .position(|known| *known == name)?;
        AttributeSpec::parameters_of(self.attribute).get(index)
    }

    fn number(&self, name: &str) -> u32 {
        let value = self.get(name).and_then(integer_value);
        value
            .and_then(|value| u32::try_from(value).ok())
            .unwrap_or(0)
    }

    fn flag(&self, name: &str) -> bool {
        let value = self.get(name);
        value.and_then(bool_value).unwrap_or(false)
    }

    fn numbers(&self, name: &str) -> Vec<u32> {
        let values = self.get(name).and_then(i32_values).unwrap_or_default();
        values.into_iter().map(|value| value as u32).collect()
    }

    fn bases(&self, name: &str) -> Vec<Vec<u32>> {
        let unsigned = |basis: Vec<i32>| basis.into_iter().map(|entry| entry as u32).collect();
        let bases = self.get(name).and_then(bases_of).unwrap_or_default();
        bases.into_iter().map(unsigned).collect()
    }

    fn cga(&self, rank: usize) -> Result<CgaLayout, EncodingError> {
        CgaLayout::from_bases(rank, self.bases("CGALayout"))
    }

    fn parent(&self) -> Result<Box<Encoding>, AttributeError> {
        let parent = self.get("parent").ok_or(AttributeError::NoEncoding)?;
        Ok(Box::new(Encoding::from_attribute(parent)?))
    }
}

/// The number of entries of the first basis vector.
fn rank_of(groups: &[&[Vec<u32>]]) -> usize {
    groups
        .iter()
        .flat_map(|group| group.iter())
        .next()
        .map_or(1, Vec::len)
}

impl Encoding {
    /// The encoding that an attribute writes.
    ///
    /// # Errors
    /// [`AttributeError`] when the attribute is no encoding, or one that means nothing.
    pub fn from_attribute(attribute: Attribute<'_>) -> Result<Self, AttributeError> {
        use ttg::attribute as kind;
        use ttng::attribute as tensor_memory;
        let unknown = || AttributeError::NotAnEncoding(attribute.to_string());
        let spec = AttributeSpec::of(attribute).ok_or_else(unknown)?;
        let fields = Fields { spec, attribute };
        let is = |known: &'static AttributeSpec| std::ptr::eq(spec, known);
        Ok(if is(kind::BLOCKED) {
            let order = fields.numbers("order");
            Self::Blocked(Blocked {
                size_per_thread: fields.numbers("sizePerThread"),
                threads_per_warp: fields.numbers("threadsPerWarp"),
                warps_per_cta: fields.numbers("warpsPerCTA"),
                cga_layout: fields.cga(order.len())?,
                order,
            })
        } else if is(kind::SLICE) {
            Self::Slice(Slice {
                dim: fields.number("dim"),
                parent: fields.parent()?,
            })
        } else if is(kind::DOT_OP) {
            Self::DotOperand(DotOperand {
                op_idx: fields.number("opIdx"),
                parent: fields.parent()?,
                k_width: fields.number("kWidth"),
            })
        } else if is(kind::LINEAR) {
            let [register, lane, warp, block] =
                ["register", "lane", "warp", "block"].map(|name| fields.bases(name));
            let rank = rank_of(&[&register, &lane, &warp, &block]);
            Self::Linear(Linear::from_bases(rank, &register, &lane, &warp, &block)?)
        } else if is(kind::NVIDIA_MMA) {
            let warps_per_cta = fields.numbers("warpsPerCTA");
            Self::NvidiaMma(NvidiaMma {
                version_major: fields.number("versionMajor"),
                version_minor: fields.number("versionMinor"),
                cga_layout: fields.cga(warps_per_cta.len())?,
                warps_per_cta,
                instr_shape: fields.numbers("instrShape"),
            })
        } else if is(kind::AMD_MFMA) {
            let warps_per_cta = fields.numbers("warpsPerCTA");
            Self::AmdMfma(AmdMfma {
                version: fields.number("version"),
                cga_layout: fields.cga(warps_per_cta.len())?,
                instr_shape: fields.numbers("instrShape"),
                is_transposed: fields.flag("isTransposed"),
                tiles_per_warp: ones_if_empty(fields.numbers("tilesPerWarp"), warps_per_cta.len()),
                element_bit_width: fields.number("elementBitWidth"),
                warps_per_cta,
            })
        } else if is(kind::AMD_WMMA) {
            let warps_per_cta = fields.numbers("warpsPerCTA");
            Self::AmdWmma(AmdWmma {
                version: fields.number("version"),
                is_transposed: fields.flag("isTranspose"),
                cga_layout: fields.cga(warps_per_cta.len())?,
                tiles_per_warp: ones_if_empty(fields.numbers("tilesPerWarp"), warps_per_cta.len()),
                instr_shape: fields.numbers("instrShape"),
                warps_per_cta,
            })
        } else if is(kind::SWIZZLED_SHARED) {
            let order = fields.numbers("order");
            Self::SwizzledShared(SwizzledShared {
                vec: fields.number("vec"),
                per_phase: fields.number("perPhase"),
                max_phase: fields.number("maxPhase"),
                cga_layout: fields.cga(order.len())?,
                order,
            })
        } else if is(kind::AMD_ROTATING_SHARED) {
            let order = fields.numbers("order");
            Self::AmdRotatingShared(AmdRotatingShared {
                vec: fields.number("vec"),
                per_phase: fields.number("perPhase"),
                max_phase: fields.number("maxPhase"),
                cga_layout: fields.cga(order.len())?,
                order,
            })
        } else if is(kind::NVMMA_SHARED) {
            let rank = fields.number("rank").max(1) as usize;
            let bases = fields.bases("CGALayout");
            let rank = bases.first().map_or(rank, Vec::len);
            Self::NvmmaShared(NvmmaShared {
                swizzling_byte_width: fields.number("swizzlingByteWidth"),
                transposed: fields.flag("transposed"),
                element_bit_width: fields.number("elementBitWidth"),
                fp4_padded: fields.flag("fp4Padded"),
                cga_layout: CgaLayout::from_bases(rank, bases)?,
            })
        } else if is(kind::PADDED_SHARED) {
            let pads = fields
                .numbers("intervals")
                .into_iter()
                .zip(fields.numbers("paddings"));
            let (offset, block) = (fields.bases("offset"), fields.bases("block"));
            let rank = rank_of(&[&offset, &block]).max(fields.numbers("shape").len());
            Self::PaddedShared(PaddedShared::from_bases(
                pads.collect(),
                rank,
                &offset,
                &block,
            )?)
        } else if is(kind::SHARED_LINEAR) {
            let (offset, block) = (fields.bases("offset"), fields.bases("block"));
            let rank = rank_of(&[&offset, &block]);
            let alignment = fields.number("alignment");
            Self::SharedLinear(SharedLinear::from_bases(rank, &offset, &block, alignment)?)
        } else if is(tensor_memory::TENSOR_MEMORY_ENCODING) {
            Self::TensorMemory(TensorMemory {
                block_m: fields.number("blockM"),
                block_n: fields.number("blockN"),
                col_stride: fields.number("colStride"),
                cta_split_m: fields.number("CTASplitM").max(1),
                cta_split_n: fields.number("CTASplitN").max(1),
                two_ctas: fields.flag("twoCTAs"),
            })
        } else if is(tensor_memory::TENSOR_MEMORY_SCALES_ENCODING) {
            Self::TensorMemoryScales(TensorMemoryScales {
                cta_split_m: fields.number("CTASplitM").max(1),
                cta_split_n: fields.number("CTASplitN").max(1),
            })
        } else {
            return Err(unknown());
        })
    }
}

fn ones_if_empty(values: Vec<u32>, rank: usize) -> Vec<u32> {
    if values.is_empty() {
        vec![1; rank]
    } else {
        values
    }
}

/// The layout of a ranked tensor with an encoding.
///
/// # Errors
/// [`AttributeError`] when the type is no such tensor, or the encoding does not fit it.
pub fn layout_of(tensor: Type<'_>) -> Result<LinearLayout, AttributeError> {
    let tensor = RankedTensor::of(tensor).ok_or(AttributeError::NoEncoding)?;
    let encoding = tensor.encoding().ok_or(AttributeError::NoEncoding)?;
    let shape = tensor.shape().into_iter().map(u64::try_from);
    let shape = shape
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| AttributeError::Shape)?;
    Ok(Encoding::from_attribute(encoding)?.linear_layout(&shape)?)
}
