// Tests that need a GPU. They skip, and say so, where there is none; nothing else imports this package.

// Package gpu holds the tests that run on a real GPU. README.md says how to build them here and run them there.
package gpu
