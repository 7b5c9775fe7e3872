// Sweeps: -p name=1,2,4 in bench and tune stands for one run with each value, and several of them for every combination.

package measuring

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/dag/file"
)

// mostPoints is how many combinations a sweep may have.
const mostPoints = 1000

// sweep returns the params of every point, the last param changing fastest, and which of them change. Without a list of values there is
// one point and nothing changes.
func sweep(params []string) (points [][]string, swept []int, err error) {
	points = [][]string{{}}
	given := map[string]int{} // how many values each param has
	for k, p := range params {
		name, values, _ := strings.Cut(p, "=")
		list := strings.Split(values, ",")
		if len(list) > 1 {
			swept = append(swept, k)
		}
		name = strings.TrimSpace(name)
		switch before := given[name]; {
		case name == "":
			return nil, nil, fmt.Errorf("-p %s: want name=value", p)
		case before > 0 && before+len(list) > 2:
			return nil, nil, fmt.Errorf("-p %s: %s is given twice; all values of a param belong in one list, such as -p %s=1,2,3", p, name, name)
		}
		given[name] = len(list)
		for i, value := range list {
			list[i] = strings.TrimSpace(value)
			if slices.Contains(list[:i], list[i]) && list[i] != "" {
				return nil, nil, fmt.Errorf("-p %s: the value %s is there twice", p, list[i])
			}
		}
		var next [][]string
		for _, point := range points {
			for _, value := range list {
				if len(list) > 1 && value == "" {
					return nil, nil, fmt.Errorf("-p %s: a value is missing between the commas", p)
				}
				full := p
				if len(list) > 1 {
					full = name + "=" + value
				}
				next = append(next, append(append([]string{}, point...), full))
			}
		}
		if points = next; len(points) > mostPoints {
			return nil, nil, fmt.Errorf("-p: %s and more combinations are too many; up to %d are possible", cli.Counted(len(points), "value"), mostPoints)
		}
	}
	return points, swept, nil
}

// checkPoints reads the file once for all points, and makes the graph of each, so that a mistake in the last is found before the first is
// measured.
func (u *Commands) checkPoints(ctx context.Context, name string, points [][]string, swept []int) error {
	if len(swept) == 0 {
		return nil
	}
	source, err := u.ReadSource(ctx, name)
	if err != nil {
		return err
	}
	u.Source = source
	for _, params := range points {
		u.Flags.Params = params
		g, err := u.Parse(ctx, name)
		point := pointText(sweptOf(params, swept))
		if err == nil && g.Len() == 0 {
			err = errors.New("the pipeline has no nodes: there is nothing to measure")
		}
		if wrong := (*file.ParseError)(nil); errors.As(err, &wrong) {
			u.Note("these mistakes are there with %s", point)
			if err := u.PrintDiagnostics(&wrong.Diagnostics); err != nil {
				return err
			}
			return &cli.Reported{Status: cli.StatusWrong, Err: err}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", point, err)
		}
	}
	return nil
}

// sweptOf returns the params of a point that change in its sweep.
func sweptOf(point []string, swept []int) []string {
	list := []string{}
	for _, k := range swept {
		list = append(list, point[k])
	}
	return list
}

// pointText is how a point is shown: "chunks=4, block=64".
func pointText(swept []string) string { return strings.Join(swept, ", ") }
