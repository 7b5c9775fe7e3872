// A test of what the public packages show: their signatures name only what others can import.

package tests

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// internalInSignatures are the public names, by package, that still lead to a type of an internal package: its fields and methods are not in the
// documentation of the name that users see. Most are the front of runtime/internal/engine. The lists only shrink.
var internalInSignatures = map[string]string{
	"cudart/libraries": "OpenWith",
	"runtime": "Arena Auto BodySpan BufferMemory BufferSize Built CallError Captured CarriedError Check Checksum Counters Difference HostCall " +
		"HostError HostFunction Loop MemoryMode MemoryStats Mode NodeError OutOfMemoryError Overlap OverlapAuto OverlapOff " +
		"OverlapOn Recorder Results Saved Separate Series Span Streams Timing TracedLoop TracedPass TracedReplay Trial Turn " +
		"UnknownFunctionError",
	"runtime/learn": "From KeepPasses Learned Options Recall Recalled Way",
}

func TestNoPublicSignatureNamesAnInternalType(t *testing.T) {
	exports := map[string]string{}
	list := listed(t)
	for _, p := range list {
		exports[p.ImportPath] = p.Export
	}
	files := token.NewFileSet()
	imports := importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	found := map[string]string{}
	checked := 0
	for _, p := range list {
		name, ours := strings.CutPrefix(p.ImportPath, module+"/")
		if !ours || strings.HasPrefix(name, "cmd/") || strings.HasPrefix(name, "tests/") || strings.Contains("/"+name+"/", "/internal/") {
			continue
		}
		checked++
		var parsed []*ast.File
		for _, file := range p.GoFiles {
			f, err := parser.ParseFile(files, filepath.Join(p.Dir, file), nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			parsed = append(parsed, f)
		}
		own, err := (&types.Config{Sizes: types.SizesFor("gc", "amd64"), Importer: imports}).Check(p.ImportPath, files, parsed, nil)
		require.NoError(t, err)
		for _, public := range own.Scope().Names() {
			if object := own.Scope().Lookup(public); object.Exported() {
				if hidden := internalTypes(object); len(hidden) > 0 {
					t.Logf("%s.%s: %s", name, public, strings.Join(hidden, ", "))
					found[name] = strings.TrimSpace(found[name] + " " + public)
				}
			}
		}
	}
	require.Greater(t, checked, 30)
	require.Equal(t, internalInSignatures, found)
}

// internalTypes are the types of internal packages that a declaration shows: in its type, its exported fields and its exported methods.
func internalTypes(object types.Object) (found []string) {
	seen := map[types.Type]bool{}
	var show func(t types.Type)
	tuple := func(list *types.Tuple) {
		for i := range list.Len() {
			show(list.At(i).Type())
		}
	}
	named := func(of *types.TypeName) {
		if of.Pkg() != nil && of.Pkg() != object.Pkg() && strings.HasPrefix(of.Pkg().Path(), module) && strings.Contains(of.Pkg().Path()+"/", "/internal/") {
			found = append(found, strings.TrimPrefix(of.Pkg().Path(), module+"/")+"."+of.Name())
		}
	}
	show = func(t types.Type) {
		if seen[t] {
			return
		}
		seen[t] = true
		switch t := t.(type) {
		case *types.Alias:
			if t.Obj() != object {
				named(t.Obj())
			}
			if t.Obj().Pkg() != object.Pkg() || t.Obj() == object {
				show(t.Rhs())
			}
		case *types.Named:
			named(t.Obj())
			for i := range t.TypeArgs().Len() {
				show(t.TypeArgs().At(i))
			}
		case *types.Pointer:
			show(t.Elem())
		case *types.Slice:
			show(t.Elem())
		case *types.Array:
			show(t.Elem())
		case *types.Chan:
			show(t.Elem())
		case *types.Map:
			show(t.Key())
			show(t.Elem())
		case *types.Signature:
			for i := range t.TypeParams().Len() {
				show(t.TypeParams().At(i).Constraint())
			}
			tuple(t.Params())
			tuple(t.Results())
		case *types.Struct:
			for i := range t.NumFields() {
				if f := t.Field(i); f.Exported() {
					show(f.Type())
				}
			}
		case *types.Interface:
			for i := range t.NumExplicitMethods() {
				if m := t.ExplicitMethod(i); m.Exported() {
					show(m.Type())
				}
			}
			for i := range t.NumEmbeddeds() {
				show(t.EmbeddedType(i))
			}
		case *types.Union:
			for i := range t.Len() {
				show(t.Term(i).Type())
			}
		}
	}
	if of, ok := object.(*types.TypeName); ok && !of.IsAlias() {
		t := of.Type().(*types.Named)
		for i := range t.TypeParams().Len() {
			show(t.TypeParams().At(i).Constraint())
		}
		show(t.Underlying())
		for i := range t.NumMethods() {
			if m := t.Method(i); m.Exported() {
				show(m.Type())
			}
		}
		return found
	}
	show(object.Type())
	return found
}
