// Planted faults: each is refused, and the message names ranks, nodes and lines.

package ranks

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/bucket"
	"github.com/dagrun/dagrun/dag/file"
)

const buffers = `version: 1
sync: %s
buffers:
  x: {place: device, dtype: f32, shape: [8], init: 1}
  y: {place: device, dtype: f32, shape: [8], init: 1}
  z: {place: device, dtype: f64, shape: [8], init: 1}
nodes:
`

func prove(t *testing.T, sync string, ranks int, nodes string) []string {
	t.Helper()
	f, err := file.ParseFamily([]byte(fmt.Sprintf(buffers, sync)+nodes), file.Options{Name: "p.yaml"}, ranks)
	require.NoError(t, err)
	found, err := Prove(f)
	require.NoError(t, err)
	var texts []string
	for _, v := range found {
		texts = append(texts, v.Text)
		require.True(t, slices.IsSorted(v.Ranks) || !strings.HasPrefix(v.Text, "ranks wait for each other"), "the ranks of a circle ascend, wherever it was entered: %v", v)
	}
	return texts
}

// Expressions know each rank's place on its machine: that of a run, or with all ranks on one.
func TestLocalRanksAreThoseOfEachMachine(t *testing.T) {
	nodes := `
  - {name: leaders, broadcast: {inout: x, root: 0, among: [0, 2, 2]}, when: local_rank == 0}
`
	for _, c := range []struct {
		local []int
		found int
	}{{[]int{0, 1, 0, 1}, 0}, {[]int{0, 1, 2, 3}, 1}, {nil, 1}} {
		f, err := file.ParseFamily([]byte(fmt.Sprintf(buffers, "auto")+nodes), file.Options{LocalRanks: c.local}, 4)
		require.NoError(t, err)
		found, err := Prove(f)
		require.NoError(t, err)
		require.Len(t, found, c.found, "%v", c.local)
	}
	_, err := file.ParseFamily([]byte(fmt.Sprintf(buffers, "auto")+nodes), file.Options{LocalRanks: []int{0, 1}}, 4)
	require.ErrorContains(t, err, "there are 2 local ranks for 4 ranks")
	_, err = file.ParseFamily([]byte(fmt.Sprintf(buffers, "auto")+nodes), file.Options{LocalRanks: []int{0, 1, 4, 0}}, 4)
	require.ErrorContains(t, err, "rank 2 (4 on its machine) is not one of 4")
}

func TestPlantedFaultsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		sync  string
		ranks int
		nodes string
		want  string
	}{
		"another order on one rank": {"auto", 3, `
  - {name: a0, allreduce: {inout: x, op: sum}, when: rank == 0}
  - {name: b, allreduce: {inout: y, op: max}}
  - {name: a, allreduce: {inout: x, op: sum}, when: rank > 0}
`, `rank 1 does "b" (line 10), allreduce of 32 bytes of f32 with op max, where rank 0 does "a0" (line 9), allreduce of 32 bytes of f32 with op sum`},
		"two collectives too many, of which the first is told": {"auto", 2, `
  - {name: a, allreduce: {inout: x, op: sum}}
  - {name: b, allreduce: {inout: y, op: sum}, when: rank == 1}
  - {name: c, allreduce: {inout: x, op: max}, when: rank == 1}
`, `rank 1 does "b" (line 10), allreduce of 32 bytes of f32 with op sum, together with all ranks, and rank 0 has no such collective there`},
		"a collective missing behind when": {"auto", 3, `
  - {name: a, allreduce: {inout: x, op: sum}, when: rank != 1}
`, `rank 0 does "a" (line 9), allreduce of 32 bytes of f32 with op sum, together with all ranks, and rank 1 has no such collective`},
		"one too many": {"auto", 2, `
  - {name: a, allreduce: {inout: x, op: sum}}
  - {name: b, allreduce: {inout: x, op: sum}, when: rank == 1}
`, `rank 1 does "b" (line 10), allreduce of 32 bytes of f32 with op sum, together with all ranks, and rank 0 has no such collective there`},
		"different counts": {"auto", 2, `
  - {name: a, allreduce: {inout: x(0..rank + 1), op: sum}}
`, `rank 1 does "a" (line 9), allreduce of 8 bytes of f32 with op sum, where rank 0 does "a" (line 9), allreduce of 4 bytes of f32 with op sum`},
		"different types": {"auto", 2, `
  - {name: a, allreduce: {inout: x, op: sum}, when: rank == 0}
  - {name: b, allreduce: {inout: z(0..4), op: sum}, when: rank == 1}
`, `rank 1 does "b" (line 10), allreduce of 32 bytes of f64 with op sum, where rank 0 does "a" (line 9), allreduce of 32 bytes of f32 with op sum`},
		"different roots": {"auto", 2, `
  - {name: a, broadcast: {inout: x, root: rank}}
`, `rank 1 does "a" (line 9), broadcast of 32 bytes of f32, where rank 0 does "a" (line 9), broadcast of 32 bytes of f32: the roots are rank 1 and rank 0`},
		"different operations": {"auto", 2, `
  - {name: a, allreduce: {inout: x, op: sum}, when: rank == 0}
  - {name: b, allreduce: {inout: x, op: prod}, when: rank == 1}
`, `rank 1 does "b" (line 10), allreduce of 32 bytes of f32 with op prod, where rank 0 does "a" (line 9), allreduce of 32 bytes of f32 with op sum`},
		"a send without its receive": {"auto", 2, `
  - {name: give, send: x, rank: rank + 1}
`, `rank 0 sends x to rank 1 with "give" (line 9), and rank 1 has no receive for it`},
		"a receive without its send": {"auto", 2, `
  - {name: take, recv: x, rank: rank + 1}
`, `rank 0 receives x from rank 1 with "take" (line 9), and rank 1 has no send for it`},
		"sizes that differ": {"auto", 2, `
  - {name: give, send: x(0..4), rank: rank + 1}
  - {name: take, recv: y(0..3), rank: rank - 1}
`, `rank 0 sends 16 bytes of x(0..4) (f32) with "give" (line 9), and rank 1 receives 12 of y(0..3) (f32) with "take" (line 10)`},
		"a cycle of two sends": {"auto", 2, `
  - {name: give, send: x, rank: 1 - rank}
  - {name: take, recv: y, rank: 1 - rank}
`, `ranks wait for each other forever: rank 0 waits in "give" (line 9) for rank 1, rank 1 waits in "give" (line 9) for rank 0`},
		"a send to itself before its receive": {"auto", 1, `
  - {name: give, send: x, rank: 0}
  - {name: take, recv: y, rank: 0}
`, `ranks wait for each other forever: rank 0 waits in "give" (line 9) for what it does later itself`},
		"two groups in opposite order": {"auto", 4, `
  - {name: row, allreduce: {inout: x, op: sum, among: [rank - rank % 2, 2, 1]}, when: rank % 3 == 0}
  - {name: column, allreduce: {inout: y, op: sum, among: [rank % 2, 2, 2]}}
  - {name: row2, allreduce: {inout: x, op: sum, among: [rank - rank % 2, 2, 1]}, when: rank % 3 > 0}
`, `ranks wait for each other forever: rank 0 waits in "row" (line 9) for rank 1, rank 1 waits in "column" (line 10) for rank 3, rank 3 waits in "row" (line 9) for rank 2, rank 2 waits in "column" (line 10) for rank 0`},
		"a buffer written while it is sent": {"explicit", 2, `
  - {name: give, exchange: [{send: x, rank: 1 - rank}, {recv: y, rank: 1 - rank}], stream: 0}
  - {name: fill, memset: {to: x(4..8), value: 2}, stream: 1}
`, `rank 0: "fill" (line 10) writes x(4..8) while "give" (line 9) sends it, because nothing orders the two
rank 1: "fill" (line 10) writes x(4..8) while "give" (line 9) sends it, because nothing orders the two`},
		"a buffer read while it is received": {"explicit", 2, `
  - {name: give, exchange: [{send: x, rank: 1 - rank}, {recv: y, rank: 1 - rank}], stream: 0}
  - {name: copy, memcpy: {from: y, to: x}, stream: 1, after: []}
`, `rank 0: "copy" (line 10) reads y while "give" (line 9) receives it, because nothing orders the two
rank 0: "copy" (line 10) writes x while "give" (line 9) sends it, because nothing orders the two
rank 1: "copy" (line 10) reads y while "give" (line 9) receives it, because nothing orders the two
rank 1: "copy" (line 10) writes x while "give" (line 9) sends it, because nothing orders the two`},
		"a collective of one rank that it does not expect": {"auto", 2, `
  - {name: a, allreduce: {inout: x(0..rank + 1), op: sum, among: [1, 1, 1]}, when: rank == 1}
  - {name: b, allreduce: {inout: x, op: sum, among: [0, 2, 1]}, when: rank == 1}
`, `rank 1 does "b" (line 10), allreduce of 32 bytes of f32 with op sum, together with all ranks, and rank 0 has no such collective`},
		"a group of two": {"auto", 4, `
  - {name: a, allreduce: {inout: x, op: sum, among: [1, 2, 2]}, when: rank == 1}
`, `rank 1 does "a" (line 9), allreduce of 32 bytes of f32 with op sum, together with ranks 1 and 3, and rank 3 has no such collective`},
		"a group of ranks that follow each other": {"auto", 5, `
  - {name: a, allreduce: {inout: x, op: sum, among: [1, 3, 1]}, when: rank == 1 or rank == 3}
`, `rank 1 does "a" (line 9), allreduce of 32 bytes of f32 with op sum, together with ranks 1 to 3, and rank 2 has no such collective`},
		"a group of every second rank": {"auto", 6, `
  - {name: a, allreduce: {inout: x, op: sum, among: [1, 3, 2]}, when: rank % 4 == 1}
`, `rank 1 does "a" (line 9), allreduce of 32 bytes of f32 with op sum, together with ranks 1, 3 to 5, and rank 3 has no such collective`},
		"roots that differ within a group": {"auto", 6, `
  - {name: a, broadcast: {inout: x, root: "min(rank + 2, 5)", among: [1, 3, 2]}, when: rank % 2 == 1}
`, `rank 3 does "a" (line 9), broadcast of 32 bytes of f32, where rank 1 does "a" (line 9), broadcast of 32 bytes of f32: the roots are rank 5 and rank 3`},
		"a group whose first rank differs twice": {"auto", 3, `
  - {name: a, allreduce: {inout: "x(0..min(rank + 1, 2))", op: sum}}
  - {name: b, allreduce: {inout: y, op: sum}, when: rank == 0}
`, `rank 1 does "a" (line 9), allreduce of 8 bytes of f32 with op sum, where rank 0 does "a" (line 9), allreduce of 4 bytes of f32 with op sum`},
		"two sends with one receive": {"auto", 2, `
  - {name: a, send: x, rank: 1, when: rank == 0}
  - {name: b, send: y, rank: 1, when: rank == 0}
  - {name: c, recv: x, rank: 0, when: rank == 1}
`, `rank 0 sends y to rank 1 with "b" (line 10), and rank 1 has no receive for it`},
		"two receives with one send": {"auto", 2, `
  - {name: a, send: x, rank: 1, when: rank == 0}
  - {name: b, recv: x, rank: 0, when: rank == 1}
  - {name: c, recv: y, rank: 0, when: rank == 1}
`, `rank 1 receives y from rank 0 with "c" (line 11), and rank 0 has no send for it`},
		"types that differ": {"auto", 2, `
  - {name: a, send: x, rank: 1, when: rank == 0}
  - {name: b, recv: z(0..4), rank: 0, when: rank == 1}
`, `rank 0 sends 32 bytes of x (f32) with "a" (line 9), and rank 1 receives 32 of z(0..4) (f64) with "b" (line 10)`},

		"another order in the body of a loop": {"auto", 3, `
  - name: solve
    repeat: {times: 3}
    nodes:
      - {name: a0, allreduce: {inout: x, op: sum}, when: rank == 0}
      - {name: b, allreduce: {inout: y, op: max}}
      - {name: a, allreduce: {inout: x, op: sum}, when: rank > 0}
`, `rank 1 does "b" (line 13), allreduce of 32 bytes of f32 with op max, where rank 0 does "a0" (line 12), allreduce of 32 bytes of f32 with op sum`},
		"a collective missing in a branch of a loop": {"auto", 2, `
  - name: solve
    repeat: {until: y(0..1) < 1, most: 3}
    nodes:
      - name: maybe
        if: x(0..1) < 1
        nodes:
          - {name: a, allreduce: {inout: y, op: sum}}
          - {name: b, allreduce: {inout: x, op: sum}, when: rank == 0}
`, `rank 0 does "b" (line 16), allreduce of 32 bytes of f32 with op sum, together with all ranks, and rank 1 has no such collective`},
		"a loop that one rank lacks": {"auto", 3, `
  - {name: before, allreduce: {inout: x, op: sum}}
  - name: solve
    repeat: {times: 3}
    when: rank != 1
    nodes:
      - {name: a, exchange: [{send: x, rank: rank + 2}, {recv: y, rank: rank - 2}]}
`, `rank 0 does "solve" (line 10), repeat 3 times, together with all ranks, and rank 1 has no such loop or branch; all ranks need it, with communication in it`},
		"a loop in which one rank does not communicate": {"auto", 2, `
  - name: solve
    repeat: {times: 3}
    nodes:
      - {name: a, allreduce: {inout: x, op: sum, among: [1, 1, 1]}}
      - {name: fill, memset: {to: y, value: 0}}
`, `rank 1 does "solve" (line 9), repeat 3 times, together with all ranks, and rank 0 has no such loop or branch; all ranks need it, with communication in it`},
		"a loop where another rank has a collective": {"auto", 2, `
  - name: solve
    repeat: {times: 3}
    when: rank == 0
    nodes:
      - {name: a, allreduce: {inout: x, op: sum}}
  - {name: b, allreduce: {inout: x, op: sum}, when: rank == 1}
`, `rank 1 does "b" (line 14), allreduce of 32 bytes of f32 with op sum, where rank 0 does "solve" (line 9), repeat 3 times`},
		"different numbers of passes": {"auto", 2, `
  - name: solve
    repeat: {times: 3 + rank}
    nodes:
      - {name: a, allreduce: {inout: x, op: sum}}
`, `rank 1 does "solve" (line 9), repeat 4 times, where rank 0 does "solve" (line 9), repeat 3 times`},
		"different conditions": {"auto", 2, `
  - name: solve
    repeat: {until: x(0..1) > rank, most: 3}
    nodes:
      - {name: a, allreduce: {inout: x, op: sum}}
`, `rank 1 does "solve" (line 9), repeat until x(0..1) > rank, at most 3 times, where rank 0 does "solve" (line 9), repeat until x(0..1) > rank, at most 3 times: with its numbers, the condition is "operand 0 > 0" of f32 on rank 0 and "operand 0 > 1" of f32 on rank 1`},
		"a loop on one rank and a branch on another": {"auto", 2, `
  - name: solve
    repeat: {while: x(0..1) > 1, most: 1}
    when: rank == 0
    nodes:
      - {name: a, allreduce: {inout: x, op: sum}}
  - name: maybe
    if: x(0..1) > 1
    when: rank == 1
    nodes:
      - {name: b, allreduce: {inout: x, op: sum}}
`, `rank 1 does "maybe" (line 14), if x(0..1) > 1, where rank 0 does "solve" (line 9), repeat while x(0..1) > 1, at most 1 time`},
		"a send that the pass before receives": {"auto", 2, `
  - {name: first, recv: y, rank: 0, when: rank == 1}
  - name: solve
    repeat: {times: 3}
    nodes:
      - {name: give, exchange: [{send: x, rank: 1}], when: rank == 0}
      - {name: other, exchange: [{send: y, rank: -1}]}
`, `rank 1 receives y from rank 0 with "first" (line 9), and rank 0 has no send for it`},
		"a cycle of two sends in a body": {"auto", 2, `
  - name: solve
    repeat: {times: 3}
    nodes:
      - {name: give, send: x, rank: 1 - rank}
      - {name: take, recv: y, rank: 1 - rank}
`, `ranks wait for each other forever: rank 0 waits in "give" (line 12) for rank 1, rank 1 waits in "give" (line 12) for rank 0`},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, strings.Join(prove(t, c.sync, c.ranks, c.nodes), "\n"))
		})
	}
}

// Where one rank has two all-reduces in one bucket and another cannot, the two differ by the bucket.
func TestBucketsThatDifferAreNamed(t *testing.T) {
	for apart, want := range map[int]string{
		1: `rank 1 does "a" (line 9), allreduce of 32 bytes of f32 with op sum, where rank 0 does "a..b" (line 9), a bucket of allreduce of 32, 32 bytes of f32 with op sum; ranks whose files differ may need to run without --bucket`,
		0: `rank 1 does "a..b" (line 9), a bucket of allreduce of 32, 32 bytes of f32 with op sum, where rank 0 does "a" (line 9), allreduce of 32 bytes of f32 with op sum; ranks whose files differ may need to run without --bucket`,
	} {
		f, err := file.ParseFamily([]byte(fmt.Sprintf(buffers, "auto")+fmt.Sprintf(`
  - {name: a, allreduce: {inout: x, op: sum}}
  - {name: between, memcpy: {from: x, to: y}, when: rank == %d}
  - {name: b, allreduce: {inout: y, op: sum}}
`, apart)), file.Options{Name: "p.yaml"}, 2)
		require.NoError(t, err)
		for k, g := range f.Classes {
			f.Classes[k], err = bucket.AllReduces(g, 1<<20)
			require.NoError(t, err)
		}
		found, err := Prove(f)
		require.NoError(t, err)
		require.Len(t, found, 1)
		require.Equal(t, want, found[0].Text)
	}
}

func TestRightProgramsAreProved(t *testing.T) {
	for name, nodes := range map[string]string{
		"a pipeline of ranks": `
  - {name: take, recv: x, rank: rank - 1}
  - {name: work, memset: {to: x, value: 2}}
  - {name: give, send: x, rank: rank + 1}
`,
		"a ring": `
  - {name: turn, exchange: [{send: x, rank: (rank + 1) % ranks}, {recv: y, rank: (rank - 1) % ranks}]}
`,
		"a line that sends in turns": `
  - {name: give, send: x, rank: rank + 1, when: rank % 2 == 0}
  - {name: take, recv: y, rank: rank - 1}
  - {name: give2, send: x, rank: rank + 1, when: rank % 2 == 1}
`,
		"rows and columns": `
  - {name: row, allreduce: {inout: x, op: sum, among: [rank - rank % 2, 2, 1]}}
  - {name: column, allreduce: {inout: y, op: sum, among: [rank % 2, ranks/2, 2]}}
  - {name: all, allreduce: {inout: y, op: sum}}
`,
		"loops": `
  - {name: before, allreduce: {inout: x, op: sum}}
  - name: solve
    repeat: {until: x(0..1) < 1, most: 5}
    nodes:
      - {name: halo, exchange: [{send: x(0..1), rank: rank - 1}, {recv: y(0..1), rank: rank + 1}]}
      - name: often
        repeat: {times: 2}
        nodes:
          - {name: row, allreduce: {inout: x, op: sum, among: [rank - rank % 2, 2, 1]}}
      - name: maybe
        if: y(0..1) > 0
        nodes:
          - {name: sum, allreduce: {inout: z, op: sum}}
        else:
          - {name: sum2, allreduce: {inout: z, op: max}}
  - name: alone
    repeat: {times: rank}
    nodes:
      - {name: fill, memset: {to: y, value: 2}}
  - {name: after, broadcast: {inout: y, root: 0}}
`,
	} {
		t.Run(name, func(t *testing.T) {
			for _, ranks := range []int{2, 4, 6, 12} {
				require.Empty(t, prove(t, "auto", ranks, nodes), "%d ranks", ranks)
			}
		})
	}
}

// A thousand nodes on a thousand ranks: ranks that do the same are one class.
func TestManyRanksAreFewClasses(t *testing.T) {
	ranks := 64
	if os.Getenv("DAGRUN_LONG") != "" {
		ranks = 1024
	}
	var nodes strings.Builder
	for k := range 250 {
		fmt.Fprintf(&nodes, "  - {name: fill.%d, memset: {to: x, value: %d}}\n", k, k)
		fmt.Fprintf(&nodes, "  - {name: halo.%d, exchange: [{send: x(0..1), rank: rank - 1}, {recv: y(0..1), rank: rank + 1}]}\n", k)
		fmt.Fprintf(&nodes, "  - {name: sum.%d, allreduce: {inout: y, op: sum}}\n", k)
		fmt.Fprintf(&nodes, "  - {name: first.%d, memset: {to: z, value: 0}, when: rank %% 2 == 0}\n", k)
	}
	f, err := file.ParseFamily([]byte(fmt.Sprintf(buffers, "auto")+nodes.String()), file.Options{}, ranks)
	require.NoError(t, err)
	require.Len(t, f.Classes, 4)
	found, err := Prove(f)
	require.NoError(t, err)
	require.Empty(t, found)
}

// A list that somebody reads has twenty entries at most, and tells how many it leaves out, whether they are of the file or of a body.
func TestAtMostTwentyViolationsAreTold(t *testing.T) {
	send := "  - {name: give, send: x, rank: rank + 1}\n" // on all ranks but the last
	loop := "  - name: solve%d\n    repeat: {times: 2}\n    nodes:\n      - {name: give%d, send: x, rank: rank + 1}\n      - {name: all%d, allreduce: {inout: y, op: sum}}\n"
	twice := fmt.Sprintf(loop, 1, 1, 1) + fmt.Sprintf(loop, 2, 2, 2)
	for _, c := range []struct {
		ranks int
		nodes string
		told  int
		more  string
	}{
		{21, send, 20, ""},
		{22, send, 20, "and 1 more"},
		{23, send, 20, "and 2 more"},
		{11, twice, 20, ""},
		{12, twice, 20, "and 2 more"},
		{23, twice, 20, "and 24 more"},
	} {
		found := prove(t, "auto", c.ranks, "\n"+c.nodes)
		if c.more != "" {
			require.Equal(t, c.more, found[len(found)-1])
			found = found[:len(found)-1]
		}
		require.Len(t, found, c.told, "%d ranks of %s", c.ranks, c.nodes)
		for _, text := range found {
			require.NotContains(t, text, " more")
		}
	}
}

// A family comes from file.ParseFamily; one that somebody changed is refused before it is followed.
func TestFamiliesThatCannotBeAreRefused(t *testing.T) {
	const nodes = `
  - {name: pair, allreduce: {inout: x, op: sum, among: [rank - rank % 2, 2, 1]}}
  - {name: last, allreduce: {inout: y, op: sum, among: [0, 2, 3]}, when: rank % 3 == 0}
`
	group := func(f *file.Family, node string) *dag.Among {
		for _, g := range f.Classes {
			for i := range g.Nodes {
				if g.Nodes[i].Name == node {
					return &g.Nodes[i].Communication.Among
				}
			}
		}
		return nil
	}
	none := "there are no ranks to prove anything about; make a family with file.ParseFamily"
	for name, c := range map[string]struct {
		spoil func(f *file.Family)
		want  string
	}{
		"as it is":                 {func(f *file.Family) {}, ""},
		"no ranks":                 {func(f *file.Family) { f.Ranks = 0; f.Class, f.Firsts = nil, nil }, none},
		"fewer classes than ranks": {func(f *file.Family) { f.Class = f.Class[:3] }, none},
		"fewer groups than ranks":  {func(f *file.Family) { f.Firsts = f.Firsts[:3] }, none},
		"a class below the first":  {func(f *file.Family) { f.Class[2] = -1 }, "rank 2 is of class -1, and there are 2"},
		"a class behind the last":  {func(f *file.Family) { f.Class[2] = 2 }, "rank 2 is of class 2, and there are 2"},
		"a class without ranks":    {func(f *file.Family) { f.Classes = append(f.Classes, f.Classes[1]) }, "no rank is of class 2"},
		"a first class without ranks": {func(f *file.Family) {
			f.Classes = append([]*dag.Graph{f.Classes[1]}, f.Classes...)
			for rank := range f.Class {
				f.Class[rank]++
			}
		}, "no rank is of class 0"},
		"a class without a graph":       {func(f *file.Family) { f.Classes[1] = nil }, "there is no graph"},
		"a group too few":               {func(f *file.Family) { f.Firsts[0] = f.Firsts[0][:1] }, "rank 0 has 1 groups, and its class 2"},
		"a group too many":              {func(f *file.Family) { f.Firsts[1] = append(f.Firsts[1], 0) }, "rank 1 has 2 groups, and its class 1"},
		"a group that begins before 0":  {func(f *file.Family) { f.Firsts[0][0] = -1 }, "rank 0 is not in its group {-1 2 1}"},
		"a group that ends behind":      {func(f *file.Family) { f.Firsts[3][0] = 3 }, "rank 3 is not in its group {3 2 1}"},
		"a group without its rank":      {func(f *file.Family) { f.Firsts[0][0] = 1 }, "rank 0 is not in its group {1 2 1}"},
		"a group of nobody":             {func(f *file.Family) { group(f, "pair").Count = 0 }, `node "pair" has a group of ranks that cannot be`},
		"a group of minus one":          {func(f *file.Family) { group(f, "pair").Count = -1 }, `node "pair" has a group of ranks that cannot be`},
		"a group without steps":         {func(f *file.Family) { group(f, "pair").Step = 0 }, `node "pair" has a group of ranks that cannot be`},
		"a group backwards":             {func(f *file.Family) { group(f, "pair").Step = -1 }, `node "pair" has a group of ranks that cannot be`},
		"a group larger than all ranks": {func(f *file.Family) { *group(f, "pair") = dag.Among{First: 0, Count: 5, Step: 1} }, `node "pair" has a group of ranks that cannot be`},
		"a group wider than all ranks":  {func(f *file.Family) { group(f, "last").Step = 4 }, `node "last" has a group of ranks that cannot be`},
		"a step beyond 32 bits":         {func(f *file.Family) { *group(f, "pair") = dag.Among{First: 0, Count: 3, Step: 1 << 30} }, `node "pair" has a group of ranks that cannot be`},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := file.ParseFamily([]byte(fmt.Sprintf(buffers, "auto")+nodes), file.Options{}, 4)
			require.NoError(t, err)
			require.Len(t, f.Classes, 2)
			c.spoil(f)
			found, err := Prove(f)
			if c.want == "" {
				require.NoError(t, err)
				require.Empty(t, found)
				return
			}
			require.ErrorContains(t, err, c.want)
			require.Nil(t, found)
		})
	}
	_, err := Prove(nil)
	require.EqualError(t, err, none)
}

// A loop whose body is missing communicates with nobody.
func TestMissingBodiesAreSurvived(t *testing.T) {
	for _, body := range []*dag.Graph{nil, {}} {
		f, err := file.ParseFamily([]byte(fmt.Sprintf(buffers, "auto")+`
  - name: solve
    repeat: {times: 3}
    nodes:
      - {name: a, allreduce: {inout: x, op: sum}}
`), file.Options{}, 2)
		require.NoError(t, err)
		f.Classes[0].Nodes[0].Control.Bodies[0] = body
		found, err := Prove(f)
		require.NoError(t, err)
		require.Empty(t, found)
		f, err = file.ParseFamily([]byte(fmt.Sprintf(buffers, "auto")+`
  - name: choose
    if: x(0..1) > 1
    nodes:
      - {name: a, allreduce: {inout: y, op: sum}}
    else:
      - {name: b, memset: {to: y, value: 0}}
`), file.Options{}, 2)
		require.NoError(t, err)
		f.Classes[0].Nodes[0].Control.Bodies[1] = body
		found, err = Prove(f)
		require.NoError(t, err)
		require.Empty(t, found)
	}
}
