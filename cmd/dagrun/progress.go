// Progress: one line on a terminal for what takes longer than a second, gone when it is done. Also remembers how far a command
// came, for what a timeout says.

package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// stageReplay is the stage in which replays are counted.
const stageReplay = "replay"

const (
	progressAfter = time.Second // before that nobody wonders
	progressEvery = 100 * time.Millisecond
)

// progress follows a command through its stages. Its methods may be called from any goroutine.
type progress struct {
	w     io.Writer
	mu    sync.Mutex
	stage string
	done  int
	total int
	since time.Time // when the stage began
	shown bool      // the line is on the terminal
	stop  chan struct{}
	ended sync.WaitGroup
}

func newProgress(w io.Writer) *progress { return &progress{w: w} }

// begin starts painting where there is a terminal to paint on.
func (p *progress) begin() {
	if p.stop != nil || !terminal(p.w) || os.Getenv("TERM") == "dumb" {
		return
	}
	p.stop = make(chan struct{})
	p.ended.Add(1)
	go p.paint(time.Now())
}

// report has the form that the runtime calls.
func (p *progress) report(stage string, done, total int) {
	p.mu.Lock()
	if p.stage != stage {
		p.stage, p.since = stage, time.Now()
	}
	p.done, p.total = done, total
	p.mu.Unlock()
}

func (p *progress) paint(began time.Time) {
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
			text := progressText(p.stage, p.done, p.total, now.Sub(p.since))
			if file, ok := p.w.(*os.File); ok {
				if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 && len(text) >= width {
					text = text[:width-1]
				}
			}
			fmt.Fprint(p.w, "\r\x1b[K"+text)
			p.shown = true
			p.mu.Unlock()
		}
	}
}

// progressText is "replay 1200/10000, 2400/s, 4s left".
func progressText(stage string, done, total int, took time.Duration) string {
	if total <= 0 {
		return fmt.Sprintf("%s, %s", stage, took.Round(time.Second))
	}
	text := fmt.Sprintf("%s %d/%d", stage, done, total)
	if done == 0 || took < progressEvery {
		return text
	}
	rate := float64(done) / took.Seconds()
	left := time.Duration(float64(total-done) / rate * float64(time.Second))
	return fmt.Sprintf("%s, %.3g/s, %s left", text, rate, left.Round(time.Second))
}

// clear takes the line away; the next tick paints it again.
func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = false
	}
}

// end stops painting.
func (p *progress) end() {
	if p.stop != nil {
		close(p.stop)
		p.ended.Wait()
		p.stop = nil
	}
	p.clear()
}

// where says how far the command came: "after 12 of 100 replays", "at load library".
func (p *progress) where() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.stage == "":
		return "before anything ran"
	case p.stage == stageReplay:
		return fmt.Sprintf("after %d of %s", p.done, counted(p.total, "replay"))
	case p.total > 0:
		return fmt.Sprintf("at %s %d of %d", p.stage, p.done, p.total)
	}
	return "at " + p.stage
}
