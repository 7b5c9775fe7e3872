// Tests of files made to be expensive: each has 100 kB and must be read within the limits for bad files, in time linear in its size.

package file

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dagrun/dagrun/dag"
	"github.com/stretchr/testify/require"
)

func hostileFiles(size int) map[string]string {
	const nodes = "version: 1\nnodes: "
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	numbered := func(format string) string {
		var b strings.Builder
		for k := 0; b.Len() < size; k++ {
			b.WriteString(strings.ReplaceAll(format, "#", fmt.Sprint(k)))
		}
		return b.String()
	}
	return map[string]string{
		"comments":         nodes + "[]\n" + fill("# a comment\n"),
		"comments first":   fill("# a comment\n") + nodes + "[]\n",
		"comments behind":  "version: 1\nnodes:\n" + fill("- a # b\n"),
		"empty lines":      nodes + "[]\n" + fill("\n"),
		"open brackets":    nodes + fill("["),
		"open braces":      nodes + fill("{a: "),
		"dashes":           fill("- "),
		"question marks":   fill("? "),
		"colons":           nodes + "[" + fill(": "),
		"not nodes":        nodes + "[" + fill("a,") + "]",
		"empty nodes":      nodes + "[" + fill("{},") + "]",
		"long plain":       nodes + fill("a "),
		"plain lines":      nodes + fill("a\n "),
		"open quote":       nodes + "\"" + fill("a\n "),
		"block scalar":     nodes + "|\n" + fill("  a\n"),
		"duplicate keys":   nodes + "[]\n" + fill("a: 1\n"),
		"duplicate params": nodes + "[]\nparams:\n" + fill("  a: 1\n"),
		"unknown params":   nodes + "[]\nparams:\n" + numbered("  a#: b\n"),
		"anchors":          nodes + "[" + fill("&a a,") + "]",
		"aliases":          nodes + "[&a a," + fill("*a,") + "]",
		"tags":             nodes + "[" + fill("!a a,") + "]",
		"documents":        fill("---\n"),
		"carriage returns": fill("a: 1\r"),
		"tabs":             nodes + fill("\t") + "a",
		"long key":         nodes + "[{" + fill("a") + ": 1}]",
		"unknown buffers":  "version: 1\nbuffers:\n" + numbered("  buffer#: {place: device, dtype: f32, shape: [4]}\n") + "nodes:\n" + numbered("- {name: a#, memcpy: {from: bufer#, to: bufer#}}\n"),
		"same buffers":     "version: 1\nbuffers:\n" + fill("  x: {place: device, dtype: f32, shape: [4]}\n") + "nodes: []\n",
		"unknown nodes":    "version: 1\nbuffers:\n  x: {place: device, dtype: f32, shape: [4]}\nnodes:\n  - {name: a, memset: {to: x, value: 0}, after: [" + fill("b, ") + "]}\n",
		"many dimensions":  "version: 1\nbuffers:\n  x: {place: device, dtype: f32, shape: [" + fill("4, ") + "]}\nnodes: []\n",
		"long sum":         nodes + "[]\nparams: {n: " + fill("1+") + "1}\n",
		"long list":        "version: 1\nnodes:\n  - {foreach: {i: [" + fill("1,") + "]}, name: a, memset: {to: x, value: 0}}\n",
		"misspelt keys":    "version: 1\nbuffers:\n  x: {" + numbered("plase#: host, ") + "}\nnodes: []\n",
	}
}

func TestHostileFiles(t *testing.T) {
	for name, source := range hostileFiles(100_000) {
		t.Run(name, func(t *testing.T) {
			var g *dag.Graph
			var err error
			require.Less(t, allocated(func() {
				if g, err = Parse([]byte(source), testOptions()); err != nil {
					_ = err.Error()
				}
			}), uint64(badFileBytes))
			require.Equal(t, g == nil, err != nil)
			if err != nil {
				require.LessOrEqual(t, len(mistakes(t, err).List), MaxDiagnostics)
			}
		})
	}
}
