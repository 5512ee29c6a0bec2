// SPDX-License-Identifier: Apache-2.0

// Prints what Go itself says of many of its own program counters: "@address function file line", the innermost frame.
package main

import (
	"debug/elf"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"sort"
	"strings"
)

type point struct{ x, y int }

func (p point) sum() int      { return p.x + p.y }
func (p *point) scale(k int)  { p.x *= k; p.y *= k }
func square(n int) int        { return n * n }
func both(n int) int          { return square(n) + square(n+1) }
func deep(p point, n int) int { p.scale(n); return p.sum() + both(n) }

type number interface{ ~int | ~float64 }

func total[T number](v []T) (t T) {
	for _, x := range v {
		t += x
	}
	return
}

//go:noinline
func work(n int) int {
	p := point{n, n + 1}
	s := deep(p, n) + total([]int{n, p.sum()})
	f := func(k int) int { return both(k) + s }
	return f(n) + len(strings.Repeat("x", n&7))
}

// Where a position-independent program was loaded; 0 for another.
func bias() uintptr {
	var lowest uintptr
	file, err := elf.Open("/proc/self/exe")
	if err != nil {
		panic(err)
	}
	if file.Type != elf.ET_DYN {
		return 0
	}
	maps, _ := os.ReadFile("/proc/self/maps")
	exe, _ := os.Readlink("/proc/self/exe")
	for _, line := range strings.Split(string(maps), "\n") {
		if strings.HasSuffix(line, exe) {
			fmt.Sscanf(line, "%x-", &lowest)
			break
		}
	}
	for _, p := range file.Progs {
		if p.Type == elf.PT_LOAD {
			return lowest - uintptr(p.Vaddr)&^4095
		}
	}
	panic("nothing is loaded")
}

func entry(f interface{}) uintptr { return reflect.ValueOf(f).Pointer() }

func main() {
	numbers := []int{work(3), work(1), work(2)}
	sort.Ints(numbers)
	fmt.Fprintln(os.Stderr, numbers)

	bias := bias()
	seen := map[uintptr]bool{}
	for _, f := range []interface{}{work, main, fmt.Fprintf, sort.Ints, strings.Repeat, runtime.GC, os.Open,
		runtime.Stack, fmt.Sprint, strings.Fields, fmt.Fscanf, runtime.ReadMemStats} {
		start := entry(f)
		for pc := start; pc < start+8192; pc++ {
			if seen[pc] {
				continue
			}
			seen[pc] = true
			// CallersFrames takes return addresses, but a function's first address as it is
			if next := runtime.FuncForPC(pc + 1); next != nil && next.Entry() == pc+1 {
				continue
			}
			frame, _ := runtime.CallersFrames([]uintptr{pc + 1}).Next()
			fmt.Printf("@%x\t%s\t%s\t%d\n", pc-bias, frame.Function, frame.File, frame.Line)
		}
	}
}
