// Where no library can be opened, nothing ever asks for memory.

//go:build !linux

package cupti

import "errors"

func mapMemory(int) ([]byte, error) { return nil, errors.ErrUnsupported }
