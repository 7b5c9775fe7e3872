// Tests of launches in clusters by Go calls: written as a file, compared, and refused. cmd/dagrun has those of files.

package dag_test

import (
	"bytes"
	"testing"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/file"
	"github.com/dagrun/dagrun/dag/internal/fakes"
	"github.com/dagrun/dagrun/dag/outline"
	"github.com/stretchr/testify/require"
)

// clusterGraph launches a kernel with some options.
func clusterGraph(kernel string, options ...dag.LaunchOption) (*dag.Graph, error) {
	b := dag.New("test")
	b.Use(fakes.Kernels)
	b.Module("mine", "filters.cu", fakes.UserKernels)
	x, y := b.Device("x", dag.F32, 1000), b.Device("y", dag.F32, 1000)
	b.Kernel("k", kernel, dag.Args{10, b.Whole(x), b.Out(y)}, options...)
	return b.Graph()
}

func TestClusters(t *testing.T) {
	g, err := clusterGraph("mine.blur", dag.Grid(4, 6), dag.Cluster(2, 3))
	require.NoError(t, err)
	require.Equal(t, [3]uint32{2, 3, 1}, g.Nodes[0].Launch.Cluster)
	var text bytes.Buffer
	require.NoError(t, file.Write(&text, g.Pipeline))
	require.Contains(t, text.String(), "grid: [4, 6], cluster: [2, 3]")
	hashes := map[string]bool{}
	for _, cluster := range [][]int{{1}, {2}, {4}, {2, 2}, {1, 2}, {1, 1, 1}} {
		other, err := clusterGraph("mine.blur", dag.Grid(4, 6), dag.Cluster(cluster...))
		require.NoError(t, err)
		hashes[other.WorkHash()] = true
		require.NotEqual(t, g.WorkHash(), other.WorkHash())
	}
	require.Len(t, hashes, 5)
	plain, err := clusterGraph("mine.blur", dag.Grid(4, 6))
	require.NoError(t, err)
	require.False(t, hashes[plain.WorkHash()])
	hashes = map[string]bool{}
	for x := 1; x <= dag.MaxCluster; x++ {
		for y := 1; x*y <= dag.MaxCluster; y++ {
			for z := 1; x*y*z <= dag.MaxCluster; z++ {
				other, err := clusterGraph("mine.blur", dag.Grid(840, 840, 840), dag.Cluster(x, y, z))
				require.NoError(t, err)
				require.False(t, hashes[other.WorkHash()], "%d, %d, %d", x, y, z)
				hashes[other.WorkHash()] = true
			}
		}
	}
	require.Equal(t, `node "k" has cluster=[2 3 1], it had no cluster`, outline.WorkDifference(g, outline.WorkOf(plain)))
	for _, grid := range [][3]uint32{{0, 6, 1}, {6, 0, 1}, {6, 1, 0}} {
		require.Empty(t, dag.ClusterProblem([3]uint32{4, 1, 1}, grid), "a launch of nothing has no clusters")
	}
	require.Equal(t, "grid.x is 6, which is not a multiple of cluster.x, 4", dag.ClusterProblem([3]uint32{4, 1, 1}, [3]uint32{6, 1, 1}))
}

func TestCooperativeLaunchesByGoCalls(t *testing.T) {
	plain, err := clusterGraph("mine.blur", dag.Grid(4, 6))
	require.NoError(t, err)
	require.False(t, plain.Nodes[0].Launch.Cooperative)
	g, err := clusterGraph("mine.blur", dag.Grid(4, 6), dag.Cooperative())
	require.NoError(t, err)
	require.True(t, g.Nodes[0].Launch.Cooperative)
	var text bytes.Buffer
	require.NoError(t, file.Write(&text, g.Pipeline))
	require.Contains(t, text.String(), "grid: [4, 6], cooperative: true")
	require.NotEqual(t, plain.WorkHash(), g.WorkHash())
}

func TestClustersThatAreWrong(t *testing.T) {
	for _, c := range []struct {
		kernel  string
		options []dag.LaunchOption
		want    string
	}{
		{"mine.blur", []dag.LaunchOption{dag.Grid(4, 6), dag.Cluster(4, 4)}, `node "k": a cluster of [4, 4] blocks; at most 8 are possible`},
		{"mine.blur", []dag.LaunchOption{dag.Grid(4, 6), dag.Cluster(1<<31-1, 1<<31-1, 1<<31-1)}, `node "k": a cluster of [2147483647, 2147483647, 2147483647] blocks; at most 8 are possible`},
		{"mine.blur", []dag.LaunchOption{dag.Grid(4, 6), dag.Cluster(2, 4)}, `node "k": grid.y is 6, which is not a multiple of cluster.y, 4`},
		{"mine.blur", []dag.LaunchOption{dag.Grid(4, 6), dag.Cluster()}, `node "k": a cluster has one to three dimensions, not 0`},
		{"mine.blur", []dag.LaunchOption{dag.Grid(4, 6), dag.Cluster(0)}, `node "k": cluster: 0 is not a size`},
	} {
		_, err := clusterGraph(c.kernel, c.options...)
		require.ErrorContains(t, err, c.want)
	}
	b := dag.New("test")
	b.Use(fakes.Kernels)
	x, y := b.Device("x", dag.F32, 1000), b.Device("y", dag.F32, 1000)
	b.Kernel("k", "saxpy", dag.Args{10, 1, b.Whole(x), b.Whole(y)}, dag.Cluster(1))
	_, err := b.Graph()
	require.EqualError(t, err, `node "k": cluster belongs to a kernel of a module, and kernel "saxpy" is none`)
}
