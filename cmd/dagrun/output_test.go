// Tests that every key of the JSON documents that commands print is documented.

package main

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/catalog"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/editing"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/measuring"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/planning"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/recordings"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/running"
)

func TestEveryKeyIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/json.md")
	require.NoError(t, err)
	seen := map[reflect.Type]bool{}
	keys := 0
	var walk func(at string, typ reflect.Type)
	walk = func(at string, typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || seen[typ] {
			return
		}
		seen[typ] = true
		for i := range typ.NumField() {
			field := typ.Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name == "-" {
				continue
			}
			if name != "" {
				keys++
				require.Contains(t, string(page), "`"+name+"`", "key %s of %s is not in docs/json.md", name, at)
			}
			if name != "" || field.Anonymous {
				walk(at+"."+field.Name, field.Type)
			}
		}
	}
	for _, document := range []any{cli.ErrorDocument{}, running.RunReport{}, planning.Checked{}, planning.Explained{}, measuring.BenchReport{}, measuring.SweepReport{}, measuring.TuneReport{}, catalog.CacheReport{}, measuring.TraceReport{}, recordings.RecordedTrace{}, recordings.RecordedKernels{}, editing.FormatReport{}, catalog.KernelDocument{}, catalog.DevicesReport{}} {
		walk(reflect.TypeOf(document).Name(), reflect.TypeOf(document))
	}
	require.Greater(t, keys, 100)
}
