// What the table says of each kernel's arguments is what its PTX shows.

package library

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/ptx"
	"github.com/dagrun/dagrun/kernels/ptx/access"
)

func TestPTXTouchesWhatTheTableSays(t *testing.T) {
	m, err := ptx.Parse(string(Module().Code))
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, name := range library().names {
		for _, k := range library().byName[name] {
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
					want = "read and written" // what blocks leave for each other
				}
				assert.Equal(t, want, use.String(), "%s: %s", k.entry, p.Name)
			}
			for _, s := range report.Symbols {
				assert.False(t, s.Writes || s.Undecided, "%s: %s is %s", k.entry, m.Variables[s.Variable].Name, s.Use)
			}
		}
	}
}
