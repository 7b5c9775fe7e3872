// Command contents looks whether a recording has memory as it was before the first launch of a graph, and code. It runs anywhere, on recordings made on a GPU.
//
//	contents FILE ADDRESS BYTES VALUE
//
// Every byte must have the value. The exit status is 0 if that is so and there is code of a module.
package main

import (
	"fmt"
	"os"
	"strconv"

	"github.com/dagrun/dagrun/internal/recording"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) != 4 {
		return fmt.Errorf("usage: contents FILE ADDRESS BYTES VALUE")
	}
	var numbers [3]uint64
	for k, text := range arguments[1:] {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return err
		}
		numbers[k] = n
	}
	r, err := recording.ReadFile(arguments[0])
	if err != nil {
		return err
	}
	for _, p := range r.Processes {
		if err := look(p, numbers[0], numbers[1], byte(numbers[2])); err != nil {
			return err
		}
	}
	return r.Close()
}

func look(p *recording.Process, address, bytes uint64, value byte) error {
	next := address
	for k := range p.Contents {
		c := &p.Contents[k]
		if c.Sequence != p.Contents[0].Sequence || c.Address+c.Bytes <= next || c.Address > next || next >= address+bytes {
			continue
		}
		data, err := c.Load()
		if err != nil {
			return err
		}
		if uint64(len(data)) != c.Bytes {
			return fmt.Errorf("of %d bytes at 0x%x, %d are in the recording", c.Bytes, c.Address, len(data))
		}
		for at := next; at < min(c.Address+c.Bytes, address+bytes); at++ {
			if data[at-c.Address] != value {
				return fmt.Errorf("byte %d is %d, not %d", at-address, data[at-c.Address], value)
			}
		}
		next = c.Address + c.Bytes
	}
	if next < address+bytes {
		return fmt.Errorf("%d of %d bytes are in the recording", next-address, bytes)
	}
	code := 0
	for k := range p.Modules {
		b, err := p.Modules[k].Load()
		if err != nil {
			return err
		}
		code += len(b)
	}
	if code == 0 {
		return fmt.Errorf("there is no code of %d modules", len(p.Modules))
	}
	fmt.Printf("contents: %d bytes; code: %d bytes; modules: %d\n", bytes, code, len(p.Modules))
	return nil
}
