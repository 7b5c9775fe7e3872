// What tests outside of the package see of its inside.

package bucket

var BucketsOf = bucketsOf
