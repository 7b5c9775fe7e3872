// Prints the meaning of a graph as text, so that tests can compare two readings of a file.

package file

import (
	"fmt"
	"strings"

	"github.com/dagrun/dagrun/dag"
)

func meaning(g *dag.Graph) string {
	var b strings.Builder
	fmt.Fprintln(&b, g.Name, g.Sync, g.Params)
	for k := range g.Buffers {
		buffer := g.Buffers[k]
		buffer.Pos = dag.Pos{}
		fmt.Fprintf(&b, "%s %v %v %v %d %v %d", buffer.Name, buffer.Place, buffer.DType, buffer.Pageable, buffer.Device, buffer.Shape, buffer.Bytes)
		if in := buffer.Init; in != nil {
			fmt.Fprintf(&b, " init %v %v %v %v %v %s", in.Kind, in.Value, in.A, in.B, in.Seed, in.File)
			if in.Expr != nil {
				fmt.Fprintf(&b, " %s", in.Expr)
			}
		}
		if e := buffer.Expect; e != nil {
			fmt.Fprintf(&b, " expect %v %v %v %v %s", e.Kind, e.Value, e.RTol, e.ATol, e.File)
			if e.Expr != nil {
				fmt.Fprintf(&b, " %s", e.Expr)
			}
		}
		fmt.Fprintln(&b, buffer.Save)
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		fmt.Fprintf(&b, "%s %v %v %v %d %d %v %v %v", n.Name, n.Kind, n.Priority, n.Peer, n.Stream.Number(), n.Device, n.CostUS, n.HasCost, n.After)
		if n.Copy != nil {
			fmt.Fprintf(&b, " %v", *n.Copy)
		}
		if n.Set != nil {
			fmt.Fprintf(&b, " %v", *n.Set)
		}
		if l := n.Launch; l != nil {
			fmt.Fprintf(&b, " %d %s %v %v %v %d", l.Module, l.Kernel.Entry(), l.Args, l.Grid, l.Block, l.Shared)
			if l.Map != nil {
				fmt.Fprintf(&b, " %s %v %v", l.Map.Expr, l.Map.Inputs, l.Map.Scalars)
			}
		}
		fmt.Fprintln(&b, " ", g.Accesses(dag.NodeID(i)))
	}
	fmt.Fprintln(&b, g.Edges())
	return b.String()
}
