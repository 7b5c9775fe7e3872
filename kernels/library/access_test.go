// Tests that the table's accesses of each kernel's arguments are those that its PTX shows.

package library

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/ptx"
	"github.com/dagrun/dagrun/kernels/ptx/access"
)

// inAllForms adds the kernels' forms, and those for launches on tiles.
func inAllForms(versions []*libraryKernel) []*libraryKernel {
	var all []*libraryKernel
	for _, k := range versions {
		all = append(all, k.inAllForms()...)
	}
	return all
}

func TestPTXTouchesWhatTheTableSays(t *testing.T) {
	m, err := ptx.Parse(string(Module().Code))
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, name := range kernelTable().names {
		for _, k := range inAllForms(kernelTable().byName[name]) {
			if seen[k.entry] {
				continue
			}
			seen[k.entry] = true
			id, ok := m.Function(k.entry)
			require.True(t, ok, k.entry)
			report := access.Analyse(m, id)
			assert.Empty(t, report.Undecided, "%s at %s", k.entry, report.UndecidedAt)
			assert.Empty(t, report.FloatAtomics, k.entry)
			for i, p := range k.params {
				if !p.Buffer {
					continue
				}
				use, ok := report.Field(i, 0)
				require.True(t, ok, "%s %s", k.entry, p.Name)
				require.True(t, use.Decided(), "%s: %s is undecided: %s at %s", k.entry, p.Name, use.Why, use.UndecidedAt)
				want := map[dag.Mode]string{dag.Read: "read", dag.Write: "written", dag.ReadWrite: "read and written"}[p.Mode]
				if p.Scratch {
					want = "read and written" // scratch that blocks pass to each other
				}
				if k.row.name == "scatter" && p.Mode == dag.ReadWrite {
					want = "written" // in part: the other elements are what they were
				}
				assert.Equal(t, want, use.String(), "%s: %s", k.entry, p.Name)
			}
			for _, s := range report.Symbols {
				assert.False(t, s.Writes || s.Undecided, "%s: %s is %s", k.entry, m.Variables[s.Variable].Name, s.Use)
			}
		}
	}
}

// The computed ranges that a launch touches must contain what the table says is written, because outputs are written whole.
func TestRangesHoldWhatTheTableSays(t *testing.T) {
	m, err := ptx.Parse(string(Module().Code))
	require.NoError(t, err)
	launches, known, inside := 0, 0, 0
	for _, name := range kernelTable().names {
		for _, k := range inAllForms(kernelTable().byName[name]) {
			const size = 1000
			args, launch := make([]dag.Arg, len(k.params)), access.Launch{Scalars: map[int]uint64{}}
			for i, p := range k.params {
				if p.Buffer {
					args[i] = dag.Arg{IsBuffer: true, Mode: p.Mode, DType: p.DType, Range: dag.Range{Buffer: dag.BufferID(i), Hi: 1 << 40}}
					continue
				}
				args[i] = dag.Arg{DType: p.DType}
				if !p.DType.Float() {
					args[i].Bits = uint64(min(max(size, k.parameters[i].min), k.parameters[i].max))
				}
				launch.Scalars[i] = args[i].Bits
			}
			info, err := k.Describe(args)
			if err != nil || info.Grid[0] == 0 {
				continue
			}
			launch.Grid, launch.Block = info.Grid, info.Block
			id, _ := m.Function(k.entry)
			for _, x := range access.Ranges(m, id, launch) {
				p := k.params[x.Param]
				if !p.Buffer || p.Scratch {
					continue
				}
				launches++
				bytes := info.Extents[x.Param] * p.DType.Size()
				if x.Writes.Known && x.Reads.Known {
					known++
					if max(x.Writes.Hi, x.Reads.Hi) <= bytes && min(x.Writes.Lo, x.Reads.Lo) >= 0 {
						inside++
					}
				}
				if p.Mode == dag.Write && x.Writes.Known && bytes > 0 {
					assert.LessOrEqual(t, x.Writes.Lo, int64(0), "%s of %d: %s is written from byte %d", k.entry, size, p.Name, x.Writes.Lo)
					assert.GreaterOrEqual(t, x.Writes.Hi, bytes, "%s of %d: of %s %d bytes are written", k.entry, size, p.Name, bytes)
				}
			}
		}
	}
	t.Logf("%d arguments, %d known, %d proved to stay inside", launches, known, inside)
	assert.Positive(t, known)
}
