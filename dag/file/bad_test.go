// Tests of invalid files, each with its exact messages. `go test -run TestBadFiles -rewrite` rewrites the messages; review the diff.

package file

import (
	"bytes"
	"errors"
	goflag "flag"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/internal/fakes"
	"github.com/stretchr/testify/require"
)

var rewrite = goflag.Bool("rewrite", false, "write the expected messages of testdata anew")

// The most that reading one bad file may allocate.
const badFileBytes = 100 << 20

// overrides reads the "# -p n=4" lines that a file begins with.
func overrides(source []byte) []Override {
	var found []Override
	for line := range strings.Lines(string(source)) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "# -p ")
		if !ok {
			break
		}
		name, value, _ := strings.Cut(rest, "=")
		found = append(found, Override{name, value})
	}
	return found
}

func badOptions(source []byte) Options {
	o := testOptions(overrides(source)...)
	o.OpenModule = func(m dag.Module) (dag.Library, error) {
		if m.Path == "missing.cu" {
			return nil, errors.New("open missing.cu: no such file")
		}
		return fakes.UserKernels, nil
	}
	return o
}

func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestBadFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 80)
	hinted, several, most := 0, 0, 0
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			source, err := os.ReadFile(file)
			require.NoError(t, err)
			var graph *dag.Graph
			bytes := allocated(func() { graph, err = Parse(source, badOptions(source)) })
			require.Nil(t, graph)
			found := mistakes(t, err)
			require.Less(t, bytes, uint64(badFileBytes))
			for k := range found.List {
				d := &found.List[k]
				inFile := !strings.HasPrefix(d.Message, "-p ") && !strings.Contains(d.Message, "the file is binary") && !strings.HasPrefix(d.Message, "file is UTF-16")
				require.Equal(t, inFile, d.Pos.Line > 0 && d.Pos.Column > 0, d.Error())
				if d.Hint != "" {
					hinted++
				}
			}
			if count := len(found.List) + found.More; count > 1 {
				several++
				most = max(most, count)
			}
			var got strings.Builder
			require.NoError(t, found.Print(&got))
			expect(t, strings.TrimSuffix(file, ".yaml")+".want", got.String())
		})
	}
	t.Logf("%d suggestions; %d files with several mistakes, up to %d", hinted, several, most)
	require.GreaterOrEqual(t, hinted, 100, "what to write instead")
	require.GreaterOrEqual(t, several, 10, "mistakes are reported together")
}

// mistakes returns the diagnostics in the error of Parse or Format.
func mistakes(t require.TestingT, err error) *dag.Diagnostics {
	var wrong *ParseError
	require.ErrorAs(t, err, &wrong)
	require.NotEmpty(t, wrong.List)
	for k := range wrong.List {
		require.Equal(t, dag.SeverityError, wrong.List[k].Severity)
	}
	return &wrong.Diagnostics
}

// expect compares with a file of testdata.
func expect(t *testing.T, file, got string) {
	t.Helper()
	if *rewrite {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func TestTooLargeFile(t *testing.T) {
	source := bytes.Repeat([]byte("# large\n"), MaxBytes/8+1)
	var err error
	require.Less(t, allocated(func() { _, err = Parse(source, testOptions()) }), uint64(badFileBytes))
	require.EqualError(t, err, "p.yaml: file of 67108872 bytes is over the limit of 64 MiB")
}
