// Where there is no assembly walker, the loop in Go serves.

//go:build !(linux && (amd64 || arm64))

package driver

func cross(w *walk) { walkLoop(w) }
