// Functions, calls and the grid a program belongs to.

#ifndef TT_FUNCTIONS
#define TT_FUNCTIONS

include "tt/types.td"
include "tt/attributes.td"

def TT_FunctionOps : OpDocGroup {
  let summary = "Functions and the grid";
  let description = "";
}

let opDocGroup = TT_FunctionOps in {

def TT_FuncOp : TT_Op<"func", [
    AffineScope, AutomaticAllocationScope, CallableOpInterface,
    FunctionOpInterface, IsolatedFromAbove, ParentOp<"builtin.module">,
    Control<"Function">
]> {
  let summary = "A kernel or a device function";
  let description = [{
    A symbol with one region of blocks and branches between them. A public
    function is a kernel: the host starts it and it returns nothing. Its
    argument attributes state what the compiler may rely on
    (`tt.divisibility`, `tt.pointer_range`, ...). `noinline = true` keeps a
    device function as a call.

    ```mlir
    tt.func public @copy(%src: !tt.ptr<f32> {tt.divisibility = 16 : i32}) attributes {noinline = false} {
      tt.return
    }
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    TypeAttrOf<FunctionType>:$function_type,
    OptionalAttr<StrAttr>:$sym_visibility,
    OptionalAttr<DictArrayAttr>:$arg_attrs,
    OptionalAttr<DictArrayAttr>:$res_attrs
  );
  let regions = (region AnyRegion:$body);
  let hasCustomAssemblyFormat = 1;
}

def TT_ReturnOp : TT_Op<"return", [
    Pure, ParentOp<"tt.func">, ReturnLike, Terminator,
    Control<"Return">,
    Means<"Control">
]> {
  let summary = "Leaves the function";
  let description = [{
    The operands are the results of the enclosing function, in number and type.
  }];
  let arguments = (ins Variadic<AnyType>:$srcs);
  let assemblyFormat = "attr-dict ($srcs^ `:` type($srcs))?";
  let hasVerifier = 1;
}

def TT_CallOp : TT_Op<"call", [
    CallOpInterface, SymbolUserOpInterface, Control<"Call">,
    Means<"Control">
]> {
  let summary = "Calls a function of the same module";
  let description = [{
    Operands and results have the types of the callee's signature.

    ```mlir
    %sum = tt.call @add(%a, %b) : (f32, f32) -> f32
    ```
  }];
  let arguments = (ins
    FlatSymbolRefAttr:$callee,
    Variadic<AnyType>:$operands,
    OptionalAttr<DictArrayAttr>:$arg_attrs,
    OptionalAttr<DictArrayAttr>:$res_attrs
  );
  let results = (outs Variadic<AnyType>:$results);
  let assemblyFormat = [{
    $callee `(` $operands `)` attr-dict `:` functional-type($operands, results)
  }];
  let hasVerifier = 1;
}

def TT_GetProgramIdOp : TT_Op<"get_program_id", [
    Pure, Means<"Shape">, Integers<"Program">
]> {
  let summary = "Position of this program on one axis of the grid";
  let description = "";
  let arguments = (ins TT_ProgramDimAttr:$axis);
  let results = (outs I32:$result);
  let assemblyFormat = "$axis attr-dict `:` type($result)";
}

def TT_GetNumProgramsOp : TT_Op<"get_num_programs", [
    Pure, Means<"Shape">, Integers<"Program">
]> {
  let summary = "Extent of the grid on one axis";
  let description = "";
  let arguments = (ins TT_ProgramDimAttr:$axis);
  let results = (outs I32:$result);
  let assemblyFormat = "$axis attr-dict `:` type($result)";
}

def TT_GridDependencyWaitOp : TT_Op<"grid_dependency_wait"> {
  let summary = "Waits until the memory of the preceding grid is visible";
  let description = [{
    Printed by Triton 3.9; 3.6 writes the same as inline assembly.
  }];
  let assemblyFormat = "attr-dict";
}

def TT_GridDependencyLaunchDependentsOp
    : TT_Op<"grid_dependency_launch_dependents"> {
  let summary = "Allows the following grid to start";
  let description = [{
    Printed by Triton 3.9; 3.6 writes the same as inline assembly.
  }];
  let assemblyFormat = "attr-dict";
}

} // opDocGroup

#endif // TT_FUNCTIONS
