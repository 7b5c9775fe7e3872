// Exports unexported functions for tests outside the package.

package runtime

// HostNeed is hostNeed.
var HostNeed = hostNeed
