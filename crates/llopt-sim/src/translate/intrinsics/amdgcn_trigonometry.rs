//! `v_trig_preop_f64`: the bits of 2/π that the reduction of a large argument needs.
//!
//! An argument of a sine is divided by π/2 with as many bits of 2/π as its exponent requires (Payne and Hanek,
//! *Radian reduction for trigonometric functions*, 1983). The instruction returns one segment of 53 bits, scaled to
//! its position; ocml multiplies three (AMD, *RDNA3 ISA*, V_TRIG_PREOP_F64).

use crate::error::Decoded;
use crate::machine::bytecode::Slot;
use crate::machine::row::row2;
use crate::translate::emit::Emitter;

use super::Invocation;

/// The bits of 2/π after the binary point, from the highest.
const TWO_OVER_PI: [u64; 19] = [
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
    0x5603_3046_fc7b_6bab,
];

/// Bits of 2/π that the hardware keeps.
const KEPT: u64 = 1201;

/// Segment `segment` for the argument with these bits.
fn segment(argument: u64, segment: u64) -> u64 {
    let exponent = argument >> 52 & 0x7ff;
    let shift = 53 * (segment & 31) + exponent.saturating_sub(1077);
    let bit = |at: u64| {
        let inside = at < KEPT;
        u64::from(inside && TWO_OVER_PI[(at / 64) as usize] >> (63 - at % 64) & 1 == 1)
    };
    let bits = (shift..shift + 53).fold(0, |bits, at| bits << 1 | bit(at));
    let scale = -53 - shift as i32 + if exponent >= 1968 { 128 } else { 0 };
    libm::ldexp(bits as f64, scale).to_bits()
}

/// `llvm.amdgcn.trig.preop.f64`.
pub(super) fn preop(e: &mut Emitter<'_>, call: &Invocation<'_>) -> Decoded<Vec<Slot>> {
    let (argument, number) = (call.scalar(0)?, call.scalar(1)?);
    Ok(vec![e.map2(row2!(|a, n| segment(a, n)), argument, number)])
}

#[cfg(test)]
mod tests {
    use super::segment;

    #[test]
    fn segments_add_up_to_two_over_pi() {
        let value = |argument: f64, n| f64::from_bits(segment(argument.to_bits(), n));
        let exact = std::f64::consts::FRAC_2_PI;
        // Truncated, not rounded.
        assert!((value(1.0, 0) - exact).abs() <= 2f64.powi(-53));
        let sum = value(1.0, 0) + value(1.0, 1);
        assert_eq!(sum, exact);
        // For large arguments whole turns do not matter: the leading bits are left out.
        let far = 2f64.powi(200);
        let left_out = value(1.0, 0) * far % 1.0;
        assert!(left_out < 1.0 && value(far, 0) < 2f64.powi(-140));
    }
}
