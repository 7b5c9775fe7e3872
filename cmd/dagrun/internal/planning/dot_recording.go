// dagrun dot FILE, where the file is a recording of a program.

package planning

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/pictures"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/recordings"
	"github.com/dagrun/dagrun/internal/recording/picture"
)

// drawCaptured draws plans of a captured graph.
func (u *Commands) drawCaptured(ctx context.Context, name string, own *pictures.Flags) error {
	known, err := u.Recordings.KnownGraphs(name)
	if err != nil {
		return err
	}
	if err := u.Recordings.ChooseGraph(ctx, name, known, &recordings.ReplanFlags{}); err != nil {
		return err
	}
	return u.Draw(ctx, u.Captured.Graph(), own)
}

// drawRecording draws what the program did. Of several processes it is the one with a race, or else the one with the most calls.
func (u *Commands) drawRecording(ctx context.Context, name string, own *pictures.Flags) error {
	if form, err := own.Form(); own.Before || own.After || own.Axis != "" || err == nil && form != "svg" && (own.Format != "" || own.Out != "") {
		return errors.New("a recording is drawn as SVG, with -o FILE.svg and --boxes only; with --compare recorded,auto it is its captured graph that is drawn")
	}
	archive, err := u.Recordings.OpenRecording(name)
	if err != nil {
		return err
	}
	defer archive.Close()
	shown, err := recordings.ShowProcess(archive, name)
	if err != nil {
		return err
	}
	drawn, err := picture.New(shown.Process, shown.Report, own.Most)
	if err != nil {
		return cli.WithStatus(cli.StatusWrong, err)
	}
	answer := pictures.Report{Version: cli.JSONVersion, Command: "dot", Name: cli.ShownName(name), Format: "svg"}
	switch {
	case own.Out != "" && own.Out != "-":
		answer.File = own.Out
		err = u.Write(ctx, own.Out, func(w io.Writer) error { return drawn.WriteSVG(w) })
	case u.Flags.Output == "json":
		var text strings.Builder
		err = drawn.WriteSVG(&text)
		answer.Text = text.String()
	default:
		return drawn.WriteSVG(u.Stdout.Document())
	}
	if err != nil || u.Flags.Output != "json" {
		return err
	}
	return u.Answer(answer)
}
