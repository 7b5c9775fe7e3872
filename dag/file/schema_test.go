// Tests that schema and parser agree: both accept every good file, and testdata/bad/schema.txt lists the bad files that a schema
// refuses. A schema cannot see encodings, duplicate keys, values of expressions and names that are not declared.

package file

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

// schemaAccepts reports whether a file passes the schema; readable is false if it is not valid YAML.
func schemaAccepts(t *testing.T, schema *jsonschema.Schema, source []byte) (accepted, readable bool) {
	t.Helper()
	var value any
	if yaml.Unmarshal(source, &value) != nil {
		return false, false
	}
	return schema.Validate(textKeys(value)) == nil, true
}

// textKeys turns every key into a string, as editors do before they apply a schema: a buffer may be named 0.
func textKeys(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			v[key] = textKeys(inner)
		}
	case map[any]any:
		keyed := make(map[string]any, len(v))
		for key, inner := range v {
			keyed[fmt.Sprint(key)] = textKeys(inner)
		}
		return keyed
	case []any:
		for k := range v {
			v[k] = textKeys(v[k])
		}
	}
	return value
}

func TestSchemaAgrees(t *testing.T) {
	schema, err := jsonschema.Compile("../../dagrun.schema.json")
	require.NoError(t, err)
	require.Equal(t, jsonschema.Draft7, schema.Draft)
	for _, pattern := range []string{"testdata/good/*.yaml", "../../pipelines/*.yaml"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			source, err := os.ReadFile(file)
			require.NoError(t, err)
			var value any
			require.NoError(t, yaml.Unmarshal(source, &value), file)
			require.NoError(t, schema.Validate(value), file)
		}
	}
	files, err := filepath.Glob("testdata/bad/*.yaml")
	require.NoError(t, err)
	var seen, unseen []string
	for _, file := range files {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		switch accepted, readable := schemaAccepts(t, schema, source); {
		case !readable:
		case accepted:
			unseen = append(unseen, name)
		default:
			seen = append(seen, name)
		}
	}
	slices.Sort(seen)
	slices.Sort(unseen)
	expect(t, "testdata/bad/schema.txt", "seen by the schema:\n"+strings.Join(seen, "\n")+"\n\nnot seen:\n"+strings.Join(unseen, "\n")+"\n")
}
