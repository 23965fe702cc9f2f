//! Divergence and reconvergence.

use llopt_sim::{Argument, Error, FindingKind};

use crate::harness::{lanes, lanewise, numbers, run, run_to_error, words};

#[test]
fn lanes_leave_a_loop_when_they_are_done() {
    // The Collatz length of each lane's number.
    let body = "br label %head
head:
  %n = phi i32 [ %x, %entry ], [ %next, %step ]
  %c = phi i32 [ 0, %entry ], [ %c1, %step ]
  %one = icmp ule i32 %n, 1
  br i1 %one, label %done, label %step
step:
  %c1 = add i32 %c, 1
  %odd = trunc i32 %n to i1
  %half = lshr i32 %n, 1
  %triple = mul i32 %n, 3
  %up = add i32 %triple, 1
  %next = select i1 %odd, i32 %up, i32 %half
  br label %head
done:
  %y = add i32 %c, 0";
    let model = |mut n: u32| {
        let mut count = 0;
        while n > 1 {
            n = if n % 2 == 1 { 3 * n + 1 } else { n / 2 };
            count += 1;
        }
        count
    };
    let input: Vec<u32> = (1..=64).collect();
    for (name, count) in [("cuda:90", 32), ("hip:gfx942", 64), ("hip:gfx1100", 32)] {
        let output = lanes(name, body, &input[..count]);
        assert!(
            input.iter().zip(output).all(|(&x, y)| y == model(x)),
            "{name}"
        );
    }
}

#[test]
fn phis_exchange_values_at_once() {
    let body = "br label %head
head:
  %a = phi i32 [ %x, %entry ], [ %b, %head ]
  %b = phi i32 [ 1, %entry ], [ %a, %head ]
  %k = phi i32 [ 0, %entry ], [ %k1, %head ]
  %k1 = add i32 %k, 1
  %more = icmp ult i32 %k1, %i
  br i1 %more, label %head, label %done
done:
  %y = sub i32 %a, %b";
    let output = lanes("cuda:90", body, &[10; 8]);
    assert_eq!(
        output,
        [
            9,
            9,
            9u32.wrapping_neg(),
            9,
            9u32.wrapping_neg(),
            9,
            9u32.wrapping_neg(),
            9
        ]
    );
}

#[test]
fn switches_split_into_many_paths_that_meet_again() {
    // The shuffle after the switch needs all lanes of the warp.
    let body = "%r = urem i32 %i, 5
  switch i32 %r, label %other [ i32 0, label %zero
                                i32 1, label %one
                                i32 3, label %three ]
zero:
  br label %join
one:
  br label %join
three:
  %d = mul i32 %x, 3
  br label %join
other:
  br label %join
join:
  %p = phi i32 [ 100, %zero ], [ 200, %one ], [ %d, %three ], [ %x, %other ]
  %y = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %p, i32 1, i32 31)";
    let input: Vec<u32> = (0..32).collect();
    let model = |lane: u32| match lane % 5 {
        0 => 100,
        1 => 200,
        3 => 3 * lane,
        _ => lane,
    };
    let output = lanes("cuda:90", body, &input);
    assert!((0..32).all(|lane| output[lane as usize] == model(lane ^ 1)));
}

#[test]
fn members_that_come_on_different_paths_meet() {
    // Both arms call the same function, whose shuffle names all lanes: the paths are at the same place with different
    // call stacks, but in the loop below with the same one.
    let body = "%low = icmp ult i32 %i, 7
  br i1 %low, label %early, label %late
early:
  %e = add i32 %x, 1
  br label %meet
late:
  %l = mul i32 %x, 2
  br label %meet
meet:
  %v = phi i32 [ %e, %early ], [ %l, %late ]
  %y = call i32 @llvm.nvvm.redux.sync.add(i32 %v, i32 -1)";
    let input: Vec<u32> = (0..32).collect();
    let total: u32 = (0..32).map(|i| if i < 7 { i + 1 } else { 2 * i }).sum();
    assert_eq!(lanes("cuda:90", body, &input), [total; 32]);
}

#[test]
fn calls_return_to_each_lane() {
    let ir = lanewise(
        "hip:gfx942",
        "%odd = trunc i32 %x to i1
  br i1 %odd, label %a, label %b
a:
  %p = call { i32, i32 } @pair(i32 %x)
  %pa = extractvalue { i32, i32 } %p, 1
  br label %join
b:
  %q = call { i32, i32 } @pair(i32 %i)
  %qa = extractvalue { i32, i32 } %q, 0
  br label %join
join:
  %y = phi i32 [ %pa, %a ], [ %qa, %b ]",
    ) + "
define internal { i32, i32 } @pair(i32 %v) noinline {
  %big = icmp ugt i32 %v, 20
  br i1 %big, label %yes, label %no
yes:
  %a = insertvalue { i32, i32 } { i32 1, i32 poison }, i32 %v, 1
  ret { i32, i32 } %a
no:
  %t = mul i32 %v, 10
  %b = insertvalue { i32, i32 } { i32 2, i32 poison }, i32 %t, 1
  ret { i32, i32 } %b
}";
    let input: Vec<u32> = (0..64).collect();
    let arguments = vec![
        Argument::Buffer(words(&input)),
        Argument::Buffer(vec![0; 256]),
    ];
    let (arguments, _) = run("hip:gfx942", &ir, 64, arguments);
    let output = numbers(&arguments[1]);
    for v in 0..64u32 {
        let (first, second) = if v > 20 { (1, v) } else { (2, 10 * v) };
        assert_eq!(output[v as usize], if v % 2 == 1 { second } else { first });
    }
}

#[test]
fn recursion_is_refused() {
    let ir = lanewise("cuda:90", "%y = call i32 @f(i32 %x)")
        + "define i32 @f(i32 %v) {\n %r = call i32 @f(i32 %v)\n ret i32 %r\n}";
    let error = llopt_sim::Machine::from_ir(ir.as_bytes(), crate::harness::target("cuda:90"), None)
        .err()
        .unwrap();
    assert!(error.to_string().contains("recursion"), "{error}");
}

#[test]
fn endless_loops_are_stopped() {
    let ir = lanewise(
        "cuda:90",
        "br label %again\nagain:\n br label %again\nnever:\n %y = add i32 0, 0",
    );
    let error = run_to_error(
        "cuda:90",
        &ir,
        32,
        vec![
            Argument::Buffer(vec![0; 128]),
            Argument::Buffer(vec![0; 128]),
        ],
    );
    assert!(
        matches!(
            error,
            Error::Watchdog {
                block: [0, 0, 0],
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn traps_name_their_place() {
    let ir = lanewise("hip:gfx90a", "call void @llvm.trap()\n %y = add i32 0, 0");
    let error = run_to_error(
        "hip:gfx90a",
        &ir,
        1,
        vec![Argument::Buffer(vec![0; 4]), Argument::Buffer(vec![0; 4])],
    );
    assert!(error.to_string().contains("trapped in @k"), "{error}");
}

#[test]
fn lanes_may_wait_for_what_their_siblings_do() {
    // Lane 0 spins until lane 1 has stored; independent scheduling of diverged lanes allows this.
    let body = "%first = icmp eq i32 %i, 0
  br i1 %first, label %spin, label %set
spin:
  %flag = load volatile i32, ptr addrspace(1) %out
  %zero = icmp eq i32 %flag, 0
  br i1 %zero, label %spin, label %join
set:
  store volatile i32 5, ptr addrspace(1) %out
  br label %join
join:
  %y = add i32 %x, 1";
    let ir = lanewise("cuda:90", body);
    let arguments = vec![
        Argument::Buffer(words(&[1, 2])),
        Argument::Buffer(vec![0; 8]),
    ];
    let (arguments, _) = run("cuda:90", &ir, 2, arguments);
    assert_eq!(numbers(&arguments[1]), [2, 3]);
}

#[test]
fn a_missing_member_is_found() {
    let body = "%low = icmp ult i32 %i, 3
  br i1 %low, label %some, label %join
some:
  %s = call i32 @llvm.nvvm.redux.sync.add(i32 %x, i32 -1)
  br label %join
join:
  %y = add i32 %x, 1";
    let ir = lanewise("cuda:90", body);
    let arguments = vec![
        Argument::Buffer(vec![0; 128]),
        Argument::Buffer(vec![0; 128]),
    ];
    let (_, report) = run("cuda:90", &ir, 32, arguments);
    assert_eq!(report.findings.len(), 1);
    assert_eq!(report.findings[0].kind, FindingKind::DivergentCollective);
    assert_eq!(report.findings[0].lane, 3);
}
