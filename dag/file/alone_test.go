// Which mistakes hide others.

package file

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatIsReportedAlone(t *testing.T) {
	said := func(source string) []string {
		_, err := Parse([]byte(source), testOptions())
		var messages []string
		for _, d := range mistakes(t, err).List {
			messages = append(messages, d.Error())
		}
		return messages
	}
	const buffers = "version: 1\nname: p\nbuffers:\n  x: {place: host, dtype: f32, shape: [4]}\n  d: {place: device, dtype: f32, shape: [4]}\nnodes:\n"
	const cycle = "  - {name: a, memcpy: {from: x, to: d}, after: [b]}\n  - {name: b, memcpy: {from: d, to: x}}\n"
	const unknown = "  - {name: c, kernel: none, args: []}\n"
	const twice = "  - {name: a, memset: {to: d, value: 0}}\n"
	require.Len(t, said(buffers+unknown+twice+twice+"  - {nam: e}\n"), 4, "two of them are in one node")
	require.Equal(t, []string{`p.yaml:7:5: dependency cycle: a -> b -> a`}, said(buffers+cycle))
	require.Len(t, said(buffers+cycle+unknown), 1, "the cycle is reported once the kernel is known")
	require.Len(t, said(buffers+unknown+"  - {name: e, memset: {to: d, value: 0}\n"+unknown), 1, "what follows a missing brace cannot be told")
}
