// What a file holds, as people read it.

package graphfile

import (
	"fmt"
	"strconv"
	"strings"
)

// Listing is what is in a file.
type Listing struct {
	Buffers []ListedBuffer `json:"buffers"`
	Nodes   []ListedNode   `json:"nodes"`
}

// ListedBuffer is a buffer.
type ListedBuffer struct {
	Name   string   `json:"name"`
	Place  string   `json:"place"` // host or device
	Type   string   `json:"type"`  // such as f32[1024]
	Bytes  int64    `json:"bytes"`
	Offset int64    `json:"offset"` // in device memory, -1 on the host
	Use    []string `json:"use"`    // given, result, filled
}

// OffsetText is where a buffer of the device lies.
func (b *ListedBuffer) OffsetText() string {
	if b.Offset < 0 {
		return ""
	}
	return strconv.FormatInt(b.Offset, 10)
}

// ListedNode is a node.
type ListedNode struct {
	Name  string   `json:"name"`
	Does  string   `json:"does"`
	After []string `json:"after"` // the nodes that edges come from
}

// DeviceBytes is how much memory of the device the file takes.
func (f *File) DeviceBytes() int64 {
	low, high := f.span()
	return int64(high - low)
}

// Listing lists what is in the file.
func (f *File) Listing() *Listing {
	list := &Listing{Buffers: []ListedBuffer{}, Nodes: []ListedNode{}}
	low, _ := f.span()
	for k := range f.Buffers {
		b := &f.Buffers[k]
		out := ListedBuffer{Name: b.Name, Place: "device", Type: b.DType + strings.ReplaceAll(fmt.Sprint(b.Shape), " ", ", "), Bytes: b.Bytes,
			Offset: int64(b.Address - low), Use: []string{}}
		if b.Host {
			out.Place, out.Offset = "host", -1
		}
		for _, use := range []struct {
			name string
			is   bool
		}{{"given", b.Given}, {"result", b.Result}, {"filled", b.Contents != nil}} {
			if use.is {
				out.Use = append(out.Use, use.name)
			}
		}
		list.Buffers = append(list.Buffers, out)
	}
	for k := range f.Nodes {
		list.Nodes = append(list.Nodes, ListedNode{f.Nodes[k].Name, f.does(&f.Nodes[k]), []string{}})
	}
	for _, e := range f.Edges {
		n := &list.Nodes[e[1]]
		n.After = append(n.After, f.Nodes[e[0]].Name)
	}
	return list
}

func (f *File) does(n *Node) string {
	at := func(byte uint32) string {
		for _, p := range n.Pointers {
			if p.Byte != byte {
				continue
			}
			if p.At == 0 {
				return f.Buffers[p.Buffer].Name
			}
			return fmt.Sprintf("%s + %d", f.Buffers[p.Buffer].Name, p.At)
		}
		return "?"
	}
	switch n.Kind {
	case Kernel:
		axes := func(s [3]uint32) string { return fmt.Sprintf("%dx%dx%d", s[0], s[1], s[2]) }
		return fmt.Sprintf("%s<<<%s, %s>>>", f.Functions[n.word(0)-1].Entry, axes(n.shape(1)), axes(n.shape(4)))
	case Copy:
		return fmt.Sprintf("copy %d bytes from %s to %s", n.word(2)*n.word(3), at(8), at(0))
	case Set:
		return fmt.Sprintf("set %d bytes of %s to %#x", n.word(1)*n.word(2), at(0), n.word(4))
	}
	return "nothing"
}
