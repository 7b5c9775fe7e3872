// Tests of what conflicts and of what covers what, case by case, because brute force uses the same words.

package happens

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConflicts(t *testing.T) {
	for _, c := range []struct {
		a, b Mode
		want Conflict
	}{
		{Read, Read, NoConflict},
		{Read, Write, Race},
		{Write, Write, Race},
		{Atomic, Read, Race},
		{Atomic, Write, Race},
		{Atomic, Atomic, OrderDependent},
		{Atomic | Read, Atomic, Race},
		{PossibleRead, Read, NoConflict},
		{PossibleRead, PossibleRead, NoConflict},
		{PossibleRead, Write, Possible},
		{PossibleRead | PossibleWrite, Read, Possible},
		{PossibleRead | PossibleWrite, PossibleRead | PossibleWrite, Possible},
		{PossibleAtomic, Atomic, OrderDependent},
		{PossibleAtomic, PossibleAtomic, OrderDependent},
		{PossibleAtomic, Read, Possible},
		{Read | PossibleWrite, Read, Possible},
		{Read | PossibleWrite, Write, Race},
		{Write, 0, NoConflict},
		{PossibleWrite, 0, NoConflict},
	} {
		require.Equal(t, c.want, conflictOf(c.a, c.b), "%06b and %06b", c.a, c.b)
		require.Equal(t, c.want, conflictOf(c.b, c.a), "%06b and %06b", c.b, c.a)
	}
}

// A mode covers another only if whatever conflicts with the other conflicts with it, at least as surely.
func TestCovers(t *testing.T) {
	const modes = 1 << 6
	for m := Mode(1); m < modes; m++ {
		for other := Mode(1); other < modes; other++ {
			want := true
			for third := Mode(1); third < modes; third++ {
				want = want && conflictOf(m, third) >= conflictOf(other, third)
			}
			require.False(t, m.covers(other) && !want, "%06b covers %06b", m, other)
		}
	}
	require.True(t, Write.covers(Read|PossibleWrite))
	require.True(t, PossibleWrite.covers(PossibleRead))
	require.False(t, PossibleWrite.covers(Read))
	require.False(t, (Read | PossibleWrite).covers(Write))
	require.True(t, (Read | PossibleWrite).covers(Read))
	require.True(t, (Read | Atomic).covers(Atomic))
	require.False(t, Read.covers(Atomic))
	require.False(t, Atomic.covers(Read))
}

func TestModesAreThoseOfRecordings(t *testing.T) {
	require.Equal(t, []Mode{1, 2, 4, 8, 16, 32}, []Mode{Read, Write, Atomic, PossibleRead, PossibleWrite, PossibleAtomic})
	require.True(t, PossibleWrite.writes() && Atomic.writes() && PossibleAtomic.writes())
	require.False(t, (Read | PossibleRead).writes())
}

func TestNormalize(t *testing.T) {
	var n normalizer
	for _, c := range []struct {
		name      string
		from, and []Access
	}{
		{"nothing", nil, nil},
		{"empty ones", []Access{{4, 4, Read}, {5, 4, Read}, {1, 2, 0}}, nil},
		{"sorted ones that touch", []Access{{0, 4, Read}, {4, 8, Read}, {8, 9, Write}}, []Access{{0, 8, Read}, {8, 9, Write}}},
		{"not sorted", []Access{{8, 9, Write}, {0, 4, Read}}, []Access{{0, 4, Read}, {8, 9, Write}}},
		{"one within another", []Access{{0, 10, Read}, {4, 6, Write}}, []Access{{0, 4, Read}, {4, 6, Read | Write}, {6, 10, Read}}},
		{"twice the same", []Access{{0, 4, Read}, {0, 4, Read}}, []Access{{0, 4, Read}}},
		{"two that meet within a third", []Access{{0, 8, Read}, {0, 4, Write}, {4, 8, Write}}, []Access{{0, 8, Read | Write}}},
		{"with a gap", []Access{{0, 4, Read}, {2, 3, Write}, {8, 9, Read}}, []Access{{0, 2, Read}, {2, 3, Read | Write}, {3, 4, Read}, {8, 9, Read}}},
	} {
		require.Equal(t, c.and, n.normalize(nil, c.from), c.name)
		require.LessOrEqual(t, len(n.cuts), 2*len(n.sorted), "%s: what is kept does not grow from step to step", c.name)
	}
}
