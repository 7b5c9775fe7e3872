// What is compiled for an architecture.

package main

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	language "github.com/dagrun/dagrun/internal/ptx"
	"github.com/dagrun/dagrun/kernels/library/cubin"
	"github.com/dagrun/dagrun/kernels/library/ptx"
)

// overlapping is the first architecture on which a launch may begin before the one before it has ended.
const overlapping = 90

// wanted lists what is compiled for an architecture, without the machine code. Where launches can overlap, kernels wait for the launches before them.
// That takes no time in a kernel that is launched as usual, so there is one form of it and not two. But a kernel that touches no memory ends so soon
// that one can measure it (578 us instead of 556 for a graph of 1,000 that do nothing), and it is small: of those there are both forms.
func wanted(architecture string) ([]cubin.Made, error) {
	number, err := strconv.Atoi(strings.TrimPrefix(architecture, "sm_"))
	if err != nil {
		return nil, fmt.Errorf("%q is no architecture such as sm_90", architecture)
	}
	var all []cubin.Made
	for _, name := range ptx.Names() {
		plain := ptx.Entries(name)
		if number < overlapping || !bytes.Contains(plain, []byte(".global")) {
			all = append(all, cubin.Made{Entry: name, PTX: plain, Text: plain})
		}
		if number >= overlapping {
			text, err := language.Waiting(string(plain))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			all = append(all, cubin.Made{Entry: name, Waits: true, PTX: plain, Text: []byte(text)})
		}
	}
	return all, nil
}
