// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"

	"github.com/google/pprof/profile"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/profiles/v1development"
	resources "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/proto"
)

const (
	scopeName    = "fusee"
	scopeVersion = "0.1"
	schema       = "https://opentelemetry.io/schemas/1.37.0"
)

// ---- the structs that protoc generates ----

type generated struct {
	*otlp.ProfilesDictionary
	data  otlp.ProfilesData // the fields of ExportProfilesServiceRequest
	scope *otlp.ScopeProfiles
	to    *otlp.Profile
}

func newGenerated() message {
	g := &generated{ProfilesDictionary: &otlp.ProfilesDictionary{LinkTable: []*otlp.Link{{}}}}
	g.data.Dictionary = g.ProfilesDictionary
	return g
}

func generatedValue(v value) *common.AnyValue {
	if v.isNumber {
		return &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: v.number}}
	}
	return &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: v.text}}
}

func (g *generated) text(s string) {
	g.StringTable = append(g.StringTable, s)
}

func (g *generated) function(name, systemName, file int32, startLine int64) {
	g.FunctionTable = append(g.FunctionTable, &otlp.Function{
		NameStrindex: name, SystemNameStrindex: systemName, FilenameStrindex: file, StartLine: startLine})
}

func (g *generated) mapping(m *profile.Mapping, file int32, attributes []int32) {
	g.MappingTable = append(g.MappingTable, &otlp.Mapping{MemoryStart: m.Start, MemoryLimit: m.Limit, FileOffset: m.Offset,
		FilenameStrindex: file, AttributeIndices: slices.Clone(attributes)})
}

func (g *generated) location(mapping int32, address uint64, lines []line) {
	l := &otlp.Location{MappingIndex: mapping, Address: address}
	for _, from := range lines {
		l.Lines = append(l.Lines, &otlp.Line{FunctionIndex: from.function, Line: from.line, Column: from.column})
	}
	g.LocationTable = append(g.LocationTable, l)
}

func (g *generated) attribute(key int32, v value) {
	a := &otlp.KeyValueAndUnit{KeyStrindex: key}
	if key != 0 {
		a.Value = generatedValue(v)
	}
	g.AttributeTable = append(g.AttributeTable, a)
}

func (g *generated) stack(locations []int32) {
	g.StackTable = append(g.StackTable, &otlp.Stack{LocationIndices: slices.Clone(locations)})
}

func (g *generated) resource(attributes []attribute) {
	r := &resources.Resource{}
	for _, a := range attributes {
		r.Attributes = append(r.Attributes, &common.KeyValue{Key: a.key, Value: generatedValue(a.value)})
	}
	g.scope = &otlp.ScopeProfiles{Scope: &common.InstrumentationScope{Name: scopeName, Version: scopeVersion}}
	g.data.ResourceProfiles = append(g.data.ResourceProfiles, &otlp.ResourceProfiles{
		Resource: r, SchemaUrl: schema, ScopeProfiles: []*otlp.ScopeProfiles{g.scope}})
}

func (g *generated) profile(p *profile.Profile, kind, unit, periodKind, periodUnit int32, id [16]byte) {
	g.to = &otlp.Profile{SampleType: &otlp.ValueType{TypeStrindex: kind, UnitStrindex: unit},
		PeriodType: &otlp.ValueType{TypeStrindex: periodKind, UnitStrindex: periodUnit}, Period: p.Period,
		TimeUnixNano: uint64(p.TimeNanos), DurationNano: uint64(p.DurationNanos), ProfileId: id[:]}
	g.scope.Profiles = append(g.scope.Profiles, g.to)
}

func (g *generated) sample(stack int32, attributes []int32, v int64) {
	g.to.Samples = append(g.to.Samples, &otlp.Sample{StackIndex: stack, AttributeIndices: attributes, Values: []int64{v}})
}

func (g *generated) marshal() []byte {
	b, err := proto.Marshal(&g.data)
	check(err)
	return b
}

// ---- the OpenTelemetry Collector's own ----

type collected struct {
	data  pprofile.Profiles
	d     pprofile.ProfilesDictionary
	scope pprofile.ScopeProfiles
	to    pprofile.Profile
}

func newCollected() message {
	data := pprofile.NewProfiles()
	data.Dictionary().LinkTable().AppendEmpty()
	return &collected{data: data, d: data.Dictionary()}
}

func (c *collected) text(s string) {
	c.d.StringTable().Append(s)
}

func (c *collected) function(name, systemName, file int32, startLine int64) {
	f := c.d.FunctionTable().AppendEmpty()
	f.SetNameStrindex(name)
	f.SetSystemNameStrindex(systemName)
	f.SetFilenameStrindex(file)
	f.SetStartLine(startLine)
}

func (c *collected) mapping(m *profile.Mapping, file int32, attributes []int32) {
	to := c.d.MappingTable().AppendEmpty()
	to.SetMemoryStart(m.Start)
	to.SetMemoryLimit(m.Limit)
	to.SetFileOffset(m.Offset)
	to.SetFilenameStrindex(file)
	to.AttributeIndices().FromRaw(attributes)
}

func (c *collected) location(mapping int32, address uint64, lines []line) {
	l := c.d.LocationTable().AppendEmpty()
	l.SetMappingIndex(mapping)
	l.SetAddress(address)
	for _, from := range lines {
		to := l.Lines().AppendEmpty()
		to.SetFunctionIndex(from.function)
		to.SetLine(from.line)
		to.SetColumn(from.column)
	}
}

func (c *collected) attribute(key int32, v value) {
	a := c.d.AttributeTable().AppendEmpty()
	a.SetKeyStrindex(key)
	if v.isNumber {
		a.Value().SetInt(v.number)
	} else if key != 0 {
		a.Value().SetStr(v.text)
	}
}

func (c *collected) stack(locations []int32) {
	c.d.StackTable().AppendEmpty().LocationIndices().FromRaw(locations)
}

func (c *collected) resource(attributes []attribute) {
	r := c.data.ResourceProfiles().AppendEmpty()
	r.SetSchemaUrl(schema)
	to := r.Resource().Attributes()
	to.EnsureCapacity(len(attributes))
	for _, a := range attributes {
		if a.isNumber {
			to.PutInt(a.key, a.number)
		} else {
			to.PutStr(a.key, a.value.text)
		}
	}
	c.scope = r.ScopeProfiles().AppendEmpty()
	c.scope.Scope().SetName(scopeName)
	c.scope.Scope().SetVersion(scopeVersion)
}

func (c *collected) profile(p *profile.Profile, kind, unit, periodKind, periodUnit int32, id [16]byte) {
	c.to = c.scope.Profiles().AppendEmpty()
	c.to.SampleType().SetTypeStrindex(kind)
	c.to.SampleType().SetUnitStrindex(unit)
	c.to.PeriodType().SetTypeStrindex(periodKind)
	c.to.PeriodType().SetUnitStrindex(periodUnit)
	c.to.SetPeriod(p.Period)
	c.to.SetTime(pcommon.Timestamp(p.TimeNanos))
	c.to.SetDurationNano(uint64(p.DurationNanos))
	c.to.SetProfileID(id)
}

func (c *collected) sample(stack int32, attributes []int32, v int64) {
	s := c.to.Samples().AppendEmpty()
	s.SetStackIndex(stack)
	s.AttributeIndices().FromRaw(attributes)
	s.Values().Append(v)
}

func (c *collected) marshal() []byte {
	b, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(c.data)
	check(err)
	return b
}
