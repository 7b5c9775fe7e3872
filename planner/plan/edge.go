// Links between the nodes of a CUDA graph.

package plan

import "github.com/dagrun/dagrun/dag"

// GraphRoot stands for the empty node that a graph with several roots starts with. Many roots are slow: 512 independent nodes take
// 40 times as long to submit as the same nodes after an empty one.
const GraphRoot dag.NodeID = -1

// GraphEdge links two nodes of a CUDA graph. From may be [GraphRoot].
type GraphEdge struct{ From, To dag.NodeID }
