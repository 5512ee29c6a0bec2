// SPDX-License-Identifier: Apache-2.0
//! mixed SECONDS: what Rust programs do: traits, matches, closures, maps, text, sorting, panics that are caught.
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::time::Instant;

trait Shape {
    fn area(&self, scale: f64) -> f64;
}
struct Circle(f64);
struct Polygon(Vec<(f64, f64)>);
impl Shape for Circle {
    fn area(&self, scale: f64) -> f64 {
        self.0 * self.0 * 3.14159 * scale
    }
}
impl Shape for Polygon {
    fn area(&self, scale: f64) -> f64 {
        let n = self.0.len();
        (0..n).map(|i| self.0[i].0 * self.0[(i + 1) % n].1 - self.0[(i + 1) % n].0 * self.0[i].1).sum::<f64>() * scale
    }
}

fn shapes(seed: u64) -> f64 {
    let all: Vec<Box<dyn Shape>> = (0..24)
        .map(|i| -> Box<dyn Shape> {
            if (seed + i) % 3 == 0 {
                Box::new(Circle(i as f64))
            } else {
                Box::new(Polygon((0..3 + i % 5).map(|k| ((k as f64).cos(), (k as f64).sin())).collect()))
            }
        })
        .collect();
    all.iter().map(|s| s.area(2.0)).sum()
}

#[inline(never)]
fn interpret(code: &[u8], n: u64) -> u64 {
    let (mut a, mut b, mut i) = (n, 1u64, 0);
    for _ in 0..2000 {
        match code[i % code.len()] {
            0 => a = a.wrapping_add(b),
            1 => b ^= a << 3,
            2 => a = a.rotate_left(7),
            3 => b = b.wrapping_mul(31),
            4 => std::mem::swap(&mut a, &mut b),
            5 => a = a.wrapping_sub(b >> 2),
            6 => b |= 1,
            7 => i += (a % 3) as usize,
            8 => a = a.leading_zeros() as u64 + b,
            _ => b = b.wrapping_add(n),
        }
        i += 1;
    }
    a ^ b
}

fn containers(seed: u64) -> usize {
    let mut m: BTreeMap<String, u64> = BTreeMap::new();
    let mut h: HashMap<u64, Vec<String>> = HashMap::new();
    let mut out = String::new();
    for i in 0..60 {
        let key = format!("k{}", seed.wrapping_mul(i + 1) % 97);
        *m.entry(key.clone()).or_insert(0) += i;
        h.entry(i % 17).or_default().push(key);
    }
    for (k, v) in &m {
        write!(out, "{k}={v} {v:x} {:.3}", *v as f64 / 7.0).unwrap();
    }
    out.len() + h.values().map(|v| v.len()).sum::<usize>()
}

#[inline(never)]
fn deep(n: u64) -> u64 {
    let text = "x".repeat((n % 40) as usize);
    if n == 0 {
        panic!("deep");
    }
    deep(n - 1) + text.len() as u64
}

fn sorted(mut seed: u64) -> u64 {
    let mut v: Vec<u64> = (0..300)
        .map(|_| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            seed >> 11
        })
        .collect();
    v.sort();
    v.sort_unstable_by(|a, b| (b % 1000).cmp(&(a % 1000)));
    v[100]
}

fn main() {
    let seconds: f64 = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(1.0);
    let code: Vec<u8> = (0..97u8).map(|i| i.wrapping_mul(37) % 10).collect();
    let (begin, mut sum) = (Instant::now(), 0.0);
    std::panic::set_hook(Box::new(|_| {}));
    for i in 0.. {
        sum += shapes(i) + containers(i) as f64 + (interpret(&code, i) & 255) as f64 + (sorted(i) & 255) as f64;
        if i % 16 == 0 {
            sum += std::panic::catch_unwind(|| deep(6)).unwrap_or(1) as f64;
            if begin.elapsed().as_secs_f64() > seconds {
                break;
            }
        }
    }
    println!("{sum}");
}
