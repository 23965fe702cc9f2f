//! The conversions of real kernels: every plan is correct, wavefronts equal their bounds, and no plan costs more than
//! Triton 3.6's.

mod corpus;
mod executor;
mod machines;

use corpus::pairs;
use executor::{follow, held};
use llopt_layout::banks::Access;
use llopt_layout::instruction::InstructionKind;
use llopt_layout::plan::{
    Costs, Machine, Movement, SharedAccess, SwizzleRequest, plan, synthesize,
};

#[test]
fn every_plan_is_right_and_meets_its_bound() {
    let mut kinds = std::collections::BTreeMap::new();
    for pair in pairs() {
        let machine = pair.machine();
        let (from, to, bits) = (&pair.from, &pair.to, pair.element_bits);
        let wanted = held(to, from);
        let plans = plan(from, to, bits, &machine).expect("feasible");
        *kinds.entry(plans[0].kind()).or_insert(0) += 1;
        for plan in &plans {
            let got = follow(plan, from, to, bits, &machine);
            assert_eq!(got.as_ref(), Ok(&wanted), "{from}\n{to}\n{plan:#?}");
            if let Movement::Shared(shared) = &plan.movement {
                assert_eq!(shared.store.wavefronts, shared.store.bound, "{from}\n{to}");
                assert_eq!(shared.load.wavefronts, shared.load.bound, "{from}\n{to}");
            }
        }
    }
    println!("{kinds:?}");
}

#[test]
fn no_more_passes_and_instructions_than_tritons_swizzle() {
    let (mut equal, mut better, mut more) = (0, 0, 0);
    for pair in pairs() {
        let Some(memory) = &pair.triton else { continue };
        // Wavefronts and instructions are compared; permutes of narrow elements are not.
        let costs = Costs {
            permute: 0.0,
            ..pair.machine().costs
        };
        let machine = Machine {
            matrix: &[],
            costs,
            ..pair.machine()
        };
        let (from, to, bits) = (&pair.from, &pair.to, pair.element_bits);
        let request = SwizzleRequest {
            store: Some(InstructionKind::Vector),
            load: Some(InstructionKind::Vector),
            ..SwizzleRequest::default()
        };
        let own = synthesize(from, to, bits, &machine, request).expect("feasible");
        // Triton's layout with the best vectors that it allows, counted exactly.
        let theirs = |layout, access| {
            SharedAccess::for_memory(layout, memory, bits, access, None, &machine).expect("fits")
        };
        let (store, load) = (theirs(from, Access::Store), theirs(to, Access::Load));
        let own_passes = own.store.wavefronts + own.load.wavefronts;
        let passes = store.wavefronts + load.wavefronts;
        let own_count = own.store.instructions + own.load.instructions;
        let count = store.instructions + load.instructions;
        assert!(
            own_passes <= passes,
            "{from}\n{to}\n{memory}\n{}",
            own.memory
        );
        // One more instruction is allowed only if it saves wavefronts.
        assert!(
            own_passes < passes || own_count <= count,
            "{from}\n{to}\n{memory}\n{}",
            own.memory
        );
        more += u32::from(own_count > count);
        if (own_passes, own_count) == (passes, count) {
            equal += 1;
        } else {
            better += 1;
        }
    }
    println!("{equal} equal, {better} better, {more} with more instructions and fewer passes");
    assert!(equal + better > 300);
}
