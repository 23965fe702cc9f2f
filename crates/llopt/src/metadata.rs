//! The information about a compiled kernel that a launcher needs besides its code.
//!
//! The keys are those of Triton 3.6's metadata, so that its launchers can start llopt's binaries.

use llopt_codegen::walk::lower;
use llopt_dialects::layout::argument_tensor::{ArgumentTensor, Sum};
use llopt_dialects::layout::tensor_descriptor::DescriptorFields;
use llopt_sim::{Argument, Launch};
use llopt_target::{Target, Vendor};
use serde::Serialize;

use crate::Options;

/// The launch metadata of one kernel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Metadata {
    /// The kernel's symbol.
    pub name: String,
    /// Dynamic shared memory, in bytes.
    pub shared: u32,
    /// Warps for each block.
    pub num_warps: u32,
    /// Blocks for each cluster.
    pub num_ctas: u32,
    /// Depth of software pipelines, from the options; no pass reads it yet.
    pub num_stages: u32,
    /// Threads for each warp.
    pub warp_size: u32,
    /// The GPU, in the form from which launchers rebuild their target.
    pub target: TargetMetadata,
    /// The architecture: `sm90`, `gfx942`.
    pub arch: String,
    /// Columns of tensor memory.
    pub tmem_size: u32,
    /// Bytes of global scratch memory for each block (tensor descriptors made on the device).
    pub global_scratch_size: u32,
    /// Its alignment in bytes.
    pub global_scratch_align: u32,
    /// Bytes of scratch memory for profiling.
    pub profile_scratch_size: u32,
    /// Its alignment in bytes.
    pub profile_scratch_align: u32,
    /// How the launcher encodes each tensor descriptor argument; empty without such arguments, and where no unit reads
    /// objects, as the launcher passes base, extents, strides and padding then.
    pub tensordesc_meta: Vec<TensorDescriptor>,
    /// Tensors whose descriptor objects the launcher passes after the arguments of the source; empty unless the
    /// [option](Options::tensor_copies) asks for it. Triton has no such key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub argument_tensors: Vec<ArgumentDescriptor>,
    /// The blocks of which each computes a part of a program's tile: the launcher starts that many times as many blocks
    /// along x as the grid has programs. Triton has no such key.
    #[serde(skip_serializing_if = "is_one")]
    pub tile_parts: u32,
    /// Whether each block computes several programs. Then the launcher starts a grid of one dimension with at most as
    /// many blocks as are resident, and passes the three extents of the grid of programs, which has at most 2^30, as
    /// numbers of 32 bits after all other arguments. Triton has no such key.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub program_extents: bool,
    /// Whether blocks that compute several programs each would be faster for a launch of more programs than there are
    /// multiprocessors; false unless the [option](Options::persistent) asks for it. Triton has no such key.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub persistent_proposal: bool,
    /// Whether all blocks must be resident at once.
    pub launch_cooperative_grid: bool,
    /// Whether the launch may overlap the end of the preceding kernel, since the kernel waits for it itself
    /// ([option](Options::dependent_launch)).
    pub launch_pdl: bool,
    /// Upper bound on registers for each thread, if one was given.
    pub maxnreg: Option<u32>,
    /// Whether multiplications and additions may be fused.
    pub enable_fp_fusion: bool,
    /// Whether device assertions are compiled in.
    pub debug: bool,
    /// The resources that the assembler reported; absent where no assembler ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
}

impl Metadata {
    /// The results of code generation for the kernel, with values from the options.
    pub(crate) fn of(kernel: &lower::Metadata, options: &Options) -> Self {
        let target = TargetMetadata::of(options.target);
        Self {
            name: kernel.name.clone(),
            shared: kernel.shared,
            num_warps: kernel.num_warps,
            num_ctas: kernel.num_ctas,
            num_stages: options.num_stages,
            warp_size: kernel.warp_size,
            arch: options.target.arch().replace("sm_", "sm"),
            target,
            tmem_size: kernel.tmem_size,
            global_scratch_size: kernel.global_scratch_size,
            global_scratch_align: kernel.global_scratch_align,
            profile_scratch_size: kernel.profile_scratch_size,
            profile_scratch_align: kernel.profile_scratch_align,
            tensordesc_meta: kernel.tensor_descriptors.iter().map(describe).collect(),
            argument_tensors: kernel
                .argument_tensors
                .iter()
                .map(ArgumentDescriptor::of)
                .collect(),
            tile_parts: kernel.tile_parts,
            program_extents: kernel.program_extents,
            persistent_proposal: kernel.persistent_proposal,
            launch_cooperative_grid: false,
            launch_pdl: kernel.dependent_launch,
            maxnreg: options.max_registers,
            enable_fp_fusion: options.fp_fusion,
            debug: false,
            resources: None,
        }
    }

    /// A launch of the kernel on the simulated machine, `grid` blocks along x, y and z, with the arguments that the
    /// source declares, a tensor for each descriptor. This adds what launchers add: the threads of a block, its dynamic shared memory, and the two
    /// pointers to scratch memory, which are null here.
    pub fn launch(&self, mut grid: [u32; 3], mut arguments: Vec<Argument>) -> Launch {
        if self.program_extents {
            arguments.extend(grid.map(|extent| Argument::Int(extent.into())));
            grid = Self::blocks_of_programs(grid);
        }
        grid[0] = grid[0].saturating_mul(self.tile_parts);
        arguments.extend([Argument::Null, Argument::Null]);
        let mut launch = Launch::new(grid, self.num_warps * self.warp_size, arguments);
        launch.dynamic_shared = self.shared.into();
        launch.overlaps = self.launch_pdl;
        launch
    }

    /// The blocks on the simulated machine that compute all programs of a grid, if each computes several: a third as many,
    /// so that most compute three, and use buffers that are filled once for each program again even if there are two.
    #[must_use]
    pub fn blocks_of_programs(grid: [u32; 3]) -> [u32; 3] {
        let programs = grid.into_iter().fold(1, u32::saturating_mul);
        [programs.div_ceil(3), 1, 1]
    }

    /// The metadata of a module that is not lowered, from its attributes and the options: its name and its memory are
    /// not known yet.
    pub(crate) fn of_module(num_warps: u32, num_ctas: u32, options: &Options) -> Self {
        let kernel = lower::Metadata {
            name: String::new(),
            shared: 0,
            num_warps,
            num_ctas,
            warp_size: options.target.warp_size(),
            global_scratch_size: 0,
            global_scratch_align: 1,
            profile_scratch_size: 0,
            profile_scratch_align: 1,
            tmem_size: 0,
            tensor_descriptors: Vec::new(),
            argument_tensors: Vec::new(),
            tile_parts: 1,
            program_extents: false,
            persistent_proposal: false,
            dependent_launch: false,
        };
        Self::of(&kernel, options)
    }
}

/// Whether a number need not be written.
fn is_one(number: &u32) -> bool {
    *number == 1
}

/// The information that the launcher needs to encode the descriptor object of a parameter, with Triton's names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TensorDescriptor {
    /// The hardware's number of the swizzle.
    pub swizzle: u32,
    /// Bytes of an element.
    pub elem_size: u32,
    /// The hardware's number of the element type, as in `tensormap.replace`.
    pub elem_type: u32,
    /// Extents of a box, in elements.
    pub block_size: Vec<u32>,
    /// Whether pairs of 4-bit values are spread out.
    pub fp4_padded: bool,
}

/// A tensor that the arguments of a kernel describe, and how to encode its descriptor object.
///
/// Arguments are counted as the kernel takes them. An extent or a stride is a sum of terms: a coefficient, and the
/// arguments with which it is multiplied, and a number by which the product is divisible and divided. Numbers are in
/// elements, dimensions from the outermost one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ArgumentDescriptor {
    /// The argument that is its address.
    pub base: usize,
    /// The extents.
    pub shape: Vec<Vec<ArgumentTerm>>,
    /// The strides.
    pub strides: Vec<Vec<ArgumentTerm>>,
    /// The elements that a program accesses along each dimension; zero where its loop moves along it. A launch of no more
    /// programs than that makes tiles reads each element once.
    pub reach: Vec<i64>,
    /// The encoding.
    #[serde(flatten)]
    pub encoding: TensorDescriptor,
}

/// A term of an extent or a stride: a coefficient, arguments, and a divisor.
pub type ArgumentTerm = (i64, Vec<usize>, i64);

impl ArgumentDescriptor {
    fn of((fields, tensor): &(DescriptorFields, ArgumentTensor)) -> Self {
        let sums = |sums: &[Sum]| {
            let terms = |sum: &Sum| {
                let terms = sum.iter();
                terms
                    .map(|term| (term.coefficient, term.arguments.clone(), term.divisor))
                    .collect()
            };
            sums.iter().map(terms).collect()
        };
        Self {
            base: tensor.base,
            shape: sums(&tensor.shape),
            strides: sums(&tensor.strides),
            reach: tensor.reach.clone(),
            encoding: describe(fields),
        }
    }

    /// The extents and the strides for arguments whose numbers `number` knows; `None` if it is no tensor that a
    /// descriptor can describe. Then the kernel does not use the descriptor.
    pub fn extents(&self, number: impl Fn(usize) -> Option<i64>) -> Option<(Vec<u32>, Vec<u64>)> {
        let value = |sum: &Vec<ArgumentTerm>| {
            let term = |(coefficient, arguments, divisor): &ArgumentTerm| {
                let mut arguments = arguments.iter();
                let product = arguments.try_fold(*coefficient, |product, &argument| {
                    product.checked_mul(number(argument)?)
                });
                product?.checked_div(*divisor)
            };
            let mut terms = sum.iter();
            terms.try_fold(0i64, |sum, of| sum.checked_add(term(of)?))
        };
        let extent = |sum| u32::try_from(value(sum)?).ok().filter(|&extent| extent > 0);
        let stride = |sum| u64::try_from(value(sum)?).ok().filter(|&stride| stride > 0);
        let shape: Option<Vec<u32>> = self.shape.iter().map(extent).collect();
        let strides: Option<Vec<u64>> = self.strides.iter().map(stride).collect();
        Some((shape?, strides?))
    }
}

fn describe(fields: &DescriptorFields) -> TensorDescriptor {
    TensorDescriptor {
        swizzle: fields.swizzle_mode,
        elem_size: fields.element_bytes,
        elem_type: fields.element_type,
        block_size: fields.box_shape.clone(),
        fp4_padded: fields.fp4_padded,
    }
}

/// The target in the form of Triton's `GPUTarget`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TargetMetadata {
    /// `cuda` or `hip`.
    pub backend: &'static str,
    /// A number such as 90 for `cuda`, a name such as `gfx942` for `hip`.
    pub arch: serde_json::Value,
    /// Threads for each warp.
    pub warp_size: u32,
}

impl TargetMetadata {
    /// The description of a target.
    pub fn of(target: Target) -> Self {
        let arch = target.arch();
        let number = arch.trim_start_matches(|c: char| !c.is_ascii_digit());
        let (backend, arch) = match target.vendor() {
            Vendor::Nvptx => (
                "cuda",
                number.parse::<u32>().map_or(arch.into(), Into::into),
            ),
            Vendor::Amdgpu => ("hip", arch.into()),
        };
        Self {
            backend,
            arch,
            warp_size: target.warp_size(),
        }
    }
}

/// Registers and memory of the assembled kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Resources {
    /// Registers for each thread (vector registers on AMD, those for accumulation among them).
    pub registers: Option<u32>,
    /// Vector registers that only matrix instructions and copies can access (AMD only).
    pub accumulation_registers: Option<u32>,
    /// Scalar registers for each warp (AMD only).
    pub scalar_registers: Option<u32>,
    /// Bytes spilled, stores and loads together (NVIDIA only).
    pub spilled_bytes: Option<u32>,
    /// Registers spilled (AMD only).
    pub spilled_registers: Option<u32>,
    /// Static shared memory in bytes.
    pub static_shared: Option<u32>,
    /// Bytes of private memory for each thread: spilled registers, arrays on the stack.
    pub scratch: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_spelled_as_tritons_launchers_rebuild_them() {
        let json = |name| serde_json::to_string(&TargetMetadata::of(Target::parse(name).unwrap()));
        assert_eq!(
            json("cuda:90").unwrap(),
            r#"{"backend":"cuda","arch":90,"warp_size":32}"#
        );
        assert_eq!(
            json("hip:gfx942").unwrap(),
            r#"{"backend":"hip","arch":"gfx942","warp_size":64}"#
        );
    }
}
