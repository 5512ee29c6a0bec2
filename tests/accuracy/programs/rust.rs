// SPDX-License-Identifier: Apache-2.0
// Generics, closures and trait objects, opt-level 3. CLI as burn.h says.
use std::io::Read;
use std::time::Duration;

#[repr(C)]
struct Timespec {
    sec: i64,
    nsec: i64,
}

extern "C" {
    fn clock_gettime(clock: i32, ts: *mut Timespec) -> i32;
}

// std::hint::black_box is of Rust 1.66, and Debian 12 has 1.63.
#[inline(always)]
fn black_box<T>(value: T) -> T {
    unsafe { std::arch::asm!("/* {0} */", in(reg) &value, options(nostack, preserves_flags)) };
    value
}

#[inline(never)]
fn cpu() -> Duration {
    let mut ts = Timespec { sec: 0, nsec: 0 };
    unsafe { clock_gettime(2, &mut ts) };
    black_box(Duration::new(ts.sec as u64, ts.nsec as u32))
}

trait Work {
    fn work(&self, n: u64) -> u64;
}

struct Leaf;
struct Node<T: Work> {
    inner: T,
}

#[inline(never)]
fn burn_leaf(n: u64) -> u64 {
    let mut x = n;
    for _ in 0..60 {
        x = black_box(x.wrapping_mul(6364136223846793005).wrapping_add(1));
    }
    x
}

impl Work for Leaf {
    #[inline(never)]
    fn work(&self, n: u64) -> u64 {
        black_box(burn_leaf(n)) + 1
    }
}

impl<T: Work> Work for Node<T> {
    #[inline(never)]
    fn work(&self, n: u64) -> u64 {
        let room = black_box([n; 40]);
        black_box(self.inner.work(n)) + room[3]
    }
}

#[inline(never)]
fn through(w: &dyn Work, n: u64) -> u64 {
    black_box(w.work(n)).wrapping_add(2)
}

#[inline(never)]
fn apply<F: Fn(u64) -> u64>(f: F, n: u64) -> u64 {
    black_box(f(n)).wrapping_add(3)
}

fn main() {
    let seconds: f64 = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(10.0);
    let tree: Box<dyn Work> = black_box(Box::new(Node { inner: Node { inner: Leaf } }));

    if let Some(gate) = std::env::var_os("BURN_GATE") {
        std::fs::File::open(gate).unwrap().read_exact(&mut [0]).unwrap();
    }
    let start = cpu();
    let mut sum = 0u64;
    while (cpu() - start).as_secs_f64() < seconds {
        for i in 0..10000u64 {
            sum = sum.wrapping_add(apply(|n| through(tree.as_ref(), n), i));
        }
    }
    black_box(sum);
}
