// Fallbacks: what check says of loops and branches that no CUDA graph can hold. No device is asked.

package exported

import (
	"fmt"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
)

// Fallback is a loop or branch that cannot be a conditional graph node, in JSON.
type Fallback struct {
	Node  string `json:"node"`
	Line  int32  `json:"line,omitempty"`
	Body  string `json:"body_node"` // the first node of its bodies that is why
	At    int32  `json:"body_line,omitempty"`
	Cause string `json:"why"`
	Fix   string `json:"fix"`
}

func FallbacksOf(g *dag.Graph) []Fallback {
	list := []Fallback{}
	for _, f := range g.Fallbacks() {
		list = append(list, Fallback{f.Control.Name, f.Control.Pos.Line, f.Because.Name, f.Because.Pos.Line, f.Why, f.Fix})
	}
	return list
}

func (u *Exported) PrintFallbacks(list []Fallback) {
	for _, f := range list {
		_ = u.Stdout.Printf("runs as streams: %s cannot be a conditional graph node, because %s %s; %s\n", onLine(f.Node, f.Line),
			onLine(f.Body, f.At), f.Cause, f.Fix)
	}
}

// onLine is the name of a node with its line, if that is known.
func onLine(name string, line int32) string {
	text := words.Line(name)
	if line > 0 {
		text += fmt.Sprintf(" (line %d)", line)
	}
	return text
}
