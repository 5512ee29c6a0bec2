// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/profiles/v1development"
	"google.golang.org/protobuf/proto"
)

func textOf(d *otlp.ProfilesDictionary, v *common.AnyValue) string {
	switch v := v.GetValue().(type) {
	case *common.AnyValue_StringValue:
		return v.StringValue
	case *common.AnyValue_StringValueStrindex:
		return d.StringTable[v.StringValueStrindex]
	case *common.AnyValue_IntValue:
		return fmt.Sprint(v.IntValue)
	}
	return "?"
}

func resourceText(d *otlp.ProfilesDictionary, attributes []*common.KeyValue) string {
	var to []string
	for _, a := range attributes {
		key := a.Key
		if key == "" {
			key = d.StringTable[a.KeyStrindex]
		}
		to = append(to, key+"="+textOf(d, a.Value))
	}
	slices.Sort(to)
	return strings.Join(to, ",")
}

func attributesText(d *otlp.ProfilesDictionary, indices []int32) string {
	var to []string
	for _, i := range indices {
		a := d.AttributeTable[i]
		to = append(to, d.StringTable[a.KeyStrindex]+"="+textOf(d, a.Value)+d.StringTable[a.UnitStrindex])
	}
	slices.Sort(to)
	return strings.Join(to, ",")
}

func stackText(d *otlp.ProfilesDictionary, s *otlp.Stack) string {
	var to strings.Builder
	for _, i := range s.LocationIndices {
		l := d.LocationTable[i]
		m := d.MappingTable[l.MappingIndex]
		fmt.Fprintf(&to, "%x in %s %x-%x+%x %s %s;", l.Address, d.StringTable[m.FilenameStrindex], m.MemoryStart, m.MemoryLimit,
			m.FileOffset, attributesText(d, m.AttributeIndices), attributesText(d, l.AttributeIndices))
		for _, line := range l.Lines {
			f := d.FunctionTable[line.FunctionIndex]
			fmt.Fprintf(&to, "%s %s %s:%d at %d.%d;", d.StringTable[f.NameStrindex], d.StringTable[f.SystemNameStrindex],
				d.StringTable[f.FilenameStrindex], f.StartLine, line.Line, line.Column)
		}
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(to.String())))
}

// What a request says, whatever the order of its parts: a line for each value of a sample.
func content(request []byte) []string {
	data := &otlp.ProfilesData{}
	check(proto.Unmarshal(request, data))
	d := data.Dictionary
	stacks := make([]string, len(d.StackTable))
	for i, s := range d.StackTable {
		stacks[i] = stackText(d, s)
	}
	var to []string
	for _, r := range data.ResourceProfiles {
		of := resourceText(d, r.Resource.Attributes) + " " + r.SchemaUrl
		for _, scope := range r.ScopeProfiles {
			for _, p := range scope.Profiles {
				head := fmt.Sprint(of, scope.Scope.Name, scope.Scope.Version, d.StringTable[p.SampleType.TypeStrindex],
					d.StringTable[p.SampleType.UnitStrindex], d.StringTable[p.PeriodType.TypeStrindex],
					d.StringTable[p.PeriodType.UnitStrindex], p.Period, p.TimeUnixNano, p.DurationNano, len(p.ProfileId),
					attributesText(d, p.AttributeIndices))
				for _, s := range p.Samples {
					to = append(to, fmt.Sprint(head, s.Values, s.LinkIndex, attributesText(d, s.AttributeIndices),
						stacks[s.StackIndex]))
				}
			}
		}
	}
	slices.Sort(to)
	return to
}
