// On platforms without an assembly walker, the loop in Go is used.

//go:build !(linux && (amd64 || arm64))

package driver

func walkTable(w *walk) { walkLoop(w) }
