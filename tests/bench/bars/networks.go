// Graphs as real networks have them, made from a seed, run once with their true costs in the file and once without any.

package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// busySource is a kernel that nothing is known about: every block is busy for us microseconds.
const busySource = `extern "C" __global__ void busy(float us) {
  unsigned long long began, now, wait = us * 1000;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(began));
  do {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (now - began < wait);
}
`

// network collects the kernels of a graph.
type network struct {
	random *rand.Rand
	lines  []string // without costs
	costs  []float64
}

// kernel adds a kernel after others and returns its number. Durations are spread evenly over their orders of magnitude, as those of layers are.
func (n *network) kernel(after ...int) int {
	us := math.Round(10*math.Exp(math.Log(2)+n.random.Float64()*math.Log(30))) / 10
	blocks := []int{1, 4, 16, 33}[n.random.IntN(4)]
	var names []string
	for _, k := range after {
		names = append(names, fmt.Sprintf("k%d", k))
	}
	n.lines = append(n.lines, fmt.Sprintf("name: k%d, kernel: m.busy, args: [%g], grid: %d, block: 128, after: [%s]", len(n.lines), us, blocks,
		strings.Join(names, ", ")))
	n.costs = append(n.costs, us)
	return len(n.lines) - 1
}

func (n *network) chain(length int, after ...int) int {
	last := n.kernel(after...)
	for range length - 1 {
		last = n.kernel(last)
	}
	return last
}

// block adds one block of a network after a kernel, and returns the kernel that ends it.
func (n *network) block(after int) int {
	var ends []int
	switch n.random.IntN(4) {
	case 0: // a residual block, some with a kernel in the shortcut
		ends = append(ends, n.chain(2+n.random.IntN(3), after))
		if n.random.IntN(2) == 0 {
			ends = append(ends, n.kernel(after))
		} else {
			ends = append(ends, after)
		}
	case 1: // inception: branches of different length
		for range 3 + n.random.IntN(4) {
			ends = append(ends, n.chain(1+n.random.IntN(4), after))
		}
	case 2: // heads of attention, or groups
		length := 1 + n.random.IntN(2)
		for range 6 + n.random.IntN(7) {
			ends = append(ends, n.chain(length, after))
		}
	default: // one layer after the other
		return n.chain(1+n.random.IntN(3), after)
	}
	return n.kernel(ends...)
}

// networkOf makes a graph of about so many kernels. Some have two towers that meet at the end.
func networkOf(random *rand.Rand, kernels int) *network {
	n := &network{random: random}
	first := n.kernel()
	ends := []int{first}
	if random.IntN(3) == 0 {
		ends = append(ends, first)
	}
	for len(n.lines) < kernels-1 {
		tower := random.IntN(len(ends))
		ends[tower] = n.block(ends[tower])
	}
	n.kernel(ends...)
	return n
}

// write writes the graph as a pipeline file.
func (n *network) write(folder, name string, withCosts bool) (string, error) {
	text := fmt.Sprintf("version: 1\nname: %s\nmodules:\n  m: {source: busy.cu}\nnodes:\n", name)
	for k, line := range n.lines {
		if withCosts {
			line += fmt.Sprintf(", cost: {us: %g}", n.costs[k])
		}
		text += "  - {" + line + "}\n"
	}
	file := filepath.Join(folder, name+".yaml")
	return file, os.WriteFile(file, []byte(text), 0o644)
}

// measureUnknown compares runs that know nothing of the costs with runs that have the true ones, both with what earlier runs learned.
func measureUnknown(ctx context.Context, s *settings) error {
	folder := filepath.Join(s.work, "networks")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "busy.cu"), []byte(busySource), 0o644); err != nil {
		return err
	}
	graphs := 6
	if s.quick {
		graphs = 2
	}
	fmt.Printf("%-12s %8s %12s %12s %12s %8s  %s\n", "graph", "kernels", "first us", "unknown us", "true us", "ratio", "of pairs")
	var ratios []float64
	for k := range graphs {
		random := rand.New(rand.NewPCG(uint64(s.seed), uint64(k)))
		n := networkOf(random, 200+random.IntN(251))
		name := fmt.Sprintf("network%d", k)
		unknown, err := n.write(folder, name, false)
		if err != nil {
			return err
		}
		known, err := n.write(folder, name+"-true", true)
		if err != nil {
			return err
		}
		each := func(file string) func() (float64, error) {
			return func() (float64, error) {
				r, err := s.run(ctx, file, filepath.Join(s.work, "unknown", baseName(file)), "--backend", "cuda")
				return r.EachUS, err
			}
		}
		first, err := each(unknown)()
		if err != nil {
			return err
		}
		if _, err := each(known)(); err != nil {
			return err
		}
		pairs, ours, theirs, err := inTurn(s.pairs, each(unknown), each(known))
		if err != nil {
			return err
		}
		ratios = append(ratios, median(pairs))
		fmt.Printf("%-12s %8d %12.1f %12.1f %12.1f %8.3f  %s\n", name, len(n.lines), first, median(ours), median(theirs), median(pairs), spread(pairs))
	}
	bar("costs unknown / true costs, worst", quantile(ratios, 1), 1.03, "median %.3f of %d graphs of seed %d", median(ratios), len(ratios), s.seed)
	return nil
}
