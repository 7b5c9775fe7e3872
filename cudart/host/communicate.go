// Communication between ranks on the CPU device.

package host

import (
	"unsafe"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/world"
	"github.com/dagrun/dagrun/dag"
)

// setCommunication gives a communication its memory: of a collective the source and the destination, of an exchange each transfer.
func (c *command) setCommunication(talk *cudart.Communication) *cudart.Error {
	if talk == nil {
		return c.fail(invalidValue, "the command says nothing about what to communicate")
	}
	c.talk = talk
	add := func(p cudart.Ptr, bytes int64, arg int) {
		if bytes > 0 {
			c.uses = append(c.uses, use{ptr: p, bytes: bytes, arg: arg})
		}
	}
	if talk.Verb != dag.Exchange {
		add(talk.Dst, talk.DstBytes, destination)
		add(talk.Src, talk.SrcBytes, source)
	}
	for _, more := range talk.More {
		add(more.Dst, more.Bytes, destination)
		add(more.Src, more.Bytes, source)
	}
	for _, t := range talk.Transfers {
		if t.Receive {
			add(t.Ptr, t.Bytes, destination)
		} else {
			add(t.Ptr, t.Bytes, source)
		}
	}
	c.resolve()
	return nil
}

// communicate does the communication and returns when this rank's part is complete.
func (c *command) communicate() *cudart.Error {
	at := 0
	next := func(bytes int64) []byte {
		if bytes <= 0 {
			return nil
		}
		u := &c.uses[at]
		at++
		return unsafe.Slice((*byte)(u.memory.at(u.ptr)), bytes)
	}
	var m world.Memory
	if c.talk.Verb != dag.Exchange {
		m.Dst, m.Src = next(c.talk.DstBytes), next(c.talk.SrcBytes)
	}
	for _, t := range c.talk.Transfers {
		m.Transfers = append(m.Transfers, next(t.Bytes))
	}
	err := c.platform.world.Communicate(c.label, c.talk, m)
	for k := 0; k < len(c.talk.More) && err == nil; k++ {
		more := &c.talk.More[k]
		one := *c.talk
		one.Src, one.Dst, one.SrcBytes, one.DstBytes, one.More = more.Src, more.Dst, more.Bytes, more.Bytes, nil
		dst := next(more.Bytes)
		err = c.platform.world.Communicate(c.label, &one, world.Memory{Dst: dst, Src: next(more.Bytes)})
	}
	if err != nil {
		e := c.fail(launchFailed, "%v", err)
		e.Err = err
		return e
	}
	return nil
}
