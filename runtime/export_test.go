// What tests outside the package look at.

package runtime

// HostNeed is hostNeed.
var HostNeed = hostNeed
