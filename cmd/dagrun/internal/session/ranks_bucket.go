// --bucket: small all-reduces that follow each other run as one.

package session

import (
	"fmt"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/bucket"
	"github.com/dagrun/dagrun/dag/file"
)

// bucketed is a graph with the buckets that --bucket asks for.
func (u *Session) bucketed(g *dag.Graph, err error) (*dag.Graph, error) {
	if err != nil || u.Flags.Bucket == "" {
		return g, err
	}
	bytes, err := flags.ParseSize(u.Flags.Bucket)
	if err != nil {
		return nil, fmt.Errorf("--bucket %q: %w", u.Flags.Bucket, err)
	}
	made, err := bucket.AllReduces(g, bytes)
	if err != nil {
		return nil, fmt.Errorf("--bucket: %w", err)
	}
	if buckets, inside := bucketCount(made); buckets > 0 {
		u.Log.Info("bucketed", "buckets", buckets, "all_reduces", inside)
	}
	return made, nil
}

// bucketCount is how many buckets there are, those in bodies included, and how many all-reduces are in them.
func bucketCount(g *dag.Graph) (buckets, inside int) {
	g.EachGraph(func(g *dag.Graph, _ []string) {
		for i := range g.Nodes {
			if c := g.Nodes[i].Communication; c != nil && len(c.More) > 0 {
				buckets++
				inside += len(c.More) + 1
			}
		}
	})
	return buckets, inside
}

// bucketedFamily has the buckets of every rank.
func (u *Session) bucketedFamily(f *file.Family, err error) (*file.Family, error) {
	if err != nil {
		return nil, err
	}
	for k := range f.Classes {
		if f.Classes[k], err = u.bucketed(f.Classes[k], nil); err != nil {
			return nil, err
		}
	}
	return f, nil
}
