// Which signals a program that dagrun started has already got, on Unix.

//go:build unix

package running

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// fromTerminal says whether a signal most likely comes from the terminal, which sends it to every process in the foreground: the program that
// this one started is among them.
func fromTerminal(s os.Signal) bool {
	if !slices.Contains([]os.Signal{unix.SIGINT, unix.SIGQUIT, unix.SIGHUP}, s) {
		return false
	}
	terminal, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer terminal.Close()
	foreground, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err == nil && foreground == unix.Getpgrp()
}
