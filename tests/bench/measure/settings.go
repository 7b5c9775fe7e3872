// The values of the command line, and the workloads that are measured, with the settings that were found best for each.

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/file"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
)

// settings holds the values of the command line.
type settings struct {
	pipelines string
	suite     string // the C++ program of the workloads; "": none
	out       string
	small     bool // the default sizes of the files instead of the real ones
	rounds    int
	only      string
	backend   string
	streams   int
}

// wanted reports whether -only selects a name.
func (s *settings) wanted(name string) bool {
	if s.only == "" {
		return true
	}
	for _, one := range strings.Split(s.only, ",") {
		if strings.TrimSpace(one) == name {
			return true
		}
	}
	return false
}

// workload is a pipeline with its real size. grcuda is the time of the C++ of the GrCUDA authors on an H200 at that
// size, in milliseconds: the best of its variants with prefetching. chunks, of 1 to 16, was best for one replay, as bench finds it with
// -p chunks=1,2,4,8,16; flights, of 1 to 4, had the highest throughput.
type workload struct {
	name    string
	params  []file.Override
	grcuda  float64
	chunks  int
	flights flights
}

// flights is how many replays overlap, and whether each runs on one stream or as planned.
type flights struct {
	count   int
	planned bool
}

func (f flights) String() string {
	if f.planned {
		return fmt.Sprintf("%d, planned", f.count)
	}
	return fmt.Sprintf("%d, one stream", f.count)
}

func (f flights) options(machine *planner.Machine, profile *planner.Profile, streams int) planner.Options {
	if f.planned {
		return planner.Options{Machine: machine, Profile: profile, Streams: streams}
	}
	return onOneStream(machine)
}

func workloads() []workload {
	set := func(pairs ...string) []file.Override {
		var list []file.Override
		for i := 0; i < len(pairs); i += 2 {
			list = append(list, file.Override{Name: pairs[i], Value: pairs[i+1]})
		}
		return list
	}
	return []workload{
		{"vec", set("n", "160000000"), 32.6, 16, flights{2, false}},
		{"bs", set("n", "10000000"), 16.8, 8, flights{3, true}},
		{"ml", set("n", "1600000"), 462, 8, flights{2, false}},
		{"hits", set("n", "25000000", "stride", "15450849", "inverse", "10951649"), 196, 8, flights{2, false}},
		{"img", set("side", "6400"), 80.4, 16, flights{3, true}},
		{"dl", set("side", "12000"), 60.0, 8, flights{2, false}},
	}
}

// load parses the workload's file, divided into the given number of chunks.
func (w *workload) load(s *settings, chunks int) (*dag.Graph, error) {
	var params []file.Override
	if !s.small {
		params = append(params, w.params...)
	}
	params = append(params, file.Override{Name: "chunks", Value: fmt.Sprint(chunks)})
	return loadPipeline(filepath.Join(s.pipelines, w.name+".yaml"), params)
}

func loadPipeline(name string, params []file.Override) (*dag.Graph, error) {
	source, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return file.Parse(source, file.Options{Name: name, Dir: filepath.Dir(name), Library: kernels.Library(), ReadFile: os.ReadFile, Params: params})
}

// smallCount is the number of chunks at the default sizes of the files, where more chunks would be empty.
const smallCount = 2

// chunksOf returns how many chunks the suite divides a workload into.
func (s *settings) chunksOf(w *workload) int {
	if s.small {
		return smallCount
	}
	return w.chunks
}
