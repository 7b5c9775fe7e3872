// Writing: the records of a file.

package graphfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"io"

	"github.com/dagrun/dagrun/internal/recording"
)

// Write writes the file.
func (f *File) Write(w io.Writer) error {
	return recording.PackPlanned(w, recording.Meta{Graph: f.Name, Architecture: f.Architecture}, f.records())
}

func (f *File) records() []recording.Record {
	var all []recording.Record
	add := func(kind recording.Kind, tail []byte, words ...uint64) {
		all = append(all, recording.Record{Kind: kind, Words: words, Tail: tail})
	}
	for k, code := range f.Modules {
		add(recording.Module, code, uint64(k+1), 0, uint64(len(code)), hashOf(code), 0)
	}
	for k := range f.Functions {
		fn := &f.Functions[k]
		words := []uint64{uint64(k + 1), 0, uint64(fn.Module + 1), 0, 0, 0, uint64(len(fn.Parameters))}
		for _, p := range fn.Parameters {
			words = append(words, uint64(p.Offset), uint64(p.Bytes))
		}
		add(recording.Function, []byte(fn.Entry), append(words, 0)...)
	}
	for k := range f.Buffers {
		b := &f.Buffers[k]
		words := []uint64{b.Address, uint64(b.Bytes), b.flags(), uint64(len(b.Shape))}
		for _, n := range b.Shape {
			words = append(words, uint64(n))
		}
		add(recording.Buffer, []byte(b.Name+"\x00"+b.DType), words...)
		if b.Contents != nil {
			add(recording.Contents, b.Contents, 0, b.Address, uint64(b.Bytes), hashOf(b.Contents), uint64(k))
		}
	}
	add(recording.Graph, f.graph(), 0, 1, 1, uint64(len(f.Nodes)), uint64(len(f.Edges)))
	for k := range f.Nodes {
		n := &f.Nodes[k]
		add(recording.Node, []byte(n.Name), uint64(k), uint64(int64(n.Priority)))
		for _, p := range n.Pointers {
			add(recording.Pointer, nil, uint64(k), uint64(p.Byte), uint64(p.Buffer), uint64(p.At), uint64(p.Bytes))
		}
		for _, u := range n.Uses {
			add(recording.Use, nil, uint64(k), uint64(u.Buffer), uint64(u.At), uint64(u.Width), uint64(u.Rows), uint64(u.Pitch), uint64(u.Modes))
		}
	}
	return all
}

func (b *Buffer) flags() uint64 {
	flags := uint64(0)
	for flag, set := range map[uint64]bool{recording.BufferHost: b.Host, recording.BufferGiven: b.Given, recording.BufferResult: b.Result} {
		if set {
			flags |= flag
		}
	}
	return flags
}

// graph returns nodes, edges and bodies as they lie in the tail of a graph's record.
func (f *File) graph() []byte {
	var nodes, bodies bytes.Buffer
	put := func(values ...any) {
		for _, v := range values {
			_ = binary.Write(&nodes, binary.LittleEndian, v) // never fails
		}
	}
	for k := range f.Nodes {
		n := &f.Nodes[k]
		put(uint64(k+1), uint32(n.Kind), uint32(len(n.Body)), uint64(bodies.Len()))
		bodies.Write(n.Body)
	}
	for _, e := range f.Edges {
		put(uint32(e[0]), uint32(e[1]), uint32(0), uint32(0))
	}
	return append(nodes.Bytes(), bodies.Bytes()...)
}

// hashOf is that of the recorder (hash.h).
func hashOf(b []byte) uint64 {
	sum := sha256.Sum256(b)
	return max(1, binary.BigEndian.Uint64(sum[:]))
}
