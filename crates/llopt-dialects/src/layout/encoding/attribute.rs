//! Between encodings and the attributes of the IR.
//!
//! Parameters are looked up by the names that the `.td` files give them, which are those of the IR.

use llopt_layout::LinearLayout;
use llopt_mlir::dialect::{AttributeSpec, Parameters};
use melior::{
    Context,
    ir::{Attribute, Type},
};

use super::{
    AmdMfma, AmdRotatingShared, AmdWmma, Blocked, CgaLayout, DotOperand, Encoding, EncodingError,
    Linear, NvidiaMma, NvmmaShared, PaddedShared, SharedLinear, Slice, SwizzledShared,
    TensorMemory, TensorMemoryScales,
};
use crate::{
    tables::access,
    tables::make,
    tables::types::{MemDesc, RankedTensor},
    text::kind,
    ttg::attribute as ttg,
    ttng::attribute as ttng,
};

impl Encoding {
    /// The encoding that an attribute is.
    ///
    /// # Errors
    /// [`EncodingError::NotAnEncoding`] for other attributes; for an encoding whose parameters mean
    /// nothing together, the first field at fault.
    pub fn from_attribute(attribute: Attribute<'_>) -> Result<Self, EncodingError> {
        let not_an_encoding = || EncodingError::NotAnEncoding {
            attribute: attribute.to_string(),
        };
        let spec = AttributeSpec::of(attribute).ok_or_else(not_an_encoding)?;
        Self::from_parameters(spec, AttributeSpec::parameters_of(attribute))?
            .ok_or_else(not_an_encoding)
    }

    /// The encoding of a kind with these parameters, `None` for kinds that are no encodings.
    ///
    /// # Errors
    /// The first field at fault.
    pub fn from_parameters(
        spec: &'static AttributeSpec,
        parameters: Parameters<'_>,
    ) -> Result<Option<Self>, EncodingError> {
        let fields = Fields { spec, parameters };
        let encoding = match fields.read()? {
            None => return Ok(None),
            Some(encoding) => encoding,
        };
        encoding.verify()?;
        Ok(Some(encoding))
    }

    /// The attribute that the encoding is. The dialects must be loaded.
    #[must_use]
    pub fn to_attribute<'c>(&self, context: &'c Context) -> Attribute<'c> {
        let write = Writer { context };
        let (spec, values) = write.fields(self);
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
    // A dynamic size is negative, and no size that a layout can have.
    let shape: Vec<u64> = shape[leading..]
        .iter()
        .map(|&size| u64::try_from(size).unwrap_or(0))
        .collect();
    encoding.linear_layout(&shape)
}

/// The parameters of an attribute, by name.
struct Fields<'c> {
    spec: &'static AttributeSpec,
    parameters: Parameters<'c>,
}

impl<'c> Fields<'c> {
    fn get(&self, name: &str) -> Option<Attribute<'c>> {
        let index = self
            .spec
            .parameters
            .iter()
            .position(|field| *field == name)?;
        self.parameters.get(index)
    }

    fn number(&self, name: &str) -> u32 {
        let value = self.get(name).and_then(access::integer_value);
        value
            .and_then(|value| u32::try_from(value).ok())
            .unwrap_or(0)
    }

    fn flag(&self, name: &str) -> bool {
        self.get(name).and_then(access::bool_value).unwrap_or(false)
    }

    fn optional_list(&self, name: &str) -> Option<Vec<u32>> {
        self.get(name).and_then(access::i32_values).map(unsigned)
    }

    fn list(&self, name: &str) -> Vec<u32> {
        self.optional_list(name).unwrap_or_default()
    }

    /// A list that is all ones unless given.
    fn ones_or_list(&self, name: &str, rank: usize) -> Vec<u32> {
        self.optional_list(name).unwrap_or_else(|| vec![1; rank])
    }

    fn bases(&self, name: &str) -> Vec<Vec<u32>> {
        let bases = self.get(name).and_then(kind::bases_of).unwrap_or_default();
        bases.into_iter().map(unsigned).collect()
    }

    fn cga_layout(&self, rank: usize) -> Result<CgaLayout, EncodingError> {
        CgaLayout::from_bases(rank, self.bases("CGALayout"))
    }

    fn parent(&self) -> Result<Box<Encoding>, EncodingError> {
        match self.get("parent") {
            Some(parent) => Ok(Box::new(Encoding::from_attribute(parent)?)),
            None => Err(EncodingError::NotAnEncoding {
                attribute: "an absent parent".to_owned(),
            }),
        }
    }

    /// The number of entries of the first vector of any of the named bases.
    fn rank_of_bases(&self, names: &[&str]) -> usize {
        names
            .iter()
            .find_map(|name| self.bases(name).first().map(Vec::len))
            .unwrap_or(0)
    }

    fn read(&self) -> Result<Option<Encoding>, EncodingError> {
        let is = |spec: &'static AttributeSpec| std::ptr::eq(self.spec, spec);
        let order = || self.list("order");
        let warps = || self.list("warpsPerCTA");
        Ok(Some(if is(ttg::BLOCKED) {
            Encoding::Blocked(Blocked {
                size_per_thread: self.list("sizePerThread"),
                threads_per_warp: self.list("threadsPerWarp"),
                warps_per_cta: warps(),
                cga_layout: self.cga_layout(order().len())?,
                order: order(),
            })
        } else if is(ttg::SLICE) {
            Encoding::Slice(Slice {
                dim: self.number("dim"),
                parent: self.parent()?,
            })
        } else if is(ttg::LINEAR) {
            Encoding::Linear(Linear::from_bases(
                self.rank_of_bases(&["register", "lane", "warp", "block"]),
                &self.bases("register"),
                &self.bases("lane"),
                &self.bases("warp"),
                &self.bases("block"),
            )?)
        } else if is(ttg::NVIDIA_MMA) {
            Encoding::NvidiaMma(NvidiaMma {
                version_major: self.number("versionMajor"),
                version_minor: self.number("versionMinor"),
                cga_layout: self.cga_layout(warps().len())?,
                warps_per_cta: warps(),
                instr_shape: self.list("instrShape"),
            })
        } else if is(ttg::AMD_MFMA) {
            Encoding::AmdMfma(AmdMfma {
                version: self.number("version"),
                tiles_per_warp: self.ones_or_list("tilesPerWarp", warps().len()),
                cga_layout: self.cga_layout(warps().len())?,
                warps_per_cta: warps(),
                instr_shape: self.list("instrShape"),
                is_transposed: self.flag("isTransposed"),
                element_bit_width: self.number("elementBitWidth"),
            })
        } else if is(ttg::AMD_WMMA) {
            Encoding::AmdWmma(AmdWmma {
                version: self.number("version"),
                is_transposed: self.flag("isTranspose"),
                tiles_per_warp: self.ones_or_list("tilesPerWarp", warps().len()),
                cga_layout: self.cga_layout(warps().len())?,
                warps_per_cta: warps(),
                instr_shape: self.list("instrShape"),
            })
        } else if is(ttg::DOT_OP) {
            Encoding::DotOperand(DotOperand {
                op_idx: self.number("opIdx"),
                parent: self.parent()?,
                k_width: self.number("kWidth"),
            })
        } else if is(ttg::SWIZZLED_SHARED) {
            Encoding::SwizzledShared(SwizzledShared {
                vec: self.number("vec"),
                per_phase: self.number("perPhase"),
                max_phase: self.number("maxPhase"),
                cga_layout: self.cga_layout(order().len())?,
                order: order(),
            })
        } else if is(ttg::AMD_ROTATING_SHARED) {
            Encoding::AmdRotatingShared(AmdRotatingShared {
                vec: self.number("vec"),
                per_phase: self.number("perPhase"),
                max_phase: self.number("maxPhase"),
                cga_layout: self.cga_layout(order().len())?,
                order: order(),
            })
        } else if is(ttg::NVMMA_SHARED) {
            Encoding::NvmmaShared(NvmmaShared {
                swizzling_byte_width: self.number("swizzlingByteWidth"),
                transposed: self.flag("transposed"),
                element_bit_width: self.number("elementBitWidth"),
                fp4_padded: self.flag("fp4Padded"),
                cga_layout: self.cga_layout(self.number("rank") as usize)?,
            })
        } else if is(ttg::SHARED_LINEAR) {
            Encoding::SharedLinear(SharedLinear::from_bases(
                self.rank_of_bases(&["offset", "block"]),
                &self.bases("offset"),
                &self.bases("block"),
                self.number("alignment"),
            )?)
        } else if is(ttg::PADDED_SHARED) {
            let intervals = self.list("intervals");
            Encoding::PaddedShared(PaddedShared::from_bases(
                intervals.into_iter().zip(self.list("paddings")).collect(),
                self.list("shape").len(),
                &self.bases("offset"),
                &self.bases("block"),
            )?)
        } else if is(ttng::TENSOR_MEMORY_ENCODING) {
            Encoding::TensorMemory(TensorMemory {
                block_m: self.number("blockM"),
                block_n: self.number("blockN"),
                col_stride: self.number("colStride"),
                cta_split_m: self.number("CTASplitM"),
                cta_split_n: self.number("CTASplitN"),
                two_ctas: self.flag("twoCTAs"),
            })
        } else if is(ttng::TENSOR_MEMORY_SCALES_ENCODING) {
            Encoding::TensorMemoryScales(TensorMemoryScales {
                cta_split_m: self.number("CTASplitM"),
                cta_split_n: self.number("CTASplitN"),
            })
        } else {
            return Ok(None);
        }))
    }
}

/// The parser admits nothing below zero.
fn unsigned(values: Vec<i32>) -> Vec<u32> {
    values
        .into_iter()
        .map(|value| u32::try_from(value).unwrap_or(0))
        .collect()
}

/// A parameter by name; absent ones are left out or `None`.
type Field<'c> = (&'static str, Option<Attribute<'c>>);

/// Makes parameters in a context.
struct Writer<'c> {
    context: &'c Context,
}

impl<'c> Writer<'c> {
    fn number(&self, value: u32) -> Option<Attribute<'c>> {
        Some(make::integer(self.context, 32, i64::from(value)))
    }

    fn flag(&self, value: bool) -> Option<Attribute<'c>> {
        Some(make::bool(self.context, value))
    }

    fn list(&self, values: &[u32]) -> Option<Attribute<'c>> {
        Some(make::i32_array(self.context, &signed(values)))
    }

    /// A list that stays away when it is all ones.
    fn list_unless_ones(&self, values: &[u32]) -> Option<Attribute<'c>> {
        if values.iter().all(|&value| value == 1) {
            None
        } else {
            self.list(values)
        }
    }

    fn bases(&self, vectors: &[Vec<u32>]) -> Option<Attribute<'c>> {
        let vectors: Vec<Vec<i32>> = vectors.iter().map(|vector| signed(vector)).collect();
        Some(make::bases(self.context, &vectors))
    }

    fn bases_of(&self, layout: &LinearLayout, name: &str) -> Option<Attribute<'c>> {
        let dim = llopt_layout::Dim::new(name)?;
        let vectors: Vec<Vec<u32>> = (0..layout.in_dim_size_log2(dim))
            .filter_map(|bit| layout.basis(dim, bit).map(|basis| basis.to_vec()))
            .collect();
        self.bases(&vectors)
    }

    fn cga(&self, cga_layout: &CgaLayout) -> Field<'c> {
        ("CGALayout", self.bases(cga_layout.bases()))
    }

    fn swizzle(
        &self,
        [vec, per_phase, max_phase]: [u32; 3],
        order: &[u32],
        cga_layout: &CgaLayout,
    ) -> Vec<Field<'c>> {
        vec![
            ("vec", self.number(vec)),
            ("perPhase", self.number(per_phase)),
            ("maxPhase", self.number(max_phase)),
            ("order", self.list(order)),
            self.cga(cga_layout),
        ]
    }

    fn fields(&self, encoding: &Encoding) -> (&'static AttributeSpec, Vec<Field<'c>>) {
        match encoding {
            Encoding::Blocked(blocked) => (
                ttg::BLOCKED,
                vec![
                    ("sizePerThread", self.list(&blocked.size_per_thread)),
                    ("threadsPerWarp", self.list(&blocked.threads_per_warp)),
                    ("warpsPerCTA", self.list(&blocked.warps_per_cta)),
                    ("order", self.list(&blocked.order)),
                    self.cga(&blocked.cga_layout),
                ],
            ),
            Encoding::Slice(slice) => (
                ttg::SLICE,
                vec![
                    ("dim", self.number(slice.dim)),
                    ("parent", Some(slice.parent.to_attribute(self.context))),
                ],
            ),
            Encoding::Linear(linear) => {
                let names = ["register", "lane", "warp", "block"];
                let bases = names.map(|name| (name, self.bases_of(linear.layout(), name)));
                (ttg::LINEAR, bases.to_vec())
            }
            Encoding::NvidiaMma(mma) => (
                ttg::NVIDIA_MMA,
                vec![
                    ("versionMajor", self.number(mma.version_major)),
                    ("versionMinor", self.number(mma.version_minor)),
                    ("warpsPerCTA", self.list(&mma.warps_per_cta)),
                    self.cga(&mma.cga_layout),
                    ("instrShape", self.list(&mma.instr_shape)),
                ],
            ),
            Encoding::AmdMfma(mfma) => (
                ttg::AMD_MFMA,
                vec![
                    ("version", self.number(mfma.version)),
                    ("warpsPerCTA", self.list(&mfma.warps_per_cta)),
                    ("instrShape", self.list(&mfma.instr_shape)),
                    ("isTransposed", self.flag(mfma.is_transposed)),
                    self.cga(&mfma.cga_layout),
                    ("tilesPerWarp", self.list_unless_ones(&mfma.tiles_per_warp)),
                    ("elementBitWidth", self.number(mfma.element_bit_width)),
                ],
            ),
            Encoding::AmdWmma(wmma) => (
                ttg::AMD_WMMA,
                vec![
                    ("version", self.number(wmma.version)),
                    ("isTranspose", self.flag(wmma.is_transposed)),
                    ("warpsPerCTA", self.list(&wmma.warps_per_cta)),
                    self.cga(&wmma.cga_layout),
                    ("tilesPerWarp", self.list_unless_ones(&wmma.tiles_per_warp)),
                    ("instrShape", self.list(&wmma.instr_shape)),
                ],
            ),
            Encoding::DotOperand(operand) => (
                ttg::DOT_OP,
                vec![
                    ("opIdx", self.number(operand.op_idx)),
                    ("parent", Some(operand.parent.to_attribute(self.context))),
                    ("kWidth", self.number(operand.k_width)),
                ],
            ),
            Encoding::SwizzledShared(shared) => {
                let numbers = [shared.vec, shared.per_phase, shared.max_phase];
                let fields = self.swizzle(numbers, &shared.order, &shared.cga_layout);
                (ttg::SWIZZLED_SHARED, fields)
            }
            Encoding::AmdRotatingShared(shared) => {
                let numbers = [shared.vec, shared.per_phase, shared.max_phase];
                let fields = self.swizzle(numbers, &shared.order, &shared.cga_layout);
                (ttg::AMD_ROTATING_SHARED, fields)
            }
            Encoding::NvmmaShared(shared) => (
                ttg::NVMMA_SHARED,
                vec![
                    (
                        "swizzlingByteWidth",
                        self.number(shared.swizzling_byte_width),
                    ),
                    ("transposed", self.flag(shared.transposed)),
                    ("elementBitWidth", self.number(shared.element_bit_width)),
                    ("fp4Padded", self.flag(shared.fp4_padded)),
                    self.cga(&shared.cga_layout),
                    ("rank", self.number(shared.rank() as u32)),
                ],
            ),
            Encoding::SharedLinear(shared) => (
                ttg::SHARED_LINEAR,
                vec![
                    ("offset", self.bases_of(shared.layout(), "offset")),
                    ("block", self.bases_of(shared.layout(), "block")),
                    ("alignment", self.number(shared.alignment())),
                ],
            ),
            Encoding::PaddedShared(shared) => {
                let pads = shared.pads().iter();
                let (intervals, paddings): (Vec<u32>, Vec<u32>) = pads.copied().unzip();
                let component = shared.component();
                let shape: Vec<u32> = component
                    .out_dims()
                    .iter()
                    .map(|&dim| super::field::size_u32(component.out_dim_size(dim)))
                    .collect();
                let fields = vec![
                    ("intervals", self.list(&intervals)),
                    ("paddings", self.list(&paddings)),
                    ("offset", self.bases_of(component, "offset")),
                    ("block", self.bases_of(component, "block")),
                    ("shape", self.list(&shape)),
                ];
                (ttg::PADDED_SHARED, fields)
            }
            Encoding::TensorMemory(memory) => (
                ttng::TENSOR_MEMORY_ENCODING,
                vec![
                    ("blockM", self.number(memory.block_m)),
                    ("blockN", self.number(memory.block_n)),
                    ("colStride", self.number(memory.col_stride)),
                    ("CTASplitM", self.number(memory.cta_split_m)),
                    ("CTASplitN", self.number(memory.cta_split_n)),
                    ("twoCTAs", self.flag(memory.two_ctas)),
                ],
            ),
            Encoding::TensorMemoryScales(memory) => (
                ttng::TENSOR_MEMORY_SCALES_ENCODING,
                vec![
                    ("CTASplitM", self.number(memory.cta_split_m)),
                    ("CTASplitN", self.number(memory.cta_split_n)),
                ],
            ),
        }
    }
}

/// Parameters are stored as signed; no encoding that verifies has a number beyond.
fn signed(values: &[u32]) -> Vec<i32> {
    values
        .iter()
        .map(|&value| i32::try_from(value).unwrap_or(i32::MAX))
        .collect()
}
