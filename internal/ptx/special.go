// Special registers: what a thread can read about its place in the launch and its machine.

package ptx

import "strconv"

// Special is a special register.
type Special uint8

// The special registers; the numbered families carry their number in Operand.Value.
const (
	NoSpecial Special = iota
	Tid
	Ntid
	Laneid
	Warpid
	Nwarpid
	Ctaid
	Nctaid
	Smid
	Nsmid
	Gridid
	ClusterID
	NclusterID
	ClusterCtaid
	ClusterNctaid
	ClusterCtarank
	ClusterNctarank
	IsExplicitCluster
	LanemaskEq
	LanemaskLe
	LanemaskLt
	LanemaskGe
	LanemaskGt
	Clock
	ClockHi
	Clock64
	Globaltimer
	GlobaltimerLo
	GlobaltimerHi
	Envreg
	Pm
	Pm64
	TotalSmemSize
	AggrSmemSize
	DynamicSmemSize
	ReservedSmem
	CurrentGraphExec
	specialCount
)

var specialNames = [specialCount]string{
	Tid: "%tid", Ntid: "%ntid", Laneid: "%laneid", Warpid: "%warpid", Nwarpid: "%nwarpid", Ctaid: "%ctaid", Nctaid: "%nctaid",
	Smid: "%smid", Nsmid: "%nsmid", Gridid: "%gridid", ClusterID: "%clusterid", NclusterID: "%nclusterid",
	ClusterCtaid: "%cluster_ctaid", ClusterNctaid: "%cluster_nctaid", ClusterCtarank: "%cluster_ctarank",
	ClusterNctarank: "%cluster_nctarank", IsExplicitCluster: "%is_explicit_cluster", LanemaskEq: "%lanemask_eq",
	LanemaskLe: "%lanemask_le", LanemaskLt: "%lanemask_lt", LanemaskGe: "%lanemask_ge", LanemaskGt: "%lanemask_gt",
	Clock: "%clock", ClockHi: "%clock_hi", Clock64: "%clock64", Globaltimer: "%globaltimer", GlobaltimerLo: "%globaltimer_lo",
	GlobaltimerHi: "%globaltimer_hi", Envreg: "%envreg", Pm: "%pm", Pm64: "%pm_64", TotalSmemSize: "%total_smem_size",
	AggrSmemSize: "%aggr_smem_size", DynamicSmemSize: "%dynamic_smem_size", ReservedSmem: "%reserved_smem",
	CurrentGraphExec: "%current_graph_exec",
}

var specialsByName = func() map[string]Operand {
	m := map[string]Operand{}
	family := func(s Special, prefix, suffix string, n int) {
		for i := range n {
			m[prefix+strconv.Itoa(i)+suffix] = Operand{Kind: SpecialKind, Index: int32(s), Extra: -1, Value: int64(i)}
		}
	}
	for s, name := range specialNames {
		if name != "" {
			m[name] = Operand{Kind: SpecialKind, Index: int32(s), Extra: -1}
		}
	}
	m["%warpsz"] = Operand{Kind: Integer, Index: -1, Extra: -1, Value: 32}
	family(Envreg, "%envreg", "", 32)
	family(Pm, "%pm", "", 8)
	family(Pm64, "%pm", "_64", 8)
	for i, name := range []string{"begin", "end", "cap"} {
		m["%reserved_smem_offset_"+name] = Operand{Kind: SpecialKind, Index: int32(ReservedSmem), Extra: -1, Value: int64(i)}
	}
	family(ReservedSmem, "%reserved_smem_offset_", "", 2)
	return m
}()

// String is the register's name.
func (s Special) String() string {
	if s == NoSpecial || s >= specialCount {
		return "none"
	}
	return specialNames[s]
}
