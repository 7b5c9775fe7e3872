// Completion, hovers, definitions and symbols, at places of files that are still being typed.

package editor

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/internal/lsp"
)

// at returns a document and the place of its ¦, which is taken out.
func at(t testing.TB, text string) (*document, lsp.Position) {
	before, after, ok := strings.Cut(text, "¦")
	require.True(t, ok, text)
	source := lsp.NewText([]byte(before + after))
	return &document{uri: "file:///pipelines/p.yaml", text: source}, source.Position(len(before))
}

const head = `version: 1
params:
  n: 8
buffers:
  x: {place: host, dtype: f32, shape: [n]}
  d_x: {place: device, dtype: f32, shape: [n]}
`

func TestComplete(t *testing.T) {
	for _, c := range []struct {
		text    string
		has     []string
		hasNot  []string
		inserts string // of the first of has
	}{
		{"ver¦", []string{"version", "params", "buffers", "nodes"}, nil, "version: "},
		{"version: 1\n¦", []string{"params", "nodes"}, []string{"version"}, "params: "},
		{"sync: ¦", []string{"auto", "explicit"}, nil, "auto"},
		{head + "  y: {pl¦", []string{"place", "dtype", "foreach"}, []string{"memcpy"}, "place: "},
		{head + "  y: {place: host, ¦}", []string{"dtype"}, []string{"place"}, "dtype: "},
		{head + "  y: {place: ¦}", []string{"host", "device"}, nil, "host"},
		{head + "  y:\n    dtype: f¦\n", []string{"f16", "f64", "bool"}, []string{"n"}, "f16"},
		{head + "  y:\n    dtype: f32\n    ¦\n", []string{"place"}, []string{"dtype"}, "place: "},
		{head + "  y: {shape: [¦", []string{"n"}, []string{"x"}, "n"},
		{head + "nodes:\n  - {name: a, ¦}\n", []string{"memcpy", "kernel"}, []string{"name", "place"}, "memcpy: "},
		{head + "nodes:\n  - name: a\n    ¦\n", []string{"memcpy", "kernel"}, []string{"name"}, "memcpy: "},
		{head + "nodes:\n  - ¦\n", []string{"name", "foreach"}, []string{"place"}, "name: "},
		{head + "nodes:\n  - {name: a, k¦: scale}\n", []string{"kernel"}, nil, "kernel"},
		{head + "nodes:\n  - {name: a, kernel: sa¦\n  - {name: b, kernel: scale, args: []}\n", []string{"saxpy", "scale"}, []string{"x"}, "saxpy"},
		{head + "nodes:\n  - {name: a, memcpy: {¦}}\n", []string{"from", "to"}, []string{"name", "value"}, "from: "},
		{head + "nodes:\n  - {memcpy: {¦", []string{"from", "to"}, []string{"name"}, "from: "},
		{head + "nodes:\n  - {name: a, memcpy: { ¦", []string{"from", "to"}, []string{"name"}, "from: "},
		{head + "nodes:\n  - {name: a, memcpy: {from: x, ¦}}\n", []string{"to"}, []string{"from"}, "to: "},
		{head + "nodes:\n  - {name: a, memset: {to: d_x, v¦\n  - {name: b, memset: {to: d_x, value: 0}}\n", []string{"value"}, []string{"to"}, "value: "},
		{head + "nodes:\n  - name: a\n    memcpy: {¦}\n", []string{"from", "to"}, []string{"name"}, "from: "},
		{head + "nodes:\n  - {name: a, memcpy: {from: ¦", []string{"x", "d_x"}, []string{"n"}, "x"},
		{head + "nodes:\n  - {name: a, memcpy: {from: d_x(0..¦)}}", []string{"d_x"}, nil, "d_x"},
		{head + "nodes:\n  - {name: a, kernel: scale, args: [len(d¦), 2]}", []string{"d_x", "n"}, nil, "d_x"},
		{head + "nodes:\n  - {name: a, kernel: saxpy, args: {¦}}", []string{"alpha", "x"}, nil, "alpha: "},
		{head + "nodes:\n  - {name: a, kernel: k, args: [{out: ¦}]}", []string{"x"}, nil, "x"},
		{head + "nodes:\n  - foreach: {i: 4}\n    nodes:\n      - {name: up.$i, memset: {to: x(¦ of 4)", []string{"i", "x"}, nil, "i"},
		{head + "nodes:\n  - {name: first, memset: {to: d_x, value: 0}}\n  - {name: b, after: [¦]}", []string{"first", "b"}, []string{"x"}, "first"},
		{head + "nodes:\n  - {name: a, call: cu¦}", []string{"cublas.gemm", "cusolver.potrf"}, []string{"saxpy", "n"}, "cublas.gemm"},
		{head + "nodes:\n  - {name: a, call: cublas.gemm, args: {¦}}", []string{"ta", "c"}, []string{"x"}, "ta: "},
		{head + "nodes:\n  - {name: a, allreduce: {inout: ¦}}", []string{"d_x", "n"}, []string{"a"}, "d_x"},
		{head + "nodes:\n  - {name: a, allgather: {from: d¦, to: x}}", []string{"d_x"}, []string{"sum"}, "d_x"},
		{head + "nodes:\n  - {name: a, allreduce: {inout: d_x, op: ¦}}", []string{"sum", "avg"}, []string{"n"}, "sum"},
		{head + "nodes:\n  - {name: a, priority: ¦}", []string{"high", "low"}, []string{"n"}, "high"},
		{head + "nodes:\n  - {name: a, send: ¦, rank: 1}", []string{"d_x"}, nil, "d_x"},
		{head + "nodes:\n  - {name: a, exchange: [{send: ¦", []string{"d_x"}, nil, "d_x"},
		{head + "nodes:\n  - name: a\n    rep¦", []string{"repeat", "if"}, nil, "repeat: "},
		{head + "nodes:\n  - {name: a, repeat: {¦}}", []string{"times", "until", "most", "or_stop"}, []string{"name"}, "times: "},
		{head + "nodes:\n  - {name: a, repeat: {until: d¦", []string{"d_x", "n"}, nil, "d_x"},
		{head + "nodes:\n  - name: a\n    if: ¦\n", []string{"d_x", "n"}, nil, "d_x"},
		{head + "nodes:\n  - foreach: {i: {from: 0, to: ¦}}\n", []string{"n"}, []string{"d_x"}, "n"},
	} {
		d, place := at(t, c.text)
		list, err := d.complete(place)
		require.NoError(t, err)
		var labels []string
		for _, i := range list.Items {
			labels = append(labels, i.Label)
			if i.Label == c.has[0] {
				require.Equal(t, c.inserts, i.TextEdit.NewText, c.text)
				edited, err := d.text.Apply([]lsp.Change{{Range: &i.TextEdit.Range, Text: i.TextEdit.NewText}})
				require.NoError(t, err)
				require.Contains(t, string(edited.Source), i.TextEdit.NewText)
			}
		}
		require.Subset(t, labels, c.has, c.text)
		once := slices.Compact(slices.Sorted(slices.Values(labels)))
		require.Len(t, labels, len(once), c.text)
		for _, label := range c.hasNot {
			require.NotContains(t, labels, label, c.text)
		}
	}
}

func TestKernelsCompleteWithTheirSignature(t *testing.T) {
	d, place := at(t, head+"nodes:\n  - {name: a, kernel: sc¦}\n")
	list, err := d.complete(place)
	require.NoError(t, err)
	k := slices.IndexFunc(list.Items, func(i lsp.CompletionItem) bool { return i.Label == "scale" })
	require.GreaterOrEqual(t, k, 0)
	require.True(t, strings.HasPrefix(list.Items[k].Detail, "scale("), list.Items[k].Detail)
	require.Equal(t, lsp.Range{Start: lsp.Position{Line: 7, Character: 22}, End: lsp.Position{Line: 7, Character: 24}}, list.Items[k].TextEdit.Range)
}

func TestHoverAndDefinition(t *testing.T) {
	for _, c := range []struct {
		text, hover string
		line        int // of the definition; -1: none
	}{
		{head + "nodes:\n  - {name: a, kernel: sca¦le, args: [n]}\n", "```\nscale(", -1},
		{head + "nodes:\n  - {name: a, call: cublas¦.gemm}\n", "```\ncublas.gemm(", -1},
		{head + "nodes:\n  - {name: a, repeat: {until: ¦d_x < 1, most: 4}}\n", "buffer `d_x`: device f32", 5},
		{head + "nodes:\n  - {name: a, ker¦nel: scale}\n", "`kernel`: A kernel of the library", -1},
		{head + "nodes:\n  - {name: a, mem¦cpy: {from: x, to: d_x}}\n", "`memcpy`: Copies one buffer", -1},
		{head + "nodes:\n  - {name: a, memcpy: {from: x, to: d¦_x(0..4)}}\n", "buffer `d_x`: device f32", 5},
		{head + "nodes:\n  - {name: a, kernel: scale, args: [¦n, 2, d_x]}\n", "param `n`: 8", 2},
		{head + "nodes:\n  - {name: a, memset: {to: d_x, value: 0}}\n  - {name: b, after: [¦a]}\n", "node `a`: memset", 7},
		{head + "  d.$i: {foreach: {i: 2}, place: device, dtype: i8}\nnodes:\n  - {name: a, memset: {to: d.$¦i, value: 0}}\n", "buffer `d.$i`: device i8", 6},
		{head + "nodes:\n  - {name: a, memset: {to: nothing¦}}\n", "", -1},
		{"¦\n" + head, "", -1},
	} {
		d, place := at(t, c.text)
		hover, err := d.hover(place)
		require.NoError(t, err)
		if c.hover == "" {
			require.Nil(t, hover, c.text)
		} else {
			require.NotNil(t, hover, c.text)
			require.True(t, strings.HasPrefix(hover.Contents.Value, c.hover), hover.Contents.Value)
		}
		definition, err := d.definition(place)
		require.NoError(t, err)
		if c.line < 0 {
			require.Nil(t, definition, c.text)
		} else {
			require.NotNil(t, definition, c.text)
			require.Equal(t, c.line, definition.Range.Start.Line, c.text)
		}
	}
}

func TestSymbols(t *testing.T) {
	d, _ := at(t, head+"nodes:\n  - foreach: {i: 2}\n    nodes:\n      - {name: up.$i, memcpy: {from: x, to: d_x}}\n  - name: last\n    kernel: scale\n¦")
	symbols, err := d.symbols()
	require.NoError(t, err)
	var seen []string
	for _, s := range symbols {
		seen = append(seen, s.Name+" "+s.Detail)
	}
	require.Equal(t, []string{"n 8", "x host f32", "d_x device f32", "up.$i memcpy", "last kernel scale"}, seen)
}

// Whatever is typed, every question has an answer, and what is offered lies within the text.
func FuzzQuestions(f *testing.F) {
	for _, text := range []string{head, "nodes:\n - [{a: [b, {", "a: |\n  x\n b\n- \n -\n", "\"", "a: 'b\n: :\n\t- {\r\n}", strings.Repeat("[", 300), strings.Repeat("- ", 300), "\xef\xbb\xbfa: \xff", "? a\n: b\n---\n"} {
		f.Add([]byte(text), len(text)/2)
	}
	f.Fuzz(func(t *testing.T, source []byte, at int) {
		d := &document{text: lsp.NewText(source)}
		place := d.text.Position(at)
		list, err := d.complete(place)
		require.NoError(t, err)
		for _, i := range list.Items {
			require.LessOrEqual(t, d.text.Offset(i.TextEdit.Range.Start), d.text.Offset(i.TextEdit.Range.End))
		}
		_, err = d.hover(place)
		require.NoError(t, err)
		_, err = d.definition(place)
		require.NoError(t, err)
		symbols, err := d.symbols()
		require.NoError(t, err)
		for _, s := range symbols {
			require.NotEmpty(t, s.Name)
		}
	})
}
