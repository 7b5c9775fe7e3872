// Launches in clusters: blocks that run together and reach each other's shared memory.

package dag

import (
	"fmt"
)

// MaxCluster is how many blocks of a cluster every device with clusters allows.
const MaxCluster = 8

var axes = [3]string{"x", "y", "z"}

// ClusterProblem returns what is wrong with the clusters of a launch, or "". A cluster of zeros is none.
func ClusterProblem(cluster, grid [3]uint32) string {
	if cluster == [3]uint32{} {
		return ""
	}
	if problem := clusterSizeProblem(cluster); problem != "" {
		return problem
	}
	for k, axis := range axes {
		if grid[k]%cluster[k] != 0 && grid[0] != 0 && grid[1] != 0 && grid[2] != 0 {
			return fmt.Sprintf("grid.%s is %d, which is not a multiple of cluster.%s, %d", axis, grid[k], axis, cluster[k])
		}
	}
	return ""
}

func clusterSizeProblem(cluster [3]uint32) string {
	blocks := uint64(1)
	for k, axis := range axes {
		if cluster[k] == 0 {
			return fmt.Sprintf("cluster.%s is 0", axis)
		}
		blocks = min(blocks*uint64(cluster[k]), 1<<32)
	}
	if blocks > MaxCluster {
		return fmt.Sprintf("a cluster of %v blocks; at most %d are possible", SizeText(cluster), MaxCluster)
	}
	return ""
}

// clusterFact is the cluster as a number; 0: none.
func (l *Launch) clusterFact() int64 {
	return int64(l.Cluster[0])<<8 + int64(l.Cluster[1])<<4 + int64(l.Cluster[2])
}
