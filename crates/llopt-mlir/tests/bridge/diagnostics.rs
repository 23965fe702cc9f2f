//! Diagnostics as values: severity, positions, call sites, notes, rendering.

use crate::toy;
use llopt_mlir::diagnostic::{self, Position, Severity};
use melior::ir::{Attribute, Location};

#[test]
fn captured_in_order_with_severity_and_notes() {
    let context = toy::context();
    let place = Location::new(&context, "a.py", 7, 3);
    let (_, diagnostics) = diagnostic::capture(&context, || {
        let _ = diagnostic::warning(place, "careful").emit();
        let _ = diagnostic::remark(Location::unknown(&context), "by the way").emit();
        let _ = diagnostic::error(place, "wrong")
            .note(place, "because")
            .emit();
    });
    let severities: Vec<_> = diagnostics.iter().map(|d| d.severity).collect();
    assert_eq!(
        severities,
        [Severity::Warning, Severity::Remark, Severity::Error]
    );
    assert_eq!(
        diagnostic::render(&diagnostics),
        "a.py:7:3: warning: careful\n\
         <unknown>:0: remark: by the way\n\
         a.py:7:3: error: wrong\n\
         a.py:7:3: note: because\n"
    );
}

#[test]
fn call_sites_become_a_chain() {
    let context = toy::context();
    let callee = Location::name(&context, "x", Location::new(&context, "lib.py", 1, 2));
    let caller = Location::new(&context, "main.py", 30, 4);
    let inner = Location::call_site(callee, caller);
    let fused = Location::fused(&context, &[inner], Attribute::unit(&context));
    let (_, diagnostics) = diagnostic::capture(&context, || {
        let _ = diagnostic::error(fused, "wrong").emit();
    });
    assert_eq!(
        diagnostics[0].positions,
        [
            Position {
                file: "lib.py".into(),
                line: 1,
                column: 2
            },
            Position {
                file: "main.py".into(),
                line: 30,
                column: 4
            },
        ]
    );
    assert_eq!(
        diagnostics[0].to_string(),
        "lib.py:1:2: error: wrong\nmain.py:30:4: note: called from here"
    );
}

#[test]
fn operations_are_printed_on_request() {
    let context = toy::context();
    let source = b"toy.return";
    let notes = |print| {
        diagnostic::print_operations(&context, print);
        match llopt_mlir::parse_module(&context, source, "f") {
            Ok(_) => panic!("parsed"),
            Err(diagnostics) => diagnostics[0].notes.len(),
        }
    };
    assert_eq!((notes(true), notes(false)), (1, 0));
}
