// dagrun help: for commands, and for topics that concern several commands.

package main

import (
	"embed"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

//go:embed help/*.txt
var topicTexts embed.FS

// topics are the subjects that help explains besides the commands, in the order in which a newcomer needs them. Their texts are in help/.
var topics = []struct{ name, short string }{
	{"format", "the keys of a pipeline file"},
	{"slices", "parts of buffers, and which dependencies follow from them"},
	{"expressions", "numbers that are computed, and their functions"},
	{"kernels", "calling kernels: the library's, your own, and maps"},
}

func topicText(name string) (string, bool) {
	text, err := topicTexts.ReadFile("help/" + name + ".txt")
	return string(text), err == nil
}

// helpCommand replaces cobra's own, which prints the help of dagrun and returns status 0 for unknown names.
func (a *app) helpCommand(root *cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use:   "help [COMMAND | TOPIC]",
		Short: "Show the help of a command or a topic",
		Long:  "Show the help of a command, or explain a topic:\n" + topicTable(),
		Example: `  dagrun help run
  dagrun help slices`,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return root.Help()
			}
			text, isTopic := topicText(strings.Join(args, " "))
			c, rest, err := root.Find(args)
			isCommand := err == nil && len(rest) == 0 && c != root
			switch {
			case isTopic && isCommand: // kernels is both
				if _, err := fmt.Fprintln(a.stdout, text); err != nil {
					return err
				}
				return c.Help()
			case isTopic:
				_, err := fmt.Fprint(a.stdout, text)
				return err
			case isCommand:
				c.InitDefaultHelpFlag()
				return c.Help()
			}
			name := strings.Join(args, " ")
			return fmt.Errorf("there is no command and no topic %q%s", name, hint(didYouMean(name, helpNames(root)), "; see dagrun help"))
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return helpNames(root), cobra.ShellCompDirectiveNoFileComp
		},
	}
	return c
}

// helpNames are the arguments that help accepts: commands and topics.
func helpNames(root *cobra.Command) []string {
	var names []string
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	for _, t := range topics {
		if t.name != "kernels" { // kernels is already listed as a command
			names = append(names, t.name)
		}
	}
	return names
}

func topicTable() string {
	var b strings.Builder
	for _, t := range topics {
		fmt.Fprintf(&b, "\n  %-12s %s", t.name, t.short)
	}
	return b.String()
}
