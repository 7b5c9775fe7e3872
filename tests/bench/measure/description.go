// Writes a workload for the C++ side: the same buffers, contents, kernels and launch shapes, without the order of the nodes.

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/launch"
	"github.com/dagrun/dagrun/kernels/library"
	"github.com/dagrun/dagrun/runtime"
)

// describe writes workload.txt, the code and the initial contents of host buffers to a folder.
func describe(ctx context.Context, g *dag.Graph, folder string) error {
	var text strings.Builder
	for i := range g.Buffers {
		b := &g.Buffers[i]
		contents := "-"
		if b.Place == dag.Host && b.Init != nil {
			contents = fmt.Sprintf("contents-%d.bin", i)
			memory := make([]byte, b.Bytes)
			if err := runtime.Generate(ctx, g.Dir, b, memory); err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(folder, contents), memory, 0o600); err != nil {
				return err
			}
		}
		place := "device"
		if b.Place == dag.Host {
			place = "host"
		}
		fmt.Fprintf(&text, "buffer %s %d %s\n", place, b.Bytes, contents)
	}
	var entries []string
	for i := range g.Nodes {
		if l := g.Nodes[i].Launch; l != nil {
			if _, own := l.Kernel.(interface{ Module() *launch.Module }); own {
				return fmt.Errorf("node %q: only kernels of the library can be described", g.Nodes[i].Name)
			}
			entries = append(entries, l.Kernel.Entry())
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "library.ptx"), library.Module(entries...).Code, 0o600); err != nil {
		return err
	}
	text.WriteString("module library.ptx\n")
	for i := range g.Nodes {
		if err := describeNode(&text, g, &g.Nodes[i]); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(folder, "workload.txt"), []byte(text.String()), 0o600)
}

func describeNode(text *strings.Builder, g *dag.Graph, n *dag.Node) error {
	switch {
	case n.Kind == dag.Memcpy:
		to, from := &g.Buffers[n.Copy.Dst.Buffer], &g.Buffers[n.Copy.Src.Buffer]
		direction := "up"
		if to.Place == dag.Host {
			direction = "down"
		}
		if to.Place == from.Place {
			return fmt.Errorf("node %q: only copies between host and device can be described", n.Name)
		}
		fmt.Fprintf(text, "copy %s %s %d %d %d %d %d\n", n.Name, direction, n.Copy.Dst.Buffer, n.Copy.Dst.Lo, n.Copy.Src.Buffer, n.Copy.Src.Lo,
			n.Copy.Src.Hi-n.Copy.Src.Lo)
	case n.Kind == dag.Kernel && n.Launch.Block[0] > 0:
		l := n.Launch
		fmt.Fprintf(text, "kernel %s 0 %s %d %d %d %d %d %d %d %d", n.Name, l.Kernel.Entry(), l.Grid[0], l.Grid[1], l.Grid[2], l.Block[0], l.Block[1],
			l.Block[2], l.Shared, len(l.Args))
		for _, a := range l.Args {
			if a.IsBuffer {
				fmt.Fprintf(text, " pointer %d %d", a.Range.Buffer, a.Range.Lo)
			} else {
				fmt.Fprintf(text, " number %d", a.Bits)
			}
		}
		text.WriteString("\n")
	default:
		return fmt.Errorf("node %q: a %s cannot be described", n.Name, n.Kind)
	}
	return nil
}
