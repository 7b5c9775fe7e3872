// The folder of the cache, as all commands open it: one that cannot be used is said once and then left alone.

package session

import (
	"cmp"

	"github.com/dagrun/dagrun/runtime/cache"
)

// OpenCache returns the cache that --cache-dir names, nil if there is none or it cannot be used.
func (u *Session) OpenCache() *cache.Folder {
	folder := cache.Open(u.Flags.CacheDir)
	if err := cmp.Or(cache.Missing(u.Flags.CacheDir), folder.Usable()); err != nil {
		if !u.NoCache {
			u.Warn("nothing learned earlier is used, and nothing is kept: %v", err)
		}
		u.NoCache = true
		return nil
	}
	return folder
}
