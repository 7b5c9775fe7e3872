// Tests and benchmarks of placements against the best known ones, which testdata/best/spread.txt keeps with the numbers that make the graphs.
// The benchmark prints how far the search is from them, for each family and number of devices:
//
//	go test ./planner/spread -run '^$' -bench SpreadDistance -benchtime 1x
//
// This searches for better ones, some minutes for each family, and writes them down:
//
//	DAGRUN_LONG=1 go test ./planner/spread -run BestKnownSpreads -timeout 0 -rewrite

package spread

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/internal/placement"
	"github.com/dagrun/dagrun/planner/plan"
)

// spreadInstance is a graph for several devices with the shortest predicted time that is known.
type spreadInstance struct {
	family  string
	size    int
	us      float64 // of a task
	kib     int64   // of a tile
	seed    uint64  // of uneven costs; 0: all are even
	devices int
	best    float64
}

const spreadBest = "testdata/best/spread.txt"

// spreadInstances reads the instances.
func spreadInstances(tb testing.TB) []spreadInstance {
	tb.Helper()
	text, err := os.ReadFile(spreadBest)
	require.NoError(tb, err)
	var list []spreadInstance
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var in spreadInstance
		_, err := fmt.Sscan(line, &in.family, &in.size, &in.us, &in.kib, &in.seed, &in.devices, &in.best)
		require.NoError(tb, err, line)
		list = append(list, in)
	}
	return list
}

func (in *spreadInstance) tiles() *tiled {
	var random *rand.Rand
	if in.seed > 0 {
		random = rand.New(rand.NewPCG(in.seed, 43))
	}
	bytes := in.kib << 10
	switch in.family {
	case "cholesky":
		return choleskyTiles(in.size, in.us, bytes, random)
	case "lu":
		return luTiles(in.size, in.us, bytes, random)
	case "fft":
		return fftTiles(in.size, in.us, bytes, random)
	case "stencil":
		return stencilTiles(in.size, in.size, in.us, bytes, random)
	}
	return treeTiles(in.size, in.us, bytes, random)
}

func (in *spreadInstance) name() string {
	return fmt.Sprintf("%s/%d/%gus/%dKiB/seed%d/%d", in.family, in.size, in.us, in.kib, in.seed, in.devices)
}

// plannedSpread is the predicted time of a placement, planned with normal effort.
func plannedSpread(tb testing.TB, s *plan.Spread) float64 {
	tb.Helper()
	p, err := planner.New(context.Background(), s.Graph, planner.Options{Effort: planner.Normal})
	require.NoError(tb, err)
	return p.Stats.MakespanUS
}

// reference is a long search for placements that judges every one by the simulator, with a plan that takes little time to make. It shares
// nothing with the search that it is compared with but what it starts from.
type reference struct {
	tb      testing.TB
	problem *placement.Problem
	request *request
	random  *rand.Rand
	writes  map[dag.BufferID][]int32 // the nodes that write a buffer
	count   int
}

var rewrite = flag.Bool("rewrite", false, "write the best known results anew instead of comparing with them")

func newReference(tb testing.TB, g *dag.Graph, devices int, seed uint64) *reference {
	tb.Helper()
	p, err := placement.NewProblem(g, devices, nil)
	require.NoError(tb, err)
	request, err := newRequest(context.Background(), g, Options{Devices: devices})
	require.NoError(tb, err)
	r := &reference{tb: tb, problem: p, request: request, random: rand.New(rand.NewPCG(seed, 47)), writes: map[dag.BufferID][]int32{}}
	for i := range g.Nodes {
		for _, a := range g.Accesses(dag.NodeID(i)) {
			if a.Mode&dag.Write != 0 {
				r.writes[a.Buffer] = append(r.writes[a.Buffer], int32(i))
			}
		}
	}
	return r
}

// time is the predicted time of a placement. critical lists its nodes that others waited for up to the end.
func (r *reference) time(at []int32) (us float64, critical []int32) {
	r.count++
	made, err := placement.Transform(r.problem, at)
	require.NoError(r.tb, err)
	q := &spreading{ctx: context.Background(), r: r.request}
	var t *plan.Timeline
	for _, streams := range []int{1, 2} { // kernels that fill a device gain nothing from more
		p, err := q.listed(made.Graph, streams)
		require.NoError(r.tb, err)
		other, err := planner.Simulate(made.Graph, p, q.r.o.Machine, nil)
		require.NoError(r.tb, err)
		if t == nil || other.MakespanUS < t.MakespanUS {
			t = other
		}
	}
	last := dag.NodeID(0)
	for i := range t.Nodes {
		if t.Nodes[i].End > t.Nodes[last].End {
			last = dag.NodeID(i)
		}
	}
	for i := last; i >= 0 && len(critical) < len(t.Nodes); i = t.Nodes[i].By {
		if from := made.Nodes[i]; from >= 0 {
			critical = append(critical, int32(from))
		}
	}
	return t.MakespanUS, critical
}

// improve changes a placement a number of times. A change that is no worse than the state some changes ago is kept.
func (r *reference) improve(at []int32, changes int) ([]int32, float64) {
	us, critical := r.time(at)
	best, bestUS := slices.Clone(at), us
	now, try := slices.Clone(at), make([]int32, len(at))
	history := slices.Repeat([]float64{us}, 60)
	for k := range changes {
		copy(try, now)
		for range 1 + r.random.IntN(2) {
			r.change(try, critical)
		}
		r.pin(try)
		if slices.Equal(try, now) {
			continue
		}
		new, path := r.time(try)
		if old := &history[k%len(history)]; new <= *old || new <= us {
			now, try, us, critical = try, now, new, path
			*old = us
			if us < bestUS {
				bestUS = us
				copy(best, now)
			}
		}
	}
	return best, bestUS
}

// pin puts nodes back to where they belong.
func (r *reference) pin(at []int32) {
	for i, device := range r.problem.Fixed[:len(at)] {
		if device != placement.Free {
			at[i] = device
		}
	}
}

// change makes one random change.
func (r *reference) change(at, critical []int32) {
	g := r.problem.Graph
	i, to := int32(r.random.IntN(len(at))), int32(r.random.IntN(r.problem.Devices))
	if r.random.IntN(2) == 0 && len(critical) > 0 {
		i = critical[r.random.IntN(len(critical))]
	}
	neighbour := func(i int32) int32 {
		list := g.Preds(dag.NodeID(i))
		if r.random.IntN(2) == 0 || len(list) == 0 {
			list = g.Succs(dag.NodeID(i))
		}
		if len(list) == 0 {
			return i
		}
		if j := list[r.random.IntN(len(list))]; int(j) < len(at) {
			return int32(j)
		}
		return i
	}
	switch r.random.IntN(6) {
	case 0:
		at[i] = at[neighbour(i)]
	case 1:
		j := int32(r.random.IntN(len(at)))
		at[i], at[j] = at[j], at[i]
	case 2: // a tile
		for _, a := range g.Accesses(dag.NodeID(i)) {
			if a.Mode&dag.Write != 0 {
				for _, j := range r.writes[a.Buffer] {
					at[j] = to
				}
			}
		}
	case 3: // a walk
		for range 2 + r.random.IntN(10) {
			at[i] = to
			i = neighbour(i)
		}
	case 4: // all of one device near a place in the order go to another
		from := at[i]
		for j := i; int(j) < len(at) && j < i+1+int32(r.random.IntN(12)); j++ {
			if at[j] == from {
				at[j] = to
			}
		}
	default:
		at[i] = to
	}
}

// starts are placements to begin with: those of the policies and of the search, and those that such work is dealt out by, by hand.
func (r *reference) starts(t *tiled, devices int) [][]int32 {
	var list [][]int32
	g := r.problem.Graph
	for _, policy := range Policies() {
		s, err := New(context.Background(), g, Options{Devices: devices, Policy: policy, Options: planner.Options{Effort: planner.Normal}})
		require.NoError(r.tb, err)
		list = append(list, s.At)
	}
	most := [2]int{}
	for _, w := range t.written {
		most = [2]int{max(most[0], w[0]), max(most[1], w[1])}
	}
	for rows := 1; rows <= devices; rows++ {
		if devices%rows != 0 {
			continue
		}
		columns := devices / rows
		cyclic, blocks := make([]int32, len(t.written)), make([]int32, len(t.written))
		for i, w := range t.written {
			cyclic[i] = int32(w[0]%rows*columns + w[1]%columns)
			blocks[i] = int32(w[0]*rows/(most[0]+1)*columns + w[1]*columns/(most[1]+1))
		}
		list = append(list, cyclic, blocks)
	}
	parts := make([]int32, len(t.written)) // by how far along its row, all rows being as long as they are
	long := map[int]int{}
	for _, w := range t.written {
		long[w[0]] = max(long[w[0]], w[1]+1)
	}
	for i, w := range t.written {
		parts[i] = int32(w[1] * devices / long[w[0]])
	}
	return append(list, parts)
}

// search returns the shortest predicted time that it finds.
func (r *reference) search(t *tiled, devices, changes int) float64 {
	type found struct {
		at []int32
		us float64
	}
	var list []found
	for _, at := range r.starts(t, devices) {
		r.pin(at)
		us, _ := r.time(at)
		list = append(list, found{at, us})
	}
	slices.SortStableFunc(list, func(a, b found) int { return cmp.Compare(a.us, b.us) })
	best := math.Inf(1)
	judge := func(at []int32) {
		s, err := placement.Transform(r.problem, at)
		require.NoError(r.tb, err)
		best = min(best, plannedSpread(r.tb, s))
	}
	const roots = 3
	for k := range list[:min(2*roots, len(list))] {
		judge(list[k].at)
		if k < roots {
			at, _ := r.improve(list[k].at, changes/roots)
			judge(at)
		}
	}
	return best
}

// all tries every placement of a small graph.
func (r *reference) all(devices int) float64 {
	at, best := make([]int32, r.problem.Graph.Len()), math.Inf(1)
	for {
		if us, _ := r.time(at); us < best {
			best = us
		}
		k := 1 // the first node stays: devices are alike
		for ; k < len(at) && int(at[k]) == devices-1; k++ {
			at[k] = 0
		}
		if k == len(at) {
			return best
		}
		at[k]++
	}
}

// tiny reports whether every placement of an instance can be tried.
func (in *spreadInstance) tiny(nodes int) bool {
	return math.Pow(float64(in.devices), float64(nodes-1)) <= 1<<13
}

// TestBestKnownSpreads searches where it is asked to. DAGRUN_SPREADS limits it to instances whose name contains that, such as fft/ or /4.
func TestBestKnownSpreads(t *testing.T) {
	list := spreadInstances(t)
	require.Len(t, list, 75)
	if os.Getenv("DAGRUN_LONG") == "" || !*rewrite {
		return
	}
	for k := range list {
		in := &list[k]
		if !strings.Contains(in.name(), os.Getenv("DAGRUN_SPREADS")) {
			continue
		}
		tiles := in.tiles()
		g, err := tiles.b.Graph()
		require.NoError(t, err)
		r := newReference(t, g, in.devices, uint64(in.best))
		found := 0.0
		if in.tiny(g.Len()) {
			found = r.all(in.devices)
		} else {
			found = r.search(tiles, in.devices, min(8_000, 600_000/g.Len()))
		}
		t.Logf("%s: %.1f us, known was %.1f", in.name(), found, in.best)
		if found = math.Ceil(found*10) / 10; in.best == 0 || found < in.best {
			in.best = found
		}
	}
	text := "# family size us KiB seed devices best_us\n"
	for _, in := range list {
		text += fmt.Sprintln(in.family, in.size, in.us, in.kib, in.seed, in.devices, in.best)
	}
	require.NoError(t, os.WriteFile(spreadBest, []byte(text), 0o644))
}

// distance is how much longer the chosen placement takes than the best known one, both planned with normal effort.
func (in *spreadInstance) distance(tb testing.TB, effort planner.Effort) float64 {
	tb.Helper()
	g, err := in.tiles().b.Graph()
	require.NoError(tb, err)
	s, err := New(context.Background(), g, Options{Devices: in.devices, Options: planner.Options{Effort: effort}})
	require.NoError(tb, err)
	return plannedSpread(tb, s)/in.best - 1
}

// The bar is 6% for each instance. DAGRUN_LONG=1 tries all of them, otherwise only the smaller ones.
func TestSpreadsAreNearTheBestKnown(t *testing.T) {
	const bar = 0.06
	count := 0
	for _, in := range spreadInstances(t) {
		small := in.kib == 65536 && in.devices == 4
		if os.Getenv("DAGRUN_LONG") == "" && (!small || testing.Short()) {
			continue
		}
		count++
		require.LessOrEqual(t, in.distance(t, planner.Normal), bar, in.name())
	}
	t.Logf("%d instances", count)
}

func BenchmarkSpreadDistance(b *testing.B) {
	list := spreadInstances(b)
	for _, effort := range []planner.Effort{planner.Quick, planner.Normal} {
		for _, family := range []string{"cholesky", "lu", "fft", "stencil", "in-tree"} {
			for _, devices := range []int{2, 4, 8} {
				b.Run(fmt.Sprintf("%s/%s/%d", effort, family, devices), func(b *testing.B) {
					worst, sum, count := 0.0, 0.0, 0
					for b.Loop() {
						worst, sum, count = 0, 0, 0
						for _, in := range list {
							if in.family == family && in.devices == devices {
								away := in.distance(b, effort)
								worst, sum, count = max(worst, away), sum+away, count+1
							}
						}
					}
					b.ReportMetric(100*worst, "%-worst")
					b.ReportMetric(100*sum/float64(count), "%-mean")
				})
			}
		}
	}
}

// What is chosen is never predicted slower than what any policy makes, planned with the same effort.
func TestNoPolicyBeatsTheSearch(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 59))
	families := []string{"cholesky", "lu", "fft", "stencil", "in-tree"}
	cases := 3
	if os.Getenv("DAGRUN_LONG") != "" {
		cases = 60
	}
	for k := range cases {
		in := spreadInstance{family: families[k%len(families)], size: 4, us: 20 + 100*random.Float64(), kib: 1 << (8 + random.IntN(9)), seed: 1 + random.Uint64N(1000), devices: 2 + random.IntN(7)}
		if in.family == "fft" || in.family == "in-tree" {
			in.size = 8
		}
		g, err := in.tiles().b.Graph()
		require.NoError(t, err)
		efforts := []planner.Effort{planner.Quick, planner.Normal}
		if testing.Short() {
			efforts = efforts[:1]
		}
		for _, effort := range efforts {
			tries, err := Compare(context.Background(), g, Options{Devices: in.devices, Options: planner.Options{Effort: effort}})
			require.NoError(t, err)
			require.Equal(t, placement.Auto, tries[0].Policy)
			for _, try := range tries {
				require.LessOrEqual(t, tries[0].MakespanUS, try.MakespanUS*(1+1e-9), "%s, %s, %s", in.name(), effort, try.Policy)
			}
		}
	}
}
