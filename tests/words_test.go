// Tests that sizes are formatted in one place: no other package formats numbers of bytes with units.

package tests

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sizeFormat matches a format that prints a number with a unit of bytes, such as "%.1f GiB", and sizeUnit a unit by itself.
var (
	sizeFormat = regexp.MustCompile(`%[-+# 0-9.*]*[a-z] ?[KMGTPE]i?B\b`)
	sizeUnit   = regexp.MustCompile("^[\"`] ?[KMGTPE]i?B[\"`]$")
)

func TestOnlyOnePackagePrintsSizes(t *testing.T) {
	homes := map[string]bool{}
	walkSources(t, func(file, _ string, _ []string) {
		if strings.HasSuffix(file, "_test.go") {
			return
		}
		fileSet := token.NewFileSet()
		parsed, err := parser.ParseFile(fileSet, filepath.Join("..", file), nil, 0)
		require.NoError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING || !sizeFormat.MatchString(literal.Value) && !sizeUnit.MatchString(literal.Value) {
				return true
			}
			switch name := filepath.ToSlash(file); name {
			case "internal/words/words.go", "cmd/dagrun/internal/flags/size.go": // the second one reads sizes
				homes[name] = true
			default:
				t.Errorf("%s:%d formats a size: %s; use words.Bytes", name, fileSet.Position(literal.Pos()).Line, literal.Value)
			}
			return true
		})
	})
	require.Len(t, homes, 2)
}

func TestFormatsOfSizesAreRecognised(t *testing.T) {
	for literal, want := range map[string]bool{
		`"%.1f GiB used"`: true, `"%d MiB that can be read"`: true, "`%5.2fKB`": true, `"MiB"`: true, "` GB`": true,
		`"%s of %s used"`: false, `"such as 4GiB"`: false, `"GB/s"`: false, `"%d MBytes"`: false, `"B"`: false,
	} {
		require.Equal(t, want, sizeFormat.MatchString(literal) || sizeUnit.MatchString(literal), literal)
	}
}
