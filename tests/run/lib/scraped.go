// SPDX-License-Identifier: Apache-2.0
// A server with /debug/pprof: memory in use, threads that wait for a lock and for a channel, and work. Prints its address.
package main

import (
	"fmt"
	"net"
	"net/http"
	_ "net/http/pprof"
	"runtime"
	"sync"
	"time"
)

var kept [][]byte
var n int

//go:noinline
func keep() {
	for i := 0; i < 1000; i++ {
		kept = append(kept, make([]byte, 10000))
	}
}

//go:noinline
func hot() {
	for i := 0; i < 10000000; i++ {
		n += i
	}
}

func locked(m *sync.Mutex) {
	for {
		m.Lock()
		time.Sleep(time.Millisecond)
		m.Unlock()
	}
}

func main() {
	runtime.SetMutexProfileFraction(1)
	runtime.SetBlockProfileRate(1)
	keep()
	runtime.GC() // the heap profile is that of the last collection
	runtime.GC()
	m := new(sync.Mutex)
	go locked(m)
	go locked(m)
	go func() {
		for {
			hot()
		}
	}()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr())
	panic(http.Serve(l, nil))
}
