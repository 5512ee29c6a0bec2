// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"

	"github.com/google/pprof/profile"
)

// A message of OTLP's profiles signal that is made. Elements of a table have consecutive numbers; 0, which is empty, is added
// first. Slices are the caller's, who uses them again, but for `attributes` of a sample.
type message interface {
	text(string)
	function(name, systemName, file int32, startLine int64)
	mapping(m *profile.Mapping, file int32, attributes []int32)
	location(mapping int32, address uint64, lines []line)
	attribute(key int32, v value)
	stack(locations []int32)
	resource(attributes []attribute)
	profile(p *profile.Profile, kind, unit, periodKind, periodUnit int32, id [16]byte)
	sample(stack int32, attributes []int32, v int64)
	marshal() []byte
}

type value struct {
	text     string
	number   int64
	isNumber bool
}

type attribute struct {
	key string
	value
}

type line struct {
	function     int32
	line, column int64
}

type sample struct {
	stack      int32
	attributes []int32
	values     []int64
}

// A resource: the samples with the same labels of the same process.
type resource struct {
	attributes []attribute
	samples    []sample
}

// What sink.otlp calls labels. Each target of the bench is in a pod.
var names = map[string]string{
	"container":    "k8s.container.name",
	"host":         "host.name",
	"namespace":    "k8s.namespace.name",
	"pid":          "process.pid",
	"pod":          "k8s.pod.name",
	"process":      "process.executable.name",
	"service_name": "service.name",
	"thread":       "thread.name",
	"tid":          "thread.id",
}

func nameOf(label string) string {
	if name, ok := names[label]; ok {
		return name
	}
	return label
}

// Makes a message of a profile as sink.otlp does: a resource for each process and its labels, in it a profile for each type of
// value, and one dictionary. Functions, mappings and locations are distinct by their ids, the rest by maps.
type translator struct {
	to                             message
	texts                          map[string]int32
	attributes                     map[attribute]int32
	stacks                         map[string]int32
	functions, mappings, locations []int32 // by id: number; 0: none yet
	last                           struct{ function, mapping, location int32 }
	labels                         []string // that samples have, in the order in which they were seen
	lines                          []line
	numbers                        []int32
	id                             []byte
}

func newTranslator(p *profile.Profile, to message) *translator {
	t := &translator{to: to, texts: map[string]int32{}, attributes: map[attribute]int32{{}: 0}, stacks: map[string]int32{"": 0}}
	var functions, mappings, locations uint64
	for _, f := range p.Function {
		functions = max(functions, f.ID)
	}
	for _, m := range p.Mapping {
		mappings = max(mappings, m.ID)
	}
	for _, l := range p.Location {
		locations = max(locations, l.ID)
	}
	t.functions = make([]int32, functions+1)
	t.mappings = make([]int32, mappings+1)
	t.locations = make([]int32, locations+1)
	t.text("")
	to.function(0, 0, 0, 0)
	to.mapping(&profile.Mapping{}, 0, nil)
	to.location(0, 0, nil)
	to.attribute(0, value{})
	to.stack(nil)
	return t
}

func (t *translator) text(s string) int32 {
	n, ok := t.texts[s]
	if !ok {
		n = int32(len(t.texts))
		t.texts[s] = n
		t.to.text(s)
	}
	return n
}

func (t *translator) attribute(a attribute) int32 {
	n, ok := t.attributes[a]
	if !ok {
		n = int32(len(t.attributes))
		t.attributes[a] = n
		t.to.attribute(t.text(a.key), a.value)
	}
	return n
}

func (t *translator) function(f *profile.Function) int32 {
	if n := t.functions[f.ID]; n != 0 {
		return n
	}
	t.to.function(t.text(f.Name), t.text(f.SystemName), t.text(f.Filename), f.StartLine)
	t.last.function++
	t.functions[f.ID] = t.last.function
	return t.last.function
}

func (t *translator) mapping(m *profile.Mapping) int32 {
	if m == nil {
		return 0
	}
	if n := t.mappings[m.ID]; n != 0 {
		return n
	}
	var attributes []int32
	if m.BuildID != "" {
		attributes = append(attributes, t.attribute(attribute{"process.executable.build_id.gnu", value{text: m.BuildID}}))
	}
	t.to.mapping(m, t.text(m.File), attributes)
	t.last.mapping++
	t.mappings[m.ID] = t.last.mapping
	return t.last.mapping
}

func (t *translator) location(l *profile.Location) int32 {
	if n := t.locations[l.ID]; n != 0 {
		return n
	}
	t.lines = t.lines[:0]
	for _, from := range l.Line {
		if from.Function != nil {
			t.lines = append(t.lines, line{t.function(from.Function), from.Line, from.Column})
		}
	}
	t.to.location(t.mapping(l.Mapping), l.Address, t.lines)
	t.last.location++
	t.locations[l.ID] = t.last.location
	return t.last.location
}

func (t *translator) stack(locations []*profile.Location) int32 {
	t.id, t.numbers = t.id[:0], t.numbers[:0]
	for _, l := range locations {
		n := t.location(l)
		t.numbers = append(t.numbers, n)
		t.id = binary.LittleEndian.AppendUint32(t.id, uint32(n))
	}
	n, ok := t.stacks[string(t.id)]
	if !ok {
		n = int32(len(t.stacks))
		t.stacks[string(t.id)] = n
		t.to.stack(t.numbers)
	}
	return n
}

// Does the label describe the sample, and not its process?
func isOfSample(label string) bool {
	return label == "thread" || label == "reason"
}

// Appends to t.labels what the sample has and no sample before it had.
func (t *translator) see(s *profile.Sample) {
	found := 0
	for _, label := range t.labels {
		if _, ok := s.Label[label]; ok {
			found++
		}
	}
	if found == len(s.Label) {
		return
	}
next:
	for label := range s.Label {
		for _, seen := range t.labels {
			if seen == label {
				continue next
			}
		}
		t.labels = append(t.labels, label)
	}
}

// Makes t.id of what samples of the same resource have in common.
func (t *translator) identify(s *profile.Sample) {
	t.id = t.id[:0]
	for i, label := range t.labels {
		if v := s.Label[label]; len(v) > 0 && !isOfSample(label) {
			t.id = binary.AppendUvarint(t.id, uint64(i)+1)
			t.id = binary.AppendUvarint(t.id, uint64(len(v[0])))
			t.id = append(t.id, v[0]...)
		}
	}
	if pid := s.NumLabel["pid"]; len(pid) > 0 {
		t.id = append(t.id, 0)
		t.id = binary.AppendVarint(t.id, pid[0])
	}
}

func (t *translator) newResource(s *profile.Sample) *resource {
	r := &resource{}
	for _, label := range t.labels {
		if v := s.Label[label]; len(v) > 0 && !isOfSample(label) {
			r.attributes = append(r.attributes, attribute{nameOf(label), value{text: v[0]}})
		}
	}
	if pid := s.NumLabel["pid"]; len(pid) > 0 {
		r.attributes = append(r.attributes, attribute{names["pid"], value{number: pid[0], isNumber: true}})
	}
	return r
}

func (t *translator) sampleAttributes(s *profile.Sample) []int32 {
	var to []int32
	for _, label := range t.labels {
		if v := s.Label[label]; len(v) > 0 && isOfSample(label) {
			to = append(to, t.attribute(attribute{nameOf(label), value{text: v[0]}}))
		}
	}
	for label, v := range s.NumLabel {
		if len(v) > 0 && label != "pid" {
			to = append(to, t.attribute(attribute{nameOf(label), value{number: v[0], isNumber: true}}))
		}
	}
	return to
}

func (t *translator) resources(p *profile.Profile) []*resource {
	known := map[string]*resource{}
	var all []*resource
	for _, s := range p.Sample {
		t.see(s)
		t.identify(s)
		r, ok := known[string(t.id)]
		if !ok {
			r = t.newResource(s)
			known[string(t.id)] = r
			all = append(all, r)
		}
		r.samples = append(r.samples, sample{t.stack(s.Location), t.sampleAttributes(s), s.Value})
	}
	return all
}

func translate(p *profile.Profile, to message) []byte {
	t := newTranslator(p, to)
	var id [16]byte
	count := uint32(0)
	for _, r := range t.resources(p) {
		to.resource(r.attributes)
		for i, kind := range p.SampleType {
			count++
			binary.LittleEndian.PutUint32(id[12:], count)
			to.profile(p, t.text(kind.Type), t.text(kind.Unit), t.text(p.PeriodType.Type), t.text(p.PeriodType.Unit), id)
			for _, s := range r.samples {
				to.sample(s.stack, s.attributes, s.values[i])
			}
		}
	}
	return to.marshal()
}
