// Links between the nodes of a CUDA graph.

package plan

import "github.com/dagrun/dagrun/dag"

// GraphRoot stands for the empty node that a graph with several roots starts with. Many roots cost: 512 independent ones take
// 40 times as long to submit as the same behind one.
const GraphRoot dag.NodeID = -1

// GraphEdge links two nodes of a CUDA graph. From may be [GraphRoot].
type GraphEdge struct{ From, To dag.NodeID }
