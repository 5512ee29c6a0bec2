// SPDX-License-Identifier: Apache-2.0

// encode PPROF OTLP REPEATS: CPU time of encoding, by Go's own packages, what those files have: a line "NAME NANOSECONDS BYTES"
// for each, as build/bench/encode prints.
// encode PPROF OTLP compare: fails unless the messages that are made of PPROF say what OTLP says.
package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"slices"
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

func compressed(p *profile.Profile, level int) func(io.Writer) error {
	return func(w io.Writer) error {
		z, err := gzip.NewWriterLevel(w, level)
		check(err)
		check(p.WriteUncompressed(z))
		return z.Close()
	}
}

func measureProfile(p *profile.Profile, repeats int) {
	write := func(to func(io.Writer) error) func() int {
		return func() int {
			var b bytes.Buffer
			check(to(&b))
			return b.Len()
		}
	}
	measure("pprof", repeats, write(p.WriteUncompressed))
	measure("pprof.gz", repeats, write(p.Write))
	measure("pprof.gz4", repeats, write(compressed(p, 4)))
	measure("pprof.gz1", repeats, write(compressed(p, gzip.BestSpeed)))
	measure("otlp", repeats, func() int { return len(translate(p, newGenerated())) })
	measure("otlp.pdata", repeats, func() int { return len(translate(p, newCollected())) })
}

func measureMarshal(file []byte, repeats int) {
	request := &otlp.ProfilesData{} // the fields of ExportProfilesServiceRequest
	check(proto.Unmarshal(file, request))
	measure("otlp.marshal", repeats, func() int {
		b, err := proto.Marshal(request)
		check(err)
		return len(b)
	})
}

func compare(p *profile.Profile, file []byte) {
	expected := content(file)
	for name, m := range map[string]message{"otlp": newGenerated(), "otlp.pdata": newCollected()} {
		found := content(translate(p, m))
		if !slices.Equal(found, expected) {
			check(fmt.Errorf("%s is another message: %d and %d values, of which the first are\n%s\n%s", name, len(found),
				len(expected), found[0], expected[0]))
		}
	}
}

func main() {
	file, err := os.ReadFile(os.Args[1])
	check(err)
	p, err := profile.ParseData(file)
	check(err)
	file, err = os.ReadFile(os.Args[2])
	check(err)
	if os.Args[3] == "compare" {
		compare(p, file)
		return
	}
	repeats, err := strconv.Atoi(os.Args[3])
	check(err)
	measureProfile(p, repeats)
	measureMarshal(file, repeats)
}
