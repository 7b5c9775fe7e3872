// Fingerprints: what decides how long a node takes, as a short text that is the same in every run and for every node that does the same.

package learn

import (
	"bufio"
	"fmt"
	"os"
	goruntime "runtime"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/launch"
	"github.com/dagrun/dagrun/runtime/cache"
	"github.com/dagrun/dagrun/runtime/internal/engine"
)

// Fingerprints returns one for each node. Two nodes of one fingerprint take equally long on one device.
func Fingerprints(g *dag.Graph) []string {
	if g.Check() != nil {
		return nil
	}
	codes := map[*launch.Module]string{}
	prints := make([]string, g.Len())
	for i := range g.Nodes {
		prints[i] = cache.Fingerprint(nodeFacts(g, &g.Nodes[i], codes))
	}
	return prints
}

// eachInner visits the nodes of bodies that do work of their own, with their fingerprints.
func eachInner(g *dag.Graph, visit func(n *dag.Node, print string)) {
	g.EachGraph(func(g *dag.Graph, path []string) {
		if len(path) == 0 {
			return
		}
		prints := Fingerprints(g)
		for i := range g.Nodes {
			if n := &g.Nodes[i]; n.Control == nil {
				visit(n, prints[i])
			}
		}
	})
}

// nodeFacts is everything that decides how long a node takes.
func nodeFacts(g *dag.Graph, n *dag.Node, codes map[*launch.Module]string) []byte {
	place := func(b dag.BufferID) string {
		buffer := &g.Buffers[b]
		switch {
		case buffer.Place == dag.Device && buffer.Device == n.Device:
			return "device"
		case buffer.Place == dag.Device:
			return "peer"
		case buffer.Pageable:
			return "pageable"
		}
		return "host"
	}
	text := fmt.Appendf(nil, "node 1\n%v %v\n", n.Kind, n.Priority)
	switch {
	case n.Copy != nil:
		return fmt.Appendf(text, "%s to %s %d%s\n", place(n.Copy.Src.Buffer), place(n.Copy.Dst.Buffer), n.Copy.Src.Bytes(), tileText(n.Copy.Src, n.Copy.Dst))
	case n.Set != nil:
		_, width := engine.Pattern(g.Buffers[n.Set.Dst.Buffer].DType.Component().Size(), n.Set.Bits)
		return fmt.Appendf(text, "%s %d %d%s\n", place(n.Set.Dst.Buffer), n.Set.Dst.Bytes(), width, tileText(n.Set.Dst))
	case n.Control != nil:
		text = fmt.Appendf(text, "%s\n", n.Control.Action(n.Kind))
		for _, body := range n.Control.Bodies {
			text = fmt.Appendf(text, "%s %s\n", body.Hash(), body.WorkHash())
			for i := range body.Nodes {
				text = append(text, nodeFacts(body, &body.Nodes[i], codes)...)
			}
		}
		return text
	case n.Launch == nil:
		return fmt.Appendf(text, "%q %v\n", n.Name, n.Work)
	}
	l := n.Launch
	code := libraryVersion()
	if own, ok := l.Kernel.(engine.Coded); ok {
		module := own.Module()
		if codes[module] == "" {
			codes[module] = module.Identity()
		}
		code = codes[module]
	}
	text = fmt.Appendf(text, "%s %s\n%v %v %d\n", code, l.Kernel.Entry(), l.Grid, l.Block, l.Shared)
	if l.Cluster != [3]uint32{} {
		text = fmt.Appendf(text, "cluster %v\n", l.Cluster)
	}
	for k := range l.Args {
		a := &l.Args[k]
		if a.IsBuffer {
			text = fmt.Appendf(text, "%s %v %v %d%s\n", place(a.Range.Buffer), a.DType, a.Mode, a.Range.Bytes(), tileText(a.Range))
			if a.Start > 0 {
				text = fmt.Appendf(text, "at %d\n", a.Start)
			}
			if a.Texture != nil {
				text = fmt.Appendf(text, "%s\n", a.Texture)
			}
		} else {
			text = fmt.Appendf(text, "%v %x%x\n", a.DType, a.Bits, a.Struct)
		}
	}
	return text
}

// libraryVersion identifies the build of dagrun, as far as the Go tool recorded it: kernels of the library may differ between builds.
var libraryVersion = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	own := info.Main
	for _, d := range info.Deps {
		if d.Path == "github.com/dagrun/dagrun" {
			own = *d
		}
	}
	text := own.Version + " " + own.Sum
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision", "vcs.modified", "-race", "GOARCH", "GOAMD64":
			text += " " + s.Key + "=" + s.Value
		}
	}
	return text
})

// DeviceKey identifies the devices of a platform, for people and for a cache: durations that were measured on one are used on no other.
func DeviceKey(platform cudart.Platform) string {
	if platform == nil {
		return ""
	}
	return devicesKey(platform, platform.Devices())
}

func devicesKey(platform cudart.Platform, infos []cudart.Info) string {
	var parts []string
	for _, info := range infos {
		parts = append(parts, fmt.Sprintf("%s %s", info.Name, info.UUID))
	}
	text := fmt.Sprintf("%s: %s", platform.Name(), strings.Join(parts, ", "))
	if len(infos) > 0 {
		text += fmt.Sprintf(", driver %s", infos[0].Driver)
		if platform.Name() == "cpu" {
			text += fmt.Sprintf(", %s, %d of %d cores, %d workers", processor(), goruntime.GOMAXPROCS(0), goruntime.NumCPU(), infos[0].Multiprocessors)
		}
	}
	if c, ok := platform.(interface{ Conditions() string }); ok && c.Conditions() != "" {
		text += ", " + c.Conditions()
	}
	return text
}

// processor is the name of this machine's processor, or its architecture where the system does not tell.
var processor = sync.OnceValue(func() string {
	file, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return goruntime.GOARCH
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return goruntime.GOARCH
})

// tileText tells the rows of ranges that are tiles; how far apart they are matters to caches.
func tileText(ranges ...dag.Range) (text string) {
	for _, r := range ranges {
		if r.Tile() {
			rows, _ := r.Box()
			text += fmt.Sprintf(" rows %d of %d", rows, r.Pitch)
		}
	}
	return text
}

// sameWork returns for each fingerprint the samples of all its nodes: replay by replay, their median.
func sameWork(prints []string, samples [][]float64) map[string][]float64 {
	all := map[string][][]float64{} // by fingerprint and replay, of each node
	for i, own := range samples {
		for k, us := range own {
			if k == len(all[prints[i]]) {
				all[prints[i]] = append(all[prints[i]], nil)
			}
			all[prints[i]][k] = append(all[prints[i]][k], us)
		}
	}
	medians := map[string][]float64{}
	for print, replays := range all {
		for _, of := range replays {
			medians[print] = append(medians[print], engine.Summarize(of).Median)
		}
	}
	return medians
}
