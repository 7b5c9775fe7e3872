// How a graph uses its buffers: which are carried from replay to replay, and which are read before they are written.

package dag

// Carried returns the buffers of which some byte is read before it is written in a replay, and written later in it, ascending:
// their contents pass from one replay to the next. Bytes that a replay only reads are not carried.
func (g *Graph) Carried() []BufferID {
	if g == nil {
		return nil
	}
	return g.carried
}

// ReadFirst returns every buffer of which some byte is read that no earlier node of the replay wrote, by buffer id, with the
// first such read. Beside the carried ones these are the inputs: their contents must be there when the replay begins.
func (g *Graph) ReadFirst() []UnwrittenRead {
	if g == nil {
		return nil
	}
	return g.unwritten
}

// Unwritten returns the reads of ReadFirst whose buffer has no init either: what they read is unspecified, unless an embedder
// binds the buffer.
func (g *Graph) Unwritten() []UnwrittenRead {
	var reads []UnwrittenRead
	for _, u := range g.ReadFirst() {
		if g.Buffers[u.Buffer].Init == nil {
			reads = append(reads, u)
		}
	}
	return reads
}

// Unread returns the nodes whose results are of no use, ascending: of the bytes that they write none is read by a later node
// or the next replay, and none is left at the end in a host buffer or one with save or expect. Tasks, host functions and nodes
// that write nothing are never among them.
func (g *Graph) Unread() []NodeID {
	if g == nil {
		return nil
	}
	return g.unread
}

// Unused returns the buffers that no node names, not even an empty slice of them, ascending.
func (g *Graph) Unused() []BufferID {
	if g.Check() != nil {
		return nil
	}
	used := make([]bool, len(g.Buffers))
	for _, a := range g.accesses {
		used[a.Buffer] = true
	}
	var unused []BufferID
	for k, u := range used {
		if !u {
			unused = append(unused, BufferID(k))
		}
	}
	return unused
}
