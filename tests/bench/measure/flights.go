// Measures how many replays in flight are best, and how each should be planned, by the milliseconds from one result to the next. Also
// holds the choice for the suite. Measures dagrun only.

package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/runtime"
)

// mostFlights is the largest number of replays in flight that is tried.
const mostFlights = 4

// flightRow is one workload planned one way. Times are microseconds from one result to the next, by number of replays in flight.
type flightRow struct {
	Name    string                     `json:"name"`
	Planned bool                       `json:"planned"`
	Streams int                        `json:"streams"`
	Times   [mostFlights + 1][]float64 `json:"times_us"`
}

func measureFlights(ctx context.Context, s settings, p cudart.Platform) (any, []table, error) {
	var rows []*flightRow
	for _, w := range workloads() {
		if !s.wanted(w.name) {
			continue
		}
		for _, planned := range []bool{false, true} {
			row, err := measureFlight(ctx, &s, p, w, planned)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", w.name, err)
			}
			rows = append(rows, row)
		}
		fmt.Fprintf(os.Stderr, "measured %s\n", w.name)
	}
	return rows, []table{flightTable(rows, p, s)}, nil
}

func measureFlight(ctx context.Context, s *settings, p cudart.Platform, w workload, planned bool) (row *flightRow, err error) {
	g, err := w.load(s, 1)
	if err != nil {
		return nil, err
	}
	program, err := newInflight(ctx, g, p, flights{planned: planned}.options(runtime.MachineOf(p), nil, s.streams), mostFlights)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, program.Close()) }()
	row = &flightRow{Name: w.name, Planned: planned, Streams: program.Counters().Streams}
	for range s.rounds {
		for count := 1; count <= mostFlights; count++ {
			us, err := steadyState(ctx, program, count)
			if err != nil {
				return nil, err
			}
			row.Times[count] = append(row.Times[count], us)
		}
	}
	return row, nil
}

func flightTable(rows []*flightRow, p cudart.Platform, s settings) table {
	t := table{title: fmt.Sprintf("Replays in flight on %s: milliseconds from one result to the next, medians of %d rounds", p.Devices()[0].Name, s.rounds),
		head: []string{"workload", "planned", "streams each"}}
	for count := 1; count <= mostFlights; count++ {
		t.head = append(t.head, fmt.Sprintf("%d in flight", count))
	}
	for _, r := range rows {
		how := "one stream"
		if r.Planned {
			how = "yes"
		}
		cells := []string{r.Name, how, fmt.Sprint(r.Streams)}
		for _, times := range r.Times[1:] {
			cells = append(cells, ms(median(times)))
		}
		t.row(cells...)
	}
	return t
}
