// On systems where no library can be opened, no memory is needed.

//go:build !linux

package cupti

import "errors"

func mapMemory(int) ([]byte, error) { return nil, errors.ErrUnsupported }
