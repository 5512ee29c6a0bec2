// SPDX-License-Identifier: Apache-2.0

// table SEED CASES: rules of relabeling and labels at random, with what Prometheus' own package makes of
// them. For each case lines "rule", "labels" and "kept" or "dropped", with fields between tabs, in which
// \t, \n, \\ are escaped. Patterns that the package refuses are lines "refused".
package main

import (
	"bufio"
	"fmt"
	"math/rand"
	"os"
	"regexp"
	"regexp/syntax"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
)

var random *rand.Rand

func pick(from ...string) string { return from[random.Intn(len(from))] }

var names = []string{"a", "b", "app", "pod", "team", "namespace", "k8s_app", "k8s_team", "_x", "A1"}
var values = []string{"", "a", "b", "ab", "ba", "aab", "kube-system", "prod", "prod-1", "v1.2.3", "Web", "WEB_2",
	"a;b", "x y", "line\nfeed", "tab\there", "ü", "Ünïcode", "日本", "{}", "$1", "a.b", "10", "\v"}

func atom(depth int) string {
	switch random.Intn(14) {
	case 0:
		return "."
	case 1:
		return pick("[a-c]", "[^a]", "[a-z0-9-]", "[[:alpha:]_]", "[]a]", "[^]a]", "[\\d.]", "[\\s;]", "[^\\S]",
			"[\\w-]", "[a\\-z]", "[\\x41-Z]", "[Ü日]", "[[:^digit:]]", "[-a]", "[a-]", "[.$^]", "[\\pL]", "[^\\P{Lu}]")
	case 2:
		return pick(`\d`, `\w`, `\s`, `\D`, `\W`, `\S`, `\.`, `\-`, `\n`, `\t`, `\v`, `\x41`, `\x{fc}`, `\101`, `\_`)
	case 3:
		return pick(`\pL`, `\p{Lu}`, `\P{L}`, `\p{Greek}`, `\p{^Nd}`, `\PN`, `\p{Han}`)
	case 4, 5:
		if depth > 0 {
			return pick("(", "(", "(?:", "(?P<n"+strconv.Itoa(random.Intn(1000))+">", "(?i:", "(?<m"+
				strconv.Itoa(random.Intn(1000))+">", "(?-s:", "(?U:", "(?im:") + alternation(depth-1) + ")"
		}
	case 6:
		return pick("^", "$", `\b`, `\B`, `\A`, `\z`, "(?i)", "(?m)", "(?s)", "(?U)", "")
	case 7:
		return pick(`\Qa.b\E`, `\Q;\E`, "{", "}", "]", "{,2}", "a{", "-", "ü", "日", "#", " ")
	}
	return pick("a", "b", "a", "b", "prod", "kube", "-", ";", "1", "e", "v")
}

func concatenation(depth int) string {
	var s strings.Builder
	for n := random.Intn(4); n >= 0; n-- {
		a := atom(depth)
		s.WriteString(a)
		// RE2 repeats what is before the flags then; fusee refuses it
		if a == "" || strings.HasPrefix(a, "(?") && strings.HasSuffix(a, ")") && len(a) == 4 {
			continue
		}
		if random.Intn(3) == 0 {
			s.WriteString(pick("*", "+", "?", "*?", "+?", "??", "{2}", "{1,}", "{0,2}", "{1,2}?", ".*", "(.*)"))
		}
	}
	return s.String()
}

func alternation(depth int) string {
	s := concatenation(depth)
	for random.Intn(4) == 0 {
		s += "|" + concatenation(depth)
	}
	return s
}

// A pattern made of a text, which it matches more often than others.
func like(text string) string {
	var s strings.Builder
	open := 0
	for _, c := range text {
		if random.Intn(5) == 0 {
			s.WriteString(pick("(", "(?:", "(x|", "(?i:", "(|"))
			open++
		}
		switch random.Intn(9) {
		case 0:
			s.WriteString(pick(".", ".*", ".+", ".?", ".*?", `[\w\s;.-]`, `\S`, `\w*`, "(.*)", "([^-;]*)"))
		case 1:
			s.WriteString("[" + regexp.QuoteMeta(string(c)) + "a]")
		case 2:
			s.WriteString(strings.ToUpper(regexp.QuoteMeta(string(c))))
		default:
			s.WriteString(regexp.QuoteMeta(string(c)))
			s.WriteString(pick("", "", "", "", "", "*", "?", "+", "{1,2}", "+?"))
		}
		if open > 0 && random.Intn(3) == 0 {
			s.WriteString(pick(")", ")?", ")*", ")", "|b)", ")+"))
			open--
		}
	}
	return s.String() + strings.Repeat(")", open)
}

func pattern() string {
	if random.Intn(2) == 0 {
		return like(pick(values...) + pick("", ";"+pick(values...), "-"+pick(values...)))
	}
	switch random.Intn(8) {
	case 0:
		return "(.*)"
	case 1:
		return pick(".+", "", "a|b", "(.*);(.*)", "([^-]+)-(.*)", "k8s_(.+)", "(a|b|ab)*", "(?i)(web).*", "[a-z_]+",
			"(a|ab)(b|ba)?", "(?:(a)|b)*", "(a*)(b*)", "(.*?)(.*)", "(a|b)?;?(.*)")
	case 2:
		return ".*" + alternation(2) + ".*"
	}
	return alternation(3)
}

func template() string {
	var s strings.Builder
	for n := random.Intn(3); n >= 0; n-- {
		s.WriteString(pick("$1", "${1}", "$2", "${2}", "$0", "x", "-", "$$", "${1}x", "$1x", "$9", "$", "${", "${n}", "ü",
			"$n"+strconv.Itoa(random.Intn(1000)), "$01", "prod"))
	}
	return s.String()
}

func sources() model.LabelNames {
	var all model.LabelNames
	for n := random.Intn(4); n > 0; n-- {
		all = append(all, model.LabelName(pick(append(names, "missing")...)))
	}
	return all
}

func rule() (*relabel.Config, string) {
	c := relabel.DefaultRelabelConfig
	p := pattern()
	c.Action = relabel.Action(pick("replace", "replace", "replace", "replace", "keep", "drop", "keepequal", "dropequal", "labelmap",
		"labelkeep", "labeldrop", "hashmod", "lowercase", "uppercase"))
	switch c.Action {
	case "labelmap":
		// names that fusee would not set, because they are no names, are not made
		p = pick("k8s_(.+)", "(.*)", "(a.*|t.*)", "([a-z]+)_(.*)", "_(.*)", "(?i)a(.*)", p)
		c.Replacement = pick("m_$1", "k8s_$1", "x", "y_${1}", "$0")
	case "labelkeep", "labeldrop":
		p = pick("k8s_.*", "a.*", "(?i)A.*", "[a-z]+", ".*_.*", "(pod|team|b)", "", p)
	case "keepequal", "dropequal":
		p = "(.*)"
		c.SourceLabels = sources()
		c.TargetLabel = pick(names...)
	default:
		c.SourceLabels = sources()
		c.Separator = pick(";", ";", ";", "", "-", "::", "\t")
		c.TargetLabel = pick(names...)
	}
	if c.Action == "hashmod" {
		c.Modulus = uint64(random.Intn(1000)) + 1
	}
	if c.Action == "replace" {
		c.Replacement = pick("$1", "", template(), template())
		c.TargetLabel = pick(c.TargetLabel, c.TargetLabel, "t_$1", "${1}", "$1_$2")
	}
	if p == "(.*)" {
		return &c, p
	}
	if c.Action == "replace" && differs(p) {
		c.TargetLabel, c.Replacement = pick(names...), "$0"
	}
	re, err := relabel.NewRegexp(p)
	if err != nil {
		return nil, p
	}
	c.Regex = re
	return &c, p
}

func escape(s string) string {
	return strings.NewReplacer("\\", "\\\\", "\t", "\\t", "\n", "\\n").Replace(s)
}

func line(out *bufio.Writer, fields ...string) {
	for i, f := range fields {
		fields[i] = escape(f)
	}
	fmt.Fprintln(out, strings.Join(fields, "\t"))
}

func write(out *bufio.Writer, what string, set map[string]string) {
	fields := []string{what}
	var all []string
	for name := range set {
		all = append(all, name)
	}
	sort.Strings(all)
	for _, name := range all {
		fields = append(fields, name+"="+set[name])
	}
	line(out, fields...)
}

// Does the expression match the empty text?
func nullable(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral, syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL, syntax.OpNoMatch:
		return false
	case syntax.OpStar, syntax.OpQuest:
		return true
	case syntax.OpAlternate:
		return slices.ContainsFunc(re.Sub, nullable)
	case syntax.OpRepeat:
		return re.Min == 0 || nullable(re.Sub[0])
	}
	return !slices.ContainsFunc(re.Sub, func(s *syntax.Regexp) bool { return !nullable(s) })
}

// Is something repeated that may be empty? What the groups in it match in the end is where RE2 and those that go
// back and try again differ: rules and templates with such groups are not compared, matches are.
func repeatsNothing(re *syntax.Regexp) bool {
	if (re.Op == syntax.OpStar || re.Op == syntax.OpPlus || re.Op == syntax.OpRepeat) && nullable(re.Sub[0]) {
		return true
	}
	return slices.ContainsFunc(re.Sub, repeatsNothing)
}

func differs(p string) bool {
	re, err := syntax.Parse("(?s:"+p+")", syntax.Perl)
	return err == nil && repeatsNothing(re)
}

// A pattern on a text of its own, with what a template becomes.
func match(out *bufio.Writer) {
	text := pick(values...) + pick("", ";"+pick(values...), pick(values...))
	p := pattern()
	if random.Intn(2) == 0 {
		p = like(text)
	}
	re, err := relabel.NewRegexp(p)
	if err != nil {
		line(out, "refused", p)
		return
	}
	to := pick("$0|$1|$2|$3", "${1}.$2", template())
	if differs(p) {
		to = "$0"
	}
	if at := re.FindStringSubmatchIndex(text); at != nil {
		line(out, "match", p, text, to, string(re.ExpandString(nil, to, text, at)))
	} else {
		line(out, "no", p, text)
	}
}

func main() {
	seed, _ := strconv.ParseInt(os.Args[1], 10, 64)
	cases, _ := strconv.Atoi(os.Args[2])
	random = rand.New(rand.NewSource(seed))
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for n := 0; n < cases; n++ {
		match(out)
		before := map[string]string{}
		for k := random.Intn(7); k >= 0; k-- {
			before[pick(names...)] = pick(values...)
		}
		var rules []*relabel.Config
		for k := random.Intn(4); k >= 0; k-- {
			c, p := rule()
			if c == nil {
				line(out, "refused", p)
				continue
			}
			if err := c.Validate(model.LegacyValidation); err != nil {
				continue
			}
			rules = append(rules, c)
			fields := []string{"rule", string(c.Action), c.Separator, p, strconv.FormatUint(c.Modulus, 10), c.TargetLabel, c.Replacement}
			for _, s := range c.SourceLabels {
				fields = append(fields, string(s))
			}
			line(out, fields...)
		}
		write(out, "labels", before)
		b := labels.NewBuilder(labels.FromMap(before))
		if relabel.ProcessBuilder(b, rules...) {
			after := map[string]string{}
			b.Labels().Range(func(l labels.Label) { after[l.Name] = l.Value })
			write(out, "kept", after)
		} else {
			line(out, "dropped")
		}
	}
}
