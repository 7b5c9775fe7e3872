// Tests of what commands have in common for recordings.

package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/internal/recording/recordingtest"
)

// gather is a recording of a program that fills half of its memory on one stream and reads 4 bytes of it on another, where its input says.
func gather(t *testing.T, memory, index uint64) string {
	t.Helper()
	part := recordingtest.Part{Process: 7, Measured: true, Ended: true}
	part.Command([]string{"./gather"})
	for k, name := range []string{"fill", "gather"} {
		part.Record(0, recording.Function, []uint64{uint64(10 + k), 0, 0, 0, 8, 0, 1, 0, 8}, []byte(name))
		part.Call(0, recording.StreamCreate, 0, uint64(0x100+k), 1, 0)
	}
	part.Call(0, recording.Alloc, 0, memory, 256, 1, 0, 0, 0, 0)
	for k, run := range [][3]uint64{{memory, 128, recording.Write}, {memory + index, 4, recording.Read}} {
		number := uint64(k + 1)
		tail := binary.LittleEndian.AppendUint64(nil, run[0])
		tail = binary.LittleEndian.AppendUint32(tail, uint32(run[1]))
		part.Record(0, recording.Access, []uint64{number, 0, 0, 1}, binary.LittleEndian.AppendUint32(tail, uint32(run[2])))
		part.CallWith(0, recording.Launch, recording.Call{Record: recording.Record{Tail: binary.LittleEndian.AppendUint64(nil, memory)},
			Args: []uint64{uint64(0x100 + k), 0, uint64(10 + k), number, 1, 1, 1, 32, 1, 1, 0, 0, 0}})
	}
	file := filepath.Join(t.TempDir(), "gather.rec")
	var packed bytes.Buffer
	require.NoError(t, recording.PackTo(&packed, recording.Meta{Command: []string{"./gather"}}, recording.Part{Name: file, Bytes: part.Bytes(0)}))
	require.NoError(t, os.WriteFile(file, packed.Bytes(), 0o644))
	return file
}

// Of two inputs, one reads what is being written, and only the other one's run is looked at first.
func TestMergedRecordingsShowWhatEitherDid(t *testing.T) {
	one, two := gather(t, 0x10000, 200), gather(t, 0x90000, 40)
	check := func(arguments ...string) (string, int) {
		var out, wrong bytes.Buffer
		status := newApp(nil, &out, &wrong).execute(t.Context(), append([]string{"check"}, arguments...))
		require.Empty(t, wrong.String())
		return out.String(), status
	}
	text, status := check(one)
	require.Equal(t, cli.StatusOK, status)
	require.Equal(t, "all conflicting accesses are ordered (2 launches measured)\n", text)
	text, status = check(one, two, "--merge")
	require.Equal(t, cli.StatusExpectation, status)
	require.Equal(t, "merged with "+two+": 2 launches measured in both, of which 1 touched more there, or otherwise; 0 only in "+one+`
race on 4 bytes (RAW): nothing orders these two
  in    allocation of 256 bytes, bytes 40 to 44
  first fill writes on stream 1
  then  gather reads on stream 2
  mend  make stream 2 wait for stream 1
1 race
`, text)
	text, status = check(one, two, "--merge", "--output", "json")
	require.Equal(t, cli.StatusExpectation, status)
	require.Contains(t, text, `"merged": [
        {
          "file": "`+two+`",
          "both": 2,
          "widened": 1,
          "opaque": 0,
          "alone": 0
        }
      ]`)
	text, status = check(one, two) // each by itself
	require.Equal(t, cli.StatusExpectation, status)
	require.Contains(t, text, one+"\nall conflicting accesses are ordered (2 launches measured)\n\n"+two+"\nrace on 4 bytes (RAW)")
}

// A program that plans two graphs again: the larger is shown, or the one that is named.
func TestAGraphOfSeveralIsNamedByItsNumber(t *testing.T) {
	part := recordingtest.Part{Process: 7, Measured: true, Ended: true}
	part.Command([]string{"./two"})
	for _, nodes := range []string{`{"type":5}`, `{"type":5},{"type":5}`} {
		part.Record(0, recording.Note, []uint64{recording.NoteGraph, part.Sequence()}, []byte(`{"version":1,"nodes":[`+nodes+`]}`))
	}
	file := filepath.Join(t.TempDir(), "two.rec")
	var packed bytes.Buffer
	require.NoError(t, recording.PackTo(&packed, recording.Meta{Command: []string{"./two"}}, recording.Part{Name: file, Bytes: part.Bytes(0)}))
	require.NoError(t, os.WriteFile(file, packed.Bytes(), 0o644))
	run := func(arguments ...string) (string, string, int) {
		var out, wrong bytes.Buffer
		status := newApp(nil, &out, &wrong).execute(t.Context(), arguments)
		return out.String(), wrong.String(), status
	}
	out, notes, status := run("plan", file)
	require.Equal(t, cli.StatusOK, status)
	require.Contains(t, out, "a graph of 1 node,")
	require.Contains(t, out, "two.rec: 2 nodes")
	require.Contains(t, notes, file+" has 2 graphs; this is the largest, and "+file+"#1 is the first")
	for _, command := range []string{"plan", "bench"} {
		out, notes, status = run(command, file+"#1")
		require.Equal(t, cli.StatusOK, status)
		require.NotContains(t, out+notes, "2 nodes")
		require.NotContains(t, notes, "largest")
	}
	out, _, status = run("dot", file+"#1")
	require.Equal(t, cli.StatusOK, status)
	require.Contains(t, out, "digraph")
	_, wrong, status := run("plan", file+"#3")
	require.Equal(t, cli.StatusWrong, status)
	require.Contains(t, wrong, file+" has 2 graphs, so there is no "+file+"#3")
	_, wrong, status = run("check", file+"#1")
	require.Equal(t, cli.StatusWrong, status)
	require.Contains(t, wrong, "#1: ")
}
