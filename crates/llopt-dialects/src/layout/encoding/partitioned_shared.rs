//! `#ttg.partitioned_shared`: a tensor divided along one dimension into pieces that are assigned to partitions of
//! shared memory in turn, so that neighbouring pieces are in different partitions.
//!
//! With `P` partitions and `G` groups there are `P G` pieces; piece `p + P g` is the `g`-th of partition `p`. Each piece
//! has the layout that the encoding names, on the shape of a piece. The pieces of a partition follow one another, and
//! so do the partitions: above the bits of an offset in a piece come those of `g`, then those of `p`.
//! (Triton after 3.6, `TritonGPUAttrDefs.td`, `PartitionedSharedEncodingAttr`.)

use llopt_layout::{Dim, LinearLayout};

use super::field::{size_u32, verify_power_of_two};
use super::fields::{Field, Fields, Writer};
use super::kind::Kind;
use super::parent::Parent;
use super::{CgaLayout, EncodingError};

/// The fields of `#ttg.partitioned_shared`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PartitionedShared<P> {
    /// Partitions of the memory.
    pub num_partitions: u32,
    /// Pieces in each partition.
    pub num_groups: u32,
    /// The dimension that is cut.
    pub partition_dim: u32,
    /// The layout of a piece.
    pub piece: Box<P>,
}

impl<P: Parent> PartitionedShared<P> {
    /// The rank of the tensors.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.piece.rank()
    }

    /// The blocks of the cluster: one.
    #[must_use]
    pub fn cga_layout(&self) -> CgaLayout {
        self.piece.cga_layout()
    }

    /// Invariants: the layout of a piece is valid, of memory, and of a single block; `numPartitions` and `numGroups`
    /// are powers of two; `partitionDim` is a dimension.
    ///
    /// # Errors
    /// The first that does not hold.
    pub fn verify(&self) -> Result<(), EncodingError> {
        if self.piece.is_distributed() {
            return Err(self.refused());
        }
        self.piece.verify()?;
        verify_power_of_two("numPartitions", self.num_partitions)?;
        verify_power_of_two("numGroups", self.num_groups)?;
        if self.partition_dim as usize >= self.rank() {
            return Err(EncodingError::FieldValue {
                field: "partitionDim",
                value: self.partition_dim,
                allowed: "a dimension of the layout of a piece",
            });
        }
        match self.cga_layout().num_blocks() {
            1 => Ok(()),
            _ => Err(self.refused()),
        }
    }

    fn refused(&self) -> EncodingError {
        EncodingError::Parent {
            encoding: "ttg.partitioned_shared",
            parent: self.piece.name(),
            allowed: "an encoding of shared memory of a single block",
        }
    }

    pub(super) fn layout_on(&self, shape: &[u64]) -> Result<LinearLayout, EncodingError> {
        let dim = self.partition_dim as usize;
        let pieces = u64::from(self.num_partitions) * u64::from(self.num_groups);
        let mut piece_shape = shape.to_vec();
        piece_shape[dim] /= pieces;
        if piece_shape[dim] == 0 {
            return Err(EncodingError::ShapeTooSmall {
                dim,
                size: shape[dim],
                least: pieces,
            });
        }
        let piece = self.piece.linear_layout(&piece_shape)?;
        if !piece.has_in_dim(Dim::OFFSET) {
            return Err(self.refused());
        }
        let bits =
            |count: u32, step: u32| (0..count.trailing_zeros()).map(move |bit| [step << bit]);
        let groups = bits(self.num_groups, self.num_partitions);
        let order: Vec<[u32; 1]> = groups.chain(bits(self.num_partitions, 1)).collect();
        let of_pieces = LinearLayout::from_bases(
            &[(Dim::OFFSET, &order[..])],
            &[(Dim::tensor(dim), size_u32(pieces))],
        )?;
        Ok(piece.product(&of_pieces)?)
    }
}

impl<P: Parent> Kind for PartitionedShared<P> {
    fn read(fields: &Fields<'_>) -> Result<Self, EncodingError> {
        Ok(Self {
            num_partitions: fields.number("numPartitions"),
            num_groups: fields.number("numGroups"),
            partition_dim: fields.number("partitionDim"),
            piece: fields.parent("partitionLayout")?,
        })
    }

    fn write<'c>(&self, write: &Writer<'c>) -> Vec<Field<'c>> {
        vec![
            ("numPartitions", write.number(self.num_partitions)),
            ("numGroups", write.number(self.num_groups)),
            ("partitionDim", write.number(self.partition_dim)),
            ("partitionLayout", write.parent(&*self.piece)),
        ]
    }

    fn pads(&self) -> &[(u32, u32)] {
        self.piece.pads()
    }

    fn elements_in_memory(&self, elements: u64) -> u64 {
        self.piece.elements_in_memory(elements)
    }

    fn memory_alignment(&self) -> Option<u32> {
        self.piece.memory_alignment()
    }
}

#[cfg(test)]
mod tests {
    use crate::layout::encoding::{CgaLayout, Encoding, PartitionedShared, SwizzledShared};

    /// The example of the header's source: eight pieces of 16 rows in two partitions.
    fn encoding() -> PartitionedShared {
        PartitionedShared {
            num_partitions: 2,
            num_groups: 4,
            partition_dim: 0,
            piece: Box::new(Encoding::SwizzledShared(SwizzledShared {
                vec: 1,
                per_phase: 1,
                max_phase: 1,
                order: vec![1, 0],
                cga_layout: CgaLayout::single(2),
            })),
        }
    }

    #[test]
    fn pieces_go_to_partitions_in_turn() {
        let layout = Encoding::PartitionedShared(encoding())
            .linear_layout(&[128, 32])
            .unwrap();
        for row in 0..128_u32 {
            let (piece, inside) = (row / 16, row % 16);
            let (partition, group) = (piece % 2, piece / 2);
            let offset = ((partition * 4 + group) * 16 + inside) * 32;
            // The row is in the low seven bits, the column above them.
            assert_eq!(layout.apply_flat(offset), row);
        }
    }

    #[test]
    fn there_is_an_element_for_each_piece() {
        let of = |rows| Encoding::PartitionedShared(encoding()).linear_layout(&[rows, 32]);
        assert!(of(8).is_ok());
        let said = of(4).unwrap_err().to_string();
        assert!(said.contains("at least 8"), "{said}");
    }
}
