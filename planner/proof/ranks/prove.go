// Proving a family: the order on each rank, then what the ranks do together, then that nobody waits forever.

package ranks

import "github.com/dagrun/dagrun/dag"

// Prove returns what is wrong with the communication of a family, and nothing where all is proved.
func Prove(f *dag.Family) ([]Violation, error) {
	if err := check(f); err != nil {
		return nil, err
	}
	w := &world{ranks: f.Ranks, class: f.Class, firsts: f.Firsts}
	for class, g := range f.Classes {
		ops := communication(g)
		w.classes = append(w.classes, ops)
		w.found = append(w.found, alone(g, ops, lowest(f.Class, int32(class)))...)
	}
	if len(w.found) > 0 {
		return w.told(), nil
	}
	w.match()
	if len(w.found) == 0 {
		w.follow()
	}
	return w.told(), nil
}
