//! Layouts as text: one line per basis vector.

use core::fmt;

use super::LinearLayout;

impl fmt::Display for LinearLayout {
    /// One line per basis vector, then the output dimensions with their sizes.
    ///
    /// ```
    /// use llopt_layout::{Dim, LinearLayout};
    /// let layout = LinearLayout::identity_1d(4, Dim::LANE, Dim::tensor(0))?;
    /// assert_eq!(layout.to_string(), "lane=1 -> (1)\nlane=2 -> (2)\nout: dim0 (size 4)");
    /// # Ok::<(), llopt_layout::LayoutError>(())
    /// ```
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for &dim in self.in_dims() {
            for bit in 0..self.in_dim_size_log2(dim) {
                write!(f, "{dim}={} -> (", 1u64 << bit)?;
                for (i, value) in self.basis(dim, bit).unwrap_or_default().iter().enumerate() {
                    write!(f, "{}{value}", if i == 0 { "" } else { ", " })?;
                }
                writeln!(f, ")")?;
            }
            if self.in_dim_size_log2(dim) == 0 {
                writeln!(f, "{dim} has size 1")?;
            }
        }
        write!(f, "out:")?;
        for (i, &dim) in self.out_dims().iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            write!(f, "{comma} {dim} (size {})", self.out_dim_size(dim))?;
        }
        Ok(())
    }
}

impl fmt::Debug for LinearLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
