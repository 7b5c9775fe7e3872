// Tests of the types that refer to nodes, buffers and streams: code that mixes up the ids of nodes and of buffers does not compile.

package dag_test

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
)

// The zero value of a node asks for no stream; only a number asks for one.
func TestTheZeroNodeAsksForNoStream(t *testing.T) {
	require.Equal(t, int32(-1), dag.Node{}.Stream.Number())
	require.Equal(t, int32(0), dag.OnStream(0).Number())
	require.NotEqual(t, dag.Node{}.Stream, dag.OnStream(0))
}

func TestIdsDoNotMix(t *testing.T) {
	files := token.NewFileSet()
	config := types.Config{Importer: importer.ForCompiler(files, "source", nil)}
	compile := func(statement string) error {
		source := "package p\nimport \"github.com/dagrun/dagrun/dag\"\nfunc f(b *dag.Builder, g *dag.Graph, node dag.NodeID, buffer dag.BufferID, number int32) { " + statement + " }"
		file, err := parser.ParseFile(files, "p.go", source, 0)
		require.NoError(t, err, statement)
		_, err = config.Check("p", files, []*ast.File{file}, nil)
		return err
	}
	for _, statement := range []string{
		"b.Cost(node, 1)", "b.After(node, node)", "b.Save(buffer, `y.npy`)", "b.Whole(buffer)", "g.Preds(node)", "g.Accesses(node)", "b.Cost(0, 1)", "b.Cost(dag.NodeID(number), 1)",
	} {
		require.NoError(t, compile(statement), statement)
	}
	for statement, want := range map[string]string{
		"b.Cost(buffer, 1)":                   "cannot use buffer (variable of int32 type dag.BufferID) as dag.NodeID value in argument to b.Cost",
		"b.Cost(number, 1)":                   "cannot use number (variable of type int32) as dag.NodeID value in argument to b.Cost",
		"b.After(node, buffer)":               "cannot use buffer (variable of int32 type dag.BufferID) as dag.NodeID value in argument to b.After",
		"b.Save(node, `y.npy`)":               "cannot use node (variable of int32 type dag.NodeID) as dag.BufferID value in argument to b.Save",
		"_ = dag.Range{Buffer: node}":         "cannot use node (variable of int32 type dag.NodeID) as dag.BufferID value in struct literal",
		"_ = dag.Edge{From: buffer}":          "cannot use buffer (variable of int32 type dag.BufferID) as dag.NodeID value in struct literal",
		"_ = dag.Node{After: g.Carried()}":    "cannot use g.Carried() (value of type []dag.BufferID) as []dag.NodeID value in struct literal",
		"_ = dag.Node{Stream: 3}":             "cannot use 3 (untyped int constant) as dag.Binding value in struct literal",
		"b.Kernel(`k`, `scale`, dag.Grid(1))": "cannot use dag.Grid(1) (value of func type dag.LaunchOption) as dag.Args value in argument to b.Kernel",
	} {
		require.ErrorContains(t, compile(statement), want, statement)
	}
}
