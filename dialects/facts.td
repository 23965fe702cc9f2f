// What passes, plans and the interpreter ask of an op without knowing which it is.
//
// A fact is a trait that only the generator reads: it fills the field of
// `llopt_dialects::meaning::facts::OpFacts` that `question` names with the value
// that `answer` is, both spelt as in Rust, so that a mistake does not compile.
// An op that declares nothing has the answer that promises least.

#ifndef LLOPT_FACTS
#define LLOPT_FACTS

include "mlir/IR/OpBase.td"

class Fact<string asked, string answered> : NativeOpTrait<"Fact"> {
  string question = asked;
  string answer = answered;
}

// Its part in control flow, a case of `Control`. By default it computes.
class Control<string part> : Fact<"control", "Control::" # part>;

// How the layouts of its operands and results hang together, a case of
// `Transfer`. By default they do in no way that is known.
class Layouts<string transfer> : Fact<"layouts", "Transfer::" # transfer>;

// An access to memory that asks for a layout of its own, a case of `LayoutAnchor`.
class Anchors<string access> : Fact<"anchor", "Some(LayoutAnchor::" # access # ")">;

// What it does to work that completes later: a case of `Step`, and a case of
// `Unit`, which is what does that work.
class Asynchronous<string step, string unit>
    : Fact<"asynchronous", "Some(Asynchronous { step: Step::" # step #
                           ", unit: Unit::" # unit # " })">;

// Whom it brings into order, a case of `Synchronization`.
class Synchronizes<string whom>
    : Fact<"synchronization", "Synchronization::" # whom>;

// What its code uses scratch memory for, a case of `ScratchUse`.
class UsesScratch<string use> : Fact<"scratch", "ScratchUse::" # use>;

// What it computes, a case of `Meaning`. By default nobody has said.
class Means<string what> : Fact<"meaning", "Meaning::" # what>;

// The function of the elements at each position that it computes, a case of
// `ElementFunction`.
class MeansOfElements<string function>
    : Fact<"meaning", "Meaning::Elementwise(ElementFunction::" # function # ")">;

// What is known of integers and addresses in its results, a case of `Integers`.
// By default nothing is.
class Integers<string rule> : Fact<"integers", "Integers::" # rule>;

#endif // LLOPT_FACTS
