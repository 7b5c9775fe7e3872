// Progress: one line on a terminal while a command takes longer than a second. Also remembers how far the command came, for the
// message of a timeout.

package cli

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/runtime"
)

// Stages in which the device works.
const (
	StageReplay  = "replay" // replays are counted in it
	StageMeasure = "measure"
)

const (
	progressAfter = time.Second // shorter commands show no progress
	progressEvery = 100 * time.Millisecond
)

// Progress follows a command through its stages. Its methods may be called from any goroutine.
type Progress struct {
	w     *Sink
	mu    sync.Mutex
	stage string
	first int // done when the stage began: learning counts its replays
	done  int
	total int
	since time.Time // when the stage began
	spent []spent   // in the stages before
	shown bool      // the line is on the terminal
	stop  chan struct{}
	ended sync.WaitGroup
}

func newProgress(w *Sink) *Progress { return &Progress{w: w} }

// Begin starts painting if there is a terminal.
func (p *Progress) Begin() {
	if p.stop != nil || !terminal(p.w) || os.Getenv("TERM") == "dumb" {
		return
	}
	p.stop = make(chan struct{})
	p.ended.Add(1)
	go p.paint(time.Now())
}

// BeginUntil starts painting, and stops it for good before the first output: lines of a long output would be broken by the progress line.
func (p *Progress) BeginUntil(output *Sink) {
	p.Begin()
	output.once = p.End
}

// Report has the signature of runtime.Options.Progress.
func (p *Progress) Report(stage string, done, total int) {
	p.mu.Lock()
	if p.stage != stage {
		p.leave()
		p.stage, p.first, p.since = stage, done, time.Now()
	}
	p.done, p.total = done, total
	p.mu.Unlock()
}

// spent is the time in all stages that begin with the same word: "initialise x" and "initialise y".
type spent struct {
	word string
	took time.Duration
}

// leave adds the time in the current stage to what was spent. The caller holds mu.
func (p *Progress) leave() {
	word, _, _ := strings.Cut(p.stage, " ")
	if word == "" {
		return
	}
	took := time.Since(p.since)
	for k := range p.spent {
		if p.spent[k].word == word {
			p.spent[k].took += took
			return
		}
	}
	p.spent = append(p.spent, spent{word, took})
}

// Times returns what took how long, by the first word of each stage, as attributes for the log. It ends the current stage.
func (p *Progress) Times() []any {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leave()
	p.stage = ""
	var attrs []any
	for _, s := range p.spent {
		attrs = append(attrs, s.word, s.took.Round(10*time.Microsecond))
	}
	return attrs
}

func (p *Progress) paint(began time.Time) {
	defer p.ended.Done()
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	for {
		select {
		case <-p.stop:
			return
		case now := <-ticker.C:
			if now.Sub(began) < progressAfter {
				continue
			}
			p.mu.Lock()
			text := words.Line(progressText(p.stage, p.first, p.done, p.total, now.Sub(p.since)))
			if file := p.w.file(); file != nil {
				if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
					text = words.Cut(text, width-1)
				}
			}
			_ = p.w.text.WriteTrusted("\r\x1b[K" + text) // failing to show progress is no error
			p.shown = true
			p.mu.Unlock()
		}
	}
}

// progressText is "replay 1200/10000, 2400/s, 4s left". first were done before the stage began.
func progressText(stage string, first, done, total int, took time.Duration) string {
	if total <= 0 {
		return fmt.Sprintf("%s, %s", stage, took.Round(time.Second))
	}
	text := fmt.Sprintf("%s %d/%d", stage, done, total)
	if done <= first || took < progressEvery {
		return text
	}
	rate := float64(done-first) / took.Seconds()
	left := time.Duration(float64(total-done) / rate * float64(time.Second))
	return fmt.Sprintf("%s, %.3g/s, %s left", text, rate, left.Round(time.Second))
}

// Clear removes the line; the next tick paints it again.
func (p *Progress) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		_ = p.w.text.WriteTrusted("\r\x1b[K")
		p.shown = false
	}
}

// End stops painting.
func (p *Progress) End() {
	if p.stop != nil {
		close(p.stop)
		p.ended.Wait()
		p.stop = nil
	}
	p.Clear()
}

// node returns the node that runs alone, "" if none does.
func (p *Progress) node() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if name, alone := strings.CutPrefix(p.stage, runtime.StageNode); alone {
		return name
	}
	return ""
}

// onDevice reports whether the command is waiting for its device.
func (p *Progress) onDevice() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stage == StageReplay || p.stage == StageMeasure || p.stage == runtime.StageLearn || strings.HasPrefix(p.stage, runtime.StageNode)
}

// Where returns how far the command came: "after 12 of 100 replays", "at load library".
func (p *Progress) Where() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.stage == "":
		return "before anything ran"
	case strings.HasPrefix(p.stage, runtime.StageNode):
		return fmt.Sprintf("while node %q ran alone, after %d of %s", strings.TrimPrefix(p.stage, runtime.StageNode), p.done, Counted(p.total, "replay"))
	case p.stage == StageReplay:
		return fmt.Sprintf("after %d of %s", p.done, Counted(p.total, "replay"))
	case p.total > 0:
		return fmt.Sprintf("at %s %d of %d", p.stage, p.done, p.total)
	}
	return "at " + p.stage
}

// Duration formats microseconds for people: 3.21 us, 47.1 us, 1.25 ms, 12.3 s.
func Duration(us float64) string {
	switch {
	case us < 1e3:
		return fmt.Sprintf("%.3g us", us)
	case us < 1e6:
		return fmt.Sprintf("%.3g ms", us/1e3)
	}
	return fmt.Sprintf("%.4g s", us/1e6)
}

// Counted is a number with its noun: "1 node", "2 nodes".
func Counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
