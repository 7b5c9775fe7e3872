// dagrun launch: runs a pipeline as several ranks on this machine.

package running

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/cudart/world"
)

// launchFlags are the flags that only launch has.
type launchFlags struct {
	ranks, nodes, node int
	trace, page        string // files to write instead of running the pipeline
}

// launchEnd is how long the other ranks may take to end after one has failed.
const launchEnd = 10 * time.Second

// launchGrace is how long ranks may take to end after they were asked to stop. They need a little longer than what they run.
const launchGrace = cli.Grace + 2*time.Second

func (u *Commands) LaunchCommand() *cobra.Command {
	var own launchFlags
	c := &cobra.Command{
		Use:   "launch -n N FILE",
		Short: "Run a pipeline as several ranks",
		Long: `Run a pipeline as N processes, which are the ranks that rank and ranks in the file refer to.
Each has a GPU of its own, or the CPU device with --backend cpu. Lines of a rank begin with
its number. With --nodes M, launch is run on each of M machines, each time with another --node, and
with the same --rendezvous on machine 0 and the same DAGRUN_SECRET; N counts the ranks of all machines.

Under torchrun, srun, mpirun and in Kubernetes, dagrun FILE finds its rank by itself (docs/scaling.md).`,
		Example: `  dagrun launch -n 4 pipelines/allreduce.yaml --backend cpu
  dagrun launch -n 8 pipelines/data-parallel.yaml -p layers=4
  dagrun launch -n 4 pipelines/halo.yaml --backend cpu --trace halo.trace.json --html halo.html
  dagrun launch -n 16 --nodes 2 --node 0 --rendezvous gpu-01:29400 train.yaml`,
		ValidArgsFunction: cli.OnePipeline,
	}
	u.RunCommand(c)
	f := c.Flags()
	f.IntVarP(&own.ranks, "number", "n", 0, "run `N` ranks")
	f.IntVar(&own.nodes, "nodes", 1, "`M` machines run the ranks, each with its own launch")
	f.IntVar(&own.node, "node", 0, "this is machine `K` of --nodes")
	f.StringVar(&own.trace, "trace", "", "trace the pipeline instead, and write one timeline of all ranks to this `file`")
	f.StringVar(&own.page, "html", "", "with --trace: also write a page with the timeline to this `file`")
	for _, flag := range []string{"rank", "ranks"} {
		_ = f.MarkHidden(flag)
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := flags.OneFile(c, args); err != nil {
			return err
		}
		if err := u.CheckFlags(c); err != nil {
			return err
		}
		if !f.Changed("number") {
			return errors.New("launch needs to know how many ranks to run: add -n N")
		}
		if err := own.check(u.Flags.Ranks); err != nil {
			return err
		}
		if args[0] == "-" {
			return errors.New("launch needs a file: several ranks cannot share standard input")
		}
		return u.launch(c, args[0], &own)
	}
	return c
}

func (l *launchFlags) check(by world.Flags) error {
	switch {
	case by.Rank >= 0 || by.Ranks >= 0:
		return errors.New("launch numbers the ranks itself: leave out --rank and --ranks")
	case l.ranks < 1 || l.ranks > world.MaxRanks:
		return fmt.Errorf("-n %d: want 1 to %d ranks", l.ranks, world.MaxRanks)
	case l.nodes < 1 || l.ranks%l.nodes != 0:
		return fmt.Errorf("--nodes %d: the %d ranks must divide evenly among the machines", l.nodes, l.ranks)
	case l.node < 0 || l.node >= l.nodes:
		return fmt.Errorf("--node %d: with --nodes %d want 0 to %d", l.node, l.nodes, l.nodes-1)
	case l.page != "" && l.trace == "":
		return errors.New("--html needs --trace FILE")
	case l.nodes > 1 && by.Rendezvous == "":
		return errors.New("--nodes needs --rendezvous HOST:PORT, with the host of machine 0")
	case l.nodes > 1 && os.Getenv("DAGRUN_SECRET") == "":
		return errors.New("--nodes needs DAGRUN_SECRET, the same text on all machines")
	}
	return nil
}

// launched is one rank's process.
type launched struct {
	rank   int
	child  *exec.Cmd
	err    error
	output bytes.Buffer // what is printed when all have ended
}

func (u *Commands) launch(c *cobra.Command, file string, own *launchFlags) error {
	self, err := u.Self()
	if err != nil {
		return err
	}
	rendezvous, secret := u.Flags.Ranks.Rendezvous, os.Getenv("DAGRUN_SECRET")
	if rendezvous == "" {
		if rendezvous, err = world.FreeAddress(); err != nil {
			return fmt.Errorf("%w; add --rendezvous HOST:PORT", err)
		}
	}
	if secret == "" {
		var b [24]byte
		_, _ = rand.Read(b[:]) // never fails
		secret = hex.EncodeToString(b[:])
	}
	args := append([]string{"run", file}, passedOn(c)...)
	if own.trace != "" {
		if args, err = traceArgs(c, file, own); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	u.Patience.Store(int64(launchGrace + cli.Grace))
	runtime.LockOSThread() // on Linux, ranks end when the thread does that has started them
	defer runtime.UnlockOSThread()
	here := own.ranks / own.nodes
	ended := make(chan *launched, here)
	var started []*launched
	var lines sync.Mutex
	for local := range here {
		l := &launched{rank: own.node*here + local}
		child := exec.CommandContext(ctx, self, args...)
		child.Cancel = func() error { return child.Process.Signal(syscall.SIGTERM) }
		child.WaitDelay = launchGrace
		endWithLauncher(child)
		child.Env = append(os.Environ(), "DAGRUN_RANK="+strconv.Itoa(l.rank), "DAGRUN_RANKS="+strconv.Itoa(own.ranks), "DAGRUN_LOCAL_RANK="+strconv.Itoa(local),
			"DAGRUN_RENDEZVOUS="+rendezvous, "DAGRUN_SECRET="+secret)
		if os.Getenv("NCCL_NVLS_ENABLE") == "" {
			child.Env = append(child.Env, "NCCL_NVLS_ENABLE=0")
		}
		prefix := fmt.Sprintf("[%d] ", l.rank)
		out := &prefixed{to: u.Stdout, prefix: prefix, lock: &lines}
		child.Stdout = out
		if u.Flags.Output == "json" || local > 0 { // printed when all have ended, in the order of the ranks
			child.Stdout = &l.output
		}
		complaints := &prefixed{to: u.Stderr, prefix: prefix, lock: &lines}
		child.Stderr = complaints
		if err := child.Start(); err != nil {
			cancel()
			for range local {
				<-ended
			}
			return fmt.Errorf("rank %d does not start: %w", l.rank, err)
		}
		l.child = child
		started = append(started, l)
		go func() {
			l.err = child.Wait()
			out.end()
			complaints.end()
			ended <- l
		}()
	}
	return u.launchEnded(c.Context(), cancel, started, ended, own.ranks)
}

// launchEnded waits for all ranks, ends those that outlive a failure for too long, and says which failed first.
func (u *Commands) launchEnded(ctx context.Context, cancel context.CancelFunc, started []*launched, ended <-chan *launched, ranks int) error {
	all := make([]*launched, 0, len(started))
	var first *launched
	var patience <-chan time.Time
	for len(all) < len(started) {
		select {
		case l := <-ended:
			all = append(all, l)
			if status := exitStatus(l.err); status != cli.StatusOK && status != cli.StatusExpectation && patience == nil {
				first, patience = l, time.After(launchEnd)
				for _, other := range started {
					if !slices.Contains(all, other) && isStopped(other.child.Process.Pid) {
						_ = other.child.Process.Kill() // it has ended already where this fails
					}
				}
			}
		case <-patience:
			cancel()
			patience = make(chan time.Time)
		}
	}
	slices.SortFunc(all, func(x, y *launched) int { return x.rank - y.rank })
	if err := u.answerLaunch(all); err != nil {
		return err
	}
	worst := cli.StatusOK
	for _, l := range all {
		if status := exitStatus(l.err); first == nil || l == first {
			worst = max(worst, status)
		}
	}
	switch {
	case ctx.Err() != nil:
		return &cli.Reported{Status: cli.StatusInterrupted, Err: u.tellLaunch(errors.New("interrupted; all ranks have ended"))}
	case first != nil:
		return &cli.Reported{Status: worst, Err: u.tellLaunch(fmt.Errorf("rank %d of %d ended first: %w", first.rank, ranks, first.err))}
	case worst != cli.StatusOK:
		return &cli.Reported{Status: worst}
	}
	return nil
}

// tellLaunch prints why the ranks have ended.
func (u *Commands) tellLaunch(why error) error {
	if u.Flags.Output != "json" {
		u.PrintError(why)
	}
	return why
}

// exitStatus is the exit status of a process; one that a signal ended counts as failed on the device.
func exitStatus(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return cli.StatusOK
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return exit.ExitCode()
	}
	return cli.StatusDevice
}

// answerLaunch prints what the ranks have printed, with JSON as one document.
func (u *Commands) answerLaunch(all []*launched) error {
	type document struct {
		Rank   int             `json:"rank"`
		Status int             `json:"status"`
		Report json.RawMessage `json:"report"`
	}
	var list []document
	for _, l := range all {
		if u.Flags.Output != "json" {
			out := &prefixed{to: u.Stdout, prefix: fmt.Sprintf("[%d] ", l.rank), lock: &sync.Mutex{}}
			_, _ = out.Write(l.output.Bytes()) // the sink keeps its error
			out.end()
			continue
		}
		report := json.RawMessage(bytes.TrimSpace(l.output.Bytes()))
		if !json.Valid(report) {
			report = json.RawMessage("null")
		}
		list = append(list, document{l.rank, exitStatus(l.err), report})
	}
	if u.Flags.Output != "json" {
		return nil
	}
	return u.Answer(struct {
		Version int        `json:"version"`
		Command string     `json:"command"`
		Ranks   []document `json:"ranks"`
	}{cli.JSONVersion, "launch", list})
}

// passedOn lists the flags that the ranks get: all that were given but those of launch.
func passedOn(c *cobra.Command) []string {
	var args []string
	c.Flags().Visit(func(f *pflag.Flag) {
		switch f.Name {
		case "number", "nodes", "node", "rendezvous", "trace", "html":
			return
		}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			for _, value := range list.GetSlice() {
				args = append(args, "--"+f.Name+"="+value)
			}
			return
		}
		args = append(args, "--"+f.Name+"="+f.Value.String())
	})
	return args
}

// traceArgs are the arguments of ranks that trace the pipeline.
func traceArgs(c *cobra.Command, file string, own *launchFlags) ([]string, error) {
	args := []string{"trace", file, "--out=" + own.trace}
	if own.page != "" {
		args = append(args, "--html="+own.page)
	}
	trace, _, err := c.Root().Find([]string{"trace"})
	if err != nil {
		return nil, err
	}
	for _, arg := range passedOn(c) {
		name, value, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		switch {
		case name == "graph" && (value == flags.GraphOn || value == flags.GraphCaptured):
			args = append(args, "--graph")
		case name == "graph" && value == flags.GraphOff:
		case name == "graph" || trace.Flags().Lookup(name) == nil:
			return nil, fmt.Errorf("--%s does not go with --trace", name)
		default:
			args = append(args, arg)
		}
	}
	return args, nil
}

// prefixed writes whole lines, each with a prefix.
type prefixed struct {
	to     io.Writer
	prefix string
	lock   *sync.Mutex // of all ranks
	rest   []byte
}

func (p *prefixed) Write(b []byte) (int, error) {
	p.rest = append(p.rest, b...)
	for {
		at := bytes.IndexByte(p.rest, '\n')
		if at < 0 {
			return len(b), nil
		}
		if err := p.line(p.rest[:at+1]); err != nil {
			return len(b), err
		}
		p.rest = p.rest[at+1:]
	}
}

func (p *prefixed) line(b []byte) error {
	p.lock.Lock()
	defer p.lock.Unlock()
	w := bufio.NewWriter(p.to)
	_, _ = w.WriteString(p.prefix)
	_, _ = w.Write(b)
	return w.Flush()
}

// end writes a last line that has no end.
func (p *prefixed) end() {
	if len(p.rest) > 0 {
		_ = p.line(append(p.rest, '\n'))
		p.rest = nil
	}
}
