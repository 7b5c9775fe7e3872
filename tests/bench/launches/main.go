// Writes how dagrun launches kernels of its library: their PTX, and as JSON the shape of each launch and its arguments.

// Command launches lets programs that are not dagrun launch the library's kernels just as dagrun does, so that kernels can be measured in
// their process. Each argument names an entry without its prefix and gives the numbers that it is launched with; others are 0.
//
//	launches -out FOLDER 'matmul_f32_f32 m=4096 n=4096 k=4096' 'exclusive_scan_f32 n=67108864'
//
// Each becomes FOLDER/ENTRY.ptx, and all of them FOLDER/launches.json.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/kernels/library"
)

// launch is a launch as it is written.
type launch struct {
	Entry  string     `json:"entry"`
	Grid   [3]uint32  `json:"grid"`
	Block  [3]uint32  `json:"block"`
	Shared uint32     `json:"shared"`
	Args   []argument `json:"args"`
}

// argument is a number, or a buffer.
type argument struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Buffer  bool   `json:"buffer"`
	Scratch bool   `json:"scratch"`
	Bytes   int64  `json:"bytes"` // of the number or of the buffer
	Bits    uint64 `json:"bits"`  // of the number
}

func main() {
	out := flag.String("out", ".", "`folder` to write to")
	flag.Parse()
	if err := write(*out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "launches:", err)
		os.Exit(1)
	}
}

func write(out string, wanted []string) error {
	if len(wanted) == 0 {
		return errors.New("name a kernel and its numbers, such as 'exclusive_scan_f32 n=4096'")
	}
	all := make([]*launch, 0, len(wanted))
	for _, text := range wanted {
		l, err := describe(text)
		if err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
		all = append(all, l)
		if err := os.WriteFile(filepath.Join(out, l.Entry+".ptx"), library.Module(l.Entry).Code, 0o644); err != nil {
			return err
		}
	}
	text, err := json.MarshalIndent(all, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "launches.json"), append(text, '\n'), 0o644)
}

// describe finds the kernel of an entry and asks it how it is launched.
func describe(text string) (*launch, error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return nil, errors.New("has no kernel")
	}
	kernel, err := kernelOf("dagrun_" + words[0])
	if err != nil {
		return nil, err
	}
	numbers, err := numbersOf(words[1:])
	if err != nil {
		return nil, err
	}
	params := kernel.Params()
	args := make([]dag.Arg, len(params))
	for i, p := range params {
		args[i] = dag.Arg{IsBuffer: p.Buffer, Mode: p.Mode, DType: p.DType}
		if p.Buffer {
			args[i].Range = dag.Range{Buffer: dag.BufferID(i), Hi: 1 << 50}
			continue
		}
		args[i].Bits = bitsOf(p.DType, numbers[p.Name])
		delete(numbers, p.Name)
	}
	if len(numbers) > 0 {
		return nil, fmt.Errorf("has no number %s", slices.Sorted(maps.Keys(numbers))[0])
	}
	if shaped, ok := kernel.(dag.ShapedKernel); ok {
		kernel = shaped.Form(args)
	}
	if params = kernel.Params(); len(args) < len(params) { // scratch that only this form has
		args = append(args, dag.Arg{IsBuffer: true, Mode: dag.Write, DType: dag.U8, Range: dag.Range{Buffer: dag.BufferID(len(args)), Hi: 1 << 50}})
	}
	info, err := kernel.Describe(args)
	if err != nil {
		return nil, err
	}
	l := &launch{Entry: kernel.Entry(), Grid: info.Grid, Block: info.Block, Shared: info.Shared}
	for i, p := range params {
		a := argument{Name: p.Name, Type: p.DType.String(), Buffer: p.Buffer, Scratch: p.Scratch, Bytes: p.DType.Size(), Bits: args[i].Bits}
		if p.Buffer {
			a.Bytes *= info.Extents[i]
		}
		l.Args = append(l.Args, a)
	}
	return l, nil
}

func kernelOf(entry string) (dag.LaunchKernel, error) {
	for _, d := range library.Docs() {
		for _, v := range d.Variants {
			if v.Entry == entry {
				return kernels.Library().Kernel(d.Name, v.Elems)
			}
		}
	}
	return nil, errors.New("the library has no such entry")
}

func numbersOf(words []string) (map[string]float64, error) {
	numbers := map[string]float64{}
	for _, w := range words {
		name, value, ok := strings.Cut(w, "=")
		v, err := strconv.ParseFloat(value, 64)
		if !ok || err != nil {
			return nil, fmt.Errorf("%q is not name=number", w)
		}
		numbers[name] = v
	}
	return numbers, nil
}

func bitsOf(t dag.DType, v float64) uint64 {
	switch t {
	case dag.F32:
		return uint64(math.Float32bits(float32(v)))
	case dag.F64:
		return math.Float64bits(v)
	}
	return uint64(int64(v))
}
