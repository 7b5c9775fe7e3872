// Bodies that begin on another device than the node around them: how their passes follow what was before, and are followed by what comes after.

package engine

import (
	"errors"

	"github.com/dagrun/dagrun/cudart"
)

// embed lets the first stream of a body's instance, which has streams of its own, wait for the stream of the node around it before each pass, and
// that stream for it after each pass.
func (p *Program) embed(in *instance, origin cudart.Stream) error {
	first := in.streams[0]
	enter, err := p.follow(in, first, origin)
	if err != nil {
		return err
	}
	leave, err := p.follow(in, origin, first)
	if err != nil {
		return errors.Join(err, enter.Close())
	}
	inside, ok := in.list.(*script)
	if !ok {
		inside = &script{len: in.list.Len(), parts: []scriptPart{{list: in.list}}}
	}
	parts := append([]scriptPart{{first: -1, list: enter}}, inside.parts...)
	in.list = &script{len: inside.len, parts: append(parts, scriptPart{first: inside.len, list: leave})}
	return nil
}

// follow returns commands that let a stream wait for what another one has been given so far.
func (p *Program) follow(in *instance, stream, before cudart.Stream) (cudart.List, error) {
	e, err := p.platform.NewEvent(before.Device(), false)
	if err != nil {
		return nil, err
	}
	in.borders = append(in.borders, e)
	return p.platform.Encode([]cudart.Command{
		{Kind: cudart.RecordEvent, Stream: before, Event: e, Node: -1, Label: p.graph.Name},
		{Kind: cudart.WaitEvent, Stream: stream, Event: e, Node: -1, Label: p.graph.Name},
	}, cudart.ListOptions{Origin: before})
}
