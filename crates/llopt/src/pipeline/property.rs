//! What holds of a whole module between two steps.

/// A property of a whole module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Property {
    Structured,
    Inlined,
    PointersForMadeDescriptors,
    Layouts,
    FitsOptions,
    NamesTarget,
    Legal,
    SharedMemoryPlaced,
    BarriersPlaced,
    GlobalScratchPlaced,
    Branches,
}

impl Property {
    /// All, in the order in which a kernel acquires them.
    pub(super) const ALL: [Self; 11] = [
        Self::Structured,
        Self::Inlined,
        Self::PointersForMadeDescriptors,
        Self::Layouts,
        Self::FitsOptions,
        Self::NamesTarget,
        Self::Legal,
        Self::SharedMemoryPlaced,
        Self::BarriersPlaced,
        Self::GlobalScratchPlaced,
        Self::Branches,
    ];

    /// Its name, as the printed pipeline has it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Structured => "structured",
            Self::Inlined => "inlined",
            Self::PointersForMadeDescriptors => "pointers for made descriptors",
            Self::Layouts => "layouts",
            Self::FitsOptions => "fits options",
            Self::NamesTarget => "names target",
            Self::Legal => "legal",
            Self::SharedMemoryPlaced => "shared memory placed",
            Self::BarriersPlaced => "barriers placed",
            Self::GlobalScratchPlaced => "global scratch placed",
            Self::Branches => "branches",
        }
    }

    /// What holds of a module that has it.
    pub(super) fn meaning(self) -> &'static str {
        match self {
            Self::Structured => "loops and conditions may be ops of `scf`",
            Self::Inlined => "a function is called only if it must not be inlined",
            Self::PointersForMadeDescriptors => {
                "an access through a descriptor that the kernel makes is one through pointers, wherever the op \
                 that makes it is known, or the descriptor is an object in memory"
            }
            Self::Layouts => "every tensor type has a layout, and the module says for which warps",
            Self::FitsOptions => "warps, blocks and vendor are those of the options",
            Self::NamesTarget => {
                "the module carries the target and the forced plans of the options"
            }
            Self::Legal => "every op has layouts that there is code for",
            Self::SharedMemoryPlaced => {
                "each buffer, and each op that needs scratch memory, has an offset in shared memory"
            }
            Self::BarriersPlaced => {
                "conflicting accesses to shared memory are separated by a barrier or a wait"
            }
            Self::GlobalScratchPlaced => "each allocation of global scratch memory has an offset",
            Self::Branches => "control flow is branches between blocks (`cf`)",
        }
    }
}

/// The properties that code generation requires.
pub(super) const REQUIRED_BY_CODE_GENERATION: &[Property] = &[
    Property::FitsOptions,
    Property::Legal,
    Property::SharedMemoryPlaced,
    Property::BarriersPlaced,
    Property::GlobalScratchPlaced,
    Property::Branches,
];
