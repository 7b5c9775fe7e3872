// Measures instances in the format of minimalloc: how low layouts get, and whether capacities are reached.
//
// This measures every file of a folder; a number before the ending of a file's name is its capacity (A.1048576.csv):
//
//	DAGRUN_MINIMALLOC=FOLDER go test ./planner/internal/pack -run '^$' -bench Minimalloc
//
// Without a folder it measures instances of its own, cut from rectangles of the capacity's height.

package pack

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// instance is a packing problem with a capacity.
type instance struct {
	name     string
	lives    *lives
	capacity int64 // 0 if none is known
}

// readMinimalloc reads lines of id,lower,upper,size after a line with these names, in any order. A buffer is alive from lower to before
// upper. Places are numbered anew, as only their order counts.
func readMinimalloc(r io.Reader) (*lives, error) {
	lines := bufio.NewScanner(r)
	lines.Scan()
	column := map[string]int{}
	for i, name := range strings.Split(strings.TrimSpace(lines.Text()), ",") {
		column[strings.TrimSpace(name)] = i
	}
	for _, name := range []string{"lower", "upper", "size"} {
		if _, ok := column[name]; !ok {
			return nil, fmt.Errorf("line 1: no column %q", name)
		}
	}
	var rows [][3]int64 // lower, upper, size
	for number := 2; lines.Scan(); number++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" {
			continue
		}
		fields := strings.Split(text, ",")
		var row [3]int64
		for i, name := range []string{"lower", "upper", "size"} {
			if column[name] >= len(fields) {
				return nil, fmt.Errorf("line %d: no %s", number, name)
			}
			var err error
			if row[i], err = strconv.ParseInt(strings.TrimSpace(fields[column[name]]), 10, 64); err != nil {
				return nil, fmt.Errorf("line %d: %w", number, err)
			}
		}
		if row[0] >= row[1] || row[2] <= 0 {
			return nil, fmt.Errorf("line %d: a buffer from %d to before %d of %d bytes", number, row[0], row[1], row[2])
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		return nil, errors.Join(lines.Err(), errors.New("no buffers"))
	}
	var ends []int64
	for _, row := range rows {
		ends = append(ends, row[0], row[1])
	}
	slices.Sort(ends)
	ends = slices.Compact(ends)
	v := &lives{}
	for _, row := range rows {
		first, _ := slices.BinarySearch(ends, row[0])
		after, _ := slices.BinarySearch(ends, row[1])
		v.first, v.last, v.size = append(v.first, int32(first)), append(v.last, int32(after-1)), append(v.size, row[2])
	}
	return v, lines.Err()
}

// minimalloc returns the instances of the folder, or else some of our own.
func minimalloc(tb testing.TB) []instance {
	tb.Helper()
	var all []instance
	folder := os.Getenv("DAGRUN_MINIMALLOC")
	if folder == "" {
		const height = 1 << 20
		for seed, buffers := range []int{150, 200, 250, 300, 350, 400, 450} {
			rng := rand.New(rand.NewPCG(uint64(seed), 21))
			all = append(all, instance{fmt.Sprintf("rectangle in %d", buffers), cutRectangle(rng, buffers, 400, height, 1024), height})
		}
		return all
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.csv"))
	require.NoError(tb, err)
	require.NotEmpty(tb, files, "no .csv files in %s", folder)
	for _, name := range files {
		file, err := os.Open(name)
		require.NoError(tb, err)
		v, err := readMinimalloc(file)
		require.NoError(tb, cmp.Or(err, file.Close()), name)
		in := instance{name: filepath.Base(name), lives: v}
		if parts := strings.Split(in.name, "."); len(parts) > 2 {
			in.capacity, err = strconv.ParseInt(parts[len(parts)-2], 10, 64)
			require.NoError(tb, err, name)
		}
		all = append(all, in)
	}
	return all
}

func TestMinimallocFormat(t *testing.T) {
	v, err := readMinimalloc(strings.NewReader("id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\n\n b3, 0, 9, 4\n"))
	require.NoError(t, err)
	p := v.problem()
	require.True(t, p.excludes(0, 2))
	require.True(t, p.excludes(1, 2))
	require.False(t, p.excludes(0, 1), "upper is not included")
	require.Equal(t, int64(8), p.Bound())
	v, err = readMinimalloc(strings.NewReader("size,id,lower,upper\n7,x,1,2\n"))
	require.NoError(t, err)
	require.Equal(t, []int64{7}, v.size)
	for text, want := range map[string]string{
		"":                               `line 1: no column "lower"`,
		"id,lower,upper,size\n":          "no buffers",
		"id,lower,upper,size\n1,2\n":     "line 2: no upper",
		"id,lower,upper,size\n1,2,2,5\n": "line 2: a buffer from 2 to before 2 of 5 bytes",
		"id,lower,upper,size\n1,2,x,5\n": `line 2: strconv.ParseInt: parsing "x": invalid syntax`,
	} {
		_, err := readMinimalloc(strings.NewReader(text))
		require.EqualError(t, err, want)
	}
}

// usual is what layouts of one stream get with normal effort.
func usual(buffers int) Budget {
	n := int64(buffers)
	return Budget{Orders: 2_000 * n, Eject: min(12_000_000, 32_000*n), Search: min(9_000_000, 16_000*n)}
}

// long is what they get with thorough effort.
func long(buffers int) Budget {
	return Budget{Orders: min(4_000_000, 300_000+8_000*int64(buffers)), Eject: 100_000_000, Search: 700_000_000}
}

// BenchmarkMinimalloc prints for each instance how far layouts of normal and thorough effort end above the capacity, and how long it takes
// to fit.
func BenchmarkMinimalloc(b *testing.B) {
	all := minimalloc(b)
	b.Run("table", func(b *testing.B) {
		for b.Loop() {
		}
		for _, in := range all {
			fmt.Printf("%-18s %4d buffers:", in.name, len(in.lives.size))
			for _, budget := range []Budget{usual(len(in.lives.size)), long(len(in.lives.size))} {
				start := time.Now()
				low := Lower(ctx, in.lives.problem(), side(in.lives.size), 0, budget)
				requireLayout(b, in.lives, low.Offsets, low.Peak)
				fmt.Printf(" %d bytes in %v", low.Peak, time.Since(start).Round(time.Millisecond))
				if in.capacity > 0 {
					fmt.Printf(", %.2f%% over the capacity;", 100*(float64(low.Peak)/float64(in.capacity)-1))
				}
			}
			if in.capacity > 0 {
				start := time.Now()
				fit := Fit(ctx, in.lives.problem(), in.capacity, 4_000_000_000)
				fmt.Printf(" with it as the cap %s in %v", []string{"nothing found", "found", "proved impossible"}[fit.Verdict], time.Since(start).Round(time.Millisecond))
			}
			fmt.Println()
		}
	})
}
