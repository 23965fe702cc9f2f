//! The few LLVM calls that inkwell does not wrap, each behind a safe function.
//!
//! Only this file and [`crate::llvm::addresses`] use LLVM's C interface directly.

use std::ffi::{CStr, CString, c_char, c_uint};
use std::path::Path;
use std::sync::Once;

use inkwell::builder::Builder;
use inkwell::context::{AsContextRef, Context};
use inkwell::llvm_sys::bit_reader::LLVMGetBitcodeModuleInContext2;
use inkwell::llvm_sys::core::{
    LLVMBuildAtomicCmpXchgSyncScope, LLVMBuildAtomicRMWSyncScope, LLVMBuildCall2,
    LLVMBuildFenceSyncScope, LLVMConstIntGetSExtValue, LLVMCreateMemoryBufferWithContentsOfFile,
    LLVMDisposeMessage, LLVMFunctionType, LLVMGetBasicBlockParent, LLVMGetCalledValue,
    LLVMGetDebugLocColumn, LLVMGetDebugLocFilename, LLVMGetDebugLocLine,
    LLVMGetGEPSourceElementType, LLVMGetGlobalParent, LLVMGetInlineAsm, LLVMGetInlineAsmAsmString,
    LLVMGetInlineAsmConstraintString, LLVMGetInlineAsmDialect, LLVMGetInlineAsmFunctionType,
    LLVMGetInlineAsmHasSideEffects, LLVMGetInstructionOpcode, LLVMGetInstructionParent,
    LLVMGetIntTypeWidth, LLVMGetMDKindIDInContext, LLVMGetMaskValue, LLVMGetNNeg,
    LLVMGetNumMaskElements, LLVMGetNumOperands, LLVMGetOperand, LLVMGetSyncScopeID,
    LLVMGetTypeKind, LLVMIsACastInst, LLVMIsAConstantInt, LLVMIsAGetElementPtrInst,
    LLVMIsAInlineAsm, LLVMIsAInstruction, LLVMMDNodeInContext2, LLVMMDStringInContext2,
    LLVMMetadataAsValue, LLVMReplaceAllUsesWith, LLVMSetMetadata, LLVMSetOperand, LLVMTypeOf,
};
use inkwell::llvm_sys::debuginfo::{LLVMMetadataReplaceAllUsesWith, LLVMTemporaryMDNode};
use inkwell::llvm_sys::prelude::{
    LLVMContextRef, LLVMMemoryBufferRef, LLVMMetadataRef, LLVMModuleRef, LLVMValueRef,
};
use inkwell::llvm_sys::support::LLVMParseCommandLineOptions;
use inkwell::llvm_sys::target::{LLVMABISizeOfType, LLVMGetModuleDataLayout};
use inkwell::llvm_sys::target_machine::{LLVMCodeGenFileType, LLVMTargetMachineRef};
use inkwell::llvm_sys::{
    LLVMAtomicOrdering, LLVMAtomicRMWBinOp, LLVMInlineAsmDialect, LLVMOpcode, LLVMTypeKind,
};
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::Module;
use inkwell::targets::{InitializationConfig, Target, TargetMachine};
use inkwell::values::{AsValueRef, BasicValueEnum, InstructionOpcode, InstructionValue};

use crate::targets::hooks::{FenceOrdering, Ordering, Update};

static INITIALIZE: Once = Once::new();

/// Registers both back ends and sets the switches of LLVM that have no other handle, once per process: 32-bit shared
/// pointers on NVIDIA (`-nvptx-short-ptr`), multiplication with widening fused into additions
/// (`-nvptx-mad-wide-opt`); no unrolling of loops whose trip count is not known: the tile is the unit of parallelism,
/// and copies of its body only cost instructions and registers; no search of GVN for the stores that a load depends
/// on: the stores of a kernel may alias all its pointers, so GVN finds nothing that early CSE over memory SSA has not
/// found, and takes up to half of the optimiser's time; no vectorisation of the terms of one sum, which costs
/// more moves than it saves additions; no search for memory that a loop could keep in a register, which compares all
/// its accesses with one another: what loops carry are values from the start; the test for the end of a loop goes to its end
/// also where the steps of all its pointers have gathered in front of it, as AMD's back end copies what a loop carries, in every
/// iteration, if it ends elsewhere and has branches of lanes; and phis of vectors are not taken apart
/// on AMD, since a value is a vector there if an instruction takes it whole ([`crate::llvm::fragment_phis`]).
pub fn initialize() {
    INITIALIZE.call_once(|| {
        Target::initialize_nvptx(&InitializationConfig::default());
        Target::initialize_amd_gpu(&InitializationConfig::default());
        let arguments = [
            c"llopt",
            c"-nvptx-short-ptr",
            c"-nvptx-mad-wide-opt",
            c"-unroll-runtime=false",
            c"-enable-gvn-memdep=false",
            c"-slp-vectorize-hor=false",
            c"-disable-licm-promotion",
            c"-rotation-max-header-size=256",
            c"-amdgpu-codegenprepare-break-large-phis=false",
        ]
        .map(CStr::as_ptr);
        // SAFETY: the strings are static; LLVM copies what it keeps.
        unsafe {
            LLVMParseCommandLineOptions(
                arguments.len() as i32,
                arguments.as_ptr(),
                std::ptr::null(),
            )
        };
    });
}

/// The mask of a shuffle of two vectors, if the instruction is one.
pub fn shuffle_mask(instruction: InstructionValue<'_>) -> Option<Vec<i32>> {
    if instruction.get_opcode() != InstructionOpcode::ShuffleVector {
        return None;
    }
    let value = instruction.as_value_ref();
    // SAFETY: the instruction is a shuffle, and the indices are below the number of its mask's elements.
    let element = |index| unsafe { LLVMGetMaskValue(value, index) };
    // SAFETY: as above.
    let elements = unsafe { LLVMGetNumMaskElements(value) };
    Some((0..elements).map(element).collect())
}

/// Marks the loop that `branch` leads back to the start of as one whose invariant operations stay
/// inside.
pub fn disable_licm(context: &Context, branch: InstructionValue<'_>) {
    const KIND: &str = "llvm.loop";
    const PROPERTIES: [&str; 2] = ["llvm.licm.disable", "llvm.loop.licm_versioning.disable"];
    let c = context.as_ctx_ref();
    // SAFETY: strings and arrays outlive the calls, which copy them; the temporary node is replaced,
    // and thereby freed, before the node that refers to it is used.
    unsafe {
        // A loop's node names itself first, which keeps the nodes of two loops apart.
        let itself = LLVMTemporaryMDNode(c, std::ptr::null_mut(), 0);
        let mut operands = vec![itself];
        for property in PROPERTIES {
            let mut name = LLVMMDStringInContext2(c, property.as_ptr().cast(), property.len());
            operands.push(LLVMMDNodeInContext2(c, &mut name, 1));
        }
        let node = LLVMMDNodeInContext2(c, operands.as_mut_ptr(), operands.len());
        LLVMMetadataReplaceAllUsesWith(itself, node);
        let kind = LLVMGetMDKindIDInContext(c, KIND.as_ptr().cast(), KIND.len() as u32);
        LLVMSetMetadata(branch.as_value_ref(), kind, LLVMMetadataAsValue(c, node));
    }
}

/// A scope of accesses that do not alias any access outside of it (LLVM language reference, "`noalias` and
/// `alias.scope` metadata").
pub struct AliasScope {
    context: LLVMContextRef,
    /// The list that contains only this scope.
    list: LLVMMetadataRef,
}

impl AliasScope {
    /// A scope in a domain of its own.
    pub fn new(context: &Context) -> Self {
        let context = context.as_ctx_ref();
        // SAFETY: arrays outlive the calls, which copy them; a temporary node is replaced, and thereby
        // freed, before the node that refers to it is used.
        unsafe {
            // Nodes of domains and scopes name themselves first.
            let distinct = |more: Option<LLVMMetadataRef>| {
                let itself = LLVMTemporaryMDNode(context, std::ptr::null_mut(), 0);
                let mut operands: Vec<LLVMMetadataRef> =
                    std::iter::once(itself).chain(more).collect();
                let node = LLVMMDNodeInContext2(context, operands.as_mut_ptr(), operands.len());
                LLVMMetadataReplaceAllUsesWith(itself, node);
                node
            };
            let mut scope = distinct(Some(distinct(None)));
            let list = LLVMMDNodeInContext2(context, &mut scope, 1);
            Self { context, list }
        }
    }

    /// The instruction accesses memory in this scope only.
    pub fn contain(&self, instruction: InstructionValue<'_>) {
        self.attach(instruction, "alias.scope");
    }

    /// The instruction does not alias any access in this scope.
    pub fn exclude(&self, instruction: InstructionValue<'_>) {
        self.attach(instruction, "noalias");
    }

    fn attach(&self, instruction: InstructionValue<'_>, kind: &str) {
        // SAFETY: the name is passed with its length; the list belongs to the instruction's context.
        unsafe {
            let kind =
                LLVMGetMDKindIDInContext(self.context, kind.as_ptr().cast(), kind.len() as u32);
            let list = LLVMMetadataAsValue(self.context, self.list);
            LLVMSetMetadata(instruction.as_value_ref(), kind, list);
        }
    }
}

/// A fence in a synchronisation scope of the target, such as AMD's `workgroup`.
pub fn fence(context: &Context, builder: &Builder<'_>, ordering: FenceOrdering, scope: &str) {
    let ordering = match ordering {
        FenceOrdering::Acquire => LLVMAtomicOrdering::LLVMAtomicOrderingAcquire,
        FenceOrdering::Release => LLVMAtomicOrdering::LLVMAtomicOrderingRelease,
    };
    // SAFETY: the builder stands in a block; the scope's name is passed with its length.
    unsafe {
        let id = sync_scope(context, scope);
        LLVMBuildFenceSyncScope(builder.as_mut_ptr(), ordering, id, c"".as_ptr());
    }
}

fn llvm_ordering(ordering: Ordering) -> LLVMAtomicOrdering {
    match ordering {
        Ordering::Relaxed => LLVMAtomicOrdering::LLVMAtomicOrderingMonotonic,
        Ordering::Acquire => LLVMAtomicOrdering::LLVMAtomicOrderingAcquire,
        Ordering::Release => LLVMAtomicOrdering::LLVMAtomicOrderingRelease,
        Ordering::AcquireRelease => LLVMAtomicOrdering::LLVMAtomicOrderingAcquireRelease,
    }
}

fn sync_scope(context: &Context, scope: &str) -> u32 {
    // SAFETY: the name is passed with its length.
    unsafe { LLVMGetSyncScopeID(context.as_ctx_ref(), scope.as_ptr().cast(), scope.len()) }
}

/// `atomicrmw` in a synchronisation scope of the target.
pub fn atomic_update<'ctx>(
    context: &'ctx Context,
    builder: &Builder<'ctx>,
    update: Update,
    pointer: BasicValueEnum<'ctx>,
    value: BasicValueEnum<'ctx>,
    ordering: Ordering,
    scope: &str,
) -> BasicValueEnum<'ctx> {
    let operation = match update {
        Update::And => LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpAnd,
        Update::Or => LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpOr,
        Update::Xor => LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpXor,
        Update::Add => LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpAdd,
        Update::AddFloat => LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpFAdd,
        Update::Max => LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpMax,
        Update::Min => LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpMin,
        Update::UnsignedMax => LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpUMax,
        Update::UnsignedMin => LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpUMin,
        Update::Exchange => LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpXchg,
    };
    // SAFETY: the builder stands in a block, `pointer` is a pointer, and the result has the value's type.
    unsafe {
        BasicValueEnum::new(LLVMBuildAtomicRMWSyncScope(
            builder.as_mut_ptr(),
            operation,
            pointer.as_value_ref(),
            value.as_value_ref(),
            llvm_ordering(ordering),
            sync_scope(context, scope),
        ))
    }
}

/// `cmpxchg` in a synchronisation scope of the target: a pair of the old value and whether it was expected.
pub fn compare_exchange<'ctx>(
    context: &'ctx Context,
    builder: &Builder<'ctx>,
    pointer: BasicValueEnum<'ctx>,
    expected: BasicValueEnum<'ctx>,
    new: BasicValueEnum<'ctx>,
    ordering: Ordering,
    scope: &str,
) -> BasicValueEnum<'ctx> {
    let failure = match ordering {
        Ordering::Relaxed | Ordering::Release => Ordering::Relaxed,
        Ordering::Acquire | Ordering::AcquireRelease => Ordering::Acquire,
    };
    // SAFETY: the builder stands in a block, `pointer` is a pointer, both values are of one integer type.
    unsafe {
        BasicValueEnum::new(LLVMBuildAtomicCmpXchgSyncScope(
            builder.as_mut_ptr(),
            pointer.as_value_ref(),
            expected.as_value_ref(),
            new.as_value_ref(),
            llvm_ordering(ordering),
            llvm_ordering(failure),
            sync_scope(context, scope),
        ))
    }
}

/// Opens a bitcode file without reading function bodies: they are read when something links them.
///
/// # Errors
/// LLVM's or the operating system's message.
pub fn open_bitcode_lazily<'ctx>(
    context: &'ctx Context,
    path: &Path,
) -> Result<Module<'ctx>, String> {
    let name =
        CString::new(path.as_os_str().as_encoded_bytes()).map_err(|error| error.to_string())?;
    let mut buffer = std::ptr::null_mut();
    let mut message = std::ptr::null_mut();
    // SAFETY: out-parameters are valid; on success LLVM takes the buffer over, and the module is fresh.
    unsafe {
        if LLVMCreateMemoryBufferWithContentsOfFile(name.as_ptr(), &mut buffer, &mut message) != 0 {
            let text = CStr::from_ptr(message).to_string_lossy().into_owned();
            LLVMDisposeMessage(message);
            return Err(text);
        }
        let mut module = std::ptr::null_mut();
        if LLVMGetBitcodeModuleInContext2(context.as_ctx_ref(), buffer, &mut module) != 0 {
            return Err("not a bitcode file that this LLVM can read".to_owned());
        }
        Ok(Module::new(module))
    }
}

/// A pass that the code generator leaves out, as C reads it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct OmittedPass {
    name: *const c_char,
    run: c_uint,
    is_found: bool,
}

impl OmittedPass {
    /// Every run of the pass of that name.
    pub fn always(name: &'static CStr) -> Self {
        Self::once(name, 0)
    }

    /// Its run of that number, counted from one.
    pub fn once(name: &'static CStr, run: u32) -> Self {
        Self {
            name: name.as_ptr(),
            run,
            is_found: false,
        }
    }

    /// Whether the back end has it, once code was generated.
    #[cfg(test)]
    pub fn is_found(&self) -> bool {
        self.is_found
    }
}

unsafe extern "C" {
    /// `cpp/code_generator.cpp`.
    fn llopt_generate_code(
        module: LLVMModuleRef,
        machine: LLVMTargetMachineRef,
        kind: LLVMCodeGenFileType,
        omitted: *mut OmittedPass,
        count: usize,
    ) -> LLVMMemoryBufferRef;
}

/// What the code generator makes of a module, without these passes; `None` if the target has no such
/// output.
pub fn generate_code(
    module: Module<'_>,
    machine: &TargetMachine,
    kind: LLVMCodeGenFileType,
    omitted: &mut [OmittedPass],
) -> Option<MemoryBuffer<'static>> {
    // SAFETY: module and machine are alive, and used by nobody else; the names are static.
    unsafe {
        let made = llopt_generate_code(
            module.as_mut_ptr(),
            machine.as_mut_ptr(),
            kind,
            omitted.as_mut_ptr(),
            omitted.len(),
        );
        (!made.is_null()).then(|| MemoryBuffer::new(made))
    }
}

/// A target machine that is passed between threads.
pub struct SharedMachine(TargetMachine);

// SAFETY: LLVM's target machines have no thread-local state; only one owner uses it at a time.
unsafe impl Send for SharedMachine {}

impl SharedMachine {
    /// Requires: nothing else refers to the machine.
    pub fn new(machine: TargetMachine) -> Self {
        Self(machine)
    }
}

impl std::ops::Deref for SharedMachine {
    type Target = TargetMachine;

    fn deref(&self) -> &TargetMachine {
        &self.0
    }
}

/// The index of an address, if it has 32 bits, was widened in another block, and is added to a value of this block.
pub fn index_from_outside<'ctx>(address: InstructionValue<'ctx>) -> Option<LateIndex<'ctx>> {
    // SAFETY: kinds and numbers of operands are checked before operands are used.
    unsafe {
        let value = address.as_value_ref();
        if LLVMIsAGetElementPtrInst(value).is_null()
            || LLVMGetNumOperands(value) != 2
            || LLVMGetTypeKind(LLVMTypeOf(value)) != LLVMTypeKind::LLVMPointerTypeKind
        {
            return None;
        }
        let (base, wide) = (LLVMGetOperand(value, 0), LLVMGetOperand(value, 1));
        if LLVMIsAInstruction(base).is_null() || LLVMIsACastInst(wide).is_null() {
            return None;
        }
        let is_signed = match LLVMGetInstructionOpcode(wide) {
            LLVMOpcode::LLVMSExt => true,
            LLVMOpcode::LLVMZExt => LLVMGetNNeg(wide) != 0,
            _ => false,
        };
        let block = LLVMGetInstructionParent(value);
        let index = LLVMGetOperand(wide, 0);
        let r#type = LLVMTypeOf(index);
        let is_late = is_signed
            && LLVMGetTypeKind(r#type) == LLVMTypeKind::LLVMIntegerTypeKind
            && LLVMGetIntTypeWidth(r#type) == u32::BITS
            && LLVMGetInstructionParent(base) == block
            && LLVMGetInstructionParent(wide) != block;
        is_late.then_some(LateIndex(address, base, index))
    }
}

/// An address, its base pointer, and an index in elements that is known earlier.
pub struct LateIndex<'ctx>(InstructionValue<'ctx>, LLVMValueRef, LLVMValueRef);

impl<'ctx> LateIndex<'ctx> {
    /// A key that identifies the index.
    pub fn key(&self) -> usize {
        self.2 as usize
    }

    /// Adds by assembly, which widens the number itself. Its first operand is the number, its second the pointer;
    /// `SIZE` is replaced by the bytes of an element.
    ///
    /// Requires: `builder` is of the instruction's context.
    pub fn add_by(&self, builder: &Builder<'ctx>, text: &str, constraints: &str) {
        builder.position_before(&self.0);
        // SAFETY: the assembly has the types of its operands, what replaces the instruction has its type, and strings are
        // passed with their lengths.
        unsafe {
            let sum = self.0.as_value_ref();
            let function = LLVMGetBasicBlockParent(LLVMGetInstructionParent(sum));
            let layout = LLVMGetModuleDataLayout(LLVMGetGlobalParent(function));
            let size = LLVMABISizeOfType(layout, LLVMGetGEPSourceElementType(sum));
            let text = text.replace("SIZE", &size.to_string());
            let mut types = [self.2, self.1].map(|value| LLVMTypeOf(value));
            let of = LLVMFunctionType(LLVMTypeOf(sum), types.as_mut_ptr(), 2, 0);
            let assembly = LLVMGetInlineAsm(
                of,
                text.as_ptr().cast(),
                text.len(),
                constraints.as_ptr().cast(),
                constraints.len(),
                0,
                0,
                LLVMInlineAsmDialect::LLVMInlineAsmDialectATT,
                0,
            );
            let (mut values, name) = ([self.2, self.1], c"".as_ptr());
            let builder = builder.as_mut_ptr();
            let made = LLVMBuildCall2(builder, of, assembly, values.as_mut_ptr(), 2, name);
            LLVMReplaceAllUsesWith(sum, made);
        }
    }
}

/// The inline assembly that an instruction calls.
fn assembly(call: InstructionValue<'_>) -> Option<LLVMValueRef> {
    if call.get_opcode() != InstructionOpcode::Call {
        return None;
    }
    // SAFETY: the instruction is a call, and the cast is checked by LLVM.
    unsafe {
        let callee = LLVMGetCalledValue(call.as_value_ref());
        (!callee.is_null() && !LLVMIsAInlineAsm(callee).is_null()).then_some(callee)
    }
}

/// The text of inline assembly, if an instruction is a call of some.
pub(crate) fn assembly_text(call: InstructionValue<'_>) -> Option<String> {
    let assembly = assembly(call)?;
    // SAFETY: the text has the length that LLVM gives.
    let text = unsafe {
        let mut length = 0;
        let text = LLVMGetInlineAsmAsmString(assembly, &mut length);
        std::slice::from_raw_parts(text.cast(), length)
    };
    std::str::from_utf8(text).ok().map(str::to_owned)
}

/// Whether an instruction is inline assembly whose results depend on its operands alone, and that does nothing else.
pub(crate) fn is_pure_assembly(call: InstructionValue<'_>) -> bool {
    let Some(assembly) = assembly(call) else {
        return false;
    };
    // SAFETY: the text has the length that LLVM gives.
    let (has_effects, constraints): (bool, &[u8]) = unsafe {
        let mut length = 0;
        let constraints = LLVMGetInlineAsmConstraintString(assembly, &mut length);
        let constraints = std::slice::from_raw_parts(constraints.cast(), length);
        (LLVMGetInlineAsmHasSideEffects(assembly) != 0, constraints)
    };
    // What is overwritten besides the results, and operands in memory.
    let touches = constraints.iter().any(|sign| matches!(sign, b'~' | b'*'));
    !has_effects && !touches
}

/// Moves the constant part of an address into inline assembly: if `call` is assembly that mentions
/// `[ $k + 0 ]`, and operand `k` is `getelementptr i8, base, constant`, then the operand becomes `base` and
/// the text `[ $k + constant ]`.
pub fn fold_offset_into_assembly(call: InstructionValue<'_>) {
    let Some(callee) = assembly(call) else {
        return;
    };
    // SAFETY: each cast is checked by LLVM's own `IsA` functions before its result is used, strings are
    // read with the length LLVM gives, and operands stay of the same type.
    unsafe {
        let call = call.as_value_ref();
        let mut length = 0;
        let text = LLVMGetInlineAsmAsmString(callee, &mut length);
        let Ok(text) = std::str::from_utf8(std::slice::from_raw_parts(text.cast(), length)) else {
            return;
        };
        let Some((number, range)) = zero_offset(text) else {
            return;
        };
        let constraints = LLVMGetInlineAsmConstraintString(callee, &mut length);
        let Ok(constraints) =
            std::str::from_utf8(std::slice::from_raw_parts(constraints.cast(), length))
        else {
            return;
        };
        let outputs = constraints
            .split(',')
            .filter(|item| item.starts_with('='))
            .count();
        let Some(argument) = number.checked_sub(outputs) else {
            return;
        };
        let operands = LLVMGetNumOperands(call);
        if argument + 1 >= operands as usize {
            return;
        }
        let pointer = LLVMGetOperand(call, argument as u32);
        if LLVMIsAGetElementPtrInst(pointer).is_null() || LLVMGetNumOperands(pointer) != 2 {
            return;
        }
        let element = LLVMGetGEPSourceElementType(pointer);
        let index = LLVMGetOperand(pointer, 1);
        let is_byte = LLVMGetTypeKind(element) == LLVMTypeKind::LLVMIntegerTypeKind
            && LLVMGetIntTypeWidth(element) == 8;
        if !is_byte || LLVMIsAConstantInt(index).is_null() {
            return;
        }
        let offset = LLVMConstIntGetSExtValue(index);
        if i32::try_from(offset).is_err() {
            return;
        }
        let new_text = format!("{}{offset}{}", &text[..range.start], &text[range.end..]);
        let assembly = LLVMGetInlineAsm(
            LLVMGetInlineAsmFunctionType(callee),
            new_text.as_ptr().cast(),
            new_text.len(),
            constraints.as_ptr().cast(),
            constraints.len(),
            LLVMGetInlineAsmHasSideEffects(callee),
            0,
            LLVMGetInlineAsmDialect(callee),
            0,
        );
        LLVMSetOperand(call, argument as u32, LLVMGetOperand(pointer, 0));
        LLVMSetOperand(call, operands as u32 - 1, assembly);
    }
}

/// The operand number `k` and the position of the zero in `[ $k + 0 ]`.
fn zero_offset(text: &str) -> Option<(usize, std::ops::Range<usize>)> {
    let open = text.find("[ $")? + 3;
    let rest = &text[open..];
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let number = rest[..digits].parse().ok()?;
    let zero = open + digits + " + ".len();
    (text.get(open + digits..zero + 3)? == " + 0 ]").then_some((number, zero..zero + 1))
}

/// `file:line:col` of an instruction, if it has a location.
pub(crate) fn location(instruction: InstructionValue<'_>) -> Option<String> {
    let value = instruction.as_value_ref();
    // SAFETY: the value is an instruction.
    let (line, column) = unsafe { (LLVMGetDebugLocLine(value), LLVMGetDebugLocColumn(value)) };
    if line == 0 {
        return None;
    }
    let mut length = 0;
    // SAFETY: as above, and `length` outlives the call.
    let file = unsafe { LLVMGetDebugLocFilename(value, &raw mut length) };
    let bytes = match file.is_null() {
        true => &[],
        // SAFETY: LLVM answers so many bytes, which its context owns as long as the instruction lives.
        false => unsafe { std::slice::from_raw_parts(file.cast::<u8>(), length as usize) },
    };
    let file = String::from_utf8_lossy(bytes);
    Some(format!("{file}:{line}:{column}"))
}

#[cfg(test)]
mod tests {
    use super::zero_offset;

    #[test]
    fn finds_the_offset_of_an_address_operand() {
        let text = "mov.b32 $0, 0x0;\n\t@$2 ld.global.b32 { $0 }, [ $1 + 0 ];";
        let (number, range) = zero_offset(text).unwrap();
        assert_eq!((number, &text[range]), (1, "0"));
        assert_eq!(zero_offset("bar.sync 0;"), None);
        assert_eq!(zero_offset("ld [ $1 + 04 ];"), None);
        assert_eq!(zero_offset("ld [ $1"), None);
    }
}
