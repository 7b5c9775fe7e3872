// Proving a family: the order on each rank, then what the ranks do together, then that nobody waits forever.

package ranks

import (
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/file"
)

// Prove returns what is wrong with the communication of a family, and nothing where all is proved.
func Prove(f *file.Family) ([]Violation, error) {
	if err := check(f); err != nil {
		return nil, err
	}
	w := &world{ranks: f.Ranks, class: f.Class, firsts: f.Firsts}
	for class, g := range f.Classes {
		groups := 0
		ops := communication(g, &groups)
		w.classes = append(w.classes, ops)
		w.add(aloneWithBodies(g, ops, lowest(f.Class, int32(class))))
	}
	if len(w.found) == 0 {
		w.together()
	}
	return w.told(), nil
}

// aloneWithBodies checks one class, and each of its bodies that communicates.
func aloneWithBodies(g *dag.Graph, ops []op, rank int32) []Violation {
	found := alone(g, ops, rank)
	for k := range ops {
		if ops[k].control == nil {
			continue
		}
		for b, body := range ops[k].control.bodies {
			found = append(found, aloneWithBodies(g.Nodes[ops[k].node].Control.Bodies[b], body, rank)...)
		}
	}
	return found
}

// together proves what the ranks do with each other, and then one pass of each body.
func (w *world) together() {
	w.match()
	if len(w.found) == 0 {
		w.follow()
	}
	if len(w.found) > 0 {
		return
	}
	controls := make([][]*control, len(w.classes)) // as many of each class, because they have been matched
	for class, ops := range w.classes {
		for k := range ops {
			if ops[k].control != nil {
				controls[class] = append(controls[class], ops[k].control)
			}
		}
	}
	for k := range controls[0] {
		for b := range controls[0][k].bodies {
			pass := &world{ranks: w.ranks, class: w.class, firsts: w.firsts}
			for class := range w.classes {
				pass.classes = append(pass.classes, controls[class][k].bodies[b])
			}
			pass.together()
			w.add(pass.found)
			w.more += pass.more
		}
	}
}
