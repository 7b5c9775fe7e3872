// The embedded schema is the file at the root, and names what it describes.

package dagrun_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun"
)

func TestSchemaIsJSON(t *testing.T) {
	require.True(t, json.Valid([]byte(dagrun.Schema())))
}

func ExampleSchema() {
	var schema struct{ Title string }
	if err := json.Unmarshal([]byte(dagrun.Schema()), &schema); err != nil {
		panic(err)
	}
	fmt.Println(schema.Title)
	// Output: dagrun pipeline, version 1
}
