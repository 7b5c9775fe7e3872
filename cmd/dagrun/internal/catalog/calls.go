// dagrun kernels: the part about functions of vendors' libraries.

package catalog

import (
	"fmt"
	"strings"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cudart/libraries"
	"github.com/dagrun/dagrun/kernels/calls"
)

// callDocument is a call in JSON.
type callDocument struct {
	Name      string              `json:"name"`
	Text      string              `json:"text"`
	Notes     string              `json:"notes,omitempty"`
	Signature string              `json:"signature"`
	Types     []string            `json:"types"`
	Params    []callParamDocument `json:"params"`
}

type callParamDocument struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Access string `json:"access,omitempty"`
	Usual  string `json:"default,omitempty"` // where it is left out
}

func newCallDocument(d calls.Doc) callDocument {
	c := callDocument{Name: d.Name, Text: d.Text, Notes: d.Notes, Signature: d.Signature(), Types: d.Types, Params: []callParamDocument{}}
	for _, p := range d.Params {
		c.Params = append(c.Params, callParamDocument(p))
	}
	return c
}

func callDocuments() []callDocument {
	var list []callDocument
	for _, d := range calls.Docs() {
		list = append(list, newCallDocument(d))
	}
	return list
}

func callNames() []string {
	var names []string
	for _, d := range calls.Docs() {
		names = append(names, d.Name)
	}
	return names
}

// listCalls prints a line for each call.
func (u *Commands) listCalls() error {
	table := cli.NewTable("call", "arguments", "what it does")
	for _, d := range calls.Docs() {
		var names []string
		for _, p := range d.Params {
			names = append(names, p.Name)
		}
		table.Row(d.Name, strings.Join(names, ", "), d.Text)
	}
	fmt.Fprintln(u.Stdout)
	return table.Write(u.Stdout, u.LineWidth())
}

// describeCall prints one call, if there is one of that name.
func (u *Commands) describeCall(name string) (known bool, err error) {
	for _, d := range calls.Docs() {
		if d.Name != name {
			continue
		}
		if u.Flags.Output == "json" {
			return true, u.Answer(struct {
				Version int    `json:"version"`
				Command string `json:"command"`
				callDocument
			}{cli.JSONVersion, "kernels", newCallDocument(d)})
		}
		return true, u.printCall(d)
	}
	return false, nil
}

func (u *Commands) printCall(d calls.Doc) error {
	_ = u.Stdout.Printf("%s: %s\n%s\n\n", u.Paint(u.Stdout, cli.Bold, d.Name), d.Text, d.Notes)
	table := cli.NewTable("argument", "what", "access", "if left out")
	var args []string
	for _, p := range d.Params {
		table.Row(p.Name, p.Type, p.Access, p.Usual)
		if p.Usual == "" {
			args = append(args, p.Name+": d_"+p.Name)
		}
	}
	if err := table.Write(u.Stdout, u.LineWidth()); err != nil {
		return err
	}
	fmt.Fprintf(u.Stdout, "\nelement types  %s\n", strings.Join(d.Types, "; "))
	_, short, _ := strings.Cut(d.Name, ".")
	_, err := fmt.Fprintf(u.Stdout, "in a file      - {name: my_%s, call: %s, args: {%s}}\n", short, d.Name, strings.Join(args, ", "))
	return err
}

// libraryDocument is a vendor's library as `dagrun devices` found it, or not.
type libraryDocument struct {
	Library string `json:"library"`           // "cuBLAS"
	Found   string `json:"found,omitempty"`   // its version
	Missing string `json:"missing,omitempty"` // why it cannot be used
}

func foundLibraries() []libraryDocument {
	var list []libraryDocument
	for _, name := range libraries.Names() {
		d := libraryDocument{Library: libraries.Title(name)}
		lib, err := libraries.Open(name)
		if err == nil {
			d.Found, err = lib.Version()
		}
		if err != nil {
			d.Missing = err.Error()
		}
		list = append(list, d)
	}
	return list
}

func (u *Commands) printLibraries(list []libraryDocument) {
	var found, missing []string
	for _, d := range list {
		if d.Missing != "" {
			missing = append(missing, d.Library)
			u.Log.Info(d.Missing)
			continue
		}
		found = append(found, d.Library+" "+d.Found)
	}
	if len(found) > 0 {
		fmt.Fprintf(u.Stdout, "library calls run in %s\n", strings.Join(found, ", "))
	}
	if len(missing) > 0 {
		fmt.Fprintf(u.Stdout, "not found, so their calls only run on the CPU device: %s\n", strings.Join(missing, ", "))
	}
}
