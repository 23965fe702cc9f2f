//! Accesses to shared memory: the best swizzle for two layouts, and the conflicts of an access to a given memory.

use llopt_layout::banks::Access;
use llopt_layout::instruction::InstructionKind;
use llopt_layout::plan::{
    PaddedMemory, PlanError, SharedAccess, SharedPlan, SwizzleRequest, pad, synthesize,
};
use llopt_layout::{Dim, LinearLayout};
use llopt_target::Target;
use serde::Serialize;

use crate::{LayoutJson, text};

/// A layout of shared memory with gaps: after every `interval` elements, `padding` are unused.
#[derive(Clone, Debug, PartialEq)]
pub struct Memory {
    /// Where the elements lie, without the gaps.
    pub layout: LinearLayout,
    /// Pairs (interval, padding), in elements.
    pub pads: Vec<(u32, u32)>,
}

impl Memory {
    /// The position of an element, with the gaps.
    fn padded(&self, offset: u32) -> u32 {
        self.pads.iter().fold(offset, |sum, &(interval, padding)| {
            sum.saturating_add((offset / interval.max(1)).saturating_mul(padding))
        })
    }
}

/// A synthesised memory layout, with the accesses of both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Swizzle {
    plan: SharedPlan,
}

/// The best memory layout to convert a tensor from one distributed layout to another.
///
/// # Errors
/// As [`conversion`](crate::conversion()), and when no instructions of the requested kinds fit.
pub fn swizzle(
    from: &LinearLayout,
    to: &LinearLayout,
    element_bits: u32,
    target: Target,
    request: SwizzleRequest,
) -> Result<Swizzle, PlanError> {
    let plan = synthesize(from, to, element_bits, &target.machine(), request)?;
    Ok(Swizzle { plan })
}

/// A swizzle as JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SwizzleJson {
    /// The layout of the memory.
    pub memory: LayoutJson,
    /// The stores from registers.
    pub store: AccessJson,
    /// The loads to registers.
    pub load: AccessJson,
    /// Bytes of shared memory per block.
    pub shared_bytes: u32,
    /// How often the memory is filled and emptied.
    pub rounds: u32,
}

/// One side of an access, counted for one warp.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AccessJson {
    /// The instruction's name.
    pub instruction: &'static str,
    /// Bits that one lane moves with one instruction.
    pub bits: u32,
    /// The number of instructions.
    pub instructions: u32,
    /// Wavefronts.
    pub wavefronts: u32,
    /// The fewest wavefronts that instructions of this width can have.
    pub bound: u32,
}

impl From<&SharedAccess> for AccessJson {
    fn from(access: &SharedAccess) -> Self {
        let instruction = &access.instruction;
        Self {
            instruction: instruction.name,
            bits: instruction.element_bits << instruction.registers_log2(),
            instructions: access.instructions,
            wavefronts: access.wavefronts,
            bound: access.bound,
        }
    }
}

impl From<&Swizzle> for SwizzleJson {
    fn from(swizzle: &Swizzle) -> Self {
        let plan = &swizzle.plan;
        Self {
            memory: LayoutJson::from(&plan.memory),
            store: AccessJson::from(&plan.store),
            load: AccessJson::from(&plan.load),
            shared_bytes: plan.bytes,
            rounds: 1 << plan.rounds.len(),
        }
    }
}

impl Swizzle {
    /// The layout of the memory.
    #[must_use]
    pub fn layout(&self) -> &LinearLayout {
        &self.plan.memory
    }

    /// The layout and the accesses for a person to read.
    #[must_use]
    pub fn text(&self) -> String {
        let plan = &self.plan;
        let rounds = match 1u32 << plan.rounds.len() {
            1 => String::new(),
            rounds => format!(", filled {rounds} times"),
        };
        format!(
            "{}{} bytes per block{rounds}\nstore: {}\nload:  {}\n",
            text::bases(&plan.memory),
            plan.bytes,
            access_line(&plan.store),
            access_line(&plan.load)
        )
    }
}

/// Gaps for a memory whose order of elements is given, with the accesses of both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Padded {
    found: PaddedMemory,
}

/// The best gaps to convert a tensor from one distributed layout to another through a memory that holds its elements
/// in a given order.
///
/// # Errors
/// As [`swizzle()`], and when the memory does not fit the layouts.
pub fn padding(
    memory: &LinearLayout,
    from: &LinearLayout,
    to: &LinearLayout,
    element_bits: u32,
    target: Target,
    request: SwizzleRequest,
) -> Result<Padded, PlanError> {
    let found = pad(memory, from, to, element_bits, &target.machine(), request)?;
    Ok(Padded { found })
}

/// Gaps as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PaddedJson {
    /// Elements between two gaps.
    pub interval: u64,
    /// Elements of a gap; 0 for none.
    pub gap: u32,
    /// The stores from registers.
    pub store: AccessJson,
    /// The loads to registers.
    pub load: AccessJson,
    /// Bytes of shared memory, gaps included.
    pub shared_bytes: u32,
}

impl From<&Padded> for PaddedJson {
    fn from(padded: &Padded) -> Self {
        let found = &padded.found;
        Self {
            interval: 1 << found.padding.interval_log2,
            gap: found.padding.gap,
            store: AccessJson::from(&found.store),
            load: AccessJson::from(&found.load),
            shared_bytes: found.bytes,
        }
    }
}

impl Padded {
    /// The gaps and the accesses for a person to read.
    #[must_use]
    pub fn text(&self) -> String {
        let json = PaddedJson::from(self);
        let gaps = match json.gap {
            0 => "no gaps".to_owned(),
            1 => format!("a gap of one element after every {}", json.interval),
            gap => format!("a gap of {gap} elements after every {}", json.interval),
        };
        format!(
            "{gaps}, {} bytes\nstore: {}\nload:  {}\n",
            json.shared_bytes,
            line(&json.store),
            line(&json.load)
        )
    }
}

/// `4 x ld 128 bits: 16 wavefronts (at least 16)`.
pub(crate) fn access_line(access: &SharedAccess) -> String {
    line(&AccessJson::from(access))
}

fn line(access: &AccessJson) -> String {
    let verdict = match access.wavefronts - access.bound.min(access.wavefronts) {
        0 => "free of conflicts".to_owned(),
        excess => format!("{excess} more than the least possible {}", access.bound),
    };
    format!(
        "{} x {} of {} bits per lane, {} wavefronts, {verdict}",
        access.instructions, access.instruction, access.bits, access.wavefronts
    )
}

/// The wavefronts of an access of a distributed layout to a memory, in both directions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Conflicts {
    /// Memory to registers.
    pub load: AccessJson,
    /// Registers to memory.
    pub store: AccessJson,
}

/// Counts the wavefronts of loads and stores of `registers` from and to `memory` with vector
/// instructions, or with those of another kind.
///
/// # Errors
/// When the layouts do not fit together, the element's width is not a power of two from 8 to 128 bits, or
/// no instruction of the kind fits.
pub fn conflicts(
    registers: &LinearLayout,
    memory: &Memory,
    element_bits: u32,
    target: Target,
    kind: InstructionKind,
) -> Result<Conflicts, PlanError> {
    let mut machine = target.machine();
    if let Some(interval) = memory.pads.iter().map(|&(interval, _)| interval).min() {
        // A vector does not extend across a gap.
        machine.max_vector_bits = machine
            .max_vector_bits
            .min(interval.saturating_mul(element_bits));
    }
    let side = |access: Access| -> Result<AccessJson, PlanError> {
        let kind = Some(kind);
        let found = SharedAccess::for_memory(
            registers,
            &memory.layout,
            element_bits,
            access,
            kind,
            &machine,
        )?;
        let mut counted = AccessJson::from(&found);
        if !memory.pads.is_empty() {
            counted.wavefronts = padded_wavefronts(&found, memory, element_bits, access, target)?;
        }
        Ok(counted)
    };
    Ok(Conflicts {
        load: side(Access::Load)?,
        store: side(Access::Store)?,
    })
}

/// The wavefronts of the first warp, counted address by address.
fn padded_wavefronts(
    found: &SharedAccess,
    memory: &Memory,
    element_bits: u32,
    access: Access,
    target: Target,
) -> Result<u32, PlanError> {
    let banks = target.banks();
    let bytes = (element_bits / 8).max(1);
    let lanes = found.address.in_dim_size(Dim::LANE) as u32;
    let mut total = 0;
    for repeat in 0..found.instructions {
        let mut addresses = Vec::new();
        for lane in 0..lanes {
            let point: Vec<(Dim, u32)> = found
                .address
                .in_dims()
                .iter()
                .map(|&dim| match dim {
                    Dim::LANE => (dim, lane),
                    SharedAccess::REPEAT => (dim, repeat),
                    _ => (dim, 0),
                })
                .collect();
            let place = found.address.apply(&point)?;
            let offset = place
                .iter()
                .find(|&&(dim, _)| dim == Dim::OFFSET)
                .map_or(0, |&(_, offset)| offset);
            addresses.push(memory.padded(offset).saturating_mul(bytes));
        }
        let chunk = 1 << found.instruction.chunk_bytes_log2();
        total += banks
            .count(access, chunk, &addresses)
            .ok_or(PlanError::NoInstruction)?;
    }
    Ok(total)
}

impl Conflicts {
    /// Both directions for a person to read.
    #[must_use]
    pub fn text(&self) -> String {
        format!(
            "store: {}\nload:  {}\n",
            line(&self.store),
            line(&self.load)
        )
    }
}
