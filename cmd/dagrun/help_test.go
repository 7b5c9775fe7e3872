// Tests of the topics of dagrun help: they cover the whole language, and fit a terminal.

package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
)

func TestTopicsFitATerminal(t *testing.T) {
	for _, topic := range topics {
		text, ok := topicText(topic.name)
		require.True(t, ok, topic.name)
		require.True(t, strings.HasSuffix(text, "\n"), topic.name)
		for line := range strings.Lines(text) {
			require.LessOrEqual(t, len(line), 101, "%s: %s", topic.name, line)
		}
	}
}

func TestTopicNamesEveryFunction(t *testing.T) {
	text, _ := topicText("expressions")
	for _, name := range expr.Functions(false) {
		require.Contains(t, text, name+"(", name)
	}
	_, elementwise, _ := strings.Cut(text, "In map: expressions")
	for _, name := range expr.Functions(true) {
		require.True(t, strings.Contains(text, name+"(") || strings.Contains(elementwise, name), name)
	}
}

// The topic of the format names every key and every fixed word of the schema, or another topic does.
func TestTopicsNameEveryKey(t *testing.T) {
	var texts strings.Builder
	for _, topic := range topics {
		text, _ := topicText(topic.name)
		texts.WriteString(text)
	}
	vectors := regexp.MustCompile(`^(b?f|i|u)\d+x[234]$`) // one stands for all
	var schema any
	require.NoError(t, json.Unmarshal([]byte(dagrun.Schema()), &schema))
	names := map[string]bool{}
	var walk func(v any, named bool)
	walk = func(v any, named bool) {
		switch v := v.(type) {
		case map[string]any:
			for key, inner := range v {
				names[key] = names[key] || named
				walk(inner, key == "properties" && !named)
			}
		case []any:
			for _, inner := range v {
				walk(inner, false)
			}
		}
	}
	walk(schema, false)
	for _, d := range dag.DTypes() {
		names[d] = !vectors.MatchString(d)
	}
	checked := 0
	for name, wanted := range names {
		if wanted {
			checked++
			require.Regexp(t, `\b`+regexp.QuoteMeta(name)+`\b`, texts.String(), "no topic of dagrun help has %q", name)
		}
	}
	require.Greater(t, checked, 70)
}
