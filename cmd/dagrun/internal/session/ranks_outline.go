// What ranks compare before they run a pipeline together: a hash of what it does, and the same in words, for the first difference.

package session

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/outline"
	"github.com/dagrun/dagrun/kernels/launch"
)

// rankHash is what a rank's graph is compared by.
func rankHash(g *dag.Graph) string {
	return g.Hash() + " " + g.WorkHash() + " " + shortHash([]byte(strings.Join(outlineOf(g), "\n")))
}

func shortHash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// outlineOf lists the nodes with what they do, those of bodies after all others, and the buffers with the contents that the file gives them.
func outlineOf(g *dag.Graph) []string {
	var lines []string
	codes := map[*launch.Module]string{}
	g.EachGraph(func(g *dag.Graph, path []string) {
		for i := range g.Nodes {
			name := strings.Join(append(slices.Clip(path), g.Nodes[i].Name), ": ")
			lines = append(lines, name+"\x00"+g.Nodes[i].Kind.String()+" "+strings.Join(outlineParts(g, dag.NodeID(i), codes), ", "))
		}
	})
	for k := range g.Buffers {
		if text := contentsText(g.Buffers[k].Init); text != "" {
			lines = append(lines, "buffer\x00"+g.Buffers[k].Name+"\x00init="+text)
		}
	}
	return lines
}

// outlineParts says what a node does, each part as name=value, and which bytes it accesses. The nodes of bodies have lines of their own.
func outlineParts(g *dag.Graph, i dag.NodeID, codes map[*launch.Module]string) []string {
	parts := slices.DeleteFunc(outline.Parts(g, i), func(part string) bool { return strings.HasPrefix(part, "work of body ") })
	if l := g.Nodes[i].Launch; l != nil && l.Map == nil { // the formula of a map is one of its parts
		if own, ok := l.Kernel.(interface{ Module() *launch.Module }); ok {
			module := own.Module()
			if codes[module] == "" {
				codes[module] = shortHash(module.Code)
			}
			parts = append(parts, "code="+codes[module])
		}
	}
	for _, access := range g.Accesses(i) {
		parts = append(parts, access.Mode.String()+" "+g.RangeText(access.Range))
	}
	return parts
}

// contentsText is what a pipeline says of the first contents of a buffer, "" for nothing. Ranks may read different files.
func contentsText(init *dag.Init) string {
	if init == nil {
		return ""
	}
	switch init.Kind {
	case dag.InitZeros:
		return "zeros"
	case dag.InitValue:
		if init.Values != nil {
			return fmt.Sprint(init.Values)
		}
		return init.Value.String()
	case dag.InitRamp:
		return fmt.Sprintf("ramp from %v by %v", init.A, init.B)
	case dag.InitUniform:
		return fmt.Sprintf("uniform from %v to %v with seed %d", init.A, init.B, init.Seed)
	case dag.InitNormal:
		return fmt.Sprintf("normal of %v and %v with seed %d", init.A, init.B, init.Seed)
	case dag.InitExpr:
		return init.Expr.String()
	}
	return "a file"
}
