// Launches in clusters, as attributes of rows and of nodes of graphs.

package driver

import (
	"unsafe"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/dl"
)

const (
	attributeCluster  = 4
	clusterCapability = 9
)

func clustered(c *checked) bool { return c.Cluster != [3]uint32{} }

// checkCluster refuses clusters that the device does not have, and those that do not divide the grid.
func (p *Platform) checkCluster(c *checked, i int) error {
	if !clustered(c) {
		return nil
	}
	d := c.kernel.d
	if major := d.info.Capability[0]; major < clusterCapability {
		return c.refused(i, "kernel %s: devices of compute capability %d.0 and newer have clusters, and device %d has %d.%d",
			c.kernel.entry, clusterCapability, d.number, major, d.info.Capability[1])
	}
	if err := p.lib.need(cuLaunchKernelEx); err != nil {
		return c.wrong(i, "kernel %s: a launch in clusters: %v", c.kernel.entry, err)
	}
	if problem := dag.ClusterProblem(c.Cluster, c.Grid); problem != "" {
		return c.wrong(i, "kernel %s: %s", c.kernel.entry, problem)
	}
	return nil
}

// fixedAttributes are those that a launch has whatever comes before it.
func fixedAttributes(c *checked) (list []launchAttribute) {
	if clustered(c) {
		list = append(list, launchAttribute{id: attributeCluster, value: [16]uint32{c.Cluster[0], c.Cluster[1], c.Cluster[2]}})
	}
	if c.Cooperative {
		list = append(list, launchAttribute{id: attributeCooperative, value: [16]uint32{1}})
	}
	return list
}

// clusterNode gives the kernel node that was just added its clusters.
func (g *graph) clusterNode(s *nodeScratch, c *checked) uint32 {
	s.cluster = [16]uint32{c.Cluster[0], c.Cluster[1], c.Cluster[2]}
	return uint32(dl.Call(g.p.lib.address[cuGraphKernelNodeSetAttribute], s.node, attributeCluster, uintptr(unsafe.Pointer(&s.cluster))))
}

// oneCluster is the smallest grid that a launch may have.
func oneCluster(c *checked) [3]uint32 {
	if clustered(c) {
		return c.Cluster
	}
	return [3]uint32{1, 1, 1}
}
