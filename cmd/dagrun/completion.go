// Shell completion: the words that a shell offers while the user types. Shells ask the command itself, through the hidden __complete.

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/pictures"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/running"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/file"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/effort"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/spread"
)

// largestCompleted is how much of a pipeline file is read for the names of its params: a shell should not pause.
const largestCompleted = 4 << 20

// completes gives every command and every flag of the tree its completion.
func (a *app) completes(root *cobra.Command) {
	for _, c := range append(root.Commands(), root) {
		if c.ValidArgsFunction == nil {
			c.ValidArgsFunction = cli.OnePipeline
		}
		completions := a.flagCompletions()
		c.Flags().VisitAll(func(f *pflag.Flag) {
			complete := completions[f.Name]
			if complete == nil && !takesFile(f) {
				complete = cobra.NoFileCompletions
			}
			if complete == nil {
				return
			}
			if err := c.RegisterFlagCompletionFunc(f.Name, complete); err != nil {
				panic(err) // a flag registered twice: a bug in this file
			}
		})
	}
}

// takesFile reports whether the value of a flag is a file, by the word that its help has for the value.
func takesFile(f *pflag.Flag) bool {
	word, _ := pflag.UnquoteUsage(f)
	return word == "file" || word == "compiler"
}

// flagCompletions says what the values of flags may be. Of the others, those that take a file offer any file, and the rest nothing.
func (a *app) flagCompletions() map[string]cobra.CompletionFunc {
	fixed := func(choices ...string) cobra.CompletionFunc {
		return cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp)
	}
	return map[string]cobra.CompletionFunc{
		"param":     a.params,
		"load":      a.boundFiles,
		"save":      a.boundFiles,
		"strategy":  fixed(planner.Strategies()...),
		"compare":   a.compared,
		"effort":    fixed(effort.Names()...),
		"machine":   machines,
		"backend":   fixed("auto", "cuda", "cpu", "cpu:2", "cpu:4"),
		"graph":     fixed(flags.GraphAuto, flags.GraphOn, flags.GraphOff, flags.GraphBuilt, flags.GraphCaptured),
		"output":    fixed("text", "json"),
		"color":     fixed("auto", "always", "never"),
		"memory":    fixed("arena", "separate"),
		"format":    fixed(pictures.FormNames()...),
		"axis":      fixed("time", "level"),
		"plan":      filesWith(".json"),
		"profile":   filesWith(".json"),
		"spill":     fixed(flags.SpillAuto, flags.SpillOff),
		"spread":    fixed(spread.Policies()...),
		"devices":   fixed("all"),
		"learn":     fixed(flags.LearnAuto, flags.LearnOff, flags.LearnAgain),
		"overlap":   fixed(flags.GraphAuto, flags.GraphOn, flags.GraphOff),
		"sanitize":  fixed(flags.SanitizeAuto, flags.SanitizeFull, flags.SanitizeFast, flags.SanitizeOff),
		"verify":    fixed(running.VerifyResults, running.VerifyNodes),
		"against":   strategiesAndPlans,
		"include":   folders,
		"cache-dir": folders,
	}
}

func filesWith(extensions ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return cli.PathsWith(typed, extensions...)
	}
}

// params completes -p with the params of the pipeline file on the command line: their names, and then the default of the one named.
func (a *app) params(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	source := completedFile(args)
	if source == nil {
		return nil, directive
	}
	params, _ := file.Params(source, args[0]) // those that could be read, even if others are wrong
	var offered []string
	for _, p := range params {
		value := p.Value.String()
		if name, _, named := strings.Cut(typed, "="); !named {
			offered = append(offered, cobra.CompletionWithDesc(p.Name+"=", value+" unless given"))
		} else if name == p.Name {
			offered = append(offered, p.Name+"="+value)
		}
	}
	return offered, directive
}

// completedFile returns the pipeline file on a command line that is being completed, nil if there is none that can be read quickly.
func completedFile(args []string) []byte {
	if len(args) == 0 {
		return nil
	}
	info, err := os.Stat(args[0])
	if err != nil || !info.Mode().IsRegular() || info.Size() > largestCompleted {
		return nil
	}
	source, err := os.ReadFile(args[0])
	if err != nil {
		return nil
	}
	return source
}

// boundFiles completes --load and --save: the host buffers of the pipeline file, and then files.
func (a *app) boundFiles(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if name, path, named := strings.Cut(typed, "="); named {
		paths, directive := cli.PathsWith(path, ".npy", ".bin")
		for k := range paths {
			paths[k] = name + "=" + paths[k]
		}
		return paths, directive
	}
	const directive = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	source := completedFile(args)
	if source == nil {
		return nil, directive
	}
	buffers, _ := file.Buffers(source, file.Options{Name: args[0]}) // those that could be read, even if others are wrong
	var offered []string
	for k := range buffers {
		if b := &buffers[k]; b.Place == dag.Host {
			offered = append(offered, cobra.CompletionWithDesc(b.Name+"=", fmt.Sprintf("%s %v", b.DType, b.Shape)))
		}
	}
	return offered, directive
}

// compared completes dot's --compare: strategies separated by commas. plan's takes no value.
func (a *app) compared(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	before := typed[:strings.LastIndex(typed, ",")+1]
	var offered []string
	for _, s := range planner.Strategies() {
		if !slices.Contains(strings.Split(before, ","), s) {
			offered = append(offered, before+s)
		}
	}
	return offered, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// strategiesAndPlans completes --against.
func strategiesAndPlans(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	files, directive := cli.PathsWith(typed, ".json")
	return append(planner.Strategies(), files...), directive
}

// folders completes the name of a folder.
func folders(_ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// machines completes --machine: the built-in ones and files.
func machines(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	files, directive := cli.PathsWith(typed, ".json")
	if typed == "" || !strings.ContainsAny(typed, "/.") {
		return append(model.MachineNames(), files...), cobra.ShellCompDirectiveNoFileComp
	}
	return files, directive
}

// completionExamples are the lines that turn completion on, for each shell that cobra writes a script for.
var completionExamples = map[string]string{
	"bash": `  source <(dagrun completion bash)   # this shell
  echo 'source <(dagrun completion bash)' >> ~/.bashrc   # every new shell`,
	"zsh": `  source <(dagrun completion zsh)   # this shell, after: autoload -U compinit && compinit
  dagrun completion zsh > "${fpath[1]}/_dagrun"   # every new shell`,
	"fish": `  dagrun completion fish | source   # this shell
  dagrun completion fish > ~/.config/fish/completions/dagrun.fish   # every new shell`,
	"powershell": `  dagrun completion powershell | Out-String | Invoke-Expression   # this shell; in $PROFILE, every new shell`,
}

// explainCompletion replaces the help of cobra's completion commands with our own.
func (a *app) explainCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() != "completion" {
			continue
		}
		c.Use = "completion SHELL"
		c.Short = "Write the script that completes dagrun's command lines in a shell"
		c.Long = "Write the script that lets the Tab key complete commands, files, flags and their values, params and kernels in one\nof these shells. Each line turns completion on:"
		for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
			c.Long += "\n\n" + shell + ":\n" + completionExamples[shell]
		}
		for _, shell := range c.Commands() {
			shell.Short = "Write the script for " + shell.Name()
			shell.Long, shell.Example = "", completionExamples[shell.Name()]
			shell.RunE = a.writeCompletion
			a.OutputFlags(shell)
		}
	}
}

// writeCompletion prints the script of a shell, or its JSON document.
func (a *app) writeCompletion(c *cobra.Command, _ []string) error {
	if err := a.CheckFlags(c); err != nil {
		return err
	}
	bare, err := c.Flags().GetBool("no-descriptions")
	if err != nil {
		return err
	}
	var text bytes.Buffer
	switch root := c.Root(); {
	case c.Name() == "bash":
		err = writeBash(root, &text, !bare)
	case c.Name() == "zsh" && bare:
		err = root.GenZshCompletionNoDesc(&text)
	case c.Name() == "zsh":
		err = root.GenZshCompletion(&text)
	case c.Name() == "fish":
		err = root.GenFishCompletion(&text, !bare)
	case bare:
		err = root.GenPowerShellCompletion(&text)
	default:
		err = root.GenPowerShellCompletionWithDesc(&text)
	}
	if err != nil {
		return err
	}
	if a.Flags.Output == "json" {
		return a.Answer(textReport{cli.JSONVersion, "completion", c.Name(), text.String()})
	}
	_, err = a.Stdout.Document().Write(text.Bytes())
	return err
}

// bashParts replaces what cobra's script for bash calls in the package bash-completion, which many machines don't have.
var bashParts = [][2]string{
	{"_get_comp_words_by_ref \"$@\" cur prev words cword\n}\n", `__dagrun_words
}

# Bash splits the line at = and : too. This joins such words again if no space is between them.
__dagrun_words()
{
    local line=$COMP_LINE at=0 begun=0 last="" word space i
    words=()
    for ((i = 0; i < ${#COMP_WORDS[@]}; i++)); do
        word=${COMP_WORDS[i]}
        space=${line%%[^[:space:]]*}
        if [[ $i -gt 0 && -z $space && ( $word == [=:]* || $last == *[=:] ) ]]; then
            words[${#words[@]}-1]+=$word
        else
            begun=$((at + ${#space}))
            words+=("$word")
        fi
        if ((i == COMP_CWORD)); then
            cword=$((${#words[@]} - 1)) cur=""
            if ((COMP_POINT > begun)); then cur=${COMP_LINE:begun:COMP_POINT-begun}; fi
        fi
        line=${line#"$space$word"}
        at=$((at + ${#space} + ${#word})) last=$word
    done
}

__dagrun_folders()
{
    if [[ $(type -t compopt) == builtin ]]; then compopt -o filenames; fi
    IFS=$'\n' read -ra COMPREPLY -d '' < <(compgen -d -- "${cur}")
}
`},
	{"_filedir -d", "__dagrun_folders"},
}

// writeBash writes the script for bash so that it works without the package bash-completion.
func writeBash(root *cobra.Command, to io.Writer, descriptions bool) error {
	var script strings.Builder
	if err := root.GenBashCompletionV2(&script, descriptions); err != nil {
		return err
	}
	text := script.String()
	for _, part := range bashParts {
		if !strings.Contains(text, part[0]) {
			return fmt.Errorf("cobra's script for bash has no %q", part[0])
		}
		text = strings.ReplaceAll(text, part[0], part[1])
	}
	_, err := io.WriteString(to, text)
	return err
}
