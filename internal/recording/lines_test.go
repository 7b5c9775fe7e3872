// Tests of lines of Python: the tables that three versions made of two functions, one with every kind of statement on lines of its own, one whose lines are
// hundreds apart and go backwards. What each instruction's line is was asked of the interpreters (co_lines).

package recording_test

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/internal/recording/recordingtest"
)

// lineTables have, for each function, up to which offset its instructions are on which line; 0 is none.
var lineTables = []struct {
	name           string
	version, first uint64
	table          string
	lines          [][2]int
}{
	{"near", 10, 41, "0401080202010401020102010cfe0c04080102ff0602060106ff",
		[][2]int{{4, 42}, {12, 44}, {14, 45}, {18, 46}, {20, 47}, {22, 48}, {34, 46}, {46, 50}, {54, 51}, {56, 50}, {62, 52}, {68, 53}, {74, 52}}},
	{"far", 10, 41, "0201007f007f082e0081008104d2007f007f007f023b020a02f6008102f3007f0418",
		[][2]int{{2, 42}, {10, 342}, {14, 42}, {16, 482}, {18, 492}, {20, 482}, {22, 342}, {26, 493}}},
	{"near", 11, 41, "8000d80c0d8045e01015f000070517f0000705178804f002060917d80c1190559055d81014d81617f00503160ef10003160ef40003160ef100030d0e88458845f8f50800101af000010917f000010917f000010917d81416884588458845f003010917f8f8f8f004020c12f000020c12dd151a9835915c945cf003020c12f100020c12f400020c12f000020512",
		[][2]int{{2, 41}, {6, 42}, {14, 44}, {16, 45}, {22, 46}, {24, 47}, {26, 48}, {50, 46}, {52, 0}, {70, 50}, {78, 51}, {80, 50}, {86, 0}, {90, 52}, {118, 53}, {136, 52}}},
	{"far", 11, 41, "8000d8090af05809000a0b8f138a13885189168c16f059096c0409118041f0700d000708f014000506f1150a0706f05904001314f06e04000c0d8048",
		[][2]int{{2, 41}, {4, 42}, {44, 342}, {48, 42}, {50, 482}, {52, 492}, {56, 482}, {58, 342}, {62, 493}}},
	{"near", 12, 41, "8000d80c0d8045e01015f2000705178804f002060917d80c119155d81014d81617f40503160ef100030d0e8945f005070517f41200161b9835935cf603020c12d81011d90f10f205000d0ef200020c12f000020512f8f40500101af200010917d814168a45f003010917fcf204020c12",
		[][2]int{{2, 41}, {6, 42}, {16, 44}, {18, 45}, {24, 46}, {26, 47}, {28, 48}, {46, 46}, {48, 44}, {68, 53}, {82, 52}, {84, 53}, {88, 54}, {102, 52}, {104, 0}, {120, 50}, {128, 51}, {130, 50}, {140, 0}, {146, 52}}},
	{"far", 12, 41, "8000d8090af05809000a0b8f13891388518b16f059096c0409118041f0700d000708f014000506f1150a0706f05904001314f06e04000c0d8048",
		[][2]int{{2, 41}, {4, 42}, {36, 342}, {40, 42}, {42, 482}, {44, 492}, {48, 482}, {50, 342}, {54, 493}}},
	{"near", 13, 41, "8000d80c0d8045e310158804f002060917d80c119055d81014d81617f10503160ef100030d0e8a45f105001116f41200161b9835945cf303020c12d915219001dc0f10f705000d0ed91521f103020c12f000020512f8f40500101af300010917d814168b45f003010917fcf204020c12",
		[][2]int{{2, 41}, {6, 42}, {16, 44}, {18, 45}, {22, 46}, {24, 47}, {26, 48}, {40, 46}, {44, 44}, {66, 53}, {74, 52}, {80, 53}, {90, 54}, {106, 52}, {110, 53}, {116, 52}, {118, 0}, {136, 50}, {146, 51}, {148, 50}, {158, 0}, {164, 52}}},
	{"far", 13, 41, "8000d8090af05809000a0b8f13891388518b16f059096c0409118041f0700d000708f014000506f1150a0706f05904001314f06e04000c0d8048",
		[][2]int{{2, 41}, {4, 42}, {36, 342}, {40, 42}, {42, 482}, {44, 492}, {48, 482}, {50, 342}, {54, 493}}},
}

// linesOf returns the lines of a place that has a frame at each offset.
func linesOf(t *testing.T, version, first uint64, table []byte, offsets int) []int {
	t.Helper()
	p := &recordingtest.Part{Ended: true}
	p.Record(0, recording.Code, []uint64{9, first, 3*256 + version}, append([]byte("/home/me/train.py\x00step\x00"), table...))
	place := []uint64{11}
	for offset := range offsets {
		place = append(place, 1<<56|9, uint64(offset))
	}
	p.Record(0, recording.Place, place, nil)
	var lines []int
	for _, f := range parse(t, p.Bytes(0)).Places[11] {
		require.Equal(t, "step", f.Function)
		lines = append(lines, f.Line)
	}
	return lines
}

func TestLinesOfPython(t *testing.T) {
	for _, c := range lineTables {
		table, err := hex.DecodeString(c.table)
		require.NoError(t, err)
		end := c.lines[len(c.lines)-1][0]
		var want []int
		for _, upTo := range c.lines {
			for len(want) < upTo[0] {
				want = append(want, upTo[1])
			}
		}
		require.Equal(t, append(want, 0, 0), linesOf(t, c.version, c.first, table, end+2), "%s, Python 3.%d", c.name, c.version)
	}
}

// A table that ends in the middle of an entry, or says nothing, gives lines as far as it goes.
func TestTablesOfLinesThatEndEarly(t *testing.T) {
	for _, c := range lineTables {
		table, err := hex.DecodeString(c.table)
		require.NoError(t, err)
		whole := linesOf(t, c.version, c.first, table, 60)
		for cut := range table {
			for offset, line := range linesOf(t, c.version, c.first, table[:cut], 60) {
				require.Contains(t, []int{0, whole[offset]}, line, "%s, Python 3.%d, %d bytes, offset %d", c.name, c.version, cut, offset)
			}
		}
	}
	require.Equal(t, []int{0, 0}, linesOf(t, 10, 41, []byte{2, 0x80}, 2), "instructions without a line, Python 3.10")
	require.Equal(t, []int{0, 0, 41}, linesOf(t, 10, 41, []byte{2, 0x80, 2, 0}, 3))
}
