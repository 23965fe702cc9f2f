//! `#ttg.slice`: the layout of a tensor of one rank less, such as the result of a reduction: the parent's, without
//! the index along one dimension.
//!
//! Lanes and warps that differ only along that dimension hold copies; such registers are dropped.

use llopt_layout::{Dim, LinearLayout};

use super::field::{size_u32, verify_rank};
use super::fields::{Field, Fields, Writer};
use super::kind::Kind;
use super::parent::Parent;
use super::threads::Threads;
use super::{CgaLayout, EncodingError};

/// The fields of `#ttg.slice`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Slice<P> {
    /// The dimension of the parent that is dropped.
    pub dim: u32,
    /// A distributed encoding.
    pub parent: Box<P>,
}

impl<P: Parent> Slice<P> {
    /// The rank of the tensors.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.parent.rank().saturating_sub(1)
    }

    /// The blocks of the cluster.
    #[must_use]
    pub fn cga_layout(&self) -> CgaLayout {
        self.parent.cga_layout().without_dim(self.dim as usize)
    }

    /// Invariants: the parent is valid, distributed, and of rank 2 or more; `dim` is one of its
    /// dimensions.
    ///
    /// # Errors
    /// The first that does not hold.
    pub fn verify(&self) -> Result<(), EncodingError> {
        if !self.parent.is_distributed() {
            return Err(EncodingError::Parent {
                encoding: "ttg.slice",
                parent: self.parent.name(),
                allowed: "a distributed encoding",
            });
        }
        self.parent.verify()?;
        let parent = self.parent.rank();
        verify_rank(
            "ttg.slice",
            parent.saturating_sub(1),
            1..=usize::MAX,
            "at least 1, that is, the parent's at least 2",
        )?;
        if self.dim as usize >= parent {
            return Err(EncodingError::FieldValue {
                field: "dim",
                value: self.dim,
                allowed: "a dimension of the parent",
            });
        }
        Ok(())
    }

    pub(super) fn layout_on(&self, shape: &[u64]) -> Result<LinearLayout, EncodingError> {
        let parent = self.parent.linear_layout(&self.parent_shape(shape))?;
        self.cut(&parent, shape)
    }

    /// The shape of the parent's tensor of which a tensor of this shape is a slice: the dimension that is left out has one
    /// element.
    pub(super) fn parent_shape(&self, shape: &[u64]) -> Vec<u64> {
        let mut parent = shape.to_vec();
        parent.insert(self.dim as usize, 1);
        parent
    }

    /// The layout of a tensor of this shape, from that of the parent's.
    pub(super) fn cut(
        &self,
        parent: &LinearLayout,
        shape: &[u64],
    ) -> Result<LinearLayout, EncodingError> {
        let outs = shape.iter().enumerate();
        let outs: Vec<(Dim, u32)> = outs
            .map(|(dim, &size)| (Dim::tensor(dim), size_u32(size)))
            .collect();
        let layout = parent.reshape_outs(&outs)?;
        Ok(layout.remove_zero_bases(Dim::REGISTER))
    }
}

impl<P: Parent> Kind for Slice<P> {
    fn read(fields: &Fields<'_>) -> Result<Self, EncodingError> {
        Ok(Self {
            dim: fields.number("dim"),
            parent: fields.parent("parent")?,
        })
    }

    fn write<'c>(&self, write: &Writer<'c>) -> Vec<Field<'c>> {
        vec![
            ("dim", write.number(self.dim)),
            ("parent", write.parent(&*self.parent)),
        ]
    }

    fn threads(&self) -> Option<Threads> {
        self.parent.threads()
    }
}
