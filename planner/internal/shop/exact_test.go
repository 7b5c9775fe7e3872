// Tests of orders of 9 and 10 jobs against proved optima, which are in testdata/exact.txt. This proves them again, for minutes, and writes
// those that it can prove:
//
//	go test ./planner/internal/shop -run TestProvedOptima -search

package shop

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/planner/internal/plantest/instances"
)

const exactFile = "testdata/exact.txt"

// provable are the instances whose optima are worth proving: on more streams, hardly any can be proved.
func provable() []instances.Instance {
	var all []instances.Instance
	for _, route := range []string{"upload-kernel-download", "two devices"} {
		for _, streams := range []int{1, 2} {
			for _, jobs := range []int{9, 10} {
				for seed := range uint64(3) {
					all = append(all, instances.Random(route, jobs, streams, seed))
				}
			}
		}
	}
	return all
}

func TestProvedOptima(t *testing.T) {
	if *searchLong {
		var lines strings.Builder
		for _, in := range provable() {
			if least, proved := solve(workOf(in), best(t, in, usualSteps), 400_000); proved {
				fmt.Fprintf(&lines, "%s: %v\n", in.Name, least)
			}
		}
		require.NoError(t, os.WriteFile(exactFile, []byte(lines.String()), 0o644))
	}
	values := readValues(t, exactFile)
	r := &row{name: "9 and 10 jobs, proved optima"}
	jobs := map[int]int{}
	for _, in := range provable() {
		if least, ok := values[in.Name]; ok {
			us := best(t, in, usualSteps)
			require.GreaterOrEqual(t, us, least*(1-near), in.Name)
			r.add(us, least)
			jobs[len(in.Jobs)]++
		}
	}
	t.Log(r)
	require.Len(t, values, r.count)
	require.LessOrEqual(t, r.mean, 2.0)
	for _, count := range []int{9, 10} {
		require.Positive(t, jobs[count], "%d jobs", count)
	}
}
