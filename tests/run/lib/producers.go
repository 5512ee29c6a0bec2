// SPDX-License-Identifier: Apache-2.0
// Writes each profile that Go's runtime makes into the current folder, of work that gives each of them something to show.
package main

import (
	"context"
	"os"
	"runtime"
	"runtime/pprof"
	"sync"
	"time"
)

var kept [][]byte

func burn(until time.Time) (n int) {
	for time.Now().Before(until) {
		for i := 0; i < 1000; i++ {
			n += i * n
		}
	}
	return n
}

func keep(n int) {
	for i := 0; i < n; i++ {
		kept = append(kept, make([]byte, 70000))
	}
}

func drop(n int) {
	for i := 0; i < n; i++ {
		kept[0] = make([]byte, 30000)
	}
}

func contend(wait *sync.WaitGroup, lock *sync.Mutex) {
	defer wait.Done()
	for i := 0; i < 50; i++ {
		lock.Lock()
		time.Sleep(100 * time.Microsecond)
		lock.Unlock()
	}
}

func wait(c chan int) {
	<-c
}

func write(name string) {
	f, err := os.Create("go-" + name + ".pb.gz")
	if err == nil {
		err = pprof.Lookup(name).WriteTo(f, 0)
	}
	if err != nil {
		panic(err)
	}
	f.Close()
}

func main() {
	runtime.SetBlockProfileRate(1)
	runtime.SetMutexProfileFraction(1)
	runtime.MemProfileRate = 4096
	cpu, err := os.Create("go-cpu.pb.gz")
	if err != nil {
		panic(err)
	}
	pprof.StartCPUProfile(cpu)
	for _, name := range []string{"a", "b"} {
		pprof.Do(context.Background(), pprof.Labels("request", name), func(context.Context) {
			burn(time.Now().Add(500 * time.Millisecond))
		})
	}
	pprof.StopCPUProfile()
	cpu.Close()
	var all sync.WaitGroup
	var lock sync.Mutex
	c := make(chan int)
	all.Add(4)
	for i := 0; i < 4; i++ {
		go contend(&all, &lock)
		go wait(c)
	}
	all.Wait()
	keep(200)
	drop(500)
	runtime.GC()
	for _, name := range []string{"heap", "allocs", "mutex", "block", "goroutine", "threadcreate"} {
		write(name)
	}
}
