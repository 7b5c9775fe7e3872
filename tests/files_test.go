// A test of the files within a package: they can be read from the top down.

package tests

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The files of a package refer to each other in one direction: there is an order in which each refers only to files after it, so that a
// reader can start with the first. Where a file must use what an earlier one declares, that declaration belongs further down.
func TestFilesReferOnlyToFilesBelowThem(t *testing.T) {
	checked := 0
	exports := map[string]string{}
	list := listed(t)
	for _, p := range list {
		exports[p.ImportPath] = p.Export
	}
	for _, p := range list {
		name, ours := strings.CutPrefix(p.ImportPath, module+"/")
		if !ours || len(p.GoFiles) < 2 {
			continue
		}
		checked++
		circle := fileCircle(t, p, exports)
		require.Empty(t, circle, "files of %s refer to each other in a circle: move one of these declarations", name)
	}
	require.Greater(t, checked, 30)
}

type listedPackage struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// listed returns the module's packages and all that they import, with what the compiler knows of each.
func listed(t *testing.T) []listedPackage {
	t.Helper()
	var failure bytes.Buffer
	command := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles", "./...")
	command.Dir, command.Stderr = "..", &failure
	out, err := command.Output()
	require.NoError(t, err, failure.String())
	var list []listedPackage
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listedPackage
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return list
		}
		require.NoError(t, err)
		list = append(list, p)
	}
}

// fileCircle returns the references of one shortest circle of a package's files, or nothing.
func fileCircle(t *testing.T, p listedPackage, exports map[string]string) []string {
	t.Helper()
	files := token.NewFileSet()
	var parsed []*ast.File
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		parsed = append(parsed, file)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Sizes: types.SizesFor("gc", "amd64"), Importer: importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})}
	own, err := config.Check(p.ImportPath, files, parsed, info)
	require.NoError(t, err)

	fileOf := func(pos token.Pos) string { return filepath.Base(files.Position(pos).Filename) }
	arrows := map[string]map[string]string{} // from, to: an example
	for _, file := range parsed {
		from := fileOf(file.Pos())
		arrows[from] = map[string]string{}
		ast.Inspect(file, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			object := info.Uses[id]
			if object == nil || object.Pkg() != own {
				return true
			}
			if to := fileOf(object.Pos()); to != from && arrows[from][to] == "" {
				arrows[from][to] = from + " uses " + object.Name() + " of " + to
			}
			return true
		})
	}
	var shortest []string
	for _, start := range p.GoFiles {
		if circle := circleFrom(start, arrows); len(circle) > 0 && (shortest == nil || len(circle) < len(shortest)) {
			shortest = circle
		}
	}
	return shortest
}

// circleFrom returns the arrows of a shortest way from a file back to itself.
func circleFrom(start string, arrows map[string]map[string]string) []string {
	came := map[string]string{}
	for next := []string{start}; len(next) > 0; next = next[1:] {
		from := next[0]
		for _, to := range slices.Sorted(maps.Keys(arrows[from])) {
			if _, been := came[to]; been {
				continue
			}
			came[to] = from
			if to == start {
				var way []string
				for at := start; ; at = came[at] {
					way = append(way, arrows[came[at]][at])
					if came[at] == start {
						slices.Reverse(way)
						return way
					}
				}
			}
			next = append(next, to)
		}
	}
	return nil
}
