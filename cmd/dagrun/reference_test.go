// The reference pages of docs/ that are made from the code: commands with their flags, exit statuses, kernels. The tests fail if a page is out
// of date; DAGRUN_UPDATE_SCRIPTS=1 writes the pages again.

package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/kernels"
)

const generated = "<!-- Generated; `DAGRUN_UPDATE_SCRIPTS=1 go test ./cmd/dagrun` writes it again. -->\n\n"

// requirePage compares a page of docs/ with what the code says, or writes it.
func requirePage(t *testing.T, name, want string) {
	t.Helper()
	path := "../../docs/" + name
	if os.Getenv("DAGRUN_UPDATE_SCRIPTS") != "" {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o666))
	}
	have, err := os.ReadFile(path)
	require.NoError(t, err)
	have = bytes.ReplaceAll(have, []byte("\r\n"), []byte("\n"))
	if string(have) == want {
		return
	}
	lines, wanted := strings.Split(string(have), "\n"), strings.Split(want, "\n")
	k := 0
	for k < min(len(lines), len(wanted)) && lines[k] == wanted[k] {
		k++
	}
	t.Fatalf("docs/%s is out of date from line %d on; DAGRUN_UPDATE_SCRIPTS=1 go test ./cmd/dagrun writes it again", name, k+1)
}

// documentedCommands are all commands that help lists, dagrun FILE first.
func documentedCommands() []*cobra.Command {
	root := newApp(bytes.NewReader(nil), &bytes.Buffer{}, &bytes.Buffer{}).command()
	root.InitDefaultHelpCmd()
	all := []*cobra.Command{root}
	for _, c := range root.Commands() {
		if !c.Hidden {
			all = append(all, c)
		}
	}
	return all
}

func anchor(text string) string { return strings.ReplaceAll(strings.ToLower(text), " ", "-") }

// cell escapes text for a cell of a Markdown table.
func cell(text string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "<", "&lt;").Replace(text)
}

func TestCommandsPage(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Commands\n\n" + generated)
	b.WriteString("`dagrun help COMMAND` prints the same in a terminal. The output of `--output json` is described in [OUTPUT.md](../cmd/dagrun/OUTPUT.md).\n\n| command | what it does |\n|---|---|\n")
	all := documentedCommands()
	require.Greater(t, len(all), 15)
	for _, c := range all {
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s |\n", c.CommandPath(), anchor(c.CommandPath()), cell(c.Short))
	}
	b.WriteString("\n## Exit status\n\n| status | meaning |\n|---|---|\n")
	for _, s := range statuses {
		fmt.Fprintf(&b, "| %d | %s |\n", s.status, s.text)
	}
	for _, c := range all {
		use := c.UseLine()
		long := c.Long
		if long == "" {
			long = c.Short
		}
		fmt.Fprintf(&b, "\n## %s\n\n```text\n%s\n\n%s\n```\n", c.CommandPath(), use, strings.TrimSpace(long))
		if c.Example != "" {
			b.WriteString("\nExamples:\n\n```sh\n")
			for line := range strings.Lines(c.Example) {
				command, comment, _ := strings.Cut(strings.TrimSpace(line), "  ")
				if comment = strings.TrimSpace(comment); comment != "" && !strings.HasPrefix(comment, "#") {
					comment = "# " + comment
				}
				b.WriteString(strings.TrimRight(fmt.Sprintf("%-75s  %s", command, comment), " ") + "\n")
			}
			b.WriteString("```\n")
		}
		rows := ""
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden || f.Name == "help" {
				return
			}
			placeholder, usage := pflag.UnquoteUsage(f)
			name := "--" + f.Name
			if f.Shorthand != "" {
				name = "-" + f.Shorthand + ", " + name
			}
			switch {
			case f.Value.Type() == "bool" || f.NoOptDefVal == "true":
			case f.NoOptDefVal != "":
				name += "[=" + strings.TrimPrefix(placeholder, "=") + "]"
			case placeholder != "":
				name += " " + placeholder
			}
			preset := f.DefValue
			if preset == "false" || preset == "[]" || preset == "0" && f.Value.Type() != "int" {
				preset = ""
			}
			rows += fmt.Sprintf("| `%s` | %s | %s |\n", strings.ReplaceAll(name, "|", "\\|"), cell(usage), cell(preset))
		})
		if rows != "" {
			b.WriteString("\n| flag | meaning | default |\n|---|---|---|\n" + rows)
		}
	}
	requirePage(t, "commands.md", b.String())
}

func TestKernelsPage(t *testing.T) {
	var b strings.Builder
	b.WriteString("# The kernels of the library\n\n" + generated)
	b.WriteString("`dagrun kernels` lists them and `dagrun kernels NAME` describes one; `dagrun help kernels` explains how a node calls one. `T` is the element\n" +
		"type, and each kernel names the types that it has. `S` is the type that `T` is computed in, `X` and `Y` are types of their own. An extent is how\nmany elements of a buffer a launch touches; it is checked against the slice. \"Operations\" is what the planner takes a launch to\ncompute, and a launch moves the bytes of its extents (those of `inout` twice). Every version computes the same bits on the CPU and on a GPU.\n\n")
	docs := kernels.Docs()
	sorted := slices.Clone(docs)
	slices.SortFunc(sorted, func(a, b kernels.Doc) int { return strings.Compare(a.Name, b.Name) })
	for k, d := range sorted {
		if k > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "[`%s`](#%s)", d.Name, anchor(d.Name))
	}
	b.WriteString("\n")
	for _, d := range docs {
		fmt.Fprintf(&b, "\n## %s\n\n", d.Name)
		text := d.Text
		if d.Alias != "" {
			text += " (also called `" + d.Alias + "`)"
		}
		b.WriteString(words.Line(text) + "\n\n")
		var args []string
		if len(d.Params) > 0 {
			b.WriteString("| argument | type | access | elements or range |\n|---|---|---|---|\n")
		}
		for _, p := range d.Params {
			args = append(args, p.Name)
			access, size := "", p.Range
			if p.Buffer {
				access, size = p.Mode.String(), "`"+p.Extent+"`"
				if p.Tile {
					size += ", also a tile"
				}
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", p.Name, p.Type, access, size)
		}
		if len(d.Params) > 0 {
			b.WriteString("\n")
		}
		if types := d.Types(); len(types) > 0 {
			fmt.Fprintf(&b, "Element types: %s. ", strings.Join(types, ", "))
		}
		if d.Flops != "" {
			fmt.Fprintf(&b, "Operations: `%s`. ", d.Flops)
		}
		fmt.Fprintf(&b, "In a file: `{name: my_%s, kernel: %s, args: [%s]}`\n", d.Name, d.Name, strings.Join(args, ", "))
	}
	requirePage(t, "kernels.md", b.String())
}

// The table in OUTPUT.md has the same statuses as the code.
func TestOutputPageHasEveryStatus(t *testing.T) {
	page, err := os.ReadFile("OUTPUT.md")
	require.NoError(t, err)
	for _, s := range statuses {
		require.Contains(t, strings.ReplaceAll(string(page), "`", ""), fmt.Sprintf("| %d | %s |\n", s.status, s.text))
	}
}
