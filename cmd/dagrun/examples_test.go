// Tests of the examples in help pages and in the README: dagrun accepts every command line, and the files exist.

package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

func TestExamplesAreTaken(t *testing.T) {
	root := newApp(bytes.NewReader(nil), &bytes.Buffer{}, &bytes.Buffer{}).command()
	for _, c := range append(root.Commands(), root) {
		if c.Name() == "completion" || c.Name() == "help" {
			continue
		}
		require.NotEmpty(t, c.Example, "%s has no examples", c.CommandPath())
		for line := range strings.Lines(c.Example) {
			requireTaken(t, line)
		}
	}
}

func TestReadmeCommandsAreTaken(t *testing.T) {
	page, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	lines := regexp.MustCompile("`(dagrun [^`]*)`").FindAllSubmatch(page, -1)
	require.Greater(t, len(lines), 5)
	for _, line := range lines {
		requireTaken(t, string(line[1]))
	}
}

// requireTaken parses a line of a shell: the flags of each dagrun in it, and the pipelines that it names.
func requireTaken(t *testing.T, line string) {
	t.Helper()
	line = strings.TrimSpace(line)
	line, _, _ = strings.Cut(line, "   ") // what follows is a comment
	for _, part := range strings.Split(line, "&&") {
		part, _, _ = strings.Cut(part, "|")
		part, _, _ = strings.Cut(part, ">")
		part, _, _ = strings.Cut(part, "<")
		words := strings.Fields(part)
		require.NotEmpty(t, words, line)
		require.Equal(t, "dagrun", words[0], line)
		root := newApp(bytes.NewReader(nil), &bytes.Buffer{}, &bytes.Buffer{}).command()
		root.InitDefaultHelpFlag()
		root.InitDefaultVersionFlag()
		c, rest, err := root.Find(words[1:])
		require.NoError(t, err, line)
		c.InitDefaultHelpFlag()
		require.NoError(t, c.ParseFlags(rest), line)
		requireFiles(t, c, line)
	}
}

func requireFiles(t *testing.T, c *cobra.Command, line string) {
	t.Helper()
	for _, name := range c.Flags().Args() {
		if strings.HasPrefix(name, "pipelines/") && !strings.Contains(name, "*") {
			require.FileExists(t, "../../"+name, line)
		}
	}
}
