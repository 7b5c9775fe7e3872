// Package header holds dagrun.h, with which C and C++ programs run .dagrun files, and an example of its use.
package header

import _ "embed"

// Text is dagrun.h.
//
//go:embed dagrun.h
var Text []byte
