// Tests of patterns in after: which nodes they match, and the errors for patterns that match none.

package file

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMatchName(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"spin.*", "spin.0", true}, {"spin.*", "spin.", true}, {"spin.*", "spin", false}, {"spin.*", "a.spin.0", false},
		{"*.3", "spin.3", true}, {"*.3", "spin.33", false}, {"*", "anything", true}, {"*", "", true},
		{"a*a", "a", false}, {"a*a", "aa", true}, {"a*a", "aba", true}, {"t*.*.x", "t1.2.x", true}, {"t*.*.x", "t1.x", false},
		{"a*bc*d", "abcbcd", true}, {"a*bc*d", "abd", false}, {"a**b", "ab", true}, {"ä*", "äß", true}, {"name", "name", true}, {"name", "names", false},
	} {
		require.Equal(t, c.want, matchName(c.pattern, c.name), "%s %s", c.pattern, c.name)
	}
}

// afterOf parses nodes that set one element each and returns the names after which each comes.
func afterOf(t *testing.T, nodes string) (map[string]string, error) {
	t.Helper()
	source := "version: 1\nbuffers:\n  d: {place: device, dtype: f32, shape: [64]}\nnodes:\n" + nodes
	g, err := Parse([]byte(source), testOptions())
	if err != nil {
		return nil, err
	}
	after := map[string]string{}
	for i := range g.Nodes {
		var names []string
		for _, from := range g.Nodes[i].After {
			names = append(names, g.Nodes[from].Name)
		}
		after[g.Nodes[i].Name] = strings.Join(names, " ")
	}
	return after, nil
}

func TestAfterPatterns(t *testing.T) {
	after, err := afterOf(t, `
  - {name: early, memset: {to: d(0..1), value: 0}, after: ["spin.*"]}
  - {foreach: {i: 12}, name: spin.$i, memset: {to: d(i+1..i+2), value: 0}}
  - {name: spin.join, memset: {to: d(20..21), value: 0}, after: [spin.3, spin.*, early]}
  - {name: twos, memset: {to: d(22..23), value: 0}, after: ["*2", "spin.1*"]}
  - {name: "st*r", memset: {to: d(24..25), value: 0}}
  - {name: exact, memset: {to: d(26..27), value: 0}, after: ["st*r"]}
  - {name: stir, memset: {to: d(28..29), value: 0}, when: 1 < 0}
  - {name: gone, memset: {to: d(30..31), value: 0}, after: ["stir*"]}
`)
	require.EqualError(t, err, "p.yaml:6:5: dependency cycle: early -> spin.join -> early", "spin.* is spin.join too")
	require.Nil(t, after)
	after, err = afterOf(t, `
  - {name: early, memset: {to: d(0..1), value: 0}, after: ["spin.*"]}
  - {foreach: {i: 12}, name: spin.$i, memset: {to: d(i+1..i+2), value: 0}}
  - {name: twos, memset: {to: d(22..23), value: 0}, after: ["*2", "spin.1*"]}
  - {name: spin.last, memset: {to: d(20..21), value: 0}, after: [spin.3, "spin.*"]}
  - {name: "st*r", memset: {to: d(24..25), value: 0}}
  - {name: exact, memset: {to: d(26..27), value: 0}, after: ["st*r"]}
  - {name: stir, memset: {to: d(28..29), value: 0}, when: 1 < 0}
  - {name: gone, memset: {to: d(30..31), value: 0}, after: ["stir*"]}
`)
	require.NoError(t, err)
	all := "spin.0 spin.1 spin.2 spin.3 spin.4 spin.5 spin.6 spin.7 spin.8 spin.9 spin.10 spin.11"
	require.Equal(t, all+" spin.last", after["early"], "later nodes too, in the order of declaration")
	require.Equal(t, "spin.3 "+strings.Replace(all, "spin.3 ", "", 1), after["spin.last"], "not itself, and none twice")
	require.Equal(t, "spin.2 spin.1 spin.10 spin.11", after["twos"])
	require.Equal(t, "st*r", after["exact"], "a name comes before what it could stand for")
	require.Equal(t, "", after["gone"], "a node that is left out is no mistake")
}

// A few lines must not declare trillions of dependencies.
func TestAfterPatternsAreLimited(t *testing.T) {
	var nodes strings.Builder
	for i := range 2100 {
		fmt.Fprintf(&nodes, "  - {name: n%d, memset: {to: d(0..1), value: 0}, after: [\"*\"]}\n", i)
	}
	_, err := afterOf(t, nodes.String())
	require.ErrorContains(t, err, "the patterns of after match more than 4194304 nodes in all, the limit of a file; put one node after them, and the others after that")
}
