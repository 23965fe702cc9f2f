//! Transfer functions of addresses: pointer arithmetic, casts to and from integers, loads.
//!
//! An address is counted in bytes and its runs advance by the size of the pointee, its *step* `s`.

use super::{AxisFacts, DimFacts, Pow2};

/// The facts of an address function argument or of any other address of unknown origin with the
/// given pointee size in bytes.
pub fn unknown_address(rank: usize, pointee_bytes: u64) -> AxisFacts {
    AxisFacts::unknown(rank, Pow2::dividing(pointee_bytes.max(1)))
}

/// The facts of `pointer + s · offset`, offset counted in elements.
///
/// A sum like any other: contiguous where one term is contiguous and the other constant, divisible
/// by what divides both, where the offset's divisors are `s` times those of its elements.
pub fn add_offset(pointer: &AxisFacts, offset: &AxisFacts) -> AxisFacts {
    if pointer.rank() != offset.rank() {
        return AxisFacts::unknown(pointer.rank(), pointer.step);
    }
    if offset.constant == Some(0) {
        return pointer.clone();
    }
    let dims = (0..pointer.rank()).map(|dim| {
        let (p, o) = (pointer.dims[dim], offset.dims[dim]);
        let contiguity = (p.contiguity.min(o.constancy)).max(p.constancy.min(o.contiguity));
        let offset_bytes = offset.divisibility_at(dim, contiguity).times(pointer.step);
        DimFacts {
            contiguity,
            divisibility: pointer.divisibility_at(dim, contiguity).min(offset_bytes),
            constancy: p.constancy.min(o.constancy),
        }
    });
    AxisFacts {
        dims: dims.collect(),
        step: pointer.step,
        constant: None,
        non_negative: false,
    }
}

/// The facts of the same bits read with another step: `tt.ptr_to_int` (new step 1),
/// `tt.int_to_ptr`, and bit casts between pointers.
///
/// Runs survive only if neighbours stay one step apart; what divides all elements always does.
pub fn with_step(x: &AxisFacts, step: Pow2) -> AxisFacts {
    if x.step == step {
        return x.clone();
    }
    let dims = (0..x.rank()).map(|dim| DimFacts {
        contiguity: Pow2::ONE,
        divisibility: x.divisibility_at(dim, Pow2::ONE),
        constancy: x.dims[dim].constancy,
    });
    AxisFacts {
        dims: dims.collect(),
        step,
        constant: x.constant,
        non_negative: x.non_negative,
    }
}
