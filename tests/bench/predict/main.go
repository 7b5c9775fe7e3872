// Compares predicted and measured times on the CPU device after learning, for all pipelines.

// Command predict runs each pipeline twice on the CPU device: the first run learns, the second uses the learned plan and is
// compared with its prediction. It prints a table and how many predictions were within 30%.
//
//	go build -o dagrun ./cmd/dagrun && go run ./tests/bench/predict -dagrun ./dagrun pipelines/*.yaml
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// run holds the fields that are needed from the JSON output of dagrun run.
type run struct {
	Nodes, Streams int
	Replay         string
	EachUS         float64 `json:"each_us"`
	PredictedUS    float64 `json:"predicted_us"`
	Learning       struct {
		From    string
		Unquiet string
	}
}

func main() {
	dagrun := flag.String("dagrun", "dagrun", "the `command` to measure")
	iterations := flag.Int("iterations", 200, "`replays` of each run")
	flag.Parse()
	if err := table(*dagrun, *iterations, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "predict:", err)
		os.Exit(1)
	}
}

func table(dagrun string, iterations int, pipelines []string) error {
	folder, err := os.MkdirTemp("", "predict")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	fmt.Printf("%-24s %6s %8s %8s %12s %12s %8s\n", "pipeline", "nodes", "streams", "replay", "replay us", "predicted", "ratio")
	var ratios []float64
	for _, pipeline := range pipelines {
		name := strings.TrimSuffix(filepath.Base(pipeline), ".yaml")
		var last run
		var failed error
		for range 2 {
			last = run{}
			out, err := exec.Command(dagrun, pipeline, "--backend", "cpu", "--output", "json", "--iterations", fmt.Sprint(iterations), "--warmup", "50", "--timeout", "60s", "--cache-dir", folder).Output()
			if jsonErr := json.Unmarshal(out, &last); jsonErr != nil || last.EachUS == 0 {
				failed = fmt.Errorf("%v", err)
				break
			}
		}
		if failed != nil {
			fmt.Printf("%-24s does not run: %v\n", name, failed)
			continue
		}
		ratio := last.EachUS / last.PredictedUS
		ratios = append(ratios, ratio)
		fmt.Printf("%-24s %6d %8d %8s %12.1f %12.1f %8.2f\n", name, last.Nodes, last.Streams, last.Replay, last.EachUS, last.PredictedUS, ratio)
	}
	if len(ratios) == 0 {
		return fmt.Errorf("no pipeline ran")
	}
	within := 0
	for k, r := range ratios {
		ratios[k] = math.Abs(math.Log(r))
		if ratios[k] <= math.Log(1.3) {
			within++
		}
	}
	slices.Sort(ratios)
	fmt.Printf("%d of %d within 30%%, median factor %.2f, worst %.2f\n", within, len(ratios), math.Exp(ratios[len(ratios)/2]), math.Exp(ratios[len(ratios)-1]))
	return nil
}
