// Tests of the steps that pictures are made of.

package order

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/internal/recording"
)

// steps lists the steps of a program: the kind of call, the stream, and the calls that it waits for.
func steps(t *testing.T, program string) []string {
	t.Helper()
	p := read(program)
	list, err := Steps(p)
	require.NoError(t, err)
	var out []string
	for _, s := range list {
		text := fmt.Sprintf("%d %s on %s", s.Call, p.Calls[s.Call].Kind, s.Stream)
		if s.For != nil {
			text += fmt.Sprint(" for ", s.For)
		}
		out = append(out, text)
	}
	return out
}

func TestSteps(t *testing.T) {
	require.Equal(t, []string{"0 launch on the default stream"}, steps(t, "launch one\n"))
	require.Equal(t, []string{"3 launch on stream 1", "4 record on stream 1", "5 wait on stream 2 for [4]", "6 launch on stream 2", "7 stream sync on the host",
		"8 copy on the default stream", "9 alloc on stream 1", "10 free on stream 1", "11 event query on the host"},
		steps(t, "stream s\nstream t\nalloc A 100\nlaunch one on s writes A\nrecord e on s\nwait e on t\nlaunch two on t reads A\nsynchronize t\ncopy A from host\n"+
			"alloc B 100 async on s\nfree B async on s\nquery event e\nquery event e fails\n"))
}

// A wait stands for the records of which it may be the latest, and of a context, for all its streams.
func TestStepsThatWait(t *testing.T) {
	require.Equal(t, []string{"1 record on stream 1", "2 record on stream 1", "3 record on stream 1", "4 wait on stream 1 for [2 3]", "5 wait on stream 1", "7 green on all streams of a context for [3]"},
		steps(t, "stream s\nrecord e on s\nrecord e on s\nthread: 1 begin x record e on s\nthread: 2 wait e on s\nend x\nwait f on s\ncontext record f\ncontext wait e\n"))
}

func TestStepsOfGraphsAndTensors(t *testing.T) {
	require.Equal(t, []string{"3 graph launch on stream 1", "7 launch on stream 1"},
		steps(t, "stream s\nalloc A 100\nnode G a memset A\nnode G b memset A after a\ninstantiate G\nrun G on s\n"+
			"capture on s\nlaunch one on s\ncaptured on s\nlaunch two on s\n"))
	require.Empty(t, steps(t, "alloc A 100\ntensor T = A\ntaken T\ntensor U = A\n"), "what the allocator does is no call")
}

// A process that cannot be read has no steps.
func TestStepsOfAProcessThatCannotBeRead(t *testing.T) {
	_, err := Steps(&recording.Process{Calls: []recording.Call{{Record: recording.Record{Kind: recording.StreamSync, Offset: 7}}}})
	require.EqualError(t, err, "byte 7: a call (stream sync) has 0 words, and 1 are needed")
}

// Launches tells of each launch with what lay at an address then: the tensor, else the allocation, else nothing. Those of graphs are left out.
func TestLaunches(t *testing.T) {
	p := read("stream s\nalloc A 100\nlaunch one on s\ntensor T = A\nlaunch two on s\nfree A\n" +
		"launch three on s\nnode G a launch four\ninstantiate G\nrun G on s\n")
	address := p.Calls[1].Args[0]
	var told []string
	require.NoError(t, Launches(p, func(c *recording.Call, pointed func(uint64) (Memory, bool)) {
		at, found := pointed(address)
		_, beside := pointed(address - 1)
		require.False(t, beside)
		told = append(told, fmt.Sprint(p.FunctionName(c.Args[launchFunction], c.Begin), " ", at.What, " ", found))
	}))
	require.Equal(t, []string{"one allocation true", "two tensor true", "three tensor true"}, told)
	require.Error(t, Launches(&recording.Process{Calls: []recording.Call{{Record: recording.Record{Kind: recording.StreamSync, Offset: 7}}}}, nil))
}
