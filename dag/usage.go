// What the graph knows of how its buffers are used: carried, read before anything wrote them. Changes nothing.

package dag

// UnwrittenRead is the first read of a buffer's bytes that no earlier node wrote.
type UnwrittenRead struct {
	Buffer int32
	Node   int32 // the first node that reads such bytes
	Lo, Hi int64 // which bytes (the hull)
}

// Carried returns the buffers of which some byte is read before it is written in a replay, and written later in it, ascending:
// their contents pass from one replay to the next. Bytes that a replay only reads are not carried.
func (g *Graph) Carried() []int32 { return g.carried }

// ReadFirst returns every buffer of which some byte is read that no earlier node of the replay wrote, by buffer id, with the
// first such read. Beside the carried ones these are the inputs: their contents must be there when the replay begins.
func (g *Graph) ReadFirst() []UnwrittenRead { return g.unwritten }
