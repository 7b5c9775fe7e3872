// Tests of the page's columns: what is written is read back, and what repeats takes little room.

package picture

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// UnmarshalJSON reads a column as the script of the page does.
func (c *column[T]) UnmarshalJSON(text []byte) error {
	raw, err := base64.StdEncoding.DecodeString(strings.Trim(string(text), `"`))
	if err != nil {
		return err
	}
	unsigned := func() uint64 {
		v, n := binary.Uvarint(raw)
		raw = raw[n:]
		return v
	}
	*c = make(column[T], unsigned())
	value := int64(0)
	for k := 0; k < len(*c); {
		step := unsigned()
		if step == 0 {
			for again := unsigned(); again > 0; again-- {
				(*c)[k] = T(value)
				k++
			}
			continue
		}
		value += int64(step>>1) ^ -int64(step&1)
		(*c)[k] = T(value)
		k++
	}
	return nil
}

func (t *times) UnmarshalJSON(text []byte) error {
	var ns column[int64]
	err := ns.UnmarshalJSON(text)
	for _, v := range ns {
		*t = append(*t, float64(v)/1e3)
	}
	return err
}

func TestColumnsAreReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		numbers := column[int64](rapid.SliceOf(rapid.OneOf(rapid.Int64Range(0, 2), rapid.Int64Range(-1<<52, 1<<52))).Draw(t, "numbers"))
		text, err := json.Marshal(numbers)
		require.NoError(t, err)
		var back column[int64]
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, append(column[int64]{}, numbers...), append(column[int64]{}, back...))
	})
	text, err := json.Marshal(column[int32](make([]int32, 1e6)))
	require.NoError(t, err)
	require.Less(t, len(text), 20, "a million zeros")
	text, err = json.Marshal(times{0.1, 0.2, math.Pi})
	require.NoError(t, err)
	var back times
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, times{0.1, 0.2, 3.142}, back)
}
