// dagrun kernels FILE, where the file is a recording of a program: the kernels that ran, and what is known of them.

package recordings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/internal/recording"
	recorded "github.com/dagrun/dagrun/internal/recording/kernels"
	"github.com/dagrun/dagrun/internal/recording/order"
	"github.com/dagrun/dagrun/internal/words"
)

// RecordedKernels is the JSON document of kernels for a recording.
type RecordedKernels struct {
	Version   int               `json:"version"`
	Command   string            `json:"command"`
	File      string            `json:"file"`
	Program   []string          `json:"program"`
	Processes int               `json:"processes"`
	Cut       bool              `json:"cut"`
	Kernels   []recorded.Kernel `json:"kernels"`
}

// ListRecorded lists the kernels of all processes of a recording.
func (u *Recordings) ListRecorded(name string) error {
	archive, err := u.OpenRecording(name)
	if err != nil {
		return err
	}
	defer archive.Close()
	document := RecordedKernels{Version: cli.JSONVersion, Command: "kernels", File: cli.ShownName(name), Program: archive.Command,
		Processes: archive.Processes(), Cut: archive.Cut}
	var processes []*recording.Process
	for k := range archive.Processes() {
		p, err := archive.Process(k)
		if err != nil {
			return cli.WithStatus(cli.StatusWrong, err)
		}
		processes = append(processes, p)
		document.Cut = document.Cut || p.Cut
	}
	if document.Program == nil && len(processes) > 0 { // parts, which do not know what was started
		document.Program = processes[0].Command
	}
	if document.Kernels, err = recorded.Of(processes, order.PlaceText); err != nil {
		return cli.WithStatus(cli.StatusWrong, fmt.Errorf("%s: %w", cli.ShownName(name), err))
	}
	if u.Flags.Output == "json" {
		return u.Answer(document)
	}
	return u.printRecorded(&document)
}

func (u *Recordings) printRecorded(d *RecordedKernels) error {
	launches := 0
	for k := range d.Kernels {
		launches += d.Kernels[k].Launches
	}
	of := ""
	if d.Processes > 1 {
		of = fmt.Sprintf(" of %d processes", d.Processes)
	}
	err := u.Stdout.Printf("%s: %s: %s, %s%s\n", u.Paint(u.Stdout, cli.Bold, d.File), strings.Join(d.Program, " "), cli.Counted(len(d.Kernels), "kernel"),
		launchCount(launches), of)
	if d.Cut {
		err = u.Stdout.Printf("the recording is not whole\n")
	}
	for k := range d.Kernels {
		u.printRecordedKernel(&d.Kernels[k])
	}
	return err
}

func launchCount(n int) string {
	if n == 1 {
		return "1 launch"
	}
	return fmt.Sprintf("%d launches", n)
}

// mostListed is how many shapes or places of a kernel are printed, and longestKernel how many columns of a name; JSON has all.
const (
	mostListed    = 4
	longestKernel = 200
)

func (u *Recordings) printRecordedKernel(k *recorded.Kernel) {
	name := k.Demangled
	if name == "" {
		name = "a kernel whose name is not in the recording"
	}
	_ = u.Stdout.Printf("\n%s\n", u.Paint(u.Stdout, cli.Bold, words.Cut(words.Line(name), longestKernel)))
	line := func(what, text string) { _ = u.Stdout.Printf("  %-9s %s\n", what, text) }
	launches := launchCount(k.Launches)
	if k.InGraphs > 0 {
		launches += fmt.Sprintf(", %d of them in graphs", k.InGraphs)
	}
	line("ran", fmt.Sprintf("%s; %d measured", launches, k.Measured))
	list := func(what string, texts []string) {
		if more := len(texts) - mostListed; more > 0 {
			texts = append(slices.Clone(texts[:mostListed]), fmt.Sprintf("%d more", more))
		}
		line(what, strings.Join(texts, ", "))
	}
	var shapes, places []string
	for _, s := range k.Shapes {
		shapes = append(shapes, shapeText(&s)+times(s.Launches, k.Launches))
	}
	for _, p := range k.Places {
		places = append(places, p.Where+times(p.Launches, k.Launches))
	}
	list("shape", shapes)
	list("from", places)
	if k.Measured > 0 || k.Read > 0 || k.Written > 0 || k.Updated > 0 {
		text := fmt.Sprintf("%s read, %s written", words.Bytes(int64(k.Read)), words.Bytes(int64(k.Written)))
		if k.Updated > 0 {
			text += fmt.Sprintf(", %s updated atomically", words.Bytes(int64(k.Updated)))
		}
		line("measured", text)
	}
	for _, reason := range k.Unknown {
		line("unknown", reason.Why+times(reason.Launches, k.Launches))
	}
	for _, p := range k.Parameters {
		line("pointer", pointerText(&p))
	}
	if k.Registers > 0 { // no kernel takes none: it is not known
		line("takes", fmt.Sprintf("%s of a thread, %s of static shared memory", cli.Counted(int(k.Registers), "register"), words.Bytes(int64(k.Shared))))
	}
}

// times says how many launches something is about, where it is not about all of them.
func times(launches, all int) string {
	if launches == all {
		return ""
	}
	return fmt.Sprintf(" (%d)", launches)
}

func shapeText(s *recorded.Shape) string {
	extent := func(v [3]uint32) string {
		text := fmt.Sprint(v[0])
		if v[1] > 1 || v[2] > 1 {
			text += fmt.Sprintf("x%d", v[1])
		}
		if v[2] > 1 {
			text += fmt.Sprintf("x%d", v[2])
		}
		return text
	}
	text := "grid " + extent(s.Grid) + " block " + extent(s.Block)
	if s.Cluster[0] > 0 {
		text += " cluster " + extent(s.Cluster)
	}
	if s.Shared > 0 {
		text += " with " + words.Bytes(int64(s.Shared)) + " of shared memory"
	}
	return text
}

// pointerText says what a parameter pointed into and what became of that.
func pointerText(p *recorded.Parameter) string {
	at := fmt.Sprintf("parameter %d", p.Index)
	switch {
	case p.Index < 0:
		at = fmt.Sprintf("byte %d of the parameters", p.Offset)
	case p.Offset > 0:
		at += fmt.Sprintf(", byte %d", p.Offset)
	}
	var did []string
	for _, mode := range []struct {
		what     string
		launches int
	}{{"read", p.Read}, {"written", p.Written}, {"updated atomically", p.Updated}, {"untouched", p.Untouched}, {"not known", p.Unknown}} {
		if mode.launches > 0 {
			did = append(did, mode.what+times(mode.launches, p.Launches))
		}
	}
	return fmt.Sprintf("%s, into %s of %s: %s%s", at, article(p.Memory), words.Bytes(int64(p.Bytes)), strings.Join(did, ", "), pointing(p))
}

func pointing(p *recorded.Parameter) string {
	if p.Launches == 1 {
		return ""
	}
	return fmt.Sprintf(" (%d launches)", p.Launches)
}

func article(noun string) string {
	if noun == "" {
		return "memory"
	}
	if strings.Contains("aeiou", noun[:1]) {
		return "an " + noun
	}
	return "a " + noun
}
