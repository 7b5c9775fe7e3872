// Checking documents in the background: limits, changes meanwhile, and documents that do not wait for each other.

package editor

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/internal/lsp"
)

// published returns a session, and what it publishes next.
func published(t *testing.T) (*Session, func() lsp.PublishParams) {
	from, to := io.Pipe()
	t.Cleanup(func() { from.Close() })
	reader := lsp.NewReader(from)
	return NewSession(t.Context(), lsp.NewClient(lsp.NewWriter(to)), "test", false), func() lsp.PublishParams {
		body, err := reader.Read()
		require.NoError(t, err)
		var m struct{ Params lsp.PublishParams }
		require.NoError(t, json.Unmarshal(body, &m))
		return m.Params
	}
}

func (s *Session) opens(t *testing.T, uri, text string) {
	params, err := json.Marshal(map[string]any{"textDocument": map[string]any{"uri": uri, "version": 1, "text": text}})
	require.NoError(t, err)
	require.NoError(t, s.open(params))
}

const millions = `version: 1
buffers:
  d: {place: device, dtype: u8, shape: [8]}
nodes:
  - {foreach: {i: 2000, j: 2000}, name: n.$i.$j, memset: {to: d, value: 1}}
`

func TestDocumentsOfMillionsOfNodes(t *testing.T) {
	s, next := published(t)
	s.opens(t, "file:///p/a.yaml", millions)
	list := next().Diagnostics
	require.Len(t, list, 1)
	require.Equal(t, "foreach makes more than 131072 nodes or buffers, the limit here; dagrun check allows more", list[0].Message)

	folder := t.TempDir()
	part := "version: 1\nbuffers:\n  d: {place: device, dtype: u8, shape: [8]}\nnodes:\n"
	for k := range 1000 {
		part += fmt.Sprintf("  - {name: n.%d, memset: {to: d, value: 1}}\n", k)
	}
	require.NoError(t, os.WriteFile(filepath.Join(folder, "part.yaml"), []byte(part), 0o600))
	s.opens(t, "file://"+filepath.ToSlash(folder)+"/a.yaml", "version: 1\nnodes:\n  - {foreach: {i: 4000}, name: n.$i, use: part.yaml}\n")
	list = next().Diagnostics
	require.Len(t, list, 1)
	require.Equal(t, "the files that are used make more than 131072 nodes or buffers, the limit here; dagrun check allows more", list[0].Message)
}

// A document whose check takes long, here because another one reads a module, does not keep others waiting, and a change of it is checked next.
func TestDocumentsDoNotWaitForEachOther(t *testing.T) {
	s, next := published(t)
	s.modules.mu.Lock()
	s.opens(t, "file:///nowhere/slow.yaml", "version: 1\nmodules: {m: {source: m.cu}}\nnodes: []\n")
	s.opens(t, "file:///nowhere/quick.yaml", "version: 2\n")
	require.Equal(t, "file:///nowhere/quick.yaml", next().URI)
	require.NoError(t, s.change([]byte(`{"textDocument": {"uri": "file:///nowhere/slow.yaml", "version": 2}, "contentChanges": [{"text": "version: 3\n"}]}`)))
	s.modules.mu.Unlock()
	p := next()
	require.Equal(t, "file:///nowhere/slow.yaml", p.URI)
	require.Equal(t, 2, *p.Version, "what the older version had is not published")
}

// A confined session reads nothing outside of the folder of a document, nor through links that lead there.
func TestConfinedDocuments(t *testing.T) {
	outer := t.TempDir()
	folder := filepath.Join(outer, "in")
	require.NoError(t, os.Mkdir(folder, 0o700))
	for name, text := range map[string]string{
		"k.cu": "__global__ void k(int *x) {}\n", "part.yaml": "version: 1\nnodes: []\n", "in/k.cu": "__global__ void k(int *x) {}\n", "in/part.yaml": "version: 1\nnodes: []\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(outer, filepath.FromSlash(name)), []byte(text), 0o600))
	}
	require.NoError(t, os.Symlink("..", filepath.Join(folder, "up")))
	for _, confined := range []bool{false, true} {
		s, next := published(t)
		s.confined = confined
		for k, prefix := range []string{"", "../", "up/"} {
			s.opens(t, fmt.Sprintf("file://%s/%v%d.yaml", filepath.ToSlash(folder), confined, k), fmt.Sprintf("version: 1\nmodules: {m: {source: %sk.cu}}\nnodes:\n  - {name: u, use: %spart.yaml}\n", prefix, prefix))
			list := next().Diagnostics
			if !confined || prefix == "" {
				require.Empty(t, list, prefix)
				continue
			}
			require.Len(t, list, 2)
			require.Contains(t, list[0].Message, "it is outside of the pipeline's folder, and --confined allows nothing there")
			require.Contains(t, list[1].Message, "it is outside of the pipeline's folder, and --confined allows nothing there")
		}
	}
}

// docs/security.md tells the limits.
func TestThePageTellsTheLimits(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/security.md")
	require.NoError(t, err)
	require.Contains(t, string(page), fmt.Sprintf("more than %d repeated or used nodes or after %.0f s", mostRepeated, mostTime.Seconds()))
}
