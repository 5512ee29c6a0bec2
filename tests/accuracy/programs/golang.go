// SPDX-License-Identifier: Apache-2.0

// Go: a goroutine of main and one more, in chains of their own.
package main

import (
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

var sink uint64

func cpu() time.Duration {
	var ts syscall.Timespec
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, 2, uintptr(unsafe.Pointer(&ts)), 0)
	return time.Duration(ts.Nano())
}

//go:noinline
func burnLeaf(n uint64) uint64 {
	for i := 0; i < 60; i++ {
		n = n*6364136223846793005 + 1
	}
	return n
}

//go:noinline
func deep(depth int, n uint64) uint64 {
	var room [10]uint64
	room[n%10] = n
	if depth == 8 {
		return burnLeaf(n) + room[n%7]
	}
	return deep(depth+1, n) + room[n%7]
}

//go:noinline
func inMain(n uint64) uint64 {
	return deep(1, n) + 1
}

//go:noinline
func inGoroutine(n uint64) uint64 {
	f := func(n uint64) uint64 { return burnLeaf(n) + 1 }
	return callBack(f, n) + 1
}

//go:noinline
func callBack(f func(uint64) uint64, n uint64) uint64 {
	return f(n) + 2
}

func main() {
	seconds := 10.0
	if len(os.Args) > 1 {
		seconds, _ = strconv.ParseFloat(os.Args[1], 64)
	}
	if gate := os.Getenv("BURN_GATE"); gate != "" {
		fd, _ := syscall.Open(gate, syscall.O_RDONLY, 0)
		syscall.Read(fd, make([]byte, 1))
	}
	start := cpu()
	var stop atomicFlag
	var wait sync.WaitGroup
	wait.Add(1)
	go func() {
		defer wait.Done()
		for !stop.get() {
			for i := uint64(0); i < 10000; i++ {
				sink += inGoroutine(i)
			}
		}
	}()
	sum := uint64(0)
	for (cpu() - start).Seconds() < seconds {
		for i := uint64(0); i < 10000; i++ {
			sum += inMain(i)
		}
	}
	stop.set()
	wait.Wait()
	sink += sum
}

type atomicFlag struct{ v int32 }

func (f *atomicFlag) set()      { atomic.StoreInt32(&f.v, 1) }
func (f *atomicFlag) get() bool { return atomic.LoadInt32(&f.v) != 0 }
