// dagrun dot FILE, where the file is a recording of a program.

package main

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/internal/recording/picture"
)

// drawCaptured draws plans of a captured graph.
func (a *app) drawCaptured(ctx context.Context, name string, own *pictureFlags) error {
	known, err := a.knownGraphs(name)
	if err != nil {
		return err
	}
	if err := a.chooseNetwork(ctx, name, known, &replanFlags{}); err != nil {
		return err
	}
	return a.draw(ctx, a.Network.Graph(), own)
}

// drawRecording draws what the program did. Of several processes it is the one with a race, or else the one with the most calls.
func (a *app) drawRecording(ctx context.Context, name string, own *pictureFlags) error {
	if form, err := own.form(); own.before || own.after || own.axis != "" || err == nil && form != "svg" && (own.format != "" || own.out != "") {
		return errors.New("a recording is drawn as SVG, with -o FILE.svg and --boxes only; with --compare recorded,auto it is its captured graph that is drawn")
	}
	archive, err := a.openRecording(name)
	if err != nil {
		return err
	}
	defer archive.Close()
	shown, err := showProcess(archive, name)
	if err != nil {
		return err
	}
	drawn, err := picture.New(shown.Process, shown.report, own.most)
	if err != nil {
		return cli.WithStatus(cli.StatusWrong, err)
	}
	answer := pictureReport{Version: cli.JSONVersion, Command: "dot", Name: cli.ShownName(name), Format: "svg"}
	switch {
	case own.out != "" && own.out != "-":
		answer.File = own.out
		err = a.Write(ctx, own.out, func(w io.Writer) error { return drawn.WriteSVG(w) })
	case a.Flags.Output == "json":
		var text strings.Builder
		err = drawn.WriteSVG(&text)
		answer.Text = text.String()
	default:
		return drawn.WriteSVG(a.Stdout.Document())
	}
	if err != nil || a.Flags.Output != "json" {
		return err
	}
	return a.Answer(answer)
}
