// Tests of the topics of dagrun help: they cover the whole language, and fit a terminal.

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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
