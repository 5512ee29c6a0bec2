// SPDX-License-Identifier: Apache-2.0

// Built stripped; most of the time is in an assembly function without a frame.
package main

import (
	"os"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

func leaf(n uint64) uint64 // leaf_amd64.s

func cpu() time.Duration {
	var ts syscall.Timespec
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, 2, uintptr(unsafe.Pointer(&ts)), 0)
	return time.Duration(ts.Nano())
}

//go:noinline
func callsLeaf(n uint64) uint64 {
	return leaf(n) + 1
}

//go:noinline
func above(n uint64) uint64 {
	var room [20]uint64
	room[n%20] = n
	return callsLeaf(n) + room[n%7]
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
	sum := uint64(0)
	for (cpu() - start).Seconds() < seconds {
		for i := uint64(0); i < 10000; i++ {
			sum += above(i)
		}
	}
	os.Exit(int(sum & 0))
}
