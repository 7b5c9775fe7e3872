// Tests that the table's accesses of each kernel's arguments are those that its PTX shows.

package library

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/ptx"
	"github.com/dagrun/dagrun/internal/ptx/access"
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
