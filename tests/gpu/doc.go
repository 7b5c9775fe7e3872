// Tests that need a GPU. Without one they are skipped with a message. Nothing imports this package.

// Package gpu holds the tests that run on a real GPU. README.md says how to build them here and run them there.
package gpu
