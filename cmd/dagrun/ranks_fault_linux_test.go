// Faults of ranks as processes: one is killed at each stage, comes with another file or a wrong secret, or finds its port taken. All
// others end with the cause, and no file is half written. Each stage is observed: by a line, a connection, unread bytes or a pipe.

package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cudart/world"
	"github.com/dagrun/dagrun/runtime/cache"
)

const rankFile = `version: 1
name: ranks
buffers:
  x: {place: device, dtype: f32, shape: [1024], init: 1}
  out: {place: host, dtype: f32, shape: [1024], save: out.$rank.npy}
  part: {place: host, dtype: f32, shape: [100000], init: 2, save: part.$rank.npy}
  rest: {place: host, dtype: f32, shape: [1024], init: 3, save: rest.$rank.npy}
nodes:
  - {name: first, allreduce: {inout: x, op: sum}}
  - {name: down, memcpy: {from: x, to: out}}
`

// hangFile lets all ranks but rank 2 wait in "sum", while rank 2 runs a kernel for ten minutes.
const hangFile = `version: 1
name: ranks
buffers:
  x: {place: device, dtype: f32, shape: [1024], init: 1}
  out: {place: host, dtype: f32, shape: [1024], save: out.$rank.npy}
nodes:
  - {name: first, allreduce: {inout: x, op: sum}}
  - {name: slow, kernel: spin, args: [600000000], after: [first], when: rank == 2}
  - {name: sum, allreduce: {inout: x, op: sum}, after: [slow]}
  - {name: down, memcpy: {from: x, to: out}}
`

// hangLoop is the same in the second pass of a loop.
const hangLoop = `version: 1
name: ranks
buffers:
  x: {place: device, dtype: f32, shape: [1024], init: 1}
  left: {place: device, dtype: i32, shape: [1], init: 3}
  out: {place: host, dtype: f32, shape: [1024], save: out.$rank.npy}
nodes:
  - name: solve
    repeat: {until: left < 1, most: 9}
    nodes:
      - {name: count, map: left = left - 1, with: {left: left}}
      - name: second
        if: left == 1
        nodes:
          - {name: first, allreduce: {inout: x, op: sum}}
          - {name: slow, kernel: spin, args: [600000000], after: [first], when: rank == 2}
          - {name: sum, allreduce: {inout: x, op: sum}, after: [slow]}
  - {name: down, memcpy: {from: x, to: out}}
`

// crew is the ranks of a test. Those that still run at its end are killed.
type crew struct {
	t      *testing.T
	self   string
	dir    string
	ranks  int
	at     string // where rank 0's store is
	secret string
}

func newCrew(t *testing.T, ranks int, file string) *crew {
	t.Parallel()
	at, err := world.FreeAddress()
	require.NoError(t, err)
	c := &crew{t: t, self: selfAsCommand(t), dir: t.TempDir(), ranks: ranks, at: at, secret: "one of us"}
	c.write("ranks.yaml", file)
	return c
}

func (c *crew) write(name, text string) {
	require.NoError(c.t, os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o644))
}

// process is a rank.
type process struct {
	c      *crew
	rank   int
	cmd    *exec.Cmd
	mu     sync.Mutex
	stderr bytes.Buffer
	ended  chan struct{}
}

func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.Write(b)
}

func (p *process) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.String()
}

// start runs a rank, which meets the others at an address.
func (c *crew) start(rank int, at string, args ...string) *process {
	return c.startWith(rank, []string{"DAGRUN_RANK=" + strconv.Itoa(rank), "DAGRUN_RANKS=" + strconv.Itoa(c.ranks), "DAGRUN_RENDEZVOUS=" + at, "DAGRUN_SECRET=" + c.secret}, args...)
}

// startWith runs a rank with the variables of a launcher.
func (c *crew) startWith(rank int, variables []string, args ...string) *process {
	p := &process{c: c, rank: rank, ended: make(chan struct{})}
	p.cmd = exec.Command(c.self, append([]string{"run", "--backend", "cpu", "--arrive", "10m"}, args...)...)
	p.cmd.Dir, p.cmd.Stderr = c.dir, p
	p.cmd.Env = append(append(os.Environ(), cache.Variable+"="+cache.Off, "GORACE=atexit_sleep_ms=0", "NO_COLOR=1", "NCCL_NVLS_ENABLE=0"), variables...)
	require.NoError(c.t, p.cmd.Start())
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // the status is looked at later
	}()
	c.t.Cleanup(p.kill)
	return p
}

// kill ends a rank as an administrator or the kernel might.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}

// endedFirst is what the others say of a rank that has been killed.
func (p *process) endedFirst() string {
	return fmt.Sprintf(`rank %d of %d \(host %s\) has ended before the others were finished`, p.rank, p.c.ranks, p.c.host())
}

// killedBefore kills a rank, and checks that others end and name it.
func (p *process) killedBefore(others ...*process) {
	p.c.t.Helper()
	p.kill()
	for _, o := range others {
		o.ends(cli.StatusDevice, p.endedFirst())
	}
}

// ends waits for a rank's end and checks its status and its last line.
func (p *process) ends(status int, want string) {
	p.c.t.Helper()
	<-p.ended
	lines := strings.Split(strings.TrimSpace(p.said()), "\n")
	require.Regexp(p.c.t, "^dagrun: "+want+"$", lines[len(lines)-1], "rank %d", p.rank)
	require.Equal(p.c.t, status, p.cmd.ProcessState.ExitCode(), "rank %d: %s", p.rank, p.said())
}

// waitFor waits for a condition, or fails if a rank ends before.
func (c *crew) waitFor(what string, condition func() bool, of ...*process) {
	c.t.Helper()
	for !condition() {
		for _, p := range of {
			select {
			case <-p.ended:
				c.t.Fatalf("rank %d ended before %s: %s", p.rank, what, p.said())
			default:
			}
		}
		time.Sleep(time.Millisecond)
	}
}

func (c *crew) host() string {
	name, err := os.Hostname()
	require.NoError(c.t, err)
	return regexp.QuoteMeta(name)
}

// whole checks that each saved file is complete, and returns their names.
func (c *crew) whole() []string {
	entries, err := os.ReadDir(c.dir)
	require.NoError(c.t, err)
	var names []string
	for _, e := range entries {
		if !e.Type().IsRegular() || filepath.Ext(e.Name()) == ".yaml" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(c.dir, e.Name()))
		require.NoError(c.t, err)
		require.Greater(c.t, len(data), 10, "%s", e.Name())
		header := 10 + int(binary.LittleEndian.Uint16(data[8:]))
		elements := 1024
		if strings.HasPrefix(e.Name(), "part.") {
			elements = 100000
		}
		require.Equal(c.t, header+4*elements, len(data), "%s is half written", e.Name())
		names = append(names, e.Name())
	}
	return names
}

// gate passes on what a rank and the store say to each other, and tells when the rank has joined.
type gate struct {
	net.Listener
	joined chan struct{}
}

func (c *crew) gate() *gate {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(c.t, err)
	c.t.Cleanup(func() { l.Close() })
	g := &gate{l, make(chan struct{})}
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			go g.pass(from, c.at)
		}
	}()
	return g
}

func (g *gate) pass(from net.Conn, at string) {
	defer from.Close()
	to, err := net.Dial("tcp", at)
	if err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(from, to) // until one side ends
		from.Close()
	}()
	defer to.Close()
	for r := bufio.NewReader(from); ; {
		var head [4]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return
		}
		data := make([]byte, binary.BigEndian.Uint32(head[:]))
		if _, err := io.ReadFull(r, data); err != nil {
			return
		}
		if _, err := to.Write(append(head[:], data...)); err != nil {
			return
		}
		if bytes.Contains(data, []byte(`"kind":"join"`)) {
			close(g.joined)
		}
	}
}

func TestARankKilledBeforeTheRendezvous(t *testing.T) {
	c := newCrew(t, 3, rankFile)
	elsewhere, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer elsewhere.Close()
	killed := c.start(1, elsewhere.Addr().String(), "ranks.yaml")
	conn, err := elsewhere.Accept() // it is about to meet the others
	require.NoError(t, err)
	defer conn.Close()
	killed.kill()
	other := c.start(2, c.at, "ranks.yaml", "-v", "--arrive", "1m")
	c.waitFor("it looks for rank 0", func() bool { return strings.Contains(other.said(), "one of several ranks: rank 2") }, other)
	first := c.start(0, c.at, "ranks.yaml", "--arrive", "10s")
	first.ends(cli.StatusDevice, `rank 1 of 3 did not arrive within 10 s(, nor did 1 more)?`)
	// The other hears so too, unless this machine was so slow that it came after rank 0's time was over.
	other.ends(cli.StatusDevice, fmt.Sprintf(`(rank 1 of 3 did not arrive within 10 s|rank 0 of 3 could not be reached at %s within 60 s: .*)`, regexp.QuoteMeta(c.at)))
	require.Empty(t, c.whole())
}

func TestARankKilledInTheRendezvous(t *testing.T) {
	c := newCrew(t, 4, rankFile) // rank 2 never comes
	gates := map[int]*gate{1: c.gate(), 3: c.gate()}
	first := c.start(0, c.at, "ranks.yaml")
	killed, other := c.start(1, gates[1].Addr().String(), "ranks.yaml"), c.start(3, gates[3].Addr().String(), "ranks.yaml")
	<-gates[1].joined
	<-gates[3].joined
	killed.killedBefore(first, other)
	require.Empty(t, c.whole())
}

// unread counts a process's connections with bytes that it has not read.
func unread(t *testing.T, pid int) int {
	own := map[string]bool{}
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	require.NoError(t, err)
	for _, e := range entries {
		if link, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, e.Name())); err == nil {
			if inode, ok := strings.CutPrefix(link, "socket:["); ok {
				own[strings.TrimSuffix(inode, "]")] = true
			}
		}
	}
	table, err := os.ReadFile("/proc/net/tcp")
	require.NoError(t, err)
	n := 0
	for _, line := range strings.Split(string(table), "\n")[1:] {
		// sl local remote state tx:rx tr:when retransmits uid timeout inode
		f := strings.Fields(line)
		if len(f) > 9 && own[f[9]] && f[3] == "01" && !strings.HasSuffix(f[4], ":00000000") {
			n++
		}
	}
	return n
}

func TestARankKilledInACollective(t *testing.T) {
	c, all := inACollective(t, hangFile)
	all[1].killedBefore(all[0], all[3])
	all[2].ends(cli.StatusDevice, all[1].endedFirst()+`(; the device did not finish within another 10s, (at|after) .*)?`)
	require.Empty(t, c.whole())
}

func TestARankKilledInTheCollectiveOfABody(t *testing.T) {
	c, all := inACollective(t, hangLoop)
	all[1].killedBefore(all[0], all[3]) // rank 2 ends as it does without a loop
	require.Empty(t, c.whole())
}

// inACollective starts four ranks, and returns when all but rank 2 wait in a collective.
func inACollective(t *testing.T, file string) (*crew, []*process) {
	c := newCrew(t, 4, file)
	var all []*process
	for rank := range 4 {
		all = append(all, c.start(rank, c.at, "ranks.yaml"))
	}
	// Ranks 0, 1 and 3 have sent their elements to rank 2, which does not read them.
	c.waitFor("they wait in a collective", func() bool { return unread(t, all[2].cmd.Process.Pid) == 3 }, all...)
	return c, all
}

func TestARankKilledWhileSaving(t *testing.T) {
	c := newCrew(t, 3, rankFile)
	pipe := filepath.Join(c.dir, "part.1.npy")
	require.NoError(t, syscall.Mkfifo(pipe, 0o644))
	var all []*process
	for rank := range 3 {
		all = append(all, c.start(rank, c.at, "ranks.yaml"))
	}
	r, err := os.Open(pipe) // returns when rank 1 begins to save
	require.NoError(t, err)
	defer r.Close()
	_, err = io.ReadFull(r, make([]byte, 1024)) // more than a pipe holds is to come
	require.NoError(t, err)
	all[1].killedBefore(all[0], all[2])
	names := c.whole()
	require.Contains(t, names, "out.1.npy", "it was saved before")
	require.NotContains(t, names, "rest.1.npy", "it was to be saved later")
}

// learn lets all ranks of a crew run and learn with a cache folder.
func (c *crew) learn(cache string) {
	c.write("ranks.yaml", rankFile)
	var all []*process
	for rank := range c.ranks {
		all = append(all, c.start(rank, c.at, "ranks.yaml", "--cache-dir", cache, "--iterations", "40"))
	}
	for _, p := range all {
		<-p.ended
		require.True(c.t, p.cmd.ProcessState.Success(), p.said())
		require.NotContains(c.t, p.said(), "learned", "a warning about the cache")
	}
	for _, name := range c.whole() {
		require.NoError(c.t, os.Remove(filepath.Join(c.dir, name)))
	}
}

// filesOf returns what is in each file of a folder.
func (c *crew) filesOf(folder string) map[string]string {
	all := map[string]string{}
	require.NoError(c.t, filepath.WalkDir(folder, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		all[path] = string(data)
		return err
	}))
	return all
}

// The first replays of ranks that learn measure the nodes one by one.
func TestARankKilledWhileNodesAreMeasured(t *testing.T) {
	c := newCrew(t, 3, rankFile)
	cache := filepath.Join(c.dir, "cache")
	c.learn(cache)
	known := c.filesOf(cache)
	require.NotEmpty(t, known)
	c.write("ranks.yaml", hangFile)
	var all []*process
	for rank := range 3 {
		all = append(all, c.start(rank, c.at, "ranks.yaml", "-v", "--cache-dir", cache, "--iterations", "40"))
	}
	c.waitFor("they wait in a collective", func() bool { return unread(t, all[2].cmd.Process.Pid) == 2 }, all...)
	for _, p := range all {
		require.NotContains(t, p.said(), "nothing is learned")
		require.NotContains(t, p.said(), "measured nodes")
	}
	all[2].killedBefore(all[0], all[1])
	require.Empty(t, c.whole())
	require.Equal(t, known, c.filesOf(cache))
	c.learn(cache)
}

// After the nodes have been measured, ranks that learn compare plans.
func TestARankKilledWhilePlansAreCompared(t *testing.T) {
	c := newCrew(t, 3, rankFile)
	cache := filepath.Join(c.dir, "cache")
	c.learn(cache)
	known := c.filesOf(cache)
	c.write("ranks.yaml", strings.Replace(hangFile, "args: [600000000], after: [first], when: rank == 2", "args: [20000], after: [first]", 1))
	var all []*process
	for rank := range 3 {
		all = append(all, c.start(rank, c.at, "ranks.yaml", "-v", "--cache-dir", cache, "--iterations", "1000000"))
	}
	for _, p := range all {
		c.waitFor("it has measured its nodes", func() bool { return strings.Contains(p.said(), "measured nodes") }, all...)
		require.NotContains(t, p.said(), "dagrun: compared", "comparing takes longer than this test needs to see that it has begun")
	}
	all[1].killedBefore(all[0], all[2])
	require.Empty(t, c.whole())
	require.Equal(t, known, c.filesOf(cache))
	c.learn(cache)
}

// A timeout that ends before --arrive names the rank that is missing, like --arrive does.
func TestATimeoutBeforeARankHasArrived(t *testing.T) {
	c := newCrew(t, 3, rankFile)
	for _, p := range []*process{c.start(0, c.at, "ranks.yaml", "--timeout", "2s"), c.start(1, c.at, "ranks.yaml", "--timeout", "2s")} {
		p.ends(cli.StatusTimeout, `rank (2 of 3 did not arrive before rank [01] timed out after 2s|1 of 3 did not arrive before rank 0 timed out after 2s, nor did 1 more|0 of 3 could not be reached at .* within 2 s.*)`)
	}
	require.Empty(t, c.whole())
}

func TestARankWithAnotherFile(t *testing.T) {
	c := newCrew(t, 3, rankFile)
	c.write("other.yaml", strings.Replace(rankFile, "name: first", "name: sum.3", 1))
	all := []*process{c.start(0, c.at, "ranks.yaml"), c.start(1, c.at, "ranks.yaml"), c.start(2, c.at, "other.yaml")}
	for _, p := range all {
		p.ends(cli.StatusDevice, fmt.Sprintf(`rank 2 of 3 \(host %s\) runs another pipeline: node 0 is "sum.3", here "first"`, c.host()))
	}
	require.Empty(t, c.whole())
}

// What differs may be within a body, in a kernel's code, or in what a buffer holds at first.
func TestARankWithAnotherVersionOfTheFile(t *testing.T) {
	file := `version: 1
buffers:
  x: {place: host, dtype: f32, shape: [32], init: {expr: i}}
  d: {place: device, dtype: f32, shape: [32]}
nodes:
  - {name: up, memcpy: {from: x, to: d}}
  - name: loop
    repeat: {times: 2}
    nodes:
      - {name: sum, allreduce: {inout: d, op: avg}}
`
	own := "modules: {own: {source: own.ptx}}\n" + file + "  - {name: own, kernel: own.nothing, args: [{in: d}], grid: 1, block: 32}\n"
	code := ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nothing(.param .u64 d)\n{\n\tret;\n}\n"
	for name, c := range map[string]struct{ file, other, code, want string }{
		"in a body":   {file, strings.Replace(file, "op: avg", "op: max", 1), code, `node 2, "loop: sum", has op=max, here op=avg`},
		"contents":    {file, strings.Replace(file, "expr: i", "expr: i + 1", 1), code, `buffer "x" has init=i \+ 1, here init=i`},
		"kernel code": {own, own, strings.Replace(code, "ret;", "exit;", 1), `node 2, "own", has code=[0-9a-f]{16}, here code=[0-9a-f]{16}`},
	} {
		t.Run(name, func(t *testing.T) {
			k := newCrew(t, 2, c.file)
			require.NoError(t, os.Mkdir(filepath.Join(k.dir, "other"), 0o700))
			k.write("own.ptx", code)
			k.write("other/own.ptx", c.code)
			k.write("other/ranks.yaml", c.other)
			for _, p := range []*process{k.start(0, k.at, "ranks.yaml"), k.start(1, k.at, "other/ranks.yaml")} {
				p.ends(cli.StatusDevice, fmt.Sprintf(`rank 1 of 2 \(host %s\) runs another pipeline: %s`, k.host(), c.want))
			}
		})
	}
}

func TestRanksThatFindTheirPortTaken(t *testing.T) {
	c := newCrew(t, 2, rankFile)
	taken, err := net.Listen("tcp", c.at)
	require.NoError(t, err)
	defer taken.Close()
	go func() {
		for {
			conn, err := taken.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("SSH-2.0-somebody-else\r\n"))
			conn.Close()
		}
	}()
	first, other := c.start(0, c.at, "ranks.yaml"), c.start(1, c.at, "ranks.yaml", "--arrive", "2s")
	first.ends(cli.StatusWrong, fmt.Sprintf(`rank 0 of 2: rank 0 cannot serve the other ranks at %s: .*address already in use`, regexp.QuoteMeta(c.at)))
	other.ends(cli.StatusDevice, fmt.Sprintf(`rank 0 of 2 could not be reached at %s within 2 s: .*`, regexp.QuoteMeta(c.at)))
}

func TestARankWithAnotherSecret(t *testing.T) {
	c := newCrew(t, 2, rankFile)
	c.secret = "one of them"
	other := c.start(1, c.at, "ranks.yaml", "-v")
	c.waitFor("it looks for rank 0", func() bool { return strings.Contains(other.said(), "one of several ranks: rank 1") }, other)
	c.secret = "one of us"
	first := c.start(0, c.at, "ranks.yaml", "--arrive", "10m")
	other.ends(cli.StatusWrong, fmt.Sprintf(`rank 1 of 2: rank 0 at %s does not let rank 1 in: it has another DAGRUN_SECRET`, regexp.QuoteMeta(c.at)))
	right := c.start(1, c.at, "ranks.yaml") // the right one can still come
	<-right.ended
	<-first.ended
	require.True(t, right.cmd.ProcessState.Success() && first.cmd.ProcessState.Success(), "%s%s", right.said(), first.said())
}

// Whoever times out first, all ranks end with the status of a timeout and name a rank.
func TestRanksThatTimeOut(t *testing.T) {
	c, all := timedOut(t, hangFile)
	for _, p := range all {
		p.ends(cli.StatusTimeout, `.*rank \d of 4.* (timeout of 5s: it is|timed out after 5s|within 5 s).*`)
	}
	require.Empty(t, c.whole())
}

// In a body they do so too.
func TestRanksThatTimeOutInALoop(t *testing.T) {
	c, all := timedOut(t, hangLoop)
	for _, p := range []*process{all[0], all[1], all[3]} { // rank 2 ends as it does without a loop
		p.ends(cli.StatusTimeout, `.*rank \d of 4.* (timeout of 5s: it is|timed out after 5s|within 5 s).*`)
	}
	require.Empty(t, c.whole())
}

func timedOut(t *testing.T, file string) (*crew, []*process) {
	c := newCrew(t, 4, file)
	var all []*process
	for rank := range 4 {
		all = append(all, c.start(rank, c.at, "ranks.yaml", "--timeout", "5s"))
	}
	return c, all
}

func TestAnInterruptedRankEndsTheOthers(t *testing.T) {
	c := newCrew(t, 2, strings.Replace(hangFile, "rank == 2", "rank == 9", 1))
	all := []*process{c.start(0, c.at, "ranks.yaml", "-v", "--iterations", "1000000000"), c.start(1, c.at, "ranks.yaml", "-v", "--iterations", "1000000000")}
	for _, p := range all {
		c.waitFor("it replays", func() bool { return strings.Contains(p.said(), "dagrun: ready: ") }, all...)
	}
	require.NoError(t, all[1].cmd.Process.Signal(os.Interrupt))
	all[1].ends(cli.StatusInterrupted, `rank 1 of 2: interrupted(; the device did not finish within 2s)?, (at|after) .*`)
	all[0].ends(cli.StatusDevice, fmt.Sprintf(`rank 1 of 2 \(host %s\) (was interrupted|has ended before the others were finished)`, c.host()))
	require.Empty(t, c.whole())
}

// childrenOf lists the processes that a process has started.
func childrenOf(t *testing.T, parent int) []int {
	entries, err := os.ReadDir("/proc")
	require.NoError(t, err)
	var list []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && slices.Contains(stat(pid), "of "+strconv.Itoa(parent)) {
			list = append(list, pid)
		}
	}
	return list
}

// stat tells a process's state and parent, or nothing once it has ended.
func stat(pid int) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(text), ") ")
	f := strings.Fields(rest)
	if err != nil || len(f) < 2 || f[0] == "Z" {
		return nil
	}
	return []string{f[0], "of " + f[1]}
}

// selfAsLauncher is as selfAsCommand, for a command that starts itself: os.Executable would follow a symbolic link.
func selfAsLauncher(t *testing.T) string {
	test, err := os.Executable()
	require.NoError(t, err)
	folder, err := os.MkdirTemp(filepath.Dir(test), "launch") // hard links need the same file system
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(folder) })
	self := filepath.Join(folder, "dagrun")
	require.NoError(t, os.Link(test, self))
	return self
}

// A terminal sends Ctrl-C to launch and to all ranks; launch passes it on. Where launch is killed, its ranks end all the same.
func TestSignalsToLaunchEndAllRanks(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		t.Run(signal.String(), func(t *testing.T) {
			c := newCrew(t, 3, strings.Replace(hangFile, "rank == 2", "rank == 9", 1))
			p := &process{c: c, ended: make(chan struct{})}
			p.cmd = exec.Command(selfAsLauncher(t), "launch", "-n", "3", "ranks.yaml", "--backend", "cpu", "-v", "--iterations", "1000000000", "--arrive", "10m")
			p.cmd.Dir, p.cmd.Stderr = c.dir, p
			p.cmd.Env = append(os.Environ(), cache.Variable+"="+cache.Off, "GORACE=atexit_sleep_ms=0", "NO_COLOR=1")
			p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			require.NoError(t, p.cmd.Start())
			go func() {
				defer close(p.ended)
				_ = p.cmd.Wait() // the status is looked at later
			}()
			t.Cleanup(p.kill)
			c.waitFor("all replay", func() bool { return strings.Count(p.said(), "dagrun: ready: ") == 3 }, p)
			ranks := childrenOf(t, p.cmd.Process.Pid)
			require.Len(t, ranks, 3)
			to := p.cmd.Process.Pid
			if signal == syscall.SIGINT {
				to = -to // as a terminal does
			}
			require.NoError(t, syscall.Kill(to, signal))
			<-p.ended
			for _, pid := range ranks {
				c.waitFor("they have ended", func() bool { return stat(pid) == nil })
			}
			if signal == syscall.SIGINT {
				require.Equal(t, cli.StatusInterrupted, p.cmd.ProcessState.ExitCode(), p.said())
				require.Contains(t, p.said(), "\ndagrun: interrupted; all ranks have ended\n")
				require.NotContains(t, p.said(), "interrupted twice")
			}
			require.Empty(t, c.whole())
		})
	}
}
