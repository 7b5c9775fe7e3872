// Sweeps: -p name=1,2,4 in bench and tune stands for one run with each value, and several of them for every combination.

package main

import (
	"fmt"
	"strings"
)

// mostPoints is how many combinations a sweep may have.
const mostPoints = 1000

// sweep returns the params of every point, the last param changing fastest, and which of them change. Without a list of values there is
// one point and nothing changes.
func sweep(params []string) (points [][]string, swept []int, err error) {
	points = [][]string{{}}
	lists, given := map[string]bool{}, map[string]bool{}
	for k, p := range params {
		name, values, _ := strings.Cut(p, "=")
		list := strings.Split(values, ",")
		if len(list) > 1 {
			swept = append(swept, k)
		}
		if lists[name] || given[name] && len(list) > 1 {
			return nil, nil, fmt.Errorf("-p %s: %s is given twice, so it is not clear which values to try: leave one of them out", p, name)
		}
		lists[name], given[name] = len(list) > 1, true
		var next [][]string
		for _, point := range points {
			for _, value := range list {
				if len(list) > 1 && strings.TrimSpace(value) == "" {
					return nil, nil, fmt.Errorf("-p %s: a value is missing between the commas", p)
				}
				full := p
				if len(list) > 1 {
					full = name + "=" + strings.TrimSpace(value)
				}
				next = append(next, append(append([]string{}, point...), full))
			}
		}
		if points = next; len(points) > mostPoints {
			return nil, nil, fmt.Errorf("-p: %s and more combinations are too many; up to %d are possible", counted(len(points), "value"), mostPoints)
		}
	}
	return points, swept, nil
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
