// Tests that the packages that .ci/run leaves out of the race detector cannot have races.

package tests

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sequential matches the list in .ci/run of packages that the race step leaves out.
var sequential = regexp.MustCompile(`(?m)^sequential='([^']+)'$`)

// parallel are files of sequential packages that start goroutines all the same, each with the line of .ci/run that tests it with the race
// detector.
var parallel = map[string]string{
	"../dag/file/family.go":             "tested -race -short ./planner/proof/ranks",
	"../planner/internal/pack/eject.go": "tested -race -short -run 'SearchesAtATime' ./planner/internal/pack",
}

// Packages that .ci/run calls sequential start no goroutines, and goroutines that call them share only pools. Only their callers could
// cause a race, and those are tested in the race step.
func TestSequentialPackagesStartNoGoroutines(t *testing.T) {
	script, err := os.ReadFile("../.ci/run")
	require.NoError(t, err)
	found := sequential.FindSubmatch(script)
	require.NotNil(t, found, ".ci/run has a line sequential='...'")
	pattern := regexp.MustCompile(string(found[1]))
	for file, line := range parallel {
		require.FileExists(t, file)
		require.Contains(t, string(script), "\n"+line+"\n")
	}
	files := token.NewFileSet()
	packages := map[string]bool{}
	require.NoError(t, filepath.WalkDir("..", func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() && (entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".") && entry.Name() != "..") {
			if err == nil {
				err = filepath.SkipDir
			}
			return err
		}
		folder := "github.com/dagrun/dagrun" + strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "..")
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || !pattern.MatchString(folder) {
			return nil
		}
		packages[folder] = true
		if _, tested := parallel[filepath.ToSlash(path)]; tested {
			return nil
		}
		file, err := parser.ParseFile(files, path, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s: a goroutine in a package that .ci/run calls sequential", files.Position(n.Pos()))
			case *ast.ImportSpec:
				if slices.Contains([]string{`"sync/atomic"`, `"golang.org/x/sync/errgroup"`}, n.Path.Value) {
					t.Errorf("%s: %s in a package that .ci/run calls sequential", files.Position(n.Pos()), n.Path.Value)
				}
			case *ast.SelectorExpr:
				if from, ok := n.X.(*ast.Ident); ok && from.Name == "sync" && n.Sel.Name != "Pool" {
					t.Errorf("%s: sync.%s in a package that .ci/run calls sequential", files.Position(n.Pos()), n.Sel.Name)
				}
			}
			return true
		})
		return nil
	}))
	for _, must := range []string{"dag", "planner", "planner/proof", "internal/ptx"} {
		require.True(t, packages["github.com/dagrun/dagrun/"+must], "%s is looked at", must)
	}
}
