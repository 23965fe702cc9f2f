//! Control flow between the regions of ttg operations.

use llopt_mlir::dialect::{RegionBranch, RegionPoint};

/// The default region is entered from the operation and returns to it. Partitions run concurrently on other warps;
/// control does not flow into them.
pub static WARP_SPECIALIZE: RegionBranch = RegionBranch {
    successors: |_, _, from, successors| match from {
        RegionPoint::Parent => successors.add(RegionPoint::Region(0)),
        RegionPoint::Region(_) => successors.add(RegionPoint::Parent),
    },
    entry_operands: |_, _, _| (0, 0),
};
