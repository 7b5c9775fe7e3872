// The reference pages of docs/ that are made from the code: commands with their flags, exit statuses, kernels. The tests fail if a page is out
// of date; DAGRUN_UPDATE_SCRIPTS=1 writes the pages again.

package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/kernels/library"
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

// severalCommands are as many as must have a flag, with the same words, for the page to list it once for all.
const severalCommands = 2

// documentedFlag is an item of a list of flags.
type documentedFlag struct{ name, shown, usage, preset string }

func (f documentedFlag) item() string {
	preset := ""
	if f.preset != "" {
		preset = " (default: " + f.preset + ")"
	}
	return fmt.Sprintf("- `%s`: %s\n", f.shown, cell(f.usage+preset))
}

// flagsOf returns the flags of a command's own that help lists.
func flagsOf(c *cobra.Command) (flags []documentedFlag) {
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		placeholder, usage := pflag.UnquoteUsage(f)
		shown := "--" + f.Name
		if f.Shorthand != "" {
			shown = "-" + f.Shorthand + ", " + shown
		}
		switch {
		case f.Value.Type() == "bool" || f.NoOptDefVal == "true":
		case f.NoOptDefVal != "":
			shown += "[=" + strings.TrimPrefix(placeholder, "=") + "]"
		case placeholder != "":
			shown += " " + placeholder
		}
		preset := f.DefValue
		if preset == "false" || preset == "[]" || preset == "0" && f.Value.Type() != "int" {
			preset = ""
		}
		flags = append(flags, documentedFlag{f.Name, shown, usage, preset})
	})
	return flags
}

// sharedFlags returns the flags that several commands have with the same words, by name.
func sharedFlags(commands []*cobra.Command) []documentedFlag {
	having := map[documentedFlag]int{}
	for _, c := range commands {
		for _, f := range flagsOf(c) {
			having[f]++
		}
	}
	maps.DeleteFunc(having, func(_ documentedFlag, commands int) bool { return commands < severalCommands })
	return slices.SortedFunc(maps.Keys(having), func(a, b documentedFlag) int { return strings.Compare(a.name, b.name) })
}

// flagGroup is the flags that the same commands have.
type flagGroup struct {
	commands string
	flags    []documentedFlag
}

// byCommands groups shared flags by the commands that have them, those of most commands first.
func byCommands(commands []*cobra.Command, shared []documentedFlag) []flagGroup {
	var groups []flagGroup
	sizes := map[string]int{}
	for _, f := range shared {
		var having, lacking []string
		for _, c := range commands {
			if slices.Contains(flagsOf(c), f) {
				having = append(having, c.Name())
			} else if c.Name() != "completion" {
				lacking = append(lacking, c.Name())
			}
		}
		names := strings.Join(having, ", ")
		if len(lacking) < 2 {
			names = "all but " + strings.Join(append(lacking, "completion"), " and ")
		}
		sizes[names] = len(having)
		k := slices.IndexFunc(groups, func(g flagGroup) bool { return g.commands == names })
		if k < 0 {
			k, groups = len(groups), append(groups, flagGroup{commands: names})
		}
		groups[k].flags = append(groups[k].flags, f)
	}
	slices.SortStableFunc(groups, func(a, b flagGroup) int { return sizes[b.commands] - sizes[a.commands] })
	return groups
}

func TestCommandsPage(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Commands\n\n" + generated)
	b.WriteString("`dagrun help COMMAND` prints the same in a terminal. A command also has the [flags of several commands](#flags-of-several-commands) that are below its name there; `dagrun FILE` has those of `run`.\n" +
		"[json.md](json.md) describes `--output json`.\n\n")
	all := documentedCommands()
	require.Greater(t, len(all), 15)
	for _, c := range all {
		fmt.Fprintf(&b, "- [`%s`](#%s): %s\n", c.Name(), anchor(c.CommandPath()), cell(c.Short))
	}
	b.WriteString("\n## Exit status\n\n")
	for _, s := range cli.Statuses {
		fmt.Fprintf(&b, "- %d: %s\n", s.Status, s.Text)
	}
	shared := sharedFlags(all)
	b.WriteString("\n## Flags of several commands\n")
	for _, group := range byCommands(all[1:], shared) {
		fmt.Fprintf(&b, "\n%s:\n\n", group.commands)
		for _, f := range group.flags {
			b.WriteString(f.item())
		}
	}
	for _, c := range all {
		use := c.UseLine()
		long := c.Long
		if long == "" {
			long = c.Short
		}
		long = strings.TrimSuffix(strings.TrimSpace(long), strings.TrimSpace(cli.StatusText())) // which the page lists
		fmt.Fprintf(&b, "\n## %s\n\n```text\n%s\n\n%s\n```\n", c.CommandPath(), use, strings.TrimSuffix(strings.TrimSpace(long), " Exit status:"))
		if c.Example != "" {
			b.WriteString("\n```sh\n")
			for line := range strings.Lines(c.Example) {
				command, comment, _ := strings.Cut(strings.TrimSpace(line), "  ")
				if comment = strings.TrimSpace(comment); comment != "" && !strings.HasPrefix(comment, "#") {
					comment = "# " + comment
				}
				b.WriteString(strings.TrimRight(fmt.Sprintf("%-60s  %s", command, comment), " ") + "\n")
			}
			b.WriteString("```\n")
		}
		items := ""
		for _, f := range flagsOf(c) {
			if !slices.Contains(shared, f) {
				items += f.item()
			}
		}
		if items != "" {
			b.WriteString("\n" + items)
		}
	}
	requirePage(t, "commands.md", b.String())
}

func TestKernelsPage(t *testing.T) {
	var b strings.Builder
	b.WriteString("# The kernels of the library\n\n" + generated +
		"`dagrun kernels NAME` describes one: what each argument is, what it reads and writes, how many elements a launch touches, and limits (`T` is the element type, `S` the type that it is computed in). `dagrun help kernels` says how a node calls it:\n" +
		"`{name: my_scale, kernel: scale, args: [n, 2.0, d_x, d_y]}`. *Floats* are f16, bf16, f32 and f64. Every version computes the same bits on the CPU and on a GPU.\n\n" +
		"| kernel and arguments | what it does | types |\n|---|---|---|\n")
	for _, d := range library.Docs() {
		var args []string
		for _, p := range d.Params {
			args = append(args, p.Name)
		}
		text := words.Line(d.Text)
		if d.Alias != "" {
			text += " (also called `" + d.Alias + "`)"
		}
		fmt.Fprintf(&b, "| `%s(%s)` | %s | %s |\n", d.Name, cell(strings.Join(args, ", ")), cell(text), strings.Replace(typesText(d.Types()), "f16, bf16, f32, f64", "floats", 1))
	}
	requirePage(t, "kernels.md", b.String())
}

// typesText lists the choices of types of a kernel. Where every type of one argument goes with every type of the others, it lists them by argument.
func typesText(choices []string) string {
	var names []string
	types := map[string][]string{}
	for _, choice := range choices {
		for part := range strings.FieldsSeq(choice) {
			name, typ, several := strings.Cut(part, ":")
			if !several {
				return strings.Join(choices, ", ")
			}
			if types[name] == nil {
				names = append(names, name)
			}
			if !slices.Contains(types[name], typ) {
				types[name] = append(types[name], typ)
			}
		}
	}
	together := 1
	var texts []string
	for _, name := range names {
		together *= len(types[name])
		texts = append(texts, name+" "+strings.Join(types[name], " "))
	}
	if together != len(choices) {
		return strings.Join(choices, ", ")
	}
	return strings.Join(texts, "; ")
}
