// dagrun kernels [NAME or FILE]: the library's kernels, or those of a file, and how to call them.

package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/session"
	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/kernels/calls"
	"github.com/dagrun/dagrun/kernels/library"
)

func (u *Commands) KernelsCommand() *cobra.Command {
	var own fileFlags
	c := &cobra.Command{
		Use:   "kernels [NAME or FILE]",
		Short: "List the library's kernels, describe one, or list those of a file",
		Long: `List the kernels that come with dagrun, and the functions of NVIDIA's libraries that pipelines may
call. With a NAME, describe that one: its arguments, what it reads and writes, its element types.

With a FILE of CUDA C, PTX or compiled code, list its kernels: signatures, what they do with their
arguments, shared memory, registers, and the lines to paste into a pipeline.

With a recording, list the kernels that ran: how often, in which shapes and from where, and how much
they were measured to read and write of what.`,
		Example: `  dagrun kernels
  dagrun kernels gemm
  dagrun kernels pipelines/add2.cu
  dagrun kernels infer.rec                         a recording of dagrun record
  dagrun kernels --output json | jq -r .kernels[].name`,
		Args: flags.AtMost(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := u.CheckFlags(c); err != nil {
				return err
			}
			if len(args) == 1 && recording.Recognize(args[0]) {
				if err := cli.OnlyFlags(c, args[0]); err != nil {
					return err
				}
				return u.Recordings.ListRecorded(args[0])
			}
			if len(args) == 1 && session.IsModule(args[0]) {
				return u.listFile(c.Context(), args[0], &own)
			}
			if len(args) == 1 {
				return u.describeKernel(args[0])
			}
			return u.listKernels()
		},
		ValidArgsFunction: oneKernel,
	}
	u.OutputFlags(c)
	c.Flags().StringArrayVarP(&own.include, "include", "I", nil, "look for headers of the FILE in this `folder`")
	c.Flags().StringArrayVarP(&own.define, "define", "D", nil, "define a macro for the FILE, as `NAME=VALUE`")
	c.Flags().StringVar(&own.compiler, "compiler", "", "`compiler` for the FILE: auto, nvrtc, nvcc or clang")
	return c
}

// KernelDocument is a kernel in JSON.
type KernelDocument struct {
	Name      string          `json:"name"`
	Alias     string          `json:"alias,omitempty"`
	Text      string          `json:"text"`
	Signature string          `json:"signature"`
	Types     []string        `json:"types"`
	Flops     string          `json:"flops,omitempty"`
	Params    []paramDocument `json:"params"`
	Entries   []string        `json:"entries"`
}

type paramDocument struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Access string `json:"access,omitempty"` // "in", "out" or "inout" of a buffer
	Extent string `json:"extent,omitempty"` // elements of a buffer
	Range  string `json:"range,omitempty"`  // of a number
	Tile   bool   `json:"tile,omitempty"`   // the buffer may be a tile
}

func newKernelDocument(d library.Doc) KernelDocument {
	k := KernelDocument{Name: d.Name, Alias: d.Alias, Text: d.Text, Signature: d.Signature(), Types: d.Types(), Flops: d.Flops, Params: []paramDocument{}}
	if k.Types == nil {
		k.Types = []string{}
	}
	for _, p := range d.Params {
		document := paramDocument{Name: p.Name, Type: p.Type, Extent: p.Extent, Range: p.Range, Tile: p.Tile}
		if p.Buffer {
			document.Access = p.Mode.String()
		}
		k.Params = append(k.Params, document)
	}
	for _, v := range d.Variants {
		k.Entries = append(k.Entries, v.Entry)
	}
	return k
}

func (u *Commands) listKernels() error {
	docs := library.Docs()
	if u.Flags.Output == "json" {
		document := struct {
			Version int              `json:"version"`
			Command string           `json:"command"`
			Kernels []KernelDocument `json:"kernels"`
			Calls   []callDocument   `json:"calls"`
		}{Version: cli.JSONVersion, Command: "kernels", Calls: callDocuments()}
		for _, d := range docs {
			document.Kernels = append(document.Kernels, newKernelDocument(d))
		}
		return u.Answer(document)
	}
	table := cli.NewTable("kernel", "arguments", "what it does")
	for _, d := range docs {
		name := d.Name
		if d.Alias != "" {
			name += ", " + d.Alias
		}
		var names []string
		for _, p := range d.Params {
			names = append(names, p.Name)
		}
		table.Row(name, strings.Join(names, ", "), d.Text)
	}
	if err := table.Write(u.Stdout, u.LineWidth()); err != nil {
		return err
	}
	if err := u.listCalls(); err != nil {
		return err
	}
	if u.Flags.Quiet {
		return nil
	}
	_, err := fmt.Fprintf(u.Stdout, "\n%s; dagrun kernels NAME shows types and sizes\n", cli.Counted(len(docs), "kernel"))
	return err
}

func (u *Commands) describeKernel(name string) error {
	if known, err := u.describeCall(name); known {
		return err
	}
	names := callNames()
	for _, d := range library.Docs() {
		if d.Name != name && (d.Alias != name || name == "") {
			names = append(names, d.Name)
			if d.Alias != "" {
				names = append(names, d.Alias)
			}
			continue
		}
		if u.Flags.Output == "json" {
			return u.Answer(struct {
				Version int    `json:"version"`
				Command string `json:"command"`
				KernelDocument
			}{cli.JSONVersion, "kernels", newKernelDocument(d)})
		}
		return u.printKernel(d)
	}
	if near := flags.DidYouMean(name, names); near != "" || !strings.ContainsAny(name, "./\\") {
		return fmt.Errorf("unknown kernel %q%s", name, flags.Hint(near, "; dagrun kernels lists all"))
	}
	return fmt.Errorf("%q is no kernel, and no file of kernels: those end in %s", name, words.List(session.ModuleExtensions, "or"))
}

func (u *Commands) printKernel(d library.Doc) error {
	title := d.Name
	if d.Alias != "" {
		title += " (or " + d.Alias + ")"
	}
	_ = u.Stdout.Printf("%s: %s\n\n", u.Paint(u.Stdout, cli.Bold, title), d.Text)
	table := cli.NewTable("argument", "type", "access", "elements or range")
	args := make([]string, 0, len(d.Params))
	for _, p := range d.Params {
		access, size := "", p.Range
		if p.Buffer {
			access, size = p.Mode.String(), p.Extent
		}
		if p.Tile {
			size += ", also a tile"
		}
		table.Row(p.Name, p.Type, access, size)
		args = append(args, p.Name)
	}
	if len(d.Params) > 0 {
		if err := table.Write(u.Stdout, u.LineWidth()); err != nil {
			return err
		}
		fmt.Fprintln(u.Stdout)
	}
	if types := d.Types(); len(types) > 0 {
		fmt.Fprintf(u.Stdout, "element types  %s\n", strings.Join(types, ", "))
	}
	if d.Flops != "" {
		fmt.Fprintf(u.Stdout, "operations     %s\n", d.Flops)
	}
	_, err := fmt.Fprintf(u.Stdout, "in a file      - {name: my_%s, kernel: %s, args: [%s]}\n", d.Name, d.Name, strings.Join(args, ", "))
	return err
}

// oneKernel completes the name of a library kernel or of a call, with what it does, or of a file of kernels or a recording.
func oneKernel(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	offered, directive := cli.PathsWith(typed, append(slices.Clone(session.ModuleExtensions), ".rec")...)
	offer := func(name, text string) {
		if name != "" && strings.HasPrefix(name, typed) {
			offered = append(offered, cobra.CompletionWithDesc(name, words.Line(text)))
			directive = cobra.ShellCompDirectiveNoFileComp
		}
	}
	for _, d := range library.Docs() {
		offer(d.Name, d.Text)
		offer(d.Alias, d.Text)
	}
	for _, d := range calls.Docs() {
		offer(d.Name, d.Text)
	}
	return offered, directive
}
