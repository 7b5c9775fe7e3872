// Sizes and widths are worded in one place: no other package writes units of bytes of its own.

package tests

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnlyOnePackagePrintsSizes(t *testing.T) {
	found := 0
	walkSources(t, func(file, _ string, _ []string) {
		if strings.HasSuffix(file, "_test.go") {
			return
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", file), nil, 0)
		require.NoError(t, err)
		units := 0
		ast.Inspect(parsed, func(n ast.Node) bool {
			if literal, ok := n.(*ast.BasicLit); ok && (literal.Value == `"MiB"` || literal.Value == "`MiB`" || strings.HasSuffix(literal.Value, `iB"`) && strings.Contains(literal.Value, "%")) {
				units++
			}
			return true
		})
		if units == 0 {
			return
		}
		switch filepath.ToSlash(file) {
		case "internal/words/words.go":
			found++
		case "cmd/dagrun/flags.go": // which reads sizes
		default:
			t.Errorf("%s writes units of bytes; use words.Bytes", file)
		}
	})
	require.Equal(t, 1, found)
}
