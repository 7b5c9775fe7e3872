// Programs are recorded on Unix only.

//go:build !unix

package main

import "os"

func fromTerminal(os.Signal) bool { return false }
