// Tests of files that use other files, read from memory.

package file

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/internal/fakes"
	"github.com/stretchr/testify/require"
)

// parseFiles parses main.yaml of some files.
func parseFiles(files map[string]string, params ...Override) (*dag.Graph, error) {
	options := testOptions(params...)
	options.Name, options.Dir = "main.yaml", ""
	options.OpenModule = func(m dag.Module) (dag.Library, error) { return fakes.UserKernels, nil }
	options.ReadFile = func(name string) ([]byte, error) {
		source, ok := files[name]
		if !ok {
			return nil, errors.New("cannot read " + name)
		}
		return []byte(source), nil
	}
	return Parse([]byte(files["main.yaml"]), options)
}

func TestUseIsAsIfWritten(t *testing.T) {
	used, err := parseFiles(map[string]string{
		"main.yaml": `version: 1
params: {n: 8}
buffers:
  h.$i: {foreach: {i: 3}, place: device, dtype: f32, shape: [n], init: 1}
nodes:
  - {foreach: {i: 2}, name: layer.$i, use: sub/layer.yaml, with: {width: n, x: h.$i, y: h.$(i+1)}}
  - {name: last, map: "y = 2*t", with: {y: h.0, t: layer.1.inner.t}, after: ["layer.*", layer.0.inner.twice]}
`,
		"sub/layer.yaml": `version: 1
name: layer
params: {width: 3, half: width/2}
buffers:
  x: {place: device, dtype: f32, shape: [width], save: ignored.npy, init: 5}
  y: {place: device, dtype: f32, shape: [width], expect: {value: 9}}
nodes:
  - {name: half, kernel: saxpy, args: [half, 2, x, y]}
  - {name: inner, use: inner/twice.yaml, with: {n: width, x: y}}
  - {name: end, map: "y = t + x", with: {t: inner.t}, after: [half, "inner.*"]}
`,
		"sub/inner/twice.yaml": `version: 1
params: {n: 1}
buffers:
  x: {place: device, dtype: f32, shape: [n]}
  t: {place: device, dtype: f32, shape: [n], init: {file: data.npy}}
nodes:
  - {name: twice, map: "t = 2*x + t"}
`})
	require.NoError(t, err)
	var text strings.Builder
	require.NoError(t, Write(&text, used.Pipeline))
	written, err := Parse([]byte(`version: 1
name: main
params: {n: 8}
buffers:
  h.$i: {foreach: {i: 3}, place: device, dtype: f32, shape: [n], init: 1}
  layer.$i.inner.t: {foreach: {i: 2}, place: device, dtype: f32, shape: [n], init: {file: sub/inner/data.npy}}
nodes:
  - foreach: {i: 2}
    nodes:
      - {name: layer.$i.half, kernel: saxpy, args: [n/2, 2, h.$i, h.$(i+1)]}
      - {name: layer.$i.inner.twice, map: "t = 2*x + t", with: {t: layer.$i.inner.t, x: h.$(i+1)}}
      - {name: layer.$i.end, map: "y = t + x", with: {y: h.$(i+1), t: layer.$i.inner.t, x: h.$i}, after: [layer.$i.half, "layer.$i.inner.*"]}
  - {name: last, map: "y = 2*t", with: {y: h.0, t: layer.1.inner.t}, after: ["layer.*", layer.0.inner.twice]}
`), testOptions())
	require.NoError(t, err)
	require.Equal(t, written.Hash(), used.Hash())
	var again strings.Builder
	require.NoError(t, Write(&again, written.Pipeline))
	require.Equal(t, again.String(), text.String())
	require.Empty(t, used.Warnings().List)
	for i := range used.Nodes[:6] {
		require.Equal(t, int32(6), used.Nodes[i].Pos.Line, used.Nodes[i].Name)
	}
}

func TestUsedModules(t *testing.T) {
	opened := 0
	files := map[string]string{
		"main.yaml": "version: 1\nmodules: {a_0_mine: {source: own.cu}}\nbuffers: {x: {place: device, dtype: f32, shape: [4], init: 0}}\nnodes:\n  - {foreach: {i: 2}, name: a.$i, use: b/part.yaml, with: {x: x}}\n",
		"b/part.yaml": "version: 1\nmodules: {mine: {source: k.cu, include: [inc]}}\nbuffers: {x: {place: device, dtype: f32, shape: [4]}}\n" +
			"nodes:\n  - {name: k, kernel: mine.opaque, args: [{inout: x}, {f32: 1}], grid: 1, block: 32}\n"}
	options := testOptions()
	options.Name, options.Dir = "main.yaml", ""
	var paths []string
	options.OpenModule = func(m dag.Module) (dag.Library, error) {
		opened++
		paths = append(paths, m.Path+" "+strings.Join(m.Include, ","))
		return fakes.UserKernels, nil
	}
	options.ReadFile = func(name string) ([]byte, error) { return []byte(files[name]), nil }
	g, err := Parse([]byte(files["main.yaml"]), options)
	require.NoError(t, err)
	require.Equal(t, []string{"own.cu ", "b/k.cu b/inc"}, paths, "a file that is used twice opens its modules once")
	var names []string
	for k := range g.Modules {
		names = append(names, g.Modules[k].Name)
	}
	require.Equal(t, []string{"a_0_mine", "a_0_mine_2", "a_1_mine"}, names)
	require.Equal(t, "a_0_mine_2.opaque", g.Nodes[0].Launch.Name)
	var text strings.Builder
	require.NoError(t, Write(&text, g.Pipeline))
	again, err := Parse([]byte(text.String()), options)
	require.NoError(t, err)
	require.Equal(t, g.Hash(), again.Hash())
}

func TestUseHasLimits(t *testing.T) {
	deep := map[string]string{"main.yaml": "version: 1\nnodes: [{name: a, use: 0.yaml}]\n"}
	for k := range 20 {
		deep[fmt.Sprintf("%d.yaml", k)] = fmt.Sprintf("version: 1\nnodes: [{name: a, use: %d.yaml}]\n", k+1)
	}
	_, err := parseFiles(deep)
	require.ErrorContains(t, err, "15.yaml:2:24: files use files more than 16 deep (used by 14.yaml:2:9 as a, by 13.yaml:2:9 as a, ")

	wide := map[string]string{"main.yaml": "version: 1\nnodes: [{name: a, use: 0.yaml}, {name: b, use: 0.yaml}]\n"}
	for k := range 13 {
		wide[fmt.Sprintf("%d.yaml", k)] = strings.ReplaceAll(wide["main.yaml"], "0.yaml", fmt.Sprintf("%d.yaml", k+1))
	}
	wide["13.yaml"] = "version: 1\nnodes: []\n"
	_, err = parseFiles(wide)
	require.ErrorContains(t, err, "files are used more than 16384 times, the limit of a pipeline")

	large := map[string]string{"main.yaml": "version: 1\nnodes:\n"}
	for k := range 3 {
		large["main.yaml"] += fmt.Sprintf("  - {name: a%d, use: %d.yaml}\n", k, k)
		large[fmt.Sprintf("%d.yaml", k)] = "version: 1\nnodes: []\n" + strings.Repeat("# comment\n", MaxBytes/25)
	}
	_, err = parseFiles(large)
	require.EqualError(t, err, "main.yaml:5:21: the files that are used have more than 64 MiB, the limit of a pipeline")

	_, err = parseFiles(map[string]string{"main.yaml": "version: 1\nnodes: [{name: a, use: a.yaml}]\n",
		"a.yaml": "version: 1\nnodes:\n  - {foreach: {i: 4000, j: 4000}, name: a.$i.$j, map: \"x = 1\"}\n"})
	require.ErrorContains(t, err, "foreach makes more than 4194304 nodes or buffers, the limit of a file (used by main.yaml:2:9 as a)")
}

func TestUseOfBrokenFiles(t *testing.T) {
	for source, want := range map[string]string{
		"":                                 "a.yaml:1:1: file is empty (used by main.yaml:4:5 as a); a pipeline begins with \"version: 1\"",
		"version: 2\n":                     "a.yaml:1:10: version 2 is newer than this dagrun, which reads version 1 (used by main.yaml:4:5 as a)",
		"version: 1\nnodes: [\n":           "a.yaml:2:8: ",
		"- 1\n":                            "a.yaml:1:1: a pipeline file must be a mapping, not a list (used by main.yaml:4:5 as a)",
		"version: 1\n":                     "a.yaml:1:1: nodes are missing (used by main.yaml:4:5 as a)",
		"version: 1\nnodes: []\nbufers: 1": "a.yaml:3:1: unknown key \"bufers\" in a pipeline file (used by main.yaml:4:5 as a); did you mean \"buffers\"?",
	} {
		_, err := parseFiles(map[string]string{"main.yaml": "version: 1\nbuffers: {x: {place: device, dtype: f32, shape: [4]}}\nnodes:\n  - {name: a, use: a.yaml}\n  - {name: b, use: a.yaml}\n  - {name: c, map: \"x = 1\", after: [a.x, \"b.*\"]}\n", "a.yaml": source})
		require.ErrorContains(t, err, want, source)
		require.NotContains(t, "\n"+err.Error(), "\nmain.yaml:", "what follows from it is not said")
	}
	_, err := Parse([]byte("version: 1\nnodes: [{name: a, use: a.yaml}]\n"), testOptions())
	require.EqualError(t, err, `p.yaml:2:24: "a.yaml" cannot be used: other files cannot be read here`)
}
