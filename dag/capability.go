// What launches need of a device's compute capability.

package dag

import (
	"fmt"

	"github.com/dagrun/dagrun/internal/words"
)

// Targeted is implemented by kernels whose code was made for a compute capability, such as 90 for sm_90: older devices do not load it.
// 0: any device does, or it is made when it is loaded.
type Targeted interface{ Capability() int }

// Beyond is a node that needs more than a device has.
type Beyond struct {
	Node *Node
	Why  string // continues the node's name: `is launched in clusters of [2] blocks, which sm_80 does not have`
	Fix  string
}

// sharedLimits are how many bytes of shared memory one block can have, by the compute capability from which on that holds.
var sharedLimits = []struct {
	capability int
	bytes      int64
}{{0, 48 << 10}, {70, 96 << 10}, {75, 64 << 10}, {80, 163 << 10}, {86, 99 << 10}, {87, 163 << 10}, {89, 99 << 10}, {90, 227 << 10}, {120, 99 << 10}}

// Compute capabilities from which on devices have what a launch may ask for.
const (
	cooperativeFrom = 60
	clustersFrom    = 90
)

// Beyond returns the launches that a device of a compute capability, such as 80 for sm_80, cannot run, those of loops and branches
// included. A capability of 0 is unknown, and nothing is beyond it.
func (g *Graph) Beyond(capability int) []Beyond {
	var list []Beyond
	if capability <= 0 {
		return nil
	}
	g.EachGraph(func(g *Graph, _ []string) {
		for i := range g.Nodes {
			if why, fix := g.Nodes[i].beyond(capability); why != "" {
				list = append(list, Beyond{&g.Nodes[i], why, fix})
			}
		}
	})
	return list
}

func (n *Node) beyond(capability int) (why, fix string) {
	l := n.Launch
	if l == nil {
		return "", ""
	}
	if l.Cluster != [3]uint32{} && capability < clustersFrom {
		return fmt.Sprintf("is launched in clusters of %v blocks, which sm_%d does not have", SizeText(l.Cluster), capability),
			fmt.Sprintf("leave out cluster:, or use a GPU of sm_%d or newer", clustersFrom)
	}
	if l.Cooperative && capability < cooperativeFrom {
		return fmt.Sprintf("is a cooperative launch, which sm_%d does not have",
			capability), fmt.Sprintf("leave out cooperative:, or use a GPU of sm_%d or newer", cooperativeFrom)
	}
	if k, ok := l.Kernel.(Targeted); ok {
		if made := k.Capability(); made > capability {
			return fmt.Sprintf("launches code that was made for sm_%d, which sm_%d does not load", made,
				capability), fmt.Sprintf("compile it for sm_%d, or use a GPU of sm_%d or newer", capability, made)
		}
	}
	most := int64(0)
	for _, limit := range sharedLimits {
		if limit.capability <= capability {
			most = limit.bytes
		}
	}
	if int64(l.Shared) > most {
		return fmt.Sprintf("takes %s of shared memory, and a block of sm_%d has at most %s", words.Bytes(int64(l.Shared)), capability,
			words.Bytes(most)), "use smaller blocks, or another GPU"
	}
	return "", ""
}
