// The gluon dialect: layouts that are still to be chosen.

#ifndef GLUON_OPS
#define GLUON_OPS

include "ttg/dialect.td"

def Gluon_Dialect : Dialect {
  let name = "gluon";
  let cppNamespace = "gluon";
  let summary = "Layouts that are still to be chosen";
  let description = [{
    Kernels written in Gluon may leave layouts to the compiler; these
    placeholders are replaced before code is made.
  }];
  let dependentDialects = ["tt", "ttg", "gpu"];
  let usePropertiesForAttributes = 1;
}

class Gluon_Attr<string name, string attrMnemonic>
    : AttrDef<Gluon_Dialect, name> {
  let mnemonic = attrMnemonic;
}

def Gluon_AutoEncodingAttr : Gluon_Attr<"AutoEncoding", "auto_encoding"> {
  let summary = "A layout to be taken from neighbouring operations";
  let description = "";
}

def Gluon_CoalescedEncodingAttr
    : Gluon_Attr<"CoalescedEncoding", "coalesced_encoding"> {
  let summary = "A layout to be chosen for wide memory access";
  let description = "";
}

def Gluon_LayoutOps : OpDocGroup {
  let summary = "Choosing layouts";
  let description = "";
}

def Gluon_SetAutoLayoutOp : Op<Gluon_Dialect, "set_auto_layout", [
    SameOperandsAndResultShape, SameOperandsAndResultElementType,
    VerifyTensorLayouts,
    Integers<"Same">
]> {
  let opDocGroup = Gluon_LayoutOps;
  let summary = "Gives a tensor with an open layout a concrete one";
  let description = "";
  let arguments = (ins TT_Tensor:$src);
  let results = (outs TT_Tensor:$result);
  let assemblyFormat = "$src attr-dict `:` type($src) `->` type($result)";
  let hasVerifier = 1;
}

#endif // GLUON_OPS
