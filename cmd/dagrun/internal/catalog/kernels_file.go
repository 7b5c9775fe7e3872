// dagrun kernels FILE: the kernels of a file of CUDA C or compiled code, and the lines that launch them.

package catalog

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/session"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/source"
)

// fileFlags are the flags that control how the file is compiled.
type fileFlags struct {
	include, define []string
	compiler        string
}

// fileKernel is a kernel of a file in JSON.
type fileKernel struct {
	Name      string                   `json:"name"`
	Signature string                   `json:"signature"`
	Place     string                   `json:"place,omitempty"`
	Template  []string                 `json:"template,omitempty"`
	Arguments []session.ArgumentAccess `json:"arguments"`
	Atomics   string                   `json:"float_atomics,omitempty"`
	Shared    *int64                   `json:"shared_bytes,omitempty"`
	Registers int                      `json:"registers,omitempty"`
	Entry     string                   `json:"entry,omitempty"`
	Launched  []fileLaunch             `json:"launched,omitempty"`
	Problem   string                   `json:"problem,omitempty"`
	Paste     string                   `json:"paste,omitempty"`
}

// fileLaunch is a launch by the file's own host code in JSON.
type fileLaunch struct {
	Text  string `json:"text"`
	Place string `json:"place"`
}

// fileVariable is a variable of a file in JSON.
type fileVariable struct {
	Name     string `json:"name"`
	Place    string `json:"place,omitempty"`
	DType    string `json:"dtype,omitempty"`
	Bytes    int64  `json:"bytes,omitempty"`
	Constant bool   `json:"constant,omitempty"`
	Paste    string `json:"paste"`
}

func newFileVariable(module string, s *dag.Symbol) fileVariable {
	v := fileVariable{Name: s.Name, Place: s.Place, Bytes: s.Bytes, Constant: s.Constant}
	dtype, shape := "DTYPE", "SHAPE"
	if s.DType != dag.InvalidDType {
		dtype = s.DType.String()
		v.DType = dtype
		if s.Bytes > 0 {
			shape = fmt.Sprint(s.Bytes / s.DType.Size())
		}
	}
	v.Paste = fmt.Sprintf("%s: {place: device, symbol: %s.%s, dtype: %s, shape: [%s]}", notName.ReplaceAllString(s.Name, "_"), module, s.Name, dtype, shape)
	return v
}

func (u *Commands) listFile(ctx context.Context, path string, own *fileFlags) error {
	module := dag.Module{Name: moduleName(path), Path: filepath.Base(path), Compiler: own.compiler}
	for _, folder := range own.include {
		if folder, err := filepath.Abs(folder); err == nil {
			module.Include = append(module.Include, folder)
		}
	}
	for _, d := range own.define {
		name, value, _ := strings.Cut(d, "=")
		module.Define = append(module.Define, dag.Definition{Name: name, Value: value})
	}
	library, err := u.ModuleOpener(ctx, filepath.Dir(path))(module)
	if err != nil {
		return err
	}
	list, note, wrong := library.(*source.Module).List(ctx)
	if wrong != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var documents []fileKernel
	for i := range list {
		documents = append(documents, newFileKernel(module.Name, &list[i]))
	}
	var variables []fileVariable
	for _, s := range library.(*source.Module).Symbols() {
		variables = append(variables, newFileVariable(module.Name, &s))
	}
	if u.Flags.Output == "json" {
		document := struct {
			Version   int            `json:"version"`
			Command   string         `json:"command"`
			File      string         `json:"file"`
			Kernels   []fileKernel   `json:"kernels"`
			Variables []fileVariable `json:"variables,omitempty"`
			Note      string         `json:"note,omitempty"`
			Error     string         `json:"error,omitempty"`
		}{cli.JSONVersion, "kernels", path, documents, variables, note, ""}
		if wrong != nil {
			document.Error = wrong.Error()
		}
		if err := u.Answer(document); err != nil {
			return err
		}
	} else {
		u.printFile(path, &module, documents, variables, note)
	}
	if wrong != nil {
		return cli.WithStatus(cli.StatusWrong, wrong)
	}
	return nil
}

var notName = regexp.MustCompile(`[^A-Za-z0-9_]+`)

// moduleName is a name for the module of a file.
func moduleName(path string) string {
	base := filepath.Base(path)
	name := strings.Trim(notName.ReplaceAllString(strings.TrimSuffix(base, filepath.Ext(base)), "_"), "_")
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "m" + name
	}
	return name
}

func newFileKernel(module string, k *source.Info) fileKernel {
	d := fileKernel{Name: k.Name, Signature: k.Signature, Place: k.Place, Template: k.Template, Arguments: []session.ArgumentAccess{}, Atomics: k.FloatAtomics,
		Registers: k.Registers, Entry: k.Entry, Problem: k.Problem}
	if k.Shared >= 0 {
		d.Shared = &k.Shared
	}
	for i := range k.Params {
		p := &k.Params[i]
		arg := session.ArgumentAccess{Name: p.Name, Why: p.Code.Why}
		if arg.Name == "" {
			arg.Name = fmt.Sprint(i + 1)
		}
		switch {
		case p.Code.Decided && p.Code.Mode != 0:
			arg.Mode, arg.Access = p.Code.Mode.String(), dag.Proved.String()
			if p.Code.Mode == dag.Write {
				arg.Why = "never read; inout if a launch keeps some of it"
			}
		case p.Code.Decided && (p.Buffer || p.Size == 8):
			arg.Mode, arg.Access = dag.Untouched.String(), dag.Proved.String()
		case p.Buffer && p.Mode != 0:
			arg.Mode, arg.Access = p.Mode.String(), dag.Declared.String()
		default:
			continue // a number, or unknown
		}
		d.Arguments = append(d.Arguments, arg)
	}
	for _, l := range k.Launched {
		d.Launched = append(d.Launched, fileLaunch{l.Text, l.Place})
	}
	if k.Problem == "" {
		d.Paste = pasted(module, k)
	}
	return d
}

// pasted is the line that launches a kernel. What must be filled in is the parameter's name.
func pasted(module string, k *source.Info) string {
	name := module + "." + k.Name
	if strings.ContainsAny(name, "(,<") {
		name = fmt.Sprintf("%q", name)
	}
	template, grid, block := "", "GRID", "BLOCK"
	launched := proposed(k)
	if k.Template != nil {
		template = ", template: [" + strings.Join(templateArguments(k, &launched), ", ") + "]"
	}
	if launched.Grid != nil {
		grid = numbersPasted(launched.Grid)
	}
	if launched.Block != nil {
		block = numbersPasted(launched.Block)
	}
	var args []string
	named := true
	for i := range k.Params {
		named = named && k.Params[i].Name != ""
	}
	for i := range k.Params {
		p := &k.Params[i]
		if p.Within > 0 { // is pasted with its structure
			continue
		}
		value := p.Name
		if value == "" {
			value = fmt.Sprintf("arg%d", i+1)
		}
		value = bufferPasted(p, value)
		if number := launched.Values[p.Name]; number != "" && !p.Buffer && p.Struct == nil {
			value = number
		}
		if p.Texture || p.Code.Fetch.Seen {
			value = texturePasted(p, value)
		}
		if p.Struct != nil {
			pointer := func(offset int32, name string) string {
				for j := range k.Params {
					if m := &k.Params[j]; m.Within == int32(i)+1 && m.Offset == offset {
						return bufferPasted(m, name)
					}
				}
				return name
			}
			value = "{struct: " + structPasted(p.Struct, 0, pointer) + "}"
		}
		if named {
			value = p.Name + ": " + value
		}
		args = append(args, value)
	}
	open, end := "{", "}"
	if !named || len(args) == 0 {
		open, end = "[", "]"
	}
	text := fmt.Sprintf("- {name: %s, kernel: %s%s, args: %s%s%s, grid: [%s], block: [%s]", notName.ReplaceAllString(k.Name, "_"), name, template, open,
		strings.Join(args, ", "), end, grid, block)
	if launched.Shared != "" {
		text += ", shared: " + numbersPasted([]string{launched.Shared})
	}
	return text + "}"
}

// numbersPasted are expressions in a list in braces or brackets.
func numbersPasted(list []string) string {
	var all []string
	for _, text := range list {
		if strings.Contains(text, ",") {
			text = fmt.Sprintf("%q", text)
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// proposed is the first launch of a kernel in its file, and of a template the first whose arguments are known.
func proposed(k *source.Info) (launched source.Launched) {
	for _, l := range k.Launched {
		if k.Template == nil || len(l.Template) > 0 {
			return l
		}
	}
	if len(k.Launched) > 0 {
		return k.Launched[0]
	}
	return launched
}

// templateArguments are those of a launch, and names of parameters for the rest.
func templateArguments(k *source.Info, launched *source.Launched) []string {
	args := slices.Clone(k.Template)
	copy(args, launched.Template)
	return args
}

// texturePasted is a texture, whose size must be filled in where the code reads it by coordinates.
func texturePasted(p *dag.KernelParam, name string) string {
	if p.Code.Fetch.Dimensions == 1 {
		return "{texture: " + name + "}"
	}
	return "{texture: " + name + ", width: WIDTH, height: HEIGHT}"
}

// bufferPasted says that a buffer is only read, or only written, where the code shows it. Whether a launch writes all of it, as {out: ...} declares,
// check finds out of small launches, and the CPU device of all.
func bufferPasted(p *dag.KernelParam, name string) string {
	switch known := p.Code.Decided && p.Mode != dag.Read; {
	case p.Code.Decided && p.Code.Mode == 0 && p.Buffer && !p.Texture:
		return fmt.Sprintf("{unused: %s}", name)
	case known && p.Code.Mode == dag.Read && p.Buffer:
		return fmt.Sprintf("{in: %s}", name)
	case known && p.Code.Mode == dag.Write:
		return fmt.Sprintf("{out: %s}", name)
	}
	return name
}

// structPasted is a structure's members in their order. It is at an offset in the argument.
func structPasted(s *dag.Structure, offset int32, pointer func(offset int32, name string) string) string {
	var members []string
	for k := range s.Members {
		m := &s.Members[k]
		element := func(i int32, name string) string {
			switch at := offset + m.Offset + i*m.Size(); {
			case m.Struct != nil:
				return structPasted(m.Struct, at, pointer)
			case m.Mode != 0:
				return pointer(at, name)
			}
			return name
		}
		if m.Count == 0 || m.Struct == nil && m.Mode == 0 {
			members = append(members, element(0, m.Name))
			continue
		}
		var list []string
		for i := range m.Count {
			list = append(list, element(i, fmt.Sprintf("%s%d", m.Name, i)))
		}
		members = append(members, "["+strings.Join(list, ", ")+"]")
	}
	return "[" + strings.Join(members, ", ") + "]"
}

func (u *Commands) printFile(path string, m *dag.Module, list []fileKernel, variables []fileVariable, note string) {
	_ = u.Stdout.Printf("%s: %s\n", u.Paint(u.Stdout, cli.Bold, path), cli.Counted(len(list), "kernel"))
	if note != "" {
		_ = u.Stdout.Printf("not compiled, so what the code does is not known: %s\n", note)
	}
	for _, k := range list {
		place := ""
		if k.Place != "" {
			place = "  (" + k.Place + ")"
		}
		_ = u.Stdout.Printf("\n%s%s\n", u.Paint(u.Stdout, cli.Bold, k.Signature), place)
		if k.Problem != "" {
			_ = u.Stdout.Printf("  %s %s\n", u.Paint(u.Stdout, cli.Red, "cannot be launched:"), k.Problem)
			continue
		}
		var parts []string
		for _, arg := range k.Arguments {
			text := fmt.Sprintf("%s %s (%s)", arg.Name, arg.Mode, arg.Access)
			if arg.Why != "" {
				text = fmt.Sprintf("%s %s (%s: %s)", arg.Name, arg.Mode, arg.Access, arg.Why)
			}
			parts = append(parts, text)
		}
		if len(parts) > 0 {
			_ = u.Stdout.Printf("  access   %s\n", strings.Join(parts, ", "))
		}
		if k.Atomics != "" {
			_ = u.Stdout.Printf("  adds floats atomically (%s): its results may differ in the last bits from run to run\n", k.Atomics)
		}
		var takes []string
		if k.Shared != nil {
			takes = append(takes, fmt.Sprintf("%d bytes of static shared memory", *k.Shared))
		}
		if k.Registers > 0 {
			takes = append(takes, fmt.Sprintf("%d registers", k.Registers))
		}
		if len(takes) > 0 {
			_ = u.Stdout.Printf("  takes    %s\n", strings.Join(takes, ", "))
		}
		for _, l := range k.Launched {
			_ = u.Stdout.Printf("  launched %s (%s)\n", l.Text, l.Place)
		}
		_ = u.Stdout.Printf("  paste    %s\n", k.Paste)
	}
	for i, v := range variables {
		if i == 0 {
			_ = u.Stdout.Printf("\n%s, which launches share\n", u.Paint(u.Stdout, cli.Bold, "variables"))
		}
		place := ""
		if v.Place != "" {
			place = "  (" + v.Place + ")"
		}
		_ = u.Stdout.Printf("  paste    %s%s\n", v.Paste, place)
	}
	build := ""
	if len(m.Include) > 0 {
		build += ", include: [" + strings.Join(m.Include, ", ") + "]"
	}
	if len(m.Define) > 0 {
		var all []string
		for _, d := range m.Define {
			all = append(all, d.Name+": "+d.Value)
		}
		build += ", define: {" + strings.Join(all, ", ") + "}"
	}
	if m.Compiler != "" {
		build += ", compiler: " + m.Compiler
	}
	_ = u.Stdout.Printf("\nmodules:\n  %s: {source: %s%s}\n", m.Name, filepath.ToSlash(path), build)
}
