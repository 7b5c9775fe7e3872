// Sizes in bytes, as flags have them.

package flags

import (
	"errors"
	"strconv"
	"strings"
)

// ParseSize reads 4GiB, 512MB, 1e9 or a plain number of bytes.
func ParseSize(text string) (int64, error) {
	units := []struct {
		suffix string
		bytes  float64
	}{
		{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
		{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1},
	}
	number, scale := strings.TrimSpace(text), 1.0
	for _, u := range units {
		if rest, ok := strings.CutSuffix(number, u.suffix); ok {
			number, scale = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !(v*scale > 0) || v*scale >= 1<<62 {
		return 0, errors.New("want a size such as 4GiB, 512MiB or 1000000")
	}
	return int64(v * scale), nil
}
