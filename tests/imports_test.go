// Which room may import which: data walks one way, so imports do too.

package tests

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/dagrun/dagrun"

// rooms in the order data walks them. A package imports its own room and those above it.
var rooms = []string{"dag", "planner", "kernels", "cudart", "runtime", "cmd"}

func TestRoomsImportOnlyRoomsAboveThem(t *testing.T) {
	seen := map[string]bool{}
	walkSources(t, func(file, room string, imports []string) {
		at := indexOf(room)
		if at < 0 {
			return
		}
		seen[room] = true
		for _, name := range imports {
			rest, ours := strings.CutPrefix(name, module+"/")
			if !ours || strings.HasSuffix(file, "_test.go") {
				continue
			}
			other := strings.SplitN(rest, "/", 2)[0]
			require.GreaterOrEqual(t, indexOf(other), 0, "%s imports %s, which is no room", file, name)
			require.LessOrEqual(t, indexOf(other), at, "%s is in %s/ and imports %s, which comes after it", file, room, name)
		}
	})
	for _, room := range rooms {
		require.True(t, seen[room], "no source was read in %s/", room)
	}
}

func TestNothingImportsC(t *testing.T) {
	walkSources(t, func(file, _ string, imports []string) {
		require.NotContains(t, imports, "C", "%s uses cgo", file)
	})
}

func indexOf(room string) int {
	for i, r := range rooms {
		if r == room {
			return i
		}
	}
	return -1
}

// walkSources hands out every Go file below the module's root with its first folder and its imports.
func walkSources(t *testing.T, do func(file, room string, imports []string)) {
	t.Helper()
	root := ".."
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && name != root && strings.HasPrefix(entry.Name(), ".") || entry.IsDir() && entry.Name() == "testdata" {
			return filepath.SkipDir
		}
		if entry.IsDir() || path.Ext(name) != ".go" {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		var imports []string
		for _, spec := range parsed.Imports {
			value, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			imports = append(imports, value)
		}
		file := filepath.ToSlash(relative)
		do(file, strings.SplitN(file, "/", 2)[0], imports)
		return nil
	})
	require.NoError(t, err)
}
