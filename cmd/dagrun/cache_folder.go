// The folder of the cache, as all commands open it: one that cannot be used is said once and then left alone.

package main

import (
	"cmp"

	"github.com/dagrun/dagrun/runtime/cache"
)

// openCache returns the cache that --cache-dir names, nil if there is none or it cannot be used.
func (a *app) openCache() *cache.Folder {
	folder := cache.Open(a.Flags.CacheDir)
	if err := cmp.Or(cache.Missing(a.Flags.CacheDir), folder.Usable()); err != nil {
		if !a.noCache {
			a.Warn("nothing learned earlier is used, and nothing is kept: %v", err)
		}
		a.noCache = true
		return nil
	}
	return folder
}
