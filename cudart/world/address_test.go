// Where the ranks meet: addresses of this machine, and ports that several jobs have in common.

package world

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// meet lets two ranks meet at a place, with a collective, and fails if they cannot.
func meet(t *testing.T, place Place, secret string) {
	t.Helper()
	var all sync.WaitGroup
	for rank := range 2 {
		all.Go(func() {
			o := joining(place.Rendezvous, rank, 2)
			o.Place, o.Secret = place, secret
			o.Place.Rank, o.Place.Ranks = rank, 2
			w, _, err := Join(context.Background(), o)
			if err != nil {
				t.Errorf("rank %d at %s: %v", rank, place.Rendezvous, err)
				return
			}
			c, m := sumOf(rank, 2)
			if err := w.Communicate("sum", c, m); err != nil {
				t.Errorf("rank %d at %s: %v", rank, place.Rendezvous, err)
			}
			if err := w.Leave(nil); err != nil {
				t.Errorf("rank %d at %s: %v", rank, place.Rendezvous, err)
			}
		})
	}
	all.Wait()
}

// Every address that this machine has for itself will do, with a secret and without.
func TestRanksMeetAtAnyLoopbackAddress(t *testing.T) {
	hosts := []string{"127.0.0.1", "localhost"}
	for _, more := range []string{"::1", "127.0.1.1"} { // not every system has them
		if l, err := net.Listen("tcp", net.JoinHostPort(more, "0")); err == nil {
			require.NoError(t, l.Close())
			hosts = append(hosts, more)
		}
	}
	for _, host := range hosts {
		for _, secret := range []string{"", "secret"} {
			_, port, err := net.SplitHostPort(freeAddress(t))
			require.NoError(t, err)
			meet(t, Place{Rendezvous: net.JoinHostPort(host, port)}, secret)
		}
	}
}

// On many systems a machine's own name is a loopback address there. Ranks of other machines know it by another one, so they are told the name.
func TestAMachineWhoseNameIsALoopbackAddress(t *testing.T) {
	at := meeting{host: "gpu-01", loopback: "127.0.1.1", shared: true}
	l, own, err := at.listen([]string{"0"})
	require.NoError(t, err)
	defer l.Close()
	require.True(t, l.Addr().(*net.TCPAddr).IP.IsUnspecified(), "%s", l.Addr())
	require.Equal(t, "127.0.0.1", hostOf(own))
	mesh, told, err := at.listenForRanks("127.0.0.1")
	require.NoError(t, err)
	defer mesh.Close()
	require.True(t, mesh.Addr().(*net.TCPAddr).IP.IsUnspecified(), "%s", mesh.Addr())
	require.Equal(t, fmt.Sprintf("gpu-01:%d", mesh.Addr().(*net.TCPAddr).Port), told)
	require.Equal(t, meeting{host: "127.0.0.1", loopback: "127.0.0.1"}, meetingAt(t.Context(), "127.0.0.1:7", "secret"))
	require.Equal(t, meeting{host: "192.0.2.1", shared: true, addresses: []string{"192.0.2.1"}}, meetingAt(t.Context(), "192.0.2.1:7", "secret"))
}

// Two jobs of torchrun, with agents that own neighbouring ports, run at the same time. Each has its own ranks only.
func TestJobsWithNeighbouringPorts(t *testing.T) {
	var all sync.WaitGroup
	for _, agent := range neighbours(t) { // they answer nobody
		at := agent.Addr().String()
		_, port, err := net.SplitHostPort(at)
		require.NoError(t, err)
		all.Go(func() { meet(t, Place{Rendezvous: at, Derived: true, Job: "torchrun " + port}, "") })
	}
	all.Wait()
}

// neighbours listens at two ports that follow each other, until the test ends.
func neighbours(t *testing.T) (both [2]net.Listener) {
	for {
		host, port, err := net.SplitHostPort(freeAddress(t))
		require.NoError(t, err)
		first, err := strconv.Atoi(port)
		require.NoError(t, err)
		for k := range both {
			if both[k], err = net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(first+k))); err != nil {
				break
			}
			t.Cleanup(func() { both[k].Close() })
		}
		if err == nil {
			return both
		}
		time.Sleep(time.Millisecond)
	}
}
