package recording

// LeastWords is how many words a record of a kind has at least, behind the common words of calls.
func LeastWords(k Kind) int { return shapes[k].words }

// KnownKinds is how many kinds this version knows.
func KnownKinds() int {
	n := 0
	for k := range shapes {
		if Kind(k).known() {
			n++
		}
	}
	return n
}

// OpenBytes opens a recording that is in memory.
func OpenBytes(name string, b []byte) (*Archive, error) { return openBytes(name, &mapping{bytes: b}) }

// Forget removes from a process where its blobs can be loaded.
func Forget(p *Process) {
	p.held = nil
	for k := range p.Modules {
		p.Modules[k].unpack = nil
	}
	for k := range p.Contents {
		p.Contents[k].unpack = nil
	}
}
