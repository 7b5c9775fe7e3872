// Patterns in after: lists, such as "spin.*", and the nodes whose names match them.

package file

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
)

// maxPatternEdges is the most dependencies that the patterns of one file may stand for: a few lines could ask for trillions.
const maxPatternEdges = dag.MaxNodes

// matchName reports whether a name fits a pattern, in which * stands for any run of characters.
func matchName(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	first, last := parts[0], parts[len(parts)-1]
	if len(parts) == 1 {
		return pattern == name
	}
	if len(name) < len(first)+len(last) || !strings.HasPrefix(name, first) || !strings.HasSuffix(name, last) {
		return false
	}
	// Matching each part as early as possible leaves the most text for the parts after it.
	rest := name[len(first) : len(name)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		at := strings.Index(rest, part)
		if at < 0 {
			return false
		}
		rest = rest[at+len(part):]
	}
	return true
}

// matching returns the nodes that fit a pattern, in declaration order.
func (p *parser) matching(pattern string) []dag.NodeID {
	nodes := p.pipeline.Nodes
	a := &p.patterns
	if found, ok := a.found[pattern]; ok {
		return found
	}
	if a.found == nil {
		a.found = map[string][]dag.NodeID{}
		first := 0
		if p.within != nil {
			first = p.within.firstNode
		}
		a.sorted = make([]dag.NodeID, len(nodes)-first)
		for i := range a.sorted {
			a.sorted[i] = dag.NodeID(first + i)
		}
		sort.Slice(a.sorted, func(i, j int) bool { return nodes[a.sorted[i]].Name < nodes[a.sorted[j]].Name })
	}
	// Names with the same prefix are adjacent when sorted, so that many patterns, such as one per step, need not each scan all nodes.
	prefix, _, _ := strings.Cut(pattern, "*")
	from := sort.Search(len(a.sorted), func(k int) bool { return nodes[a.sorted[k]].Name >= prefix })
	var found []dag.NodeID
	for _, id := range a.sorted[from:] {
		name := nodes[id].Name
		if !strings.HasPrefix(name, prefix) {
			break
		}
		if matchName(pattern, name) {
			found = append(found, id)
		}
	}
	sort.Slice(found, func(i, j int) bool { return found[i] < found[j] })
	a.found[pattern] = found
	return found
}

// afterPattern adds the nodes that a pattern stands for to a node's predecessors. It returns what is wrong, or "".
func (p *parser) afterPattern(id dag.NodeID, pattern string) (problem, hint string) {
	found := p.matching(pattern)
	others := len(found)
	for _, one := range found {
		if one == id {
			others--
		}
	}
	if others == 0 {
		if p.unsettled(pattern) {
			return "", ""
		}
		if len(found) == 1 {
			return fmt.Sprintf("only %q itself matches %q", words.Shorten(p.pipeline.Nodes[id].Name), words.Shorten(pattern)), ""
		}
		return fmt.Sprintf("no node matches %q", words.Shorten(pattern)), p.nearPattern(pattern)
	}
	if p.patterns.edges += int64(others); p.patterns.edges > maxPatternEdges {
		return fmt.Sprintf("the patterns of after match more than %d nodes in all, the limit of a file",
			int64(maxPatternEdges)), "put one node after them, and the others after that"
	}
	node := &p.pipeline.Nodes[id]
	before := slices.Sorted(slices.Values(node.After)) // the list so far, from names and other patterns
	for _, one := range found {
		if _, twice := slices.BinarySearch(before, one); one != id && !twice {
			node.After = append(node.After, one)
		}
	}
	return "", ""
}

// unsettled reports whether a node that is broken or left out fits: then it is no mistake that no other does.
func (p *parser) unsettled(pattern string) bool {
	for name, id := range p.nodes {
		if id == broken && matchName(pattern, p.prefixed(name)) {
			return true
		}
	}
	for name := range p.leftOut {
		if matchName(pattern, p.prefixed(name)) {
			return true
		}
	}
	return slices.ContainsFunc(append(p.brokenUses, p.leftOutUses...), func(prefix string) bool { return strings.HasPrefix(pattern, p.prefixed(prefix)) })
}

// nearPattern suggests a pattern of the names that are there, numbers made *, or of how they begin.
func (p *parser) nearPattern(pattern string) string {
	near := p.near(pattern, func() []string {
		var all []string
		seen := map[string]struct{}{}
		for i := range p.pipeline.Nodes {
			candidate := numbersAsStars(p.pipeline.Nodes[i].Name)
			begin, _, repeated := strings.Cut(candidate, "*")
			for _, one := range []string{candidate, begin + "*"} {
				if _, old := seen[one]; !old && (repeated || one == candidate) {
					seen[one] = struct{}{}
					all = append(all, one)
				}
			}
		}
		return all
	})
	if near == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %q?", near)
}

// numbersAsStars makes spin.* of spin.17.
func numbersAsStars(name string) string {
	var b strings.Builder
	inNumber := false
	for _, c := range name {
		digit := c >= '0' && c <= '9'
		switch {
		case digit && !inNumber:
			b.WriteByte('*')
		case !digit:
			b.WriteRune(c)
		}
		inNumber = digit
	}
	return b.String()
}
