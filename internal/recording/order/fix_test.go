// Tests of what a report says besides its text.

package order

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/internal/recording"
)

func TestKindsOfFixes(t *testing.T) {
	const two = "stream s nonblocking\nstream t nonblocking\nalloc A 100\n"
	for program, want := range map[string]Fix{
		two + "launch one on s writes A\nlaunch two on t reads A @a:1":                                     {Kind: StreamWaits, Waiting: "stream 2", For: "stream 1", Before: 1, Where: "a:1", Code: "torch.cuda.current_stream().wait_stream(<stream 1>)"},
		two + "tensor T = A[0:50] on s\nlaunch one on t reads T\ntaken T @a:1\ntensor U = A[0:50] on s":    {Kind: BeforeFree, Waiting: "stream 1", For: "stream 2", Before: 1, Where: "a:1", Code: "tensor.record_stream(<stream 2>)"},
		two + "node G a launch one writes A\nnode G b launch two writes A\ninstantiate G\nrun G on s @a:1": {Kind: EdgeOfGraph, Waiting: "stream 1", For: "stream 1", Before: 1, Where: "a:1"},
		two + "begin x launch one on s writes A\nthread: 2 launch two on s writes A @a:1\nend x":           {Kind: ThreadsInOrder, Waiting: "stream 1", For: "stream 1", Before: 1, Where: "a:1"},
		two + "thread: 2 begin x launch one on s writes A\nfree A @a:1\nend x":                             {Kind: HostWaits, Waiting: "the host", For: "stream 1", Before: 1, Where: "a:1", Code: "<stream 1>.synchronize()"},
		two + "launch one on s writes A\nlaunch two on s programmatic writes A @a:1":                       {Kind: KernelWaits, Waiting: "stream 1", For: "stream 1"},
	} {
		report, err := Check(read(program), Options{})
		require.NoError(t, err)
		races := append(report.Races, report.Possible...)
		require.Len(t, races, 1, program)
		got := races[0].Fix
		require.NotEmpty(t, got.Text)
		got.Text = ""
		require.Equal(t, want, got, program)
	}
}

// What was not written is not proved.
func TestRecordingsThatAreNotWhole(t *testing.T) {
	for _, p := range []*recording.Process{{Cut: true}, {Lost: 1}} {
		report, err := Check(p, Options{})
		require.NoError(t, err)
		require.True(t, report.Cut)
		require.False(t, report.Proved())
		require.Equal(t, "the recording is not whole\nno race found\n", report.Text(p))
	}
}

// Anything that is assumed or left out is no proof.
func TestProved(t *testing.T) {
	require.True(t, (&Report{Measured: 5, Together: 2, OrderDependent: 1}).Proved())
	for name, r := range map[string]Report{"a race": {Races: []Race{{}}}, "a possible race": {Possible: []Race{{}}}, "an assumed order": {Assumed: []Race{{}}}, "arguments": {Arguments: 1},
		"opaque": {Opaque: 1}, "not measured": {Unmeasured: 1}, "lost": {Lost: 1}, "not covered": {Uncovered: map[string]int{"cuFancy": 1}}, "cut": {Cut: true}} {
		require.False(t, r.Proved(), name)
	}
}

// Scripts read which node of a graph a side is, and of which child: -1 is none.
func TestNodesOfSides(t *testing.T) {
	nodes := func(program string) [4]int {
		report, err := Check(read("stream s nonblocking\nstream t nonblocking\nalloc A 100\n"+program), Options{})
		require.NoError(t, err)
		require.Len(t, report.Races, 1)
		r := report.Races[0]
		return [4]int{r.First.Node, r.First.Child, r.Second.Node, r.Second.Child}
	}
	require.Equal(t, [4]int{-1, -1, -1, -1}, nodes("launch one on s writes A\nlaunch two on t writes A"))
	require.Equal(t, [4]int{0, -1, -1, -1}, nodes("node G a memset A\ninstantiate G\nrun G on s\nlaunch two on t writes A"))
	require.Equal(t, [4]int{-1, -1, 1, 0}, nodes("node H x memset A\nnode G a empty\nnode G b graph H\ninstantiate G\nlaunch one on t writes A\nrun G on s"))
}

func TestCostInWords(t *testing.T) {
	require.Equal(t, "2 calls", Cost{Count: 2}.String())
	require.Equal(t, "1 call, 0.001 us at most", Cost{1, 1}.String())
	require.Equal(t, "3 calls, 12.5 ms at most", Cost{3, 12_500_000}.String())
}

func TestCodeOfAFix(t *testing.T) {
	p := &recording.Process{Places: map[uint64][]recording.Frame{1: {{Python: true, File: "a.py"}}, 2: {{File: "solve"}}}}
	for _, c := range []struct {
		fix    Fix
		python string
		native string
	}{
		{Fix{Kind: StreamWaits, Waiting: "stream 2", For: defaultStream}, "torch.cuda.current_stream().wait_stream(torch.cuda.default_stream())", "cudaEventRecord(event, 0); cudaStreamWaitEvent(<stream 2>, event)"},
		{Fix{Kind: StreamWaits, Waiting: defaultStream, For: "stream 2"}, "torch.cuda.current_stream().wait_stream(<stream 2>)", "cudaEventRecord(event, <stream 2>); cudaStreamWaitEvent(0, event)"},
		{Fix{Kind: HostWaits, For: "stream 2"}, "<stream 2>.synchronize()", "cudaStreamSynchronize(<stream 2>)"},
		{Fix{Kind: HostWaits, For: defaultStream}, "torch.cuda.default_stream().synchronize()", "cudaStreamSynchronize(0)"},
		{Fix{Kind: BeforeFree, For: "stream 2"}, "tensor.record_stream(<stream 2>)", ""},
		{Fix{Kind: EdgeOfGraph}, "", ""},
		{Fix{Kind: ThreadsInOrder}, "", ""},
		{Fix{Kind: KernelWaits}, "", ""},
	} {
		for place, want := range map[uint64]string{0: "", 1: c.python, 2: c.native} {
			c.fix.Before = place
			require.Equal(t, want, codeOf(p, &c.fix), "%+v", c.fix)
		}
	}
}
