//! A safe, read-only view of an LLVM module through LLVM's C interface: the only `unsafe` code of the decoder.
//!
//! inkwell's typed wrappers hide a few things a decoder needs (shuffle masks, constant expressions, operands of every
//! kind of value under one type), so the module is taken from inkwell and read through three small copyable handles:
//! [`Type`], [`Value`] and [`Block`]. Each borrows the module for `'m`: LLVM never frees or moves a value of a module
//! that is not changed, and this module changes nothing.

use std::collections::HashMap;
use std::ffi::CStr;
use std::marker::PhantomData;

use inkwell::llvm_sys::core::{
    LLVMConstIntGetZExtValue, LLVMConstRealGetDouble, LLVMCountIncoming, LLVMCountParams,
    LLVMCountStructElementTypes, LLVMDisposeMessage, LLVMGetAggregateElement, LLVMGetAlignment,
    LLVMGetAllocatedType, LLVMGetArrayLength2, LLVMGetAtomicRMWBinOp, LLVMGetCallSiteEnumAttribute,
    LLVMGetCalledValue, LLVMGetConstOpcode, LLVMGetDebugLocColumn, LLVMGetDebugLocFilename,
    LLVMGetDebugLocLine, LLVMGetElementType, LLVMGetEntryBasicBlock, LLVMGetEnumAttributeAtIndex,
    LLVMGetEnumAttributeKindForName, LLVMGetEnumAttributeValue, LLVMGetFCmpPredicate,
    LLVMGetFirstBasicBlock, LLVMGetFirstFunction, LLVMGetFirstGlobal, LLVMGetFirstInstruction,
    LLVMGetFunctionCallConv, LLVMGetGEPSourceElementType, LLVMGetICmpPredicate,
    LLVMGetIncomingBlock, LLVMGetIncomingValue, LLVMGetIndices, LLVMGetInitializer,
    LLVMGetInlineAsmAsmString, LLVMGetInlineAsmConstraintString, LLVMGetInstructionOpcode,
    LLVMGetIntTypeWidth, LLVMGetMDKindIDInContext, LLVMGetMDNodeNumOperands, LLVMGetMDNodeOperands,
    LLVMGetMDString, LLVMGetMaskValue, LLVMGetMetadata, LLVMGetNextBasicBlock, LLVMGetNextFunction,
    LLVMGetNextGlobal, LLVMGetNextInstruction, LLVMGetNumIndices, LLVMGetNumMaskElements,
    LLVMGetNumOperands, LLVMGetNumSuccessors, LLVMGetOperand, LLVMGetOrdering, LLVMGetParam,
    LLVMGetPointerAddressSpace, LLVMGetReturnType, LLVMGetStringAttributeAtIndex,
    LLVMGetStringAttributeValue, LLVMGetSuccessor, LLVMGetSwitchCaseValue,
    LLVMGetTypeAttributeValue, LLVMGetTypeContext, LLVMGetTypeKind, LLVMGetValueKind,
    LLVMGetValueName2, LLVMGetVectorSize, LLVMGetVolatile, LLVMGlobalGetValueType,
    LLVMIsDeclaration, LLVMPrintTypeToString, LLVMPrintValueToString, LLVMStructGetTypeAtIndex,
    LLVMTypeOf,
};
use inkwell::llvm_sys::prelude::{LLVMBasicBlockRef, LLVMTypeRef, LLVMValueRef};
use inkwell::llvm_sys::target::{
    LLVMABIAlignmentOfType, LLVMABISizeOfType, LLVMGetModuleDataLayout, LLVMOffsetOfElement,
    LLVMPointerSizeForAS, LLVMTargetDataRef,
};
use inkwell::module::Module;

pub(crate) use inkwell::llvm_sys::{
    LLVMAtomicOrdering as Ordering, LLVMAtomicRMWBinOp as RmwOp, LLVMIntPredicate as IntPredicate,
    LLVMOpcode as Opcode, LLVMRealPredicate as RealPredicate, LLVMTypeKind as TypeKind,
    LLVMValueKind as ValueKind,
};

/// A type of the module.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Type<'m>(LLVMTypeRef, PhantomData<&'m ()>);

/// Any value: instruction, argument, constant, global, function.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Value<'m>(LLVMValueRef, PhantomData<&'m ()>);

/// A basic block.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Block<'m>(LLVMBasicBlockRef, PhantomData<&'m ()>);

/// The module's data layout: sizes, offsets, pointer widths.
#[derive(Clone, Copy)]
pub(crate) struct Layout<'m>(LLVMTargetDataRef, PhantomData<&'m ()>);

/// Copies a string of known length out of LLVM's memory.
///
/// # Safety
/// `data` must point at `length` readable bytes, or be null.
unsafe fn text(data: *const std::ffi::c_char, length: usize) -> String {
    if data.is_null() || length == 0 {
        return String::new();
    }
    // SAFETY: the caller guarantees the range.
    let bytes = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), length) };
    String::from_utf8_lossy(bytes).into_owned()
}

/// Copies and frees a message that LLVM allocated.
///
/// # Safety
/// `message` must come from an LLVM print function and not be used again.
unsafe fn message(message: *mut std::ffi::c_char) -> String {
    // SAFETY: LLVM's messages are zero-terminated, and the caller frees them.
    unsafe {
        let owned = CStr::from_ptr(message).to_string_lossy().into_owned();
        LLVMDisposeMessage(message);
        owned
    }
}

/// The functions of a module, definitions and declarations.
pub(crate) fn functions<'m>(module: &'m Module<'_>) -> Vec<Value<'m>> {
    let mut all = Vec::new();
    // SAFETY: the module is alive for 'm; the list ends with null.
    unsafe {
        let mut next = LLVMGetFirstFunction(module.as_mut_ptr());
        while !next.is_null() {
            all.push(Value(next, PhantomData));
            next = LLVMGetNextFunction(next);
        }
    }
    all
}

/// The global variables of a module.
pub(crate) fn globals<'m>(module: &'m Module<'_>) -> Vec<Value<'m>> {
    let mut all = Vec::new();
    // SAFETY: as in `functions`.
    unsafe {
        let mut next = LLVMGetFirstGlobal(module.as_mut_ptr());
        while !next.is_null() {
            all.push(Value(next, PhantomData));
            next = LLVMGetNextGlobal(next);
        }
    }
    all
}

/// The data layout of a module.
pub(crate) fn layout<'m>(module: &'m Module<'_>) -> Layout<'m> {
    // SAFETY: the layout belongs to the module.
    Layout(
        unsafe { LLVMGetModuleDataLayout(module.as_mut_ptr()) },
        PhantomData,
    )
}

impl<'m> Layout<'m> {
    /// The distance in bytes of consecutive elements of this type in an array.
    pub(crate) fn size(self, ty: Type<'m>) -> u64 {
        // SAFETY: layout and type are of one module; callers pass sized types.
        unsafe { LLVMABISizeOfType(self.0, ty.0) }
    }
    /// Alignment in bytes.
    pub(crate) fn align(self, ty: Type<'m>) -> u64 {
        // SAFETY: as above.
        u64::from(unsafe { LLVMABIAlignmentOfType(self.0, ty.0) })
    }
    /// Byte offset of a struct's field.
    pub(crate) fn field_offset(self, ty: Type<'m>, field: u32) -> u64 {
        // SAFETY: callers pass a struct type and one of its fields.
        unsafe { LLVMOffsetOfElement(self.0, ty.0, field) }
    }
    /// Width of a pointer into an address space, in bits.
    pub(crate) fn pointer_bits(self, space: u32) -> u32 {
        // SAFETY: any number is a valid address space.
        8 * unsafe { LLVMPointerSizeForAS(self.0, space) }
    }
}

impl<'m> Type<'m> {
    pub(crate) fn kind(self) -> TypeKind {
        // SAFETY: handles are valid for 'm (so in all methods below).
        unsafe { LLVMGetTypeKind(self.0) }
    }
    pub(crate) fn int_width(self) -> u32 {
        // SAFETY: callers ask integer types only.
        unsafe { LLVMGetIntTypeWidth(self.0) }
    }
    pub(crate) fn address_space(self) -> u32 {
        // SAFETY: callers ask pointer types only.
        unsafe { LLVMGetPointerAddressSpace(self.0) }
    }
    /// Element type of an array or vector.
    pub(crate) fn element(self) -> Type<'m> {
        // SAFETY: callers ask arrays and vectors only.
        Type(unsafe { LLVMGetElementType(self.0) }, PhantomData)
    }
    /// Number of elements of an array or a vector, of fields of a struct.
    pub(crate) fn count(self) -> u32 {
        // SAFETY: each query is made of its own kind of type.
        unsafe {
            match self.kind() {
                TypeKind::LLVMArrayTypeKind => {
                    u32::try_from(LLVMGetArrayLength2(self.0)).unwrap_or(u32::MAX)
                }
                TypeKind::LLVMVectorTypeKind => LLVMGetVectorSize(self.0),
                TypeKind::LLVMStructTypeKind => LLVMCountStructElementTypes(self.0),
                _ => 0,
            }
        }
    }
    /// Type of a struct's field.
    pub(crate) fn field(self, index: u32) -> Type<'m> {
        // SAFETY: callers stay below `count`.
        Type(
            unsafe { LLVMStructGetTypeAtIndex(self.0, index) },
            PhantomData,
        )
    }
    /// Result type of a function type.
    pub(crate) fn result(self) -> Type<'m> {
        // SAFETY: callers ask function types only.
        Type(unsafe { LLVMGetReturnType(self.0) }, PhantomData)
    }
}

impl std::fmt::Display for Type<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // SAFETY: the handle is valid, and the message is owned here.
        f.write_str(&unsafe { message(LLVMPrintTypeToString(self.0)) })
    }
}

impl<'m> Value<'m> {
    pub(crate) fn ty(self) -> Type<'m> {
        // SAFETY: handles are valid for 'm (so in all methods below).
        Type(unsafe { LLVMTypeOf(self.0) }, PhantomData)
    }
    pub(crate) fn kind(self) -> ValueKind {
        unsafe { LLVMGetValueKind(self.0) }
    }
    /// The value's name without sigil; empty for numbered values.
    pub(crate) fn name(self) -> String {
        let mut length = 0;
        // SAFETY: LLVM returns a pointer to `length` bytes.
        unsafe {
            let data = LLVMGetValueName2(self.0, &raw mut length);
            text(data, length)
        }
    }
    /// The instruction or constant as LLVM prints it.
    pub(crate) fn print(self) -> String {
        // SAFETY: the message is owned here.
        unsafe { message(LLVMPrintValueToString(self.0)) }
            .trim()
            .to_owned()
    }
    /// The strings of an instruction's metadata of a kind.
    pub(crate) fn notes(self, kind: &str) -> Vec<String> {
        // SAFETY: callers ask instructions only; the node has as many operands as it says, and LLVM returns null where
        // there is no metadata, or an operand is no string.
        unsafe {
            let context = LLVMGetTypeContext(LLVMTypeOf(self.0));
            let number = LLVMGetMDKindIDInContext(context, kind.as_ptr().cast(), kind.len() as u32);
            let node = LLVMGetMetadata(self.0, number);
            if node.is_null() {
                return Vec::new();
            }
            let mut operands = vec![std::ptr::null_mut(); LLVMGetMDNodeNumOperands(node) as usize];
            LLVMGetMDNodeOperands(node, operands.as_mut_ptr());
            let strings = operands.into_iter().filter(|operand| !operand.is_null());
            let strings = strings.filter_map(|operand| {
                let mut length = 0;
                let data = LLVMGetMDString(operand, &raw mut length);
                (!data.is_null()).then(|| text(data, length as usize))
            });
            strings.collect()
        }
    }
    pub(crate) fn opcode(self) -> Opcode {
        // SAFETY: callers ask instructions only.
        unsafe { LLVMGetInstructionOpcode(self.0) }
    }
    pub(crate) fn const_opcode(self) -> Opcode {
        // SAFETY: callers ask constant expressions only.
        unsafe { LLVMGetConstOpcode(self.0) }
    }
    pub(crate) fn num_operands(self) -> u32 {
        u32::try_from(unsafe { LLVMGetNumOperands(self.0) }).unwrap_or(0)
    }
    pub(crate) fn operand(self, index: u32) -> Value<'m> {
        // SAFETY: callers stay below `num_operands`.
        Value(unsafe { LLVMGetOperand(self.0, index) }, PhantomData)
    }
    pub(crate) fn const_int(self) -> u64 {
        // SAFETY: callers ask integer constants of at most 64 bits.
        unsafe { LLVMConstIntGetZExtValue(self.0) }
    }
    pub(crate) fn const_real(self) -> f64 {
        let mut loses = 0;
        // SAFETY: callers ask floating-point constants.
        unsafe { LLVMConstRealGetDouble(self.0, &raw mut loses) }
    }
    /// Element of an aggregate constant.
    pub(crate) fn element(self, index: u32) -> Option<Value<'m>> {
        // SAFETY: LLVM returns null when there is none.
        let element = unsafe { LLVMGetAggregateElement(self.0, index) };
        (!element.is_null()).then_some(Value(element, PhantomData))
    }
    pub(crate) fn is_declaration(self) -> bool {
        // SAFETY: callers ask globals and functions.
        unsafe { LLVMIsDeclaration(self.0) != 0 }
    }
    /// Type of the memory behind a global variable.
    pub(crate) fn global_type(self) -> Type<'m> {
        // SAFETY: callers ask globals.
        Type(unsafe { LLVMGlobalGetValueType(self.0) }, PhantomData)
    }
    pub(crate) fn initializer(self) -> Option<Value<'m>> {
        // SAFETY: null when there is none.
        let value = unsafe { LLVMGetInitializer(self.0) };
        (!value.is_null()).then_some(Value(value, PhantomData))
    }
    /// Alignment of a load, store, alloca, atomic or global, in bytes (0 when unstated).
    pub(crate) fn alignment(self) -> u64 {
        // SAFETY: callers ask values that carry one.
        u64::from(unsafe { LLVMGetAlignment(self.0) })
    }
    pub(crate) fn is_volatile(self) -> bool {
        // SAFETY: callers ask memory instructions.
        unsafe { LLVMGetVolatile(self.0) != 0 }
    }
    pub(crate) fn ordering(self) -> Ordering {
        // SAFETY: callers ask loads, stores, fences and rmw.
        unsafe { LLVMGetOrdering(self.0) }
    }
    pub(crate) fn rmw_op(self) -> RmwOp {
        // SAFETY: callers ask atomicrmw.
        unsafe { LLVMGetAtomicRMWBinOp(self.0) }
    }
    pub(crate) fn int_predicate(self) -> IntPredicate {
        // SAFETY: callers ask icmp.
        unsafe { LLVMGetICmpPredicate(self.0) }
    }
    pub(crate) fn real_predicate(self) -> RealPredicate {
        // SAFETY: callers ask fcmp.
        unsafe { LLVMGetFCmpPredicate(self.0) }
    }
    pub(crate) fn gep_source_type(self) -> Type<'m> {
        // SAFETY: callers ask getelementptr, instruction or constant.
        Type(unsafe { LLVMGetGEPSourceElementType(self.0) }, PhantomData)
    }
    pub(crate) fn allocated_type(self) -> Type<'m> {
        // SAFETY: callers ask alloca.
        Type(unsafe { LLVMGetAllocatedType(self.0) }, PhantomData)
    }
    /// Indices of extractvalue and insertvalue.
    pub(crate) fn indices(self) -> Vec<u32> {
        // SAFETY: LLVM returns a pointer to that many indices.
        unsafe {
            let count = LLVMGetNumIndices(self.0) as usize;
            std::slice::from_raw_parts(LLVMGetIndices(self.0), count).to_vec()
        }
    }
    /// Mask of a shufflevector; `None` for poison elements.
    pub(crate) fn shuffle_mask(self) -> Vec<Option<u32>> {
        // SAFETY: callers ask shufflevector.
        unsafe {
            (0..LLVMGetNumMaskElements(self.0))
                .map(|i| u32::try_from(LLVMGetMaskValue(self.0, i)).ok())
                .collect()
        }
    }
    /// (value, block) pairs of a phi.
    pub(crate) fn incoming(self) -> Vec<(Value<'m>, Block<'m>)> {
        // SAFETY: callers ask phi nodes.
        unsafe {
            (0..LLVMCountIncoming(self.0))
                .map(|i| {
                    (
                        Value(LLVMGetIncomingValue(self.0, i), PhantomData),
                        Block(LLVMGetIncomingBlock(self.0, i), PhantomData),
                    )
                })
                .collect()
        }
    }
    /// Successors of a terminator.
    pub(crate) fn successors(self) -> Vec<Block<'m>> {
        // SAFETY: callers ask terminators.
        unsafe {
            (0..LLVMGetNumSuccessors(self.0))
                .map(|i| Block(LLVMGetSuccessor(self.0, i), PhantomData))
                .collect()
        }
    }
    /// Case value of a switch that belongs to successor `index` (1 is the first case).
    pub(crate) fn switch_case(self, index: u32) -> Value<'m> {
        // SAFETY: callers ask switch with a case's index.
        Value(
            unsafe { LLVMGetSwitchCaseValue(self.0, index) },
            PhantomData,
        )
    }
    /// The callee of a call.
    pub(crate) fn callee(self) -> Value<'m> {
        // SAFETY: callers ask calls.
        Value(unsafe { LLVMGetCalledValue(self.0) }, PhantomData)
    }
    /// Template and constraints of an inline assembly value.
    pub(crate) fn inline_asm(self) -> (String, String) {
        let (mut a, mut b) = (0, 0);
        // SAFETY: callers ask inline assembly; LLVM returns pointer and length.
        unsafe {
            let template = LLVMGetInlineAsmAsmString(self.0, &raw mut a);
            let constraints = LLVMGetInlineAsmConstraintString(self.0, &raw mut b);
            (text(template, a), text(constraints, b))
        }
    }
    pub(crate) fn params(self) -> Vec<Value<'m>> {
        // SAFETY: callers ask functions.
        unsafe {
            (0..LLVMCountParams(self.0))
                .map(|i| Value(LLVMGetParam(self.0, i), PhantomData))
                .collect()
        }
    }
    pub(crate) fn calling_convention(self) -> u32 {
        // SAFETY: callers ask functions.
        unsafe { LLVMGetFunctionCallConv(self.0) }
    }
    /// A string attribute of a function.
    pub(crate) fn function_attribute(self, name: &str) -> Option<String> {
        let length = u32::try_from(name.len()).ok()?;
        let mut out = 0;
        // SAFETY: callers ask functions; null when absent; the index is LLVM's "function" slot.
        unsafe {
            let attribute =
                LLVMGetStringAttributeAtIndex(self.0, u32::MAX, name.as_ptr().cast(), length);
            if attribute.is_null() {
                return None;
            }
            let data = LLVMGetStringAttributeValue(attribute, &raw mut out);
            Some(text(data, out as usize))
        }
    }
    /// The pointee type of a `byval` parameter (0-based).
    pub(crate) fn byval(self, parameter: u32) -> Option<Type<'m>> {
        let name = "byval";
        // SAFETY: callers ask functions; null when absent.
        unsafe {
            let kind = LLVMGetEnumAttributeKindForName(name.as_ptr().cast(), name.len());
            let attribute = LLVMGetEnumAttributeAtIndex(self.0, parameter + 1, kind);
            (!attribute.is_null()).then(|| Type(LLVMGetTypeAttributeValue(attribute), PhantomData))
        }
    }
    /// The alignment that a call states for an argument (0-based), in bytes; 0 when unstated.
    pub(crate) fn argument_alignment(self, argument: u32) -> u32 {
        let name = "align";
        // SAFETY: callers ask calls; null when absent.
        let bytes = unsafe {
            let kind = LLVMGetEnumAttributeKindForName(name.as_ptr().cast(), name.len());
            let attribute = LLVMGetCallSiteEnumAttribute(self.0, argument + 1, kind);
            if attribute.is_null() {
                return 0;
            }
            LLVMGetEnumAttributeValue(attribute)
        };
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }
    pub(crate) fn entry(self) -> Block<'m> {
        // SAFETY: callers ask functions with a body.
        Block(unsafe { LLVMGetEntryBasicBlock(self.0) }, PhantomData)
    }
    /// The blocks of a function, in the order in which they are printed.
    fn blocks(self) -> Vec<Block<'m>> {
        let mut all = Vec::new();
        // SAFETY: callers ask functions; the list ends with null.
        unsafe {
            let mut next = LLVMGetFirstBasicBlock(self.0);
            while !next.is_null() {
                all.push(Block(next, PhantomData));
                next = LLVMGetNextBasicBlock(next);
            }
        }
        all
    }
    /// Every instruction of a function as LLVM prints it.
    ///
    /// LLVM numbers a whole function to print one instruction, so it prints all of them at once here: an instruction
    /// starts on a line of its own, indented by two spaces; a `switch` continues in lines that are indented further,
    /// or that close a bracket.
    pub(crate) fn print_instructions(self) -> HashMap<Value<'m>, String> {
        let printed = self.print();
        let starts = |line: &&str| {
            let rest = line.strip_prefix("  ");
            rest.is_some_and(|rest| !rest.starts_with([' ', ']']))
        };
        let lines: Vec<&str> = printed.lines().filter(starts).collect();
        let instructions: Vec<Value<'m>> = self
            .blocks()
            .into_iter()
            .flat_map(Block::instructions)
            .collect();
        if lines.len() != instructions.len() {
            return instructions.into_iter().map(|i| (i, i.print())).collect();
        }
        let texts = lines.into_iter().map(|line| line.trim().to_owned());
        instructions.into_iter().zip(texts).collect()
    }
    /// (file, line, column) of an instruction's debug location.
    pub(crate) fn debug_location(self) -> Option<(String, u32, u32)> {
        // SAFETY: callers ask instructions; LLVM returns 0 when there is none.
        unsafe {
            let line = LLVMGetDebugLocLine(self.0);
            if line == 0 {
                return None;
            }
            let mut length = 0;
            let file = LLVMGetDebugLocFilename(self.0, &raw mut length);
            Some((
                text(file, length as usize),
                line,
                LLVMGetDebugLocColumn(self.0),
            ))
        }
    }
}

impl<'m> Block<'m> {
    pub(crate) fn instructions(self) -> Vec<Value<'m>> {
        let mut all = Vec::new();
        // SAFETY: the block is alive for 'm; the list ends with null.
        unsafe {
            let mut next = LLVMGetFirstInstruction(self.0);
            while !next.is_null() {
                all.push(Value(next, PhantomData));
                next = LLVMGetNextInstruction(next);
            }
        }
        all
    }
}
