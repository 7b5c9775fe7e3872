// Tests of which communication a program is in, by the word that its devices write.

package engine

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
)

// The word is one more than twice the number of the communication that has begun, and one more when it has ended. 0 is none. Before the first of a replay
// came the last, if there was a replay before.
func TestTheWordOfCommunications(t *testing.T) {
	platform, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer platform.Close()
	word, err := platform.AllocHost(4, false)
	require.NoError(t, err)
	defer platform.Free(word)
	nodes := []dag.Node{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}
	p := &Program{platform: platform}
	for k := range nodes {
		p.followed = append(p.followed, followed{node: &nodes[k], body: k == 2})
	}
	for _, c := range []struct {
		replays uint64
		words   string // the answers, from word 0 on
	}{
		{1, "- -, a -, - a, b a, - b, c -, - c, d -, - d, - -, - -"},
		{2, "- -, a d, - a, b a, - b, c -, - c, d -, - d, - -, - -"},
	} {
		p.replays.Store(c.replays)
		answers := ""
		for value := range uint64(11) {
			dag.U32.Store(platform.HostBytes(word, 4), 0, value)
			p.latest.Store(nil)
			now, last := p.Communicating()
			require.True(t, now == nil && last == nil, "nothing has replayed")
			p.latest.Store(&instance{communicated: word})
			now, last = p.Communicating()
			name := func(n *dag.Node) string {
				if n == nil {
					return "-"
				}
				return n.Name
			}
			if value > 0 {
				answers += ", "
			}
			answers += fmt.Sprint(name(now), " ", name(last))
		}
		require.Equal(t, c.words, answers, "replay %d", c.replays)
	}
	p.latest.Store(&instance{})
	now, last := p.Communicating()
	require.True(t, now == nil && last == nil, "communications are not followed")
}
