// Tests of completion as users type it: each shell runs in a pseudo-terminal, loads the script that dagrun writes for it, and gets words
// followed by Tab. A stand-in for dagrun records the arguments with which the shell runs the completed line.

package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// typedWords are lines that end with a Tab, and the arguments that dagrun gets when Enter follows.
var typedWords = []struct{ typed, arguments string }{
	{"pl", "plan"},
	{"comp", "completion"},
	{"pipelines/sax", "pipelines/saxpy.yaml"},
	{"pipel", "pipelines/"},
	{"mine", "mine.yml"},
	{"plan pipelines/sax", "plan|pipelines/saxpy.yaml"},
	{"fmt -w pipelines/saxpy.yaml mi", "fmt|-w|pipelines/saxpy.yaml|mine.yml"},
	{"pipelines/saxpy.yaml -p al", "pipelines/saxpy.yaml|-p|alpha="},
	{"plan pipelines/saxpy.yaml --iter", "plan|pipelines/saxpy.yaml|--iter"}, // plan has no such flag
	{"run pipelines/saxpy.yaml --iter", "run|pipelines/saxpy.yaml|--iterations"},
	{"kernels histo", "kernels|histogram"},
	{"kernels cusol", "kernels|cusolver.potrf"},
	{"kernels pipelines/bl", "kernels|pipelines/blur.cu"},
	{"kernels pipel", "kernels|pipelines/"},
	{"plan pipelines/saxpy.yaml --strategy round", "plan|pipelines/saxpy.yaml|--strategy|roundrobin"},
	{"plan --machine cle", "plan|--machine|clean"},
	{"plan --plan sav", "plan|--plan|saved.json"},
	{"dot --format merm", "dot|--format|mermaid"},
	{"bench --output js", "bench|--output|json"},
	{"trace pipelines/saxpy.yaml --graph=cap", "trace|pipelines/saxpy.yaml|--graph=captured"},
	{"trace pipelines/saxpy.yaml  --graph=cap", "trace|pipelines/saxpy.yaml|--graph=captured"},
	{"run pipelines/saxpy.yaml --spread mint", "run|pipelines/saxpy.yaml|--spread|mintransfer"},
	{"completion fi", "completion|fish"},
	{"help ben", "help|bench"},
}

// typedFolders are completed alike by bash and fish; zsh removes the slash when Enter follows.
var typedFolders = [][2]string{
	{"plan pipelines/saxpy.yaml --include pip", "plan|pipelines/saxpy.yaml|--include|pipelines/"},
	{"plan pipelines/saxpy.yaml --include=pip", "plan|pipelines/saxpy.yaml|--include=pipelines/"},
}

// bashCompletion is where Debian's package bash-completion is. The script for bash uses it if it has been loaded.
const bashCompletion = "/usr/share/bash-completion/bash_completion"

// shells are the commands that start each shell without the user's settings, and the first lines that it runs.
var shells = []struct {
	name    string
	command []string
	load    string
}{
	{"bash", []string{"bash", "--noprofile", "--norc", "-i"}, ". <(dagrun completion bash)"},
	{"bash with bash-completion", []string{"bash", "--noprofile", "--norc", "-i"}, ". " + bashCompletion + "; . <(dagrun completion bash)"},
	{"zsh", []string{"zsh", "-f", "-i"}, "autoload -U compinit; compinit -u -D; source <(dagrun completion zsh)"},
	{"fish", []string{"fish", "--no-config", "-i"}, "dagrun completion fish | source"},
}

func TestCompletionIsTyped(t *testing.T) {
	for _, shell := range shells {
		t.Run(shell.name, func(t *testing.T) {
			path, err := exec.LookPath(shell.command[0])
			if err == nil && strings.Contains(shell.load, bashCompletion) {
				_, err = os.Stat(bashCompletion)
			}
			if err != nil {
				t.Skipf("%s is not installed: %v", shell.name, err)
			}
			dir := completionFolder(t)
			command := exec.Command(path, shell.command[1:]...)
			command.Dir = dir
			command.Env = []string{"HOME=" + dir, "PATH=" + dir + "/bin:" + os.Getenv("PATH"), "TERM=xterm", "LANG=C.UTF-8", "GORACE=atexit_sleep_ms=0"}
			c := newConsole(t, 120)
			c.begin(t, command)
			seen := filepath.Join(dir, "seen")
			await := func(what, want string) {
				t.Helper()
				got := ""
				for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
					text, _ := os.ReadFile(seen) // it comes when the line has been run
					if got = string(text); strings.HasSuffix(got, "\n") {
						break
					}
				}
				require.Equal(t, want+"\n", got, "%s typed %s; the terminal shows %q", shell.name, what, c.shown())
				require.NoError(t, os.Remove(seen))
			}
			io.WriteString(c.keyboard, shell.load+"; dagrun ready\n")
			await("the first line", "ready")
			for _, line := range typedWords {
				io.WriteString(c.keyboard, "dagrun "+line.typed+"\t\n")
				await(line.typed, line.arguments)
			}
			for _, line := range typedFolders {
				if shell.name != "zsh" {
					io.WriteString(c.keyboard, "dagrun "+line[0]+"\t\n")
					await(line[0], line[1])
				}
			}
			io.WriteString(c.keyboard, "exit\n")
			require.NoError(t, command.Wait())
			<-c.ended
		})
	}
}

// completionFolder has pipelines to complete and a bin folder with the stand-in.
func completionFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "bin"), 0o777))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "pipelines"), 0o777))
	source, err := os.ReadFile("../../pipelines/saxpy.yaml")
	require.NoError(t, err)
	for _, name := range []string{"pipelines/saxpy.yaml", "pipelines/other.yaml", "pipelines/notes.txt", "pipelines/blur.cu", "mine.yml", "saved.json"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), source, 0o666))
	}
	standIn := `#!/bin/sh
case "$1" in
__complete*) exec "` + selfAsCommand(t) + `" "$@" ;;
completion) [ ! -e "$HOME/loaded" ] && touch "$HOME/loaded" && exec "` + selfAsCommand(t) + `" "$@" ;;
esac
line="$1"
shift
for word; do line="$line|$word"; done
printf '%s\n' "$line" > "$HOME/seen"
`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bin", "dagrun"), []byte(standIn), 0o777))
	return dir
}

// begin starts a command on the terminal; what it writes is collected until it ends.
func (c *console) begin(t *testing.T, command *exec.Cmd) {
	t.Helper()
	command.Stdin, command.Stderr = c.device, c.device
	if command.Stdout == nil {
		command.Stdout = c.device
	}
	command.SysProcAttr = &unix.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, command.Start())
	require.NoError(t, c.device.Close())
	go c.watch()
}

// shown is what has been written to the terminal so far.
func (c *console) shown() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.written.String()
}
