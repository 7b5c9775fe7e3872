// Runs dagrun and reads its JSON, and sums up what was measured.

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// ran holds the fields that are needed from the JSON of dagrun FILE, and the time of the whole process.
type ran struct {
	Nodes, Streams int
	Strategy       string
	Replay         string
	EachUS         float64 `json:"each_us"`
	PredictedUS    float64 `json:"predicted_us"`
	Learning       struct {
		From    string
		Unquiet string
		Ways    []learnedWay
	}
	wall   time.Duration
	phases map[string]time.Duration // what took how long, if the run was asked for it with -v
}

// learnedWay holds the fields that are needed of one way to replay that learning timed, or took from the cache.
type learnedWay struct {
	Strategy, Replay        string
	Streams, Waits, Threads int
	Overlap                 bool
	Each                    struct {
		Median float64 `json:"median_us"`
	}
	PredictedUS float64 `json:"predicted_us"`
}

// text says how the way replays: "list 4, graph, overlap".
func (w learnedWay) text() string {
	text := fmt.Sprintf("%s %d, %s", w.Strategy, w.Streams, w.Replay)
	if w.Threads > 1 {
		text += fmt.Sprintf(", %d threads", w.Threads)
	}
	if w.Overlap {
		text += ", overlap"
	}
	return text
}

// way says how the run replayed.
func (r *ran) way() string {
	w := learnedWay{}
	if ways := r.Learning.Ways; len(ways) > 0 {
		w = ways[0]
	}
	w.Strategy, w.Streams, w.Replay = r.Strategy, r.Streams, r.Replay
	return w.text()
}

// timed lists the ways that the run timed, with their times and what was predicted.
func (r *ran) timed() string {
	var list []string
	for _, w := range r.Learning.Ways {
		list = append(list, fmt.Sprintf("%s with %d waits %.1f us (%.1f)", w.text(), w.Waits, w.Each.Median, w.PredictedUS))
	}
	return strings.Join(list, "; ")
}

// likeBench reports whether the run replayed as rows of bench do: from one thread, and without launches that overlap.
func (r *ran) likeBench() bool {
	ways := r.Learning.Ways
	return len(ways) == 0 || ways[0].Threads <= 1 && !ways[0].Overlap
}

// row holds the fields that are needed of one row of dagrun bench FILE.
type row struct {
	Strategy    string
	Asked       int `json:"asked_streams"`
	Streams     int
	Replay      string
	PredictedUS float64 `json:"predicted_us"`
	Timing      struct {
		Wall float64 `json:"wall_us"`
	}
}

type benched struct {
	Rows []row
}

// answer runs dagrun and decodes the document that it prints.
func (s *settings) answer(ctx context.Context, into any, args ...string) (wall time.Duration, err error) {
	wall, _, err = s.answerIn(ctx, into, nil, args...)
	return wall, err
}

// answerIn runs dagrun with more environment variables than there are, and also returns what it says beside the document.
func (s *settings) answerIn(ctx context.Context, into any, environment []string, args ...string) (wall time.Duration, said string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	start := time.Now()
	command := exec.CommandContext(ctx, s.dagrun, append(args, "--output", "json")...)
	command.Env = append(os.Environ(), environment...)
	var errors strings.Builder
	command.Stderr = &errors
	out, err := command.Output()
	wall = time.Since(start)
	if jsonErr := json.Unmarshal(out, into); jsonErr != nil || err != nil {
		first, _, _ := strings.Cut(strings.TrimSpace(errors.String()), "\n")
		return wall, "", fmt.Errorf("dagrun %s: %v: %s", strings.Join(args, " "), err, first)
	}
	return wall, errors.String(), nil
}

// run runs a pipeline with a cache folder. In its first run neither dagrun nor the driver, which compiles kernels, knows it.
func (s *settings) run(ctx context.Context, file, cache string, args ...string) (*ran, error) {
	r := &ran{}
	compiled := []string{"CUDA_CACHE_PATH=" + cache + ".driver"}
	wall, said, err := s.answerIn(ctx, r, compiled, append([]string{file, "--iterations", strconv.Itoa(s.iterations), "--warmup", "20", "--cache-dir",
		cache}, args...)...)
	r.wall, r.phases = wall, phasesOf(said)
	return r, err
}

// phasesOf reads what the phases of a run took, as dagrun -v prints it: "took: read 5.9ms, open 132.85ms".
func phasesOf(said string) map[string]time.Duration {
	all := map[string]time.Duration{}
	_, list, _ := strings.Cut(said, "took: ")
	list, _, _ = strings.Cut(list, "\n")
	for _, phase := range strings.Split(list, ", ") {
		name, text, _ := strings.Cut(phase, " ")
		if took, err := time.ParseDuration(text); err == nil {
			all[name] = took
		}
	}
	return all
}

// milliseconds is a duration in milliseconds.
func milliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }
