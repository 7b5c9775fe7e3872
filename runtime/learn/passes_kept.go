// Passes from one run to the next: keeps how many each loop made, and looks that up for planning.

package learn

import (
	"context"
	"errors"
	"time"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime/cache"
	"github.com/dagrun/dagrun/runtime/internal/spans"
)

// passKeys returns the key of each loop with a condition, in all bodies, by name.
func passKeys(g *dag.Graph) map[string]string {
	keys := map[string]string{}
	g.EachGraph(func(g *dag.Graph, _ []string) {
		if !g.HasControl() {
			return
		}
		prints := Fingerprints(g)
		for i := range g.Nodes {
			if c := g.Nodes[i].Control; c != nil && c.Condition != nil && g.Nodes[i].Kind == dag.Repeat {
				keys[g.Nodes[i].Name] = cache.Key("passes 1", prints[i])
			}
		}
	})
	return keys
}

// KnownPasses returns a profile with the passes that the loops of a graph made in earlier runs, or nil if none are known. The
// warnings say which files of the cache were ignored, and why.
func KnownPasses(g *dag.Graph, folder *cache.Folder) (known *planner.Profile, warnings []string) {
	if g.Check() != nil || folder == nil || !g.HasControl() {
		return nil, nil
	}
	keys := passKeys(g)
	g.EachGraph(func(g *dag.Graph, _ []string) {
		for i := range g.Nodes {
			name := g.Nodes[i].Name
			key, loop := keys[name]
			if !loop {
				continue
			}
			kept, err := folder.Passes(key)
			if err != nil {
				warnings = append(warnings, err.Error())
			}
			if kept == nil {
				continue
			}
			if known == nil {
				known = &planner.Profile{Passes: map[string]int64{}}
			}
			known.Passes[name] = kept.Each()
		}
	})
	return known, warnings
}

// KeepPasses keeps what the loops of a graph did in the last replay, for KnownPasses.
func KeepPasses(ctx context.Context, g *dag.Graph, folder *cache.Folder, loops []spans.Loop) error {
	if g.Check() != nil || folder == nil || len(loops) == 0 {
		return nil
	}
	keys, now := passKeys(g), time.Now().UTC()
	var errs []error
	for _, l := range loops {
		if key, ok := keys[l.Node]; ok && l.Runs > 0 {
			errs = append(errs, folder.KeepPasses(ctx, key, &cache.Passes{Pipeline: g.Name, Node: l.Node, Runs: l.Runs, Passes: l.Passes, Most: l.Most, At: now}))
		}
	}
	return errors.Join(errs...)
}
