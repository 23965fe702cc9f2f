//! The output of `llopt run` for kernels with a planted fault, one for each class: its location, the thread and, for
//! two conflicting accesses, the location of the other one; and no output for the same kernels without the fault.

use std::fs;
use std::path::Path;
use std::process::Command;

const LLOPT: &str = env!("CARGO_BIN_EXE_llopt");

/// The text before the body: `%i` are the numbers of elements, `%xa` and `%oa` point to those of two buffers of 128.
const BEGIN: &str = r#"#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#one = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#two = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @k(%x: !tt.ptr<i32>, %o: !tt.ptr<i32>, %n: i32) {
    %i = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #b>
    %xs = tt.splat %x : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>, #b>
    %xa = tt.addptr %xs, %i : tensor<128x!tt.ptr<i32>, #b>, tensor<128xi32, #b>
    %os = tt.splat %o : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>, #b>
    %oa = tt.addptr %os, %i : tensor<128x!tt.ptr<i32>, #b>, tensor<128xi32, #b>
    %ns = tt.splat %n : i32 -> tensor<128xi32, #b>
"#;
const END: &str = "    tt.return\n  }\n}\n";

/// The first line of the body in the file.
const BODY: usize = 13;

fn npy(values: impl Iterator<Item = i32>) -> Vec<u8> {
    let values: Vec<u8> = values.flat_map(i32::to_le_bytes).collect();
    let mut header = "{'descr': '<i4', 'fortran_order': False, 'shape': (128,), }".to_owned();
    while !(header.len() + 11).is_multiple_of(64) {
        header.push(' ');
    }
    header.push('\n');
    let length = (header.len() as u16).to_le_bytes();
    [
        b"\x93NUMPY\x01\x00",
        &length[..],
        header.as_bytes(),
        &values,
    ]
    .concat()
}

/// The output for a kernel with `%n` = `number` in a grid of `blocks`, and whether it is accepted.
fn said(target: &str, body: &str, number: i32, blocks: u32, more: &[&str]) -> (bool, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let write = |name: &str, contents: &[u8]| {
        fs::write(folder.path().join(name), contents).expect("is written");
    };
    let mut kernel = format!("{BEGIN}{body}{END}");
    if target.starts_with("hip:gfx9") {
        for (of_32, of_64) in [
            ("threadsPerWarp = [32]", "threadsPerWarp = [64]"),
            (
                "\"ttg.threads-per-warp\" = 32",
                "\"ttg.threads-per-warp\" = 64",
            ),
        ] {
            kernel = kernel.replace(of_32, of_64);
        }
    }
    write("k.ttgir", kernel.as_bytes());
    write("x.npy", &npy(0..128));
    write("o.npy", &npy((0..128).map(|_| 0)));
    let grid = blocks.to_string();
    let done = Command::new(LLOPT)
        .current_dir(folder.path())
        .args([
            "run",
            "k.ttgir",
            "--target",
            target,
            "--grid",
            &grid,
            "--out-dir",
        ])
        .arg(Path::new("out"))
        .args(["--args", &format!("x.npy,o.npy,{number}")])
        .args(more)
        .output()
        .expect("the command starts");
    let text = String::from_utf8_lossy(&done.stderr).into_owned();
    (done.status.success(), text)
}

/// Runs a body with a fault in the line `place`, from 0, once so that it occurs and once so that it does not, each
/// with a value of `%n` and a number of blocks.
fn is_found(body: &str, bad: (i32, u32), good: (i32, u32), place: usize, words: &[&str]) {
    for target in ["cuda:90", "hip:gfx1100"] {
        let (accepted, text) = said(target, body, good.0, good.1, &[]);
        assert!(accepted, "{target}: {text}");
        let (accepted, text) = said(target, body, bad.0, bad.1, &[]);
        assert!(!accepted, "{target} finds nothing");
        let at = format!("k.ttgir:{}:", BODY + place);
        for word in [&at[..], "warp ", "lane "].iter().chain(words) {
            assert!(text.contains(word), "{target}: no '{word}' in {text}");
        }
    }
}

const LOAD: &str = "%v = tt.load %xa : tensor<128x!tt.ptr<i32>, #b>\n";

#[test]
fn an_index_of_a_gather_is_out_of_range() {
    let body = format!(
        "{LOAD}%w = arith.addi %v, %ns : tensor<128xi32, #b>
         %g = tt.gather %i[%w] {{axis = 0 : i32}} : (tensor<128xi32, #b>, tensor<128xi32, #b>) -> tensor<128xi32, #b>
         tt.store %oa, %g : tensor<128x!tt.ptr<i32>, #b>\n"
    );
    let words = ["the index 128 is out of range: there are 128"];
    is_found(&body, (128, 1), (0, 1), 2, &words);
}

#[test]
fn an_integer_is_divided_by_zero() {
    let body = format!(
        "{LOAD}%w = arith.addi %v, %ns : tensor<128xi32, #b>
         %q = arith.divsi %i, %w : tensor<128xi32, #b>
         tt.store %oa, %q : tensor<128x!tt.ptr<i32>, #b>\n"
    );
    is_found(
        &body,
        (-5, 1),
        (1, 1),
        2,
        &["an integer is divided by zero"],
    );
}

#[test]
fn an_index_leads_past_its_own_buffers() {
    let body = format!(
        "{LOAD}%m = ttg.local_alloc : () -> !ttg.memdesc<2x128xi32, #two, #smem, mutable>
         %other = ttg.local_alloc %v : (tensor<128xi32, #b>) -> !ttg.memdesc<128xi32, #one, #smem, mutable>
         %at = ttg.memdesc_index %m[%n] : !ttg.memdesc<2x128xi32, #two, #smem, mutable> -> !ttg.memdesc<128xi32, #one, #smem, mutable>
         ttg.local_store %v, %at : tensor<128xi32, #b> -> !ttg.memdesc<128xi32, #one, #smem, mutable>
         %l = ttg.local_load %at : !ttg.memdesc<128xi32, #one, #smem, mutable> -> tensor<128xi32, #b>
         %k = ttg.local_load %other : !ttg.memdesc<128xi32, #one, #smem, mutable> -> tensor<128xi32, #b>
         %s = arith.addi %l, %k : tensor<128xi32, #b>
         tt.store %oa, %s : tensor<128x!tt.ptr<i32>, #b>\n"
    );
    let words = ["the index 2 is out of range: there are 2"];
    is_found(&body, (2, 1), (1, 1), 3, &words);
}

#[test]
fn an_address_leaves_the_buffer_of_its_argument() {
    let body = "%far = tt.addptr %xa, %ns : tensor<128x!tt.ptr<i32>, #b>, tensor<128xi32, #b>
         %v = tt.load %far : tensor<128x!tt.ptr<i32>, #b>
         tt.store %oa, %v : tensor<128x!tt.ptr<i32>, #b>\n";
    for distance in [1, 128, 1024, -1] {
        let words = ["a load of 4 bytes at", "address 0x"];
        is_found(body, (distance, 1), (0, 1), 1, &words);
    }
}

#[test]
fn memory_is_read_that_was_given_back_or_that_nobody_wrote() {
    let stale = format!(
        "{LOAD}%m = ttg.local_alloc %v : (tensor<128xi32, #b>) -> !ttg.memdesc<128xi32, #one, #smem, mutable>
         %l = ttg.local_load %m : !ttg.memdesc<128xi32, #one, #smem, mutable> -> tensor<128xi32, #b>
         ttg.local_dealloc %m : !ttg.memdesc<128xi32, #one, #smem, mutable>
         %e = ttg.local_alloc : () -> !ttg.memdesc<128xi32, #one, #smem, mutable>
         %r = ttg.local_load %e : !ttg.memdesc<128xi32, #one, #smem, mutable> -> tensor<128xi32, #b>
         %s = arith.addi %l, %r : tensor<128xi32, #b>
         tt.store %oa, %s : tensor<128x!tt.ptr<i32>, #b>\n"
    );
    for target in ["cuda:90", "hip:gfx1100"] {
        let (accepted, text) = said(target, &stale, 0, 1, &[]);
        assert!(!accepted);
        let at = format!("k.ttgir:{}:", BODY + 5);
        assert!(text.contains(&at), "{text}");
        assert!(text.contains("a read of shared memory that nothing has written"));
    }
    let early = stale.replacen("load %e", "load %m", 1);
    let (accepted, text) = said("cuda:90", &early, 0, 1, &["--reference"]);
    assert!(!accepted);
    assert!(
        text.contains("it uses a buffer of shared memory after that was given back"),
        "{text}"
    );
    // The machine detects it without checks in the code.
    for target in TARGETS {
        for more in [&[][..], &["--no-optimize"]] {
            let (accepted, text) = said(target, &early, 0, 1, more);
            assert!(!accepted);
            let words = [
                format!("k.ttgir:{}:", BODY + 5),
                format!(
                    "a read of shared memory that was given back at k.ttgir:{}:",
                    BODY + 3
                ),
                "(block (0, 0, 0), warp 0, lane 0, address 0x0)".to_owned(),
            ];
            for word in words {
                assert!(text.contains(&word), "{target}: {text}");
            }
        }
    }
}

/// One target of each kind of memory and of warps.
const TARGETS: [&str; 5] = [
    "cuda:80",
    "cuda:90",
    "hip:gfx90a",
    "hip:gfx942",
    "hip:gfx1100",
];

/// Two buffers of 32 KiB at the same offset, one after the other, and the kernel's use of the second.
fn two_buffers(last: &str) -> String {
    format!(
        "%big = tt.make_range {{end = 8192 : i32, start = 0 : i32}} : tensor<8192xi32, #b>
         %m = ttg.local_alloc %big : (tensor<8192xi32, #b>) -> !ttg.memdesc<8192xi32, #one, #smem, mutable>
         %a = ttg.local_load %m : !ttg.memdesc<8192xi32, #one, #smem, mutable> -> tensor<8192xi32, #b>
         ttg.local_dealloc %m : !ttg.memdesc<8192xi32, #one, #smem, mutable>
         %e = ttg.local_alloc : () -> !ttg.memdesc<8192xi32, #one, #smem, mutable>
         {last}
         %r = ttg.local_load %e : !ttg.memdesc<8192xi32, #one, #smem, mutable> -> tensor<8192xi32, #b>
         %s = arith.addi %a, %r : tensor<8192xi32, #b>
         %sum = \"tt.reduce\"(%s) <{{axis = 0 : i32}}> ({{
         ^bb0(%p: i32, %q: i32):
           %t = arith.addi %p, %q : i32
           tt.reduce.return %t : i32
         }}) : (tensor<8192xi32, #b>) -> i32
         ttg.local_dealloc %e : !ttg.memdesc<8192xi32, #one, #smem, mutable>
         tt.store %o, %sum : !tt.ptr<i32>\n"
    )
}

#[test]
fn a_buffer_holds_what_another_left_in_its_place() {
    let stored = "ttg.local_store %big, %e : tensor<8192xi32, #b> -> !ttg.memdesc<8192xi32, #one, #smem, mutable>";
    for target in TARGETS {
        let (accepted, text) = said(target, &two_buffers(stored), 0, 1, &[]);
        assert!(accepted, "{target}: {text}");
        let (accepted, text) = said(target, &two_buffers(""), 0, 1, &[]);
        assert!(!accepted);
        let words = [
            format!("k.ttgir:{}:", BODY + 6),
            format!(
                "a read of shared memory that nothing has written since its buffer was made at k.ttgir:{}:",
                BODY + 4
            ),
            format!(
                "it holds what is left from the write of warp 0 lane 0 at k.ttgir:{}:",
                BODY + 1
            ),
            "(block (0, 0, 0), warp 0, lane 0, address 0x".to_owned(),
        ];
        for word in words {
            assert!(text.contains(&word), "{target}: {text}");
        }
    }
}

#[test]
fn a_buffer_is_written_after_it_was_given_back_in_a_loop() {
    let body = |given_back: (&str, &str)| {
        let (inside, behind) = given_back;
        let dealloc = |is: &str| match is {
            "" => String::new(),
            _ => "ttg.local_dealloc %m : !ttg.memdesc<2x128xi32, #two, #smem, mutable>".to_owned(),
        };
        format!(
            "%m = ttg.local_alloc : () -> !ttg.memdesc<2x128xi32, #two, #smem, mutable>
             %c0 = arith.constant 0 : i32
             %c1 = arith.constant 1 : i32
             scf.for %t = %c0 to %n step %c1 : i32 {{
               %at = ttg.memdesc_index %m[%c1] : !ttg.memdesc<2x128xi32, #two, #smem, mutable> -> !ttg.memdesc<128xi32, #one, #smem, mutable>
               ttg.local_store %i, %at : tensor<128xi32, #b> -> !ttg.memdesc<128xi32, #one, #smem, mutable>
               {}
             }}
             {}\n",
            dealloc(inside),
            dealloc(behind)
        )
    };
    for target in TARGETS {
        let (accepted, text) = said(target, &body(("", "here")), 3, 1, &[]);
        assert!(accepted, "{target}: {text}");
        // In the first iteration it is still there.
        let (accepted, text) = said(target, &body(("here", "")), 1, 1, &[]);
        assert!(accepted, "{target}: {text}");
        let (accepted, text) = said(target, &body(("here", "")), 2, 1, &[]);
        assert!(!accepted);
        let words = [
            format!("k.ttgir:{}:", BODY + 5),
            format!(
                "a write of shared memory that was given back at k.ttgir:{}:",
                BODY + 6
            ),
            "(block (0, 0, 0), warp 0, lane 0, address 0x200)".to_owned(),
        ];
        for word in words {
            assert!(text.contains(&word), "{target}: {text}");
        }
    }
}

#[test]
fn blocks_store_different_values_and_their_order_shows() {
    let body = "%p = tt.get_program_id x : i32
         %pn = arith.muli %p, %n : i32
         %s = tt.splat %pn : i32 -> tensor<128xi32, #b>
         tt.store %oa, %s : tensor<128x!tt.ptr<i32>, #b>\n";
    let other = format!("block (0, 0, 0) warp 0 lane 0 at k.ttgir:{}:", BODY + 3);
    let words = [
        "races with the write of another block",
        &other[..],
        "block (1, 0, 0)",
    ];
    is_found(body, (1, 2), (0, 2), 3, &words);
    // On one thread: several threads run blocks in parallel, and then the order does not depend on the option alone.
    let orders = ["--orders", "--jobs", "1"];
    let (_, text) = said("cuda:90", body, 1, 2, &orders);
    assert!(
        text.contains("the result depends on the order of blocks"),
        "{text}"
    );
    let (accepted, text) = said("cuda:90", body, 0, 2, &orders);
    assert!(
        accepted && text.contains("do not depend on the order of blocks"),
        "{text}"
    );
}

#[test]
fn updates_are_lost() {
    let body = "%v = tt.load %oa : tensor<128x!tt.ptr<i32>, #b>
         %w = arith.addi %v, %i : tensor<128xi32, #b>
         tt.store %oa, %w : tensor<128x!tt.ptr<i32>, #b>\n";
    let other = format!("block (0, 0, 0) warp 0 lane 0 at k.ttgir:{}:", BODY + 2);
    let words = [
        "a read of global memory races with the write of another block",
        &other[..],
    ];
    is_found(body, (0, 2), (0, 1), 0, &words);
}

#[test]
fn plain_reads_meet_atomics_of_another_block() {
    let body = "%t = arith.constant dense<true> : tensor<128xi1, #b>
         %r = tt.atomic_rmw add, relaxed, gpu, %oa, %i, %t : (tensor<128x!tt.ptr<i32>, #b>, tensor<128xi32, #b>, tensor<128xi1, #b>) -> tensor<128xi32, #b>
         %v = tt.load %oa : tensor<128x!tt.ptr<i32>, #b>
         tt.store %xa, %v : tensor<128x!tt.ptr<i32>, #b>\n";
    let other = format!("at k.ttgir:{}:", BODY + 1);
    let words = [
        "a read of global memory races with the write of another block",
        &other[..],
    ];
    is_found(body, (0, 2), (0, 1), 2, &words);
}

#[test]
fn warps_of_a_block_meet_in_global_memory() {
    let body = "%j = arith.xori %i, %ns : tensor<128xi32, #b>
         %ja = tt.addptr %os, %j : tensor<128x!tt.ptr<i32>, #b>, tensor<128xi32, #b>
         tt.store %oa, %i : tensor<128x!tt.ptr<i32>, #b>
         %v = tt.load %ja : tensor<128x!tt.ptr<i32>, #b>
         tt.store %xa, %v : tensor<128x!tt.ptr<i32>, #b>\n";
    let other = format!("at k.ttgir:{}:", BODY + 3);
    is_found(
        body,
        (127, 1),
        (0, 1),
        2,
        &["of global memory races with the", &other[..]],
    );
}
