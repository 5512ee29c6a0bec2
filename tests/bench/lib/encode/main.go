// SPDX-License-Identifier: Apache-2.0

// encode PPROF OTLP REPEATS: CPU time of encoding, by Go's own packages, what those files have: a line "NAME NANOSECONDS BYTES"
// for each, as build/bench/encode prints.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"

	"github.com/google/pprof/profile"
	otlp "go.opentelemetry.io/proto/otlp/profiles/v1development"
	"google.golang.org/protobuf/proto"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "encode:", err)
		os.Exit(1)
	}
}

// All threads: also what collects garbage.
func cpu() int64 {
	var u syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return u.Utime.Nano() + u.Stime.Nano()
}

func measure(name string, repeats int, encode func() int) {
	n := encode()
	from := cpu()
	for i := 0; i < repeats; i++ {
		encode()
	}
	fmt.Println(name, (cpu()-from)/int64(repeats), n)
}

func main() {
	repeats, err := strconv.Atoi(os.Args[3])
	check(err)
	file, err := os.ReadFile(os.Args[1])
	check(err)
	p, err := profile.ParseData(file)
	check(err)
	file, err = os.ReadFile(os.Args[2])
	check(err)
	request := &otlp.ProfilesData{} // the fields of ExportProfilesServiceRequest
	check(proto.Unmarshal(file, request))
	write := func(to func(io.Writer) error) func() int {
		return func() int {
			var b bytes.Buffer
			check(to(&b))
			return b.Len()
		}
	}
	measure("pprof", repeats, write(p.WriteUncompressed))
	measure("pprof.gz", repeats, write(p.Write))
	measure("otlp", repeats, func() int {
		b, err := proto.Marshal(request)
		check(err)
		return len(b)
	})
}
