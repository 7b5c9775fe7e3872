// Tests of memory caps at the bound: pipelines that fit only with an optimal layout, and refusals with their proof.

package planner

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/file"
	"github.com/dagrun/dagrun/planner/proof"
)

// lifetime is a line of a lifetimes file: id,lower,upper,size. The buffer is alive from lower until just before upper.
type lifetime struct {
	id                 string
	lower, upper, size int64
}

func readLifetimes(t testing.TB, text string) []lifetime {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(text), "\n")
	require.Equal(t, "id,lower,upper,size", lines[0])
	var all []lifetime
	for _, line := range lines[1:] {
		fields := strings.Split(line, ",")
		require.Len(t, fields, 4)
		var numbers [3]int64
		for k, field := range fields[1:] {
			n, err := strconv.ParseInt(field, 10, 64)
			require.NoError(t, err)
			numbers[k] = n
		}
		all = append(all, lifetime{fields[0], numbers[0], numbers[1], numbers[2]})
	}
	return all
}

// lifetimePipeline is a pipeline on one stream in which two buffers are alive together exactly where their lifetimes overlap: each is
// written when its lifetime starts and again just before it ends. Unless loose is set, each node depends on the one before it.
func lifetimePipeline(all []lifetime, loose bool) string {
	type event struct {
		at   int64
		ends bool
		id   string
	}
	var text strings.Builder
	text.WriteString("version: 1\nname: lifetimes\nbuffers:\n")
	var events []event
	for _, l := range all {
		fmt.Fprintf(&text, "  b%s: {place: device, dtype: u8, shape: [%d]}\n", l.id, l.size)
		events = append(events, event{2 * l.lower, false, l.id}, event{2*l.upper - 1, true, l.id})
	}
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	text.WriteString("nodes:\n")
	after := ""
	for _, e := range events {
		name := "start." + e.id
		if e.ends {
			name = "end." + e.id
		}
		fmt.Fprintf(&text, "  - {name: %s, memset: {to: b%s, value: 0}, stream: 0%s}\n", name, e.id, after)
		if !loose {
			after = fmt.Sprintf(", after: [%s]", name)
		}
	}
	return text.String()
}

// cutLifetimes cuts a rectangle of places and bytes into lifetimes without gaps: they fit into its height, and into nothing lower.
func cutLifetimes(seed uint64, buffers int, places, height int64) []lifetime {
	const grain = 1024
	rng := rand.New(rand.NewPCG(seed, 31))
	parts := []lifetime{{"", 0, places, height / grain}}
	for len(parts) < buffers {
		k := rng.IntN(len(parts))
		p := parts[k]
		switch wide := p.upper - p.lower; {
		case wide > 1 && rng.IntN(2) == 0:
			at := p.lower + 1 + rng.Int64N(wide-1)
			parts[k].upper = at
			parts = append(parts, lifetime{"", at, p.upper, p.size})
		case p.size > 1:
			at := 1 + rng.Int64N(p.size-1)
			parts[k].size = at
			parts = append(parts, lifetime{"", p.lower, p.upper, p.size - at})
		}
	}
	rng.Shuffle(len(parts), func(a, b int) { parts[a], parts[b] = parts[b], parts[a] })
	for k := range parts {
		parts[k].id = strconv.Itoa(k)
		parts[k].size *= grain
	}
	return parts
}

// writeLifetimes writes a lifetimes file.
func writeLifetimes(all []lifetime) string {
	var text strings.Builder
	text.WriteString("id,lower,upper,size\n")
	for _, l := range all {
		fmt.Fprintf(&text, "%s,%d,%d,%d\n", l.id, l.lower, l.upper, l.size)
	}
	return text.String()
}

func parsePipeline(t testing.TB, text string) *dag.Graph {
	t.Helper()
	g, err := file.Parse([]byte(text), file.Options{})
	require.NoError(t, err)
	return g
}

func TestMemoryCapAtTheBound(t *testing.T) {
	const height = 1 << 20
	for seed := range uint64(3) {
		all := readLifetimes(t, writeLifetimes(cutLifetimes(seed, 100, 120, height)))
		g := parsePipeline(t, lifetimePipeline(all, false))
		p, err := New(context.Background(), g, Options{Effort: Normal, MemoryCap: height})
		require.NoError(t, err, "seed %d", seed)
		require.Equal(t, int64(height), p.Stats.PeakDeviceBytes)
		require.NoError(t, proof.Verify(g, p))
	}
}

// The environment variable LIFETIMES can name a lifetimes file to plan within CAP bytes.
func TestMemoryCapOfGivenLifetimes(t *testing.T) {
	file := os.Getenv("LIFETIMES")
	text := writeLifetimes(cutLifetimes(9, 40, 60, 1<<20))
	limit := int64(1 << 20)
	if file != "" {
		read, err := os.ReadFile(file)
		require.NoError(t, err)
		text = string(read)
		limit, err = strconv.ParseInt(os.Getenv("CAP"), 10, 64)
		require.NoError(t, err)
	}
	g := parsePipeline(t, lifetimePipeline(readLifetimes(t, text), false))
	p, err := New(context.Background(), g, Options{Effort: Normal, MemoryCap: limit})
	require.NoError(t, err)
	require.LessOrEqual(t, p.Stats.PeakDeviceBytes, limit)
	require.NoError(t, proof.Verify(g, p))
}

func TestMemoryCapBelowTheBound(t *testing.T) {
	three := []lifetime{{"0", 0, 2, 512}, {"1", 1, 3, 1024}, {"2", 2, 4, 512}}
	g := parsePipeline(t, lifetimePipeline(three, false))
	p, err := New(context.Background(), g, Options{MemoryCap: 1536})
	require.NoError(t, err)
	require.Equal(t, int64(1536), p.Stats.PeakDeviceBytes)
	_, err = New(context.Background(), g, Options{MemoryCap: 1280})
	var e *MemoryCapError
	require.ErrorAs(t, err, &e)
	require.Equal(t, AnyPlan, e.Proof)

	g = parsePipeline(t, lifetimePipeline(three, true))
	_, err = New(context.Background(), g, Options{MemoryCap: 1280})
	require.ErrorAs(t, err, &e)
	require.Equal(t, TriedPlans, e.Proof, "on other streams or in another order less may be alive")
	require.EqualError(t, err, `device 0 needs 1.5 KiB, 256 bytes more than the memory cap of 1.25 KiB; alive at once at "start.2": "b1" (1 KiB), "b2" (512 bytes); no plan that was tried can fit, but others may`)

	// If dependencies keep both buffers alive, no order helps.
	b := dag.New("across")
	x, y := b.Device("x", dag.U8, 1024), b.Device("y", dag.U8, 512)
	z := b.Device("z", dag.U8, 256)
	b.Task("make x", b.Out(x))
	b.Task("make y", b.In(x), b.Out(y))
	b.Task("middle", b.InOut(y))
	b.Task("late", b.In(y), b.Out(z))
	b.Task("last", b.In(x), b.In(z))
	g, err = b.Graph()
	require.NoError(t, err)
	_, err = New(context.Background(), g, Options{MemoryCap: 1536})
	require.ErrorAs(t, err, &e)
	require.Equal(t, AnyPlan, e.Proof)
	require.EqualError(t, err, `device 0 needs at least 1.75 KiB, 256 bytes more than the memory cap of 1.5 KiB, in every plan; alive at once at "late": "x" (1 KiB), "y" (512 bytes), "z" (256 bytes)`)
	_, err = New(context.Background(), g, Options{MemoryCap: 1792})
	require.NoError(t, err)
}

// A rectangle cut into many buffers fits, but low effort does not find the layout.
func TestMemoryCapThatIsNotFound(t *testing.T) {
	g := parsePipeline(t, lifetimePipeline(cutLifetimes(4, 600, 60, 1<<20), false))
	_, err := New(context.Background(), g, Options{MemoryCap: 1 << 20})
	var e *MemoryCapError
	require.ErrorAs(t, err, &e)
	require.Equal(t, NotFound, e.Proof)
	require.Greater(t, e.Needed, int64(1<<20))
	require.True(t, strings.HasSuffix(err.Error(), "; this was not proved: more effort may find a layout that fits"), err.Error())

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = New(ctx, g, Options{MemoryCap: 1 << 20})
	require.ErrorIs(t, err, context.Canceled)
}
