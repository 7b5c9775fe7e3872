// Frees what one replay in flight has taken.

package engine

import (
	"context"
	"errors"

	"github.com/dagrun/dagrun/cudart"
)

// close frees in the reverse order of creation. A poisoned context refuses every call; that error was reported when it happened.
func (in *instance) close() error {
	err := in.strip()
	if in.memory == nil {
		return err
	}
	if closeErr := in.memory.close(); !errors.Is(closeErr, cudart.ErrPoisoned) {
		err = errors.Join(err, closeErr)
	}
	return err
}

// strip waits for an instance's work and frees everything but its memory.
func (in *instance) strip() error {
	in.run.end(ErrClosed)
	var errs []error
	note := func(err error) {
		if err != nil && !errors.Is(err, cudart.ErrPoisoned) {
			errs = append(errs, err)
		}
	}
	for _, s := range in.streams {
		note(s.Synchronize(context.Background()))
	}
	if in.graph != nil {
		note(in.graph.Close())
	}
	for _, c := range in.controls {
		if c != nil {
			c.strip(note)
		}
	}
	if in.list != nil {
		note(in.list.Close())
	}
	events := append(append(append([]cudart.Event{}, in.events...), in.join...), in.borders...)
	for _, e := range append(events, in.fork, in.begin, in.end) {
		if e != nil {
			note(e.Close())
		}
	}
	for i, s := range in.streams {
		if i > 0 || !in.adopted {
			note(s.Close())
		}
	}
	return errors.Join(errs...)
}

// strip frees what a loop or branch has. Its stream has no more work by then.
func (c *control) strip(note func(error)) {
	for _, body := range c.bodies {
		note(body.in.strip())
	}
	if c.test != nil {
		note(c.test.Close())
	}
	for _, memory := range []cudart.Ptr{c.memory, c.shared} {
		if memory != 0 {
			note(c.platform.Free(memory))
		}
	}
	if c.counts != nil {
		c.counts.close(c.platform, note)
	}
}
