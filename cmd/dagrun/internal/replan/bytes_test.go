package replan

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/internal/recording"
)

const world = 64 // bytes of the small memory of these tests

func drawBytes(t *rapid.T, name string) map[uint64]bool {
	all := map[uint64]bool{}
	for _, b := range rapid.SliceOfN(rapid.Uint64Range(0, world-1), 0, 40).Draw(t, name) {
		all[b] = true
	}
	return all
}

func stretches(all map[uint64]bool) []stretch {
	var out []stretch
	for b := uint64(0); b < world; b++ {
		if all[b] {
			out = extend(out, stretch{b, b + 1})
		}
	}
	return out
}

func TestSetsOfBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawBytes(t, "a"), drawBytes(t, "b")
		both, either, only := map[uint64]bool{}, map[uint64]bool{}, map[uint64]bool{}
		for k := uint64(0); k < world; k++ {
			both[k], either[k], only[k] = a[k] && b[k], a[k] || b[k], a[k] && !b[k]
		}
		require.Equal(t, stretches(both), common(stretches(a), stretches(b)))
		require.Equal(t, stretches(either), union(stretches(a), stretches(b)))
		require.Equal(t, stretches(only), without(stretches(a), stretches(b)))
		low := rapid.Uint64Range(0, world).Draw(t, "low")
		part := map[uint64]bool{}
		for k := low; k < world; k++ {
			part[k-low] = a[k]
		}
		require.Equal(t, stretches(part), within(stretches(a), stretch{low, world}))
	})
}

// A launch follows a word if what it touches there, and nothing else, moves as far as the word.
func TestWhatFollowsAWord(t *testing.T) {
	const distance = 4096
	read, write := uint32(recording.Read), uint32(recording.Write)
	usual := split([]recording.Run{{Address: 100, Bytes: 50, Modes: read}, {Address: 200, Bytes: 10, Modes: write}})
	for name, c := range map[string]struct {
		away []recording.Run
		ok   bool
		want []recording.Run
	}{
		"the reads":            {[]recording.Run{{Address: 200, Bytes: 10, Modes: write}, {Address: 100 + distance, Bytes: 50, Modes: read}}, true, []recording.Run{{Address: 100, Bytes: 50, Modes: read}}},
		"nothing":              {[]recording.Run{{Address: 100, Bytes: 50, Modes: read}, {Address: 200, Bytes: 10, Modes: write}}, true, nil},
		"a part of the reads":  {[]recording.Run{{Address: 120, Bytes: 30, Modes: read}, {Address: 200, Bytes: 10, Modes: write}, {Address: 100 + distance, Bytes: 20, Modes: read}}, true, []recording.Run{{Address: 100, Bytes: 20, Modes: read}}},
		"further than it went": {[]recording.Run{{Address: 200, Bytes: 10, Modes: write}, {Address: 101 + distance, Bytes: 50, Modes: read}}, false, nil},
		"one byte less":        {[]recording.Run{{Address: 200, Bytes: 10, Modes: write}, {Address: 100 + distance, Bytes: 49, Modes: read}}, false, nil},
		"writes instead":       {[]recording.Run{{Address: 200, Bytes: 10, Modes: write}, {Address: 100 + distance, Bytes: 50, Modes: write}}, false, nil},
		"other reads besides":  {[]recording.Run{{Address: 200, Bytes: 10, Modes: write}, {Address: 300, Bytes: 1, Modes: read}, {Address: 100 + distance, Bytes: 50, Modes: read}}, false, nil},
	} {
		away := split(c.away)
		follow, ok := followed(&usual, &away, distance)
		require.Equal(t, c.ok, ok, name)
		require.Equal(t, split(c.want), follow, name)
	}
}

// A value begins anew at a use if nothing that was written before is read from there on.
func TestContentsOfAWorkspace(t *testing.T) {
	write := func(node int, low, high uint64) used { return used{node, byMode{nil, {{low, high}}, nil}} }
	read := func(node int, low, high uint64) used { return used{node, byMode{{{low, high}}, nil, nil}} }
	both := func(node int, low, high uint64) used {
		return used{node, byMode{{{low, high}}, {{low, high}}, nil}}
	}
	add := func(node int, low, high uint64) used { return used{node, byMode{nil, nil, {{low, high}}}} }
	for name, c := range map[string]struct {
		uses []used
		left []stretch
		want []int
		old  []stretch
	}{
		"used twice":                      {[]used{write(0, 0, 8), read(1, 0, 8), write(2, 0, 8), read(3, 0, 8)}, nil, []int{0, 2}, nil},
		"a smaller content":               {[]used{write(0, 0, 8), read(1, 0, 8), write(2, 0, 4), read(3, 0, 4)}, nil, []int{0, 2}, nil},
		"the rest is read later":          {[]used{write(0, 0, 8), write(2, 0, 4), read(3, 0, 8)}, nil, []int{0}, nil},
		"left for others":                 {[]used{write(0, 0, 8), write(2, 0, 4)}, []stretch{{0, 8}}, []int{0}, nil},
		"left for others, written again":  {[]used{write(0, 0, 8), write(2, 0, 8)}, []stretch{{0, 8}}, []int{0, 1}, nil},
		"read first":                      {[]used{read(0, 2, 4), write(1, 0, 8)}, nil, []int{1}, []stretch{{2, 4}}},
		"read and written in one launch":  {[]used{both(0, 0, 8), read(1, 0, 8)}, nil, nil, []stretch{{0, 8}}},
		"added to":                        {[]used{write(0, 0, 8), add(1, 0, 8), read(2, 0, 8)}, nil, []int{0}, nil},
		"added to what nobody set before": {[]used{add(0, 0, 8)}, nil, nil, []stretch{{0, 8}}},
	} {
		starts, old := fresh(c.uses, c.left)
		require.Equal(t, c.want, starts, name)
		require.Equal(t, c.old, old, name)
	}
}
