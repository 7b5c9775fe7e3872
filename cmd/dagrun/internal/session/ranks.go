// Ranks: finding out which rank this process is, joining the others, and ending together.

package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cudart/world"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/file"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/planner/proof/ranks"
	"github.com/dagrun/dagrun/runtime"
)

// FindPlace finds out which rank this process is.
func (u *Ranks) FindPlace() error {
	place, err := world.Find(u.Flags.Ranks, os.Getenv)
	if err != nil {
		return err
	}
	if place.Ranks > 1 {
		u.Place = place
		u.Log.Info("one of several ranks", "rank", place.Rank, "ranks", place.Ranks, "says", place.Launcher, "meet_at", place.Rendezvous)
	}
	return nil
}

// decision is what rank 0 decides for all ranks.
type decision struct {
	Replay     string `json:"replay"`
	Iterations int    `json:"iterations"`
	Warmup     int    `json:"warmup"`
	Strategy   string `json:"strategy"`
	Streams    int    `json:"streams"`
	Limited    bool   `json:"limited"`
	Effort     string `json:"effort"`
	Machine    string `json:"machine"`
	Memory     string `json:"memory"`
	MemoryCap  string `json:"memory_cap"`
	Threads    int    `json:"threads"`
	Learn      string `json:"learn"`
}

func (u *Ranks) decide() decision {
	f := u.Flags
	return decision{f.Replay, f.Iterations, f.Warmup, f.Strategy, f.Streams, f.Limited, f.Effort, f.Machine, f.Memory, f.MemoryCap, f.Threads, f.Learn}
}

// connected is a platform that communicates with other ranks.
type connected interface {
	Connect(ctx context.Context, w *world.World, groups []dag.Among) error
}

// groupsOf lists the groups of ranks that a rank communicates in, other than all ranks.
func groupsOf(g *dag.Graph) []dag.Among {
	list := []dag.Among{}
	g.EachGraph(func(level *dag.Graph, _ []string) {
		for i := range level.Nodes {
			if c := level.Nodes[i].Communication; c != nil && c.Verb != dag.Exchange && !c.Among.All() && !slices.Contains(list, c.Among) {
				list = append(list, c.Among)
			}
		}
	})
	return list
}

// JoinRanks meets the other ranks, if there are any, and takes over what rank 0 decides.
func (u *Ranks) JoinRanks(ctx context.Context, g *dag.Graph, platform *Opened, own *RunFlags) error {
	if u.Place.Ranks <= 1 {
		return nil
	}
	if err := u.ranksCanRun(g, own); err != nil {
		return err
	}
	to, ok := platform.Platform.(connected)
	if !ok {
		return fmt.Errorf("%d ranks cannot run on %s", u.Place.Ranks, platform.Name())
	}
	decided, err := json.Marshal(u.decide())
	if err != nil {
		return err
	}
	onCPU, gpu := platform.Name() == "cpu", ""
	if !onCPU {
		gpu = platform.Devices()[0].UUID
	}
	if u.Place.Rank == 0 && os.Getenv("DAGRUN_SECRET") == "" {
		u.Warn("without DAGRUN_SECRET, every user of this machine can join the ranks; set it to the same text on all of them")
	}
	u.Progress.Report("wait for the other ranks", 0, 0)
	w, answer, err := world.Join(ctx, world.JoinOptions{Place: u.Place, Secret: os.Getenv("DAGRUN_SECRET"), Arrive: u.Flags.Arrive, Mesh: onCPU, Device: gpu,
		Timeout: u.Flags.Timeout, Text: u.Progress.Where, Hash: rankHash(g), Outline: func() []string { return outlineOf(g) }, Decision: decided, Check: u.proveRanks,
		Expected: func(m world.Member) (world.Expected, error) {
			other, err := u.Reread(m.Rank, m.LocalRank)
			if err != nil {
				return world.Expected{}, err
			}
			return world.Expected{Hash: rankHash(other), Outline: func() []string { return outlineOf(other) }}, nil
		}})
	if errors.Is(err, world.ErrRank) {
		return rankFailure(err)
	}
	if err != nil {
		return err
	}
	u.World = w
	u.joined(w)
	var d decision
	if err := json.Unmarshal(answer, &d); err != nil {
		return err
	}
	f := u.Flags
	f.Replay, f.Iterations, f.Warmup, f.Strategy, f.Streams, f.Limited = d.Replay, d.Iterations, d.Warmup, d.Strategy, d.Streams, d.Limited
	f.Effort, f.Machine, f.Memory, f.MemoryCap, f.Threads, f.Learn = d.Effort, d.Machine, d.Memory, d.MemoryCap, d.Threads, d.Learn
	u.Followed = !onCPU && u.Flags.Timeout > 0
	u.Progress.Report("connect the ranks", 0, 0)
	return to.Connect(ctx, w, groupsOf(g))
}

// proveRanks proves that all ranks can communicate.
func (u *Ranks) proveRanks(members []world.Member) error {
	local := make([]int, len(members))
	for rank := range members {
		local[rank] = members[rank].LocalRank
	}
	family, err := u.family(u.Place.Ranks, local)
	if err != nil {
		return err
	}
	found, err := ranks.Prove(family)
	if err != nil || len(found) == 0 {
		return err
	}
	more := ""
	if len(found) > 1 {
		more = fmt.Sprintf("; dagrun check --ranks %d shows more", u.Place.Ranks)
	}
	return fmt.Errorf("%s%s", found[0].Text, more)
}

// AssumeRanks makes a command look at a pipeline as rank 0 of --ranks.
func (u *Ranks) AssumeRanks() error {
	n := u.Flags.Ranks.Ranks
	if n < 1 || n > dag.MaxRanks {
		return fmt.Errorf("--ranks %d: want 1 to %d", n, dag.MaxRanks)
	}
	if n > 1 {
		u.Place = world.Place{Ranks: n}
	}
	return nil
}

// CheckedRanks is what check finds out about several ranks.
type CheckedRanks struct {
	Ranks      int      `json:"ranks"`
	Classes    int      `json:"classes"`
	Violations []string `json:"violations"`
}

func (u *Ranks) CheckRanks() (*CheckedRanks, error) {
	if u.Place.Ranks <= 1 {
		return nil, nil
	}
	family, err := u.family(u.Place.Ranks, nil)
	if wrong := (*file.ParseError)(nil); errors.As(err, &wrong) {
		if err := u.PrintDiagnostics(&wrong.Diagnostics); err != nil {
			return nil, err
		}
		if on := (*file.RankParseError)(nil); errors.As(err, &on) {
			err = fmt.Errorf("rank %d of %d: the pipeline has these mistakes", on.Rank, on.Ranks)
		}
	}
	if err != nil {
		return nil, err
	}
	found, err := ranks.Prove(family)
	if err != nil {
		return nil, err
	}
	report := &CheckedRanks{Ranks: u.Place.Ranks, Classes: len(family.Classes), Violations: []string{}}
	for _, v := range found {
		report.Violations = append(report.Violations, v.Text)
	}
	return report, nil
}

func (r *CheckedRanks) Print(a *Session) {
	if r == nil {
		return
	}
	for _, text := range r.Violations {
		_ = a.Stdout.Printf("%s %s\n", a.Paint(a.Stdout, cli.Red, "ranks:"), text)
	}
	if len(r.Violations) == 0 && !a.Flags.Quiet {
		_ = a.Stdout.Printf("ranks: %s; all %d communicate without deadlock, in %s\n", a.Paint(a.Stdout, cli.Green, "ok"), r.Ranks,
			words.Count(r.Classes, "class", "classes"))
	}
}

// ranksCanRun refuses what several ranks cannot do together.
func (u *Ranks) ranksCanRun(g *dag.Graph, own *RunFlags) error {
	f := u.Flags
	if own == nil {
		own = new(RunFlags)
	}
	for flag, given := range map[string]bool{"--inflight": f.Inflight > 1, "--node-by-node": own.Alone, "--verify": own.Verify != ""} {
		if given {
			return fmt.Errorf("%s works with one rank only, but there are %d", flag, u.Place.Ranks)
		}
	}
	if devices := g.UsedDevices(); devices > 1 {
		return fmt.Errorf("the pipeline uses %d devices, but with several ranks each has one", devices)
	}
	return nil
}

// rankFailure gives the failure of another rank its exit status.
func rankFailure(err error) error {
	if of := (*world.RankError)(nil); errors.As(err, &of) && of.TimedOut {
		return cli.WithStatus(cli.StatusTimeout, of)
	}
	return cli.WithStatus(cli.StatusDevice, err)
}

// AmongRanks runs a command that may join other ranks, and ends together with them: when another rank fails, this one ends with its cause.
func (u *Ranks) AmongRanks(ctx context.Context, run func(context.Context) error) error {
	if u.Place.Ranks <= 1 {
		return run(ctx)
	}
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan struct{})
	defer close(ended)
	u.joined = func(w *world.World) { go u.endTogether(ctx, w, cancel, ended) }
	err := run(inner)
	var seen *cli.Reported
	if errors.As(err, &seen) && seen.Status == cli.StatusExpectation {
		if other := u.World.Leave(nil); other != nil { // wrong results are no failure of the others
			return rankFailure(other)
		}
		return err
	}
	cause := u.World.Cause()
	other := u.World.Leave(err)
	switch {
	case errors.Is(cause, world.ErrRank):
		return rankFailure(cause)
	case errors.Is(err, world.ErrRank): // before the ranks had met
		return err
	case ctx.Err() != nil && err != nil:
		return ctx.Err()
	case cause != nil && err != nil:
		return rankFailure(cause)
	case err == nil && other != nil:
		return rankFailure(other)
	}
	return err
}

// endTogether ends this rank's work when another one fails, and all communication when this one is interrupted or times out.
func (u *Ranks) endTogether(ctx context.Context, w *world.World, cancel context.CancelCauseFunc, ended <-chan struct{}) {
	select {
	case <-ended:
		return
	case <-w.Failed():
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			w.TimedOut()
		} else {
			w.Fail(ctx.Err())
		}
	}
	cancel(w.Cause())
	select {
	case <-ended:
	case <-time.After(cli.RankEnd):
		err := rankFailure(w.Cause())
		u.Die(cli.StatusOf(err), fmt.Sprintf("%s; %s did not finish within another %s, %s", err, u.Working(), cli.RankEnd, u.Progress.Where()))
	}
}

// RankReport is which rank a document is of.
type RankReport struct {
	Rank  int `json:"rank"`  // of this process, from 0
	Ranks int `json:"ranks"` // how many run the pipeline together
}

func (u *Ranks) RankReport() *RankReport {
	if u.Place.Ranks <= 1 {
		return nil
	}
	return &RankReport{u.Place.Rank, u.Place.Ranks}
}

// FollowCommunication lets the other ranks ask where this one communicates, if its device knows.
func (u *Ranks) FollowCommunication(program *runtime.Program) {
	if u.World == nil || !u.Followed {
		return
	}
	name := func(n *dag.Node) string {
		if n == nil {
			return ""
		}
		return n.Name
	}
	u.World.Follow(func() world.State {
		now, last := program.Communicating()
		s := world.State{Node: name(now), Last: name(last), Mutual: true}
		if now != nil {
			with := now.Communication
			if with == nil { // the condition of a loop or branch goes to all ranks
				with = &dag.Communication{Verb: dag.Broadcast}
			}
			s.For = with.Partners(int32(u.Place.Ranks))
		}
		return s
	})
}

// Agree returns what rank 0 passes to it, on all ranks.
func (u *Ranks) Agree(ctx context.Context, own string) (string, error) {
	texts, err := u.World.Barrier(ctx, "agree", own)
	if err != nil {
		return "", err
	}
	return texts[0], nil
}

// RunFlags are the flags that only run has.
type RunFlags struct {
	Verify     string // "", results or nodes
	AllowRaces bool
	Alone      bool
	SavePlan   string
	Stats      bool
	Follow     bool
}
