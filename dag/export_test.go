// What tests outside of the package see of its inside.

package dag

func DraftOf(b *Builder) *Draft { return &b.pipeline }

// AccessesOf are the accesses of all nodes and where those of each node begin.
func AccessesOf(p *Pipeline) (list *[]Access, starts *[]int32) { return &p.accesses, &p.accessStart }
