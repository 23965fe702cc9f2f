//! Constants and indices in addresses, by LLVM's C interface: where they are added decides what an access can add itself.
//!
//! An access adds a constant of few bits. On some targets it also adds an index of 32 bits to a base that all threads
//! share, so an index is worth keeping in 32 bits if it is added to the base directly; an address that other indices
//! are added to, before or after, is a sum of 64 bits in any case.

use inkwell::builder::Builder;
use inkwell::llvm_sys::core::{
    LLVMBuildBinOp, LLVMBuildCast, LLVMBuildGEP2, LLVMBuildOr, LLVMConstInt,
    LLVMConstIntGetSExtValue, LLVMConstIntGetZExtValue, LLVMGetBasicBlockParent, LLVMGetFirstUse,
    LLVMGetGEPSourceElementType, LLVMGetGlobalParent, LLVMGetInstructionOpcode,
    LLVMGetInstructionParent, LLVMGetIntTypeWidth, LLVMGetIsDisjoint, LLVMGetMDKindIDInContext,
    LLVMGetMDNodeNumOperands, LLVMGetMDNodeOperands, LLVMGetMetadata, LLVMGetNNeg, LLVMGetNSW,
    LLVMGetNUW, LLVMGetNextUse, LLVMGetNumOperands, LLVMGetOperand, LLVMGetTypeContext,
    LLVMGetTypeKind, LLVMGetUser, LLVMInt8TypeInContext, LLVMIsABinaryOperator, LLVMIsACallInst,
    LLVMIsACastInst, LLVMIsAConstantInt, LLVMIsAGetElementPtrInst, LLVMReplaceAllUsesWith,
    LLVMSetIsDisjoint, LLVMSetNNeg, LLVMSetNSW, LLVMSetNUW, LLVMTypeOf,
};
use inkwell::llvm_sys::prelude::{LLVMBuilderRef, LLVMValueRef};
use inkwell::llvm_sys::target::{LLVMABISizeOfType, LLVMGetModuleDataLayout};
use inkwell::llvm_sys::{LLVMOpcode, LLVMTypeKind};
use inkwell::types::BasicTypeEnum;
use inkwell::values::{AsValueRef, InstructionValue, IntValue, PointerValue};

/// The largest depth of the sums of an address.
const DEPTH: u32 = 8;

/// The pointer that is so many elements behind another one, wherever that is.
pub fn behind<'ctx>(
    builder: &Builder<'ctx>,
    element: BasicTypeEnum<'ctx>,
    pointer: PointerValue<'ctx>,
    elements: IntValue<'ctx>,
) -> Option<PointerValue<'ctx>> {
    // SAFETY: the element has a size, and nothing is promised about the object that the sum is in.
    unsafe { builder.build_gep(element, pointer, &[elements], "") }.ok()
}

/// Makes `(p + constant) + x`, if that is what `address` is, into `(p + x) + constant`.
///
/// Requires: `builder` is of the instruction's context.
pub fn move_constant_outwards<'ctx>(builder: &Builder<'ctx>, address: InstructionValue<'ctx>) {
    builder.position_before(&address);
    // SAFETY: kinds and numbers of operands are checked before operands are used, and what replaces the
    // instruction has its type. Neither step promises to stay inside of an object.
    unsafe {
        let outer = address.as_value_ref();
        let plain = |value| {
            !LLVMIsAGetElementPtrInst(value).is_null()
                && LLVMGetNumOperands(value) == 2
                && LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMTypeKind::LLVMPointerTypeKind
        };
        if !plain(outer) {
            return;
        }
        let (inner, mut index) = (LLVMGetOperand(outer, 0), LLVMGetOperand(outer, 1));
        if !plain(inner) || !LLVMIsAConstantInt(index).is_null() {
            return;
        }
        let mut constant = LLVMGetOperand(inner, 1);
        if LLVMIsAConstantInt(constant).is_null() {
            return;
        }
        let builder = builder.as_mut_ptr();
        let add = |element, pointer, index: *mut _| {
            LLVMBuildGEP2(builder, element, pointer, index, 1, c"".as_ptr())
        };
        let element = LLVMGetGEPSourceElementType(outer);
        let moved = add(element, LLVMGetOperand(inner, 0), &mut index);
        let element = LLVMGetGEPSourceElementType(inner);
        LLVMReplaceAllUsesWith(outer, add(element, moved, &mut constant));
    }
}

/// Makes `(x | c) | y`, where no two have a set bit in common, into `(x | y) | c`, and makes one constant of two.
///
/// Requires: `builder` is of the instruction's context.
pub fn gather_constants<'ctx>(builder: &Builder<'ctx>, sum: InstructionValue<'ctx>) {
    builder.position_before(&sum);
    // SAFETY: kinds are checked before operands are used, and what replaces the instruction has its type and value.
    unsafe {
        let sum = sum.as_value_ref();
        let disjoint = |value| {
            !LLVMIsABinaryOperator(value).is_null()
                && LLVMGetInstructionOpcode(value) == LLVMOpcode::LLVMOr
                && LLVMGetIsDisjoint(value) != 0
        };
        if !disjoint(sum)
            || LLVMGetTypeKind(LLVMTypeOf(sum)) != LLVMTypeKind::LLVMIntegerTypeKind
            || LLVMGetIntTypeWidth(LLVMTypeOf(sum)) > 64
        {
            return;
        }
        // The variable part, if any, and the constant.
        let parts = |value| {
            let constant = |value| {
                let is_constant = !LLVMIsAConstantInt(value).is_null();
                is_constant.then(|| LLVMConstIntGetZExtValue(value))
            };
            if let Some(constant) = constant(value) {
                return (None, constant);
            }
            if disjoint(value)
                && let Some(constant) = constant(LLVMGetOperand(value, 1))
            {
                return (Some(LLVMGetOperand(value, 0)), constant);
            }
            (Some(value), 0)
        };
        let (one, first) = parts(LLVMGetOperand(sum, 0));
        let (other, second) = parts(LLVMGetOperand(sum, 1));
        let is_gathered = other.is_none() && first == 0;
        if first | second == 0 || is_gathered {
            return;
        }
        let or = |a, b| {
            let value = LLVMBuildOr(builder.as_mut_ptr(), a, b, c"".as_ptr());
            if !LLVMIsABinaryOperator(value).is_null() {
                LLVMSetIsDisjoint(value, 1);
            }
            value
        };
        let varying = match (one, other) {
            (Some(one), Some(other)) => or(one, other),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => return,
        };
        let constant = LLVMConstInt(LLVMTypeOf(sum), first | second, 0);
        LLVMReplaceAllUsesWith(sum, or(varying, constant));
    }
}

/// Whether a value is one address that an instruction computes from another one and one index.
///
/// Requires: `value` is a value of a live module.
unsafe fn is_plain_address(value: LLVMValueRef) -> bool {
    // SAFETY: the number of operands is asked of instructions only.
    unsafe {
        !LLVMIsAGetElementPtrInst(value).is_null()
            && LLVMGetNumOperands(value) == 2
            && LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMTypeKind::LLVMPointerTypeKind
    }
}

/// The index of 32 bits that an address is widened from, if it is not negative, and the bits that can be set in it.
///
/// Requires: `address` is a plain address.
unsafe fn index_of_bits(address: LLVMValueRef) -> Option<(LLVMValueRef, u64)> {
    // SAFETY: kinds are checked before operands are used.
    unsafe {
        let wide = LLVMGetOperand(address, 1);
        if LLVMIsACastInst(wide).is_null() {
            return None;
        }
        let index = LLVMGetOperand(wide, 0);
        let is_word = || {
            let of = LLVMTypeOf(index);
            LLVMGetTypeKind(of) == LLVMTypeKind::LLVMIntegerTypeKind
                && LLVMGetIntTypeWidth(of) == u32::BITS
        };
        let widens = matches!(
            LLVMGetInstructionOpcode(wide),
            LLVMOpcode::LLVMZExt | LLVMOpcode::LLVMSExt
        );
        if !widens || !is_word() {
            return None;
        }
        let bits = possible_bits(index);
        (bits <= i32::MAX as u64).then_some((index, bits))
    }
}

/// `a + b`, of which the caller knows that it does not wrap, with or without sign.
///
/// Requires: `raw` is at a place where both values are known.
unsafe fn plain_sum(raw: LLVMBuilderRef, a: LLVMValueRef, b: LLVMValueRef) -> LLVMValueRef {
    // SAFETY: flags are set only on instructions that have them.
    unsafe {
        let apart = possible_bits(a) & possible_bits(b) == 0;
        let opcode = match apart {
            true => LLVMOpcode::LLVMOr,
            false => LLVMOpcode::LLVMAdd,
        };
        let sum = LLVMBuildBinOp(raw, opcode, a, b, c"".as_ptr());
        if LLVMIsABinaryOperator(sum).is_null() {
            return sum;
        }
        match apart {
            true => LLVMSetIsDisjoint(sum, 1),
            false => {
                LLVMSetNUW(sum, 1);
                LLVMSetNSW(sum, 1);
            }
        }
        sum
    }
}

/// The part of an integer that varies, and the constants that are added to it, inside of shifts, too.
///
/// Requires: `value` is an integer of 32 bits of which [`possible_bits`] are at most 31, and `raw` is at a place where
/// it is known.
unsafe fn constant_part(
    raw: LLVMBuilderRef,
    value: LLVMValueRef,
    depth: u32,
) -> (LLVMValueRef, u64) {
    // SAFETY: operands are read after their instruction's kind is checked. Parts of a number of 31 bits have no more.
    unsafe {
        let whole = (value, 0);
        if depth == 0 || LLVMIsABinaryOperator(value).is_null() {
            return whole;
        }
        let [first, second] = [0, 1].map(|index| LLVMGetOperand(value, index));
        let is_constant = !LLVMIsAConstantInt(second).is_null();
        let adds = match LLVMGetInstructionOpcode(value) {
            LLVMOpcode::LLVMOr => {
                LLVMGetIsDisjoint(value) != 0 || possible_bits(first) & possible_bits(second) == 0
            }
            LLVMOpcode::LLVMAdd => LLVMGetNUW(value) != 0,
            LLVMOpcode::LLVMShl if is_constant => {
                let (varying, constant) = constant_part(raw, first, depth - 1);
                if constant == 0 {
                    return whole;
                }
                let shifted =
                    LLVMBuildBinOp(raw, LLVMOpcode::LLVMShl, varying, second, c"".as_ptr());
                return (shifted, constant << LLVMConstIntGetZExtValue(second));
            }
            _ => false,
        };
        if !adds {
            return whole;
        }
        let (varying, constant) = constant_part(raw, first, depth - 1);
        if is_constant {
            return (varying, constant + LLVMConstIntGetZExtValue(second));
        }
        match constant_part(raw, second, depth - 1) {
            (_, 0) if constant == 0 => whole,
            (other, more) => (plain_sum(raw, varying, other), constant + more),
        }
    }
}

/// Makes `(p + widened(x)) + widened(y)` into `p + widened(x + y)`, if the bits that can be set in `x` and `y` show
/// that the sum is not negative in 32 bits: an access may add one such index itself, and a sum of 32 bits is cheaper
/// than one of 64 in any case. The constants of both are added last, where an access may add them.
///
/// Requires: `builder` is of the instruction's context, and the instruction is in a function of a module.
pub fn merge_indices<'ctx>(builder: &Builder<'ctx>, address: InstructionValue<'ctx>) {
    builder.position_before(&address);
    // SAFETY: kinds and numbers of operands are checked before operands are used, flags are set only on instructions
    // that have them, and what replaces the instruction has its type and value.
    unsafe {
        let outer = address.as_value_ref();
        if !is_plain_address(outer) || !is_plain_address(LLVMGetOperand(outer, 0)) {
            return;
        }
        let inner = LLVMGetOperand(outer, 0);
        let mut element = LLVMGetGEPSourceElementType(outer);
        let (Some((x, x_bits)), Some((y, y_bits))) = (index_of_bits(inner), index_of_bits(outer))
        else {
            return;
        };
        let function = LLVMGetBasicBlockParent(LLVMGetInstructionParent(outer));
        let layout = LLVMGetModuleDataLayout(LLVMGetGlobalParent(function));
        let size = |address| LLVMABISizeOfType(layout, LLVMGetGEPSourceElementType(address));
        let sizes = [size(inner), size(outer)];
        // In bytes if these fit: instruction selection does not always see that the product has 32 bits.
        let bytes = x_bits.saturating_mul(sizes[0]) + y_bits.saturating_mul(sizes[1]);
        let in_bytes = sizes.into_iter().all(u64::is_power_of_two) && bytes <= i32::MAX as u64;
        let is_one_type = element == LLVMGetGEPSourceElementType(inner);
        if !in_bytes && (!is_one_type || x_bits + y_bits > i32::MAX as u64) {
            return;
        }
        let raw = builder.as_mut_ptr();
        let of = LLVMTypeOf(x);
        let scaled = |index, size: u64| {
            if size == 1 {
                return index;
            }
            let distance = LLVMConstInt(of, u64::from(size.ilog2()), 0);
            LLVMBuildBinOp(raw, LLVMOpcode::LLVMShl, index, distance, c"".as_ptr())
        };
        let (x, first) = constant_part(raw, x, DEPTH);
        let (y, second) = constant_part(raw, y, DEPTH);
        let (mut index, constant) = if !in_bytes {
            (plain_sum(raw, x, y), first + second)
        } else if sizes[0] == sizes[1] {
            let sum = scaled(plain_sum(raw, x, y), sizes[0]);
            (sum, (first + second) * sizes[0])
        } else {
            let [x, y] = [scaled(x, sizes[0]), scaled(y, sizes[1])];
            (plain_sum(raw, x, y), first * sizes[0] + second * sizes[1])
        };
        if in_bytes {
            element = LLVMInt8TypeInContext(LLVMGetTypeContext(of));
        }
        if constant != 0 {
            index = plain_sum(raw, index, LLVMConstInt(of, constant, 0));
        }
        let wide = LLVMTypeOf(LLVMGetOperand(outer, 1));
        let mut wide = LLVMBuildCast(raw, LLVMOpcode::LLVMZExt, index, wide, c"".as_ptr());
        if !LLVMIsACastInst(wide).is_null() {
            LLVMSetNNeg(wide, 1);
        }
        let base = LLVMGetOperand(inner, 0);
        let merged = LLVMBuildGEP2(raw, element, base, &mut wide, 1, c"".as_ptr());
        LLVMReplaceAllUsesWith(outer, merged);
    }
}

/// Whether an address is a base plus one index, and no other index is added to it.
///
/// Requires: `address` is a plain address.
unsafe fn has_one_index(address: LLVMValueRef) -> bool {
    // SAFETY: kinds and numbers of operands are checked before operands are used.
    unsafe {
        let adds_index = |value| {
            is_plain_address(value) && LLVMIsAConstantInt(LLVMGetOperand(value, 1)).is_null()
        };
        if adds_index(LLVMGetOperand(address, 0)) {
            return false;
        }
        let mut taken = LLVMGetFirstUse(address);
        while !taken.is_null() {
            if adds_index(LLVMGetUser(taken)) {
                return false;
            }
            taken = LLVMGetNextUse(taken);
        }
        true
    }
}

/// If `address` is `p + widened(x + c)`, to which no other index is added, where the sum does not wrap and `c` stands for
/// more than `largest` bytes (one less than a power of two), makes it `(p + widened(x + high)) + low`, so that accesses
/// which lie close to each other share all but `low`, which they add themselves. The no-wrap flags of the sum with `high` are dropped, so
/// that no pass moves `high` out of the 32 bits again.
///
/// Requires: `builder` is of the instruction's context, and the instruction is in a function of a module.
pub fn split_large_constant<'ctx>(
    builder: &Builder<'ctx>,
    address: InstructionValue<'ctx>,
    largest: u32,
) {
    builder.position_before(&address);
    // SAFETY: kinds and numbers of operands are checked before operands are used, flags are read and set only on
    // instructions that have them, and what replaces the instruction has its type and value.
    unsafe {
        let address = address.as_value_ref();
        if !is_plain_address(address) || !has_one_index(address) {
            return;
        }
        let widened = LLVMGetOperand(address, 1);
        if LLVMIsACastInst(widened).is_null() {
            return;
        }
        let widening = LLVMGetInstructionOpcode(widened);
        let sum = LLVMGetOperand(widened, 0);
        if LLVMIsABinaryOperator(sum).is_null()
            || LLVMIsAConstantInt(LLVMGetOperand(sum, 1)).is_null()
        {
            return;
        }
        let adds = match (LLVMGetInstructionOpcode(sum), widening) {
            (LLVMOpcode::LLVMOr, LLVMOpcode::LLVMZExt | LLVMOpcode::LLVMSExt) => {
                LLVMGetIsDisjoint(sum) != 0
            }
            (LLVMOpcode::LLVMAdd, LLVMOpcode::LLVMZExt) => LLVMGetNUW(sum) != 0,
            (LLVMOpcode::LLVMAdd, LLVMOpcode::LLVMSExt) => LLVMGetNSW(sum) != 0,
            _ => false,
        };
        if !adds || LLVMGetIntTypeWidth(LLVMTypeOf(sum)) != 32 {
            return;
        }
        let element = LLVMGetGEPSourceElementType(address);
        let function = LLVMGetBasicBlockParent(LLVMGetInstructionParent(address));
        let layout = LLVMGetModuleDataLayout(LLVMGetGlobalParent(function));
        let size = LLVMABISizeOfType(layout, element);
        let constant = LLVMConstIntGetZExtValue(LLVMGetOperand(sum, 1));
        let unit = (u64::from(largest) + 1).checked_div(size).unwrap_or(0);
        if !unit.is_power_of_two() || constant < unit || constant > i32::MAX as u64 {
            return;
        }
        let low = constant & (unit - 1);
        if low == 0 {
            forget_wrapping(sum);
            return;
        }
        let raw = builder.as_mut_ptr();
        let high = LLVMConstInt(LLVMTypeOf(sum), constant - low, 0);
        let varying = LLVMGetOperand(sum, 0);
        let opcode = LLVMGetInstructionOpcode(sum);
        let rest = LLVMBuildBinOp(raw, opcode, varying, high, c"".as_ptr());
        let wide = LLVMTypeOf(widened);
        let mut index = LLVMBuildCast(raw, widening, rest, wide, c"".as_ptr());
        let mut low = LLVMConstInt(wide, low, 0);
        let base = LLVMGetOperand(address, 0);
        let shared = LLVMBuildGEP2(raw, element, base, &mut index, 1, c"".as_ptr());
        let own = LLVMBuildGEP2(raw, element, shared, &mut low, 1, c"".as_ptr());
        LLVMReplaceAllUsesWith(address, own);
    }
}

/// If `address` is `(p + widened(x)) + bytes`, where `x` is not negative and `bytes` (the sum of one or more constants)
/// more than `largest` (one less than a power of two), makes it `(p + widened(x + high)) + low`, as
/// [`split_large_constant`] does: the optimiser moves constants out of sums that have one use, however large the constants are.
///
/// Requires: `builder` is of the instruction's context, and the instruction is in a function of a module.
pub fn return_large_constant<'ctx>(
    builder: &Builder<'ctx>,
    address: InstructionValue<'ctx>,
    largest: u32,
) {
    builder.position_before(&address);
    // SAFETY: kinds and numbers of operands are checked before operands are used, and what replaces the instruction has
    // its type and value. The sum does not wrap: neither part reaches the highest of 32 bits.
    unsafe {
        let outer = address.as_value_ref();
        let function = LLVMGetBasicBlockParent(LLVMGetInstructionParent(outer));
        let layout = LLVMGetModuleDataLayout(LLVMGetGlobalParent(function));
        let size = |address| LLVMABISizeOfType(layout, LLVMGetGEPSourceElementType(address));
        let adds_bytes = |value| {
            is_plain_address(value)
                && size(value) == 1
                && !LLVMIsAConstantInt(LLVMGetOperand(value, 1)).is_null()
        };
        if !adds_bytes(outer) {
            return;
        }
        let bytes = LLVMGetOperand(outer, 1);
        let (mut inner, mut constant) = (outer, 0i64);
        while adds_bytes(inner) {
            let own = LLVMConstIntGetSExtValue(LLVMGetOperand(inner, 1));
            constant = constant.saturating_add(own);
            inner = LLVMGetOperand(inner, 0);
        }
        if !is_plain_address(inner) || !has_one_index(inner) {
            return;
        }
        let widened = LLVMGetOperand(inner, 1);
        if LLVMIsACastInst(widened).is_null()
            || LLVMGetInstructionOpcode(widened) != LLVMOpcode::LLVMZExt
            || LLVMGetNNeg(widened) == 0
            || LLVMGetIntTypeWidth(LLVMTypeOf(LLVMGetOperand(widened, 0))) != 32
        {
            return;
        }
        let (low, unit) = (constant & i64::from(largest), size(inner) as i64);
        let high = constant - low;
        if high <= 0 || unit == 0 || high % unit != 0 || high / unit > i64::from(i32::MAX) {
            return;
        }
        let raw = builder.as_mut_ptr();
        let varying = LLVMGetOperand(widened, 0);
        let high = LLVMConstInt(LLVMTypeOf(varying), (high / unit) as u64, 0);
        let opcode = match possible_bits(varying) & LLVMConstIntGetZExtValue(high) {
            0 => LLVMOpcode::LLVMOr,
            _ => LLVMOpcode::LLVMAdd,
        };
        let sum = LLVMBuildBinOp(raw, opcode, varying, high, c"".as_ptr());
        let wide = LLVMTypeOf(widened);
        let mut index = LLVMBuildCast(raw, LLVMOpcode::LLVMZExt, sum, wide, c"".as_ptr());
        let (base, element) = (LLVMGetOperand(inner, 0), LLVMGetGEPSourceElementType(inner));
        let mut own = LLVMBuildGEP2(raw, element, base, &mut index, 1, c"".as_ptr());
        if low != 0 {
            let mut low = LLVMConstInt(LLVMTypeOf(bytes), low as u64, 0);
            let byte = LLVMGetGEPSourceElementType(outer);
            own = LLVMBuildGEP2(raw, byte, own, &mut low, 1, c"".as_ptr());
        }
        LLVMReplaceAllUsesWith(outer, own);
    }
}

/// The bits that can be set in the result of a call with a range attribute.
///
/// Requires: `call` is a call of a function with an integer of at most 64 bits as its result.
unsafe fn below_end_of_range(call: LLVMValueRef) -> u64 {
    const NAME: &str = "range";
    // SAFETY: the kind's name is read with its length; the node of a range has pairs of constants as operands, of which
    // there is room for one pair, and no more is written.
    unsafe {
        let context = LLVMGetTypeContext(LLVMTypeOf(call));
        let kind = LLVMGetMDKindIDInContext(context, NAME.as_ptr().cast(), NAME.len() as u32);
        let range = LLVMGetMetadata(call, kind);
        if range.is_null() || LLVMGetMDNodeNumOperands(range) != 2 {
            return u64::MAX;
        }
        let mut bounds = [std::ptr::null_mut(); 2];
        LLVMGetMDNodeOperands(range, bounds.as_mut_ptr());
        let [first, end] = bounds.map(|bound| LLVMConstIntGetZExtValue(bound));
        if first < end {
            // All bits up to the highest of the largest number.
            u64::MAX.checked_shr((end - 1).leading_zeros()).unwrap_or(0)
        } else {
            u64::MAX
        }
    }
}

/// The bits that can be set in an integer, as far as its operands show.
///
/// Requires: `value` is an integer of at most 64 bits.
unsafe fn possible_bits(value: LLVMValueRef) -> u64 {
    unsafe fn of(value: LLVMValueRef, depth: u32) -> u64 {
        // SAFETY: operands are read after their instruction's kind is checked.
        unsafe {
            if !LLVMIsAConstantInt(value).is_null() {
                return LLVMConstIntGetZExtValue(value);
            }
            if !LLVMIsACallInst(value).is_null() {
                return below_end_of_range(value);
            }
            if depth == 0 || LLVMIsABinaryOperator(value).is_null() {
                return u64::MAX;
            }
            let operand = |index| of(LLVMGetOperand(value, index), depth - 1);
            let amount = LLVMGetOperand(value, 1);
            match LLVMGetInstructionOpcode(value) {
                LLVMOpcode::LLVMAnd => operand(0) & operand(1),
                LLVMOpcode::LLVMOr | LLVMOpcode::LLVMXor => operand(0) | operand(1),
                LLVMOpcode::LLVMShl if !LLVMIsAConstantInt(amount).is_null() => {
                    let amount = LLVMConstIntGetZExtValue(amount).min(63);
                    operand(0) << amount
                }
                LLVMOpcode::LLVMLShr if !LLVMIsAConstantInt(amount).is_null() => {
                    let amount = LLVMConstIntGetZExtValue(amount).min(63);
                    operand(0) >> amount
                }
                LLVMOpcode::LLVMAdd => match (operand(0), operand(1)) {
                    // Nothing is carried.
                    (a, b) if a & b == 0 => a | b,
                    (a, b) => match a.checked_add(b) {
                        // All bits up to the highest of the largest sum.
                        Some(largest) if largest != 0 => u64::MAX >> largest.leading_zeros(),
                        _ => u64::MAX,
                    },
                },
                _ => u64::MAX,
            }
        }
    }
    // SAFETY: as required.
    unsafe { of(value, DEPTH) }
}

/// If `extension` widens a 32-bit sum with a constant above `largest`, drops the no-wrap flags of the sum, so that no
/// pass moves the constant out of the extension. Addresses of several indices keep the flags: they are sums of 64 bits,
/// which accesses share once the constants are out of them.
pub fn hide_large_constant(extension: InstructionValue<'_>, largest: u32) {
    // SAFETY: operands are read after their instruction's kind is checked, and flags are cleared only on instructions
    // that have them. An instruction with fewer flags is still correct.
    unsafe {
        let extension = extension.as_value_ref();
        let sum = LLVMGetOperand(extension, 0);
        if LLVMIsABinaryOperator(sum).is_null() {
            return;
        }
        let constant = LLVMGetOperand(sum, 1);
        if LLVMIsAConstantInt(constant).is_null()
            || LLVMGetIntTypeWidth(LLVMTypeOf(constant)) != 32
            || LLVMConstIntGetZExtValue(constant) <= u64::from(largest)
        {
            return;
        }
        let mut taken = LLVMGetFirstUse(extension);
        while !taken.is_null() {
            let user = LLVMGetUser(taken);
            if is_plain_address(user) && !has_one_index(user) {
                return;
            }
            taken = LLVMGetNextUse(taken);
        }
        forget_wrapping(sum);
    }
}

/// Requires: `sum` is a binary operator. With fewer flags it is still correct.
unsafe fn forget_wrapping(sum: LLVMValueRef) {
    // SAFETY: the flags belong to the kind of instruction.
    unsafe {
        match LLVMGetInstructionOpcode(sum) {
            LLVMOpcode::LLVMOr => LLVMSetIsDisjoint(sum, 0),
            LLVMOpcode::LLVMAdd => {
                LLVMSetNUW(sum, 0);
                LLVMSetNSW(sum, 0);
            }
            _ => {}
        }
    }
}
