// Tests of host functions with the fake driver, which calls them on threads that Go knows nothing of.

//go:build linux && (amd64 || arm64)

package driver

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
)

func registeredHosts() int {
	hostFunctions.Lock()
	defer hostFunctions.Unlock()
	return len(hostFunctions.byNumber)
}

func TestHostFunctions(t *testing.T) {
	d := newFakeDriver(t)
	p := d.open(t)
	s, err := p.NewStream(0, dag.Normal)
	require.NoError(t, err)
	var ran []string
	host := func(name string) cudart.Command {
		return cudart.Command{Kind: cudart.RunHost, Stream: s, Label: name, Node: -1, Host: func() { ran = append(ran, name) }}
	}
	before := registeredHosts()
	l, err := p.Encode([]cudart.Command{host("a"), host("b")}, cudart.ListOptions{Origin: s})
	require.NoError(t, err)
	from := d.mark()
	require.NoError(t, l.Submit())
	require.Equal(t, []string{"cuCtxPushCurrent", "cuLaunchHostFunc", "cuLaunchHostFunc", "cuCtxPopCurrent"}, d.names(from))
	require.Equal(t, []string{"a", "b"}, ran)
	require.Equal(t, before+2, registeredHosts())

	captured, err := l.Capture(cudart.GraphOptions{Origin: s})
	require.NoError(t, err)
	require.Equal(t, 2, captured.Nodes())
	require.Equal(t, before+4, registeredHosts(), "a graph has its own, so that the list may be closed")
	require.NoError(t, captured.Update(l))
	require.Equal(t, before+6, registeredHosts(), "launches that were submitted keep theirs")
	require.NoError(t, l.Close())
	require.Equal(t, before+4, registeredHosts())
	require.NoError(t, captured.Close())
	require.Equal(t, before, registeredHosts())

	built, err := p.BuildGraph([]cudart.Command{host("c"), host("d")}, [][]int32{nil, {0}}, cudart.GraphOptions{Origin: s})
	require.NoError(t, err)
	require.Len(t, d.hosts, 2)
	ran = nil
	for _, node := range d.hosts {
		onThread(node.function, node.user)
	}
	require.Equal(t, []string{"c", "d"}, ran)
	require.NoError(t, built.Close())
	require.Equal(t, before, registeredHosts())

	_, err = p.Encode([]cudart.Command{{Kind: cudart.RunHost, Stream: s, Label: "e", Node: -1}}, cudart.ListOptions{Origin: s})
	require.EqualError(t, err, `node "e": there is no function to run`)
	require.NoError(t, s.Close())
	require.NoError(t, p.Close())
	d.clean(t)
}

// A graph or list that cannot be made leaves no function registered.
func TestHostFunctionsOfWhatFails(t *testing.T) {
	for _, f := range []function{cuGraphAddHostNode, cuGraphInstantiateWithFlags, cuStreamEndCapture} {
		d := newFakeDriver(t)
		p := d.open(t)
		s, err := p.NewStream(0, dag.Normal)
		require.NoError(t, err)
		before := registeredHosts()
		commands := []cudart.Command{{Kind: cudart.RunHost, Stream: s, Label: "a", Node: -1, Host: func() {}}}
		l, err := p.Encode(commands, cudart.ListOptions{Origin: s})
		require.NoError(t, err)
		d.failOn[f] = 999
		captured, err := l.Capture(cudart.GraphOptions{Origin: s})
		if f == cuGraphAddHostNode {
			require.NoError(t, err)
			require.NoError(t, captured.Close())
		} else {
			require.ErrorContains(t, err, f.name())
		}
		built, err := p.BuildGraph(commands, [][]int32{nil}, cudart.GraphOptions{Origin: s})
		if f == cuStreamEndCapture {
			require.NoError(t, err)
			require.NoError(t, built.Close())
		} else {
			require.ErrorContains(t, err, f.name())
		}
		delete(d.failOn, f)
		require.NoError(t, l.Close())
		require.Equal(t, before, registeredHosts())
		require.NoError(t, s.Close())
		require.NoError(t, p.Close())
		d.clean(t)
	}
}
