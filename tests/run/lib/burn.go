// SPDX-License-Identifier: Apache-2.0

// Writes a CPU and a heap profile by Go's own runtime: profiles of somebody else.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime/pprof"
	"time"
)

var sink [][]byte

func burn(until time.Time) (n uint64) {
	for time.Now().Before(until) {
		for i := uint64(0); i < 100000; i++ {
			n = n*31 + i
		}
	}
	return
}

func create(path string) *os.File {
	f, err := os.Create(path)
	if err != nil {
		panic(err)
	}
	return f
}

func main() {
	cpu := create(os.Args[1])
	if err := pprof.StartCPUProfile(cpu); err != nil {
		panic(err)
	}
	pprof.Do(context.Background(), pprof.Labels("who", "burn", "what", "cpu"), func(_ context.Context) {
		fmt.Fprintln(os.Stderr, burn(time.Now().Add(300*time.Millisecond)))
	})
	for i := 0; i < 2000; i++ {
		sink = append(sink, make([]byte, 10000))
	}
	pprof.StopCPUProfile()
	cpu.Close()
	heap := create(os.Args[2])
	if err := pprof.WriteHeapProfile(heap); err != nil {
		panic(err)
	}
	heap.Close()
}
