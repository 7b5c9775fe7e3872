// Graphs: the plans of captured CUDA graphs that programs chose, under a key of the graph.

package cache

import "context"

const (
	graphsKind     = "graphs"
	mostGraphs     = 200
	mostGraphBytes = mostFileBytes - 1024
)

// Graph returns what is kept of a captured graph, nil if there is nothing. The error says why a file is ignored.
func (f *Folder) Graph(key string) ([]byte, error) { return f.text(graphsKind, key) }

// KeepGraph keeps the plan of a captured graph, replacing an earlier one.
func (f *Folder) KeepGraph(ctx context.Context, key string, plan []byte) error {
	if f == nil {
		return nil
	}
	if err := checkSize("plan of a captured graph", plan, mostGraphBytes); err != nil {
		return err
	}
	return f.keepText(ctx, graphsKind, key, plan, mostGraphs)
}
