// What earlier runs left in the cache: what they learned, what loops did, and the figures of machines.

package runtime
