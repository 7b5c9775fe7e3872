// dagrun help: for commands, and for topics that concern several commands.

package main

import (
	"embed"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
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
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.CheckFlags(c); err != nil {
				return err
			}
			return a.helped(root, args)
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return helpNames(root), cobra.ShellCompDirectiveNoFileComp
		},
	}
	a.OutputFlags(c)
	return c
}

// helped prints the help of a command or a topic, or its JSON document.
func (a *app) helped(root *cobra.Command, args []string) error {
	name, text := strings.Join(args, " "), ""
	topic, isTopic := topicText(name)
	c, rest, err := root.Find(args)
	isCommand := err == nil && len(rest) == 0 && (c != root || name == "")
	switch {
	case isTopic && isCommand: // kernels is both
		text = topic + "\n" + a.helpText(c)
	case isTopic:
		text = topic
	case isCommand:
		text = a.helpText(c)
	default:
		return fmt.Errorf("there is no command and no topic %q%s", name, flags.Hint(flags.DidYouMean(name, helpNames(root)), "; see dagrun help"))
	}
	if a.Flags.Output == "json" {
		return a.Answer(textReport{cli.JSONVersion, "help", name, text})
	}
	_, err = fmt.Fprint(a.Stdout, text)
	return err
}

// helpText is what -h prints.
func (a *app) helpText(c *cobra.Command) string {
	var text strings.Builder
	c.InitDefaultHelpFlag()
	c.SetOut(&text)
	defer c.SetOut(a.Stdout)
	_ = c.Help() // a builder cannot fail
	return text.String()
}

// textReport is the JSON document of help and completion.
type textReport struct {
	Version int    `json:"version"`
	Command string `json:"command"`
	Name    string `json:"name"` // of the command, topic or shell
	Text    string `json:"text"`
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
