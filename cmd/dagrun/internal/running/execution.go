// One run of a program: warm-up, learning, timed replays, comparisons, saved results, and its report.

package running

import (
	"context"
	"errors"
	"time"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/runs"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/session"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/runtime"
)

// RunReport is the JSON document of run.
type RunReport struct {
	Version    int                  `json:"version"`
	Command    string               `json:"command"`
	Name       string               `json:"name"`
	OK         bool                 `json:"ok"`
	Backend    string               `json:"backend"`
	Device     string               `json:"device"`
	NoGPU      string               `json:"no_gpu,omitempty"`
	Replay     string               `json:"replay"`
	Strategy   string               `json:"strategy"`
	Machine    string               `json:"machine"`
	Nodes      int                  `json:"nodes"`
	Streams    int                  `json:"streams"`
	Waits      int                  `json:"waits"`
	Iterations int                  `json:"iterations"`
	Warmup     int                  `json:"warmup"`
	Inflight   int                  `json:"inflight"`
	Early      int                  `json:"early_launches,omitempty"` // launches of a replay that begin before the one before them has ended
	TookUS     float64              `json:"took_us"`
	EachUS     float64              `json:"each_us"`
	RestUS     float64              `json:"rest_us,omitempty"` // per replay after those that were used to learn, if there were such
	Predicted  float64              `json:"predicted_us"`
	Allowed    []session.Race       `json:"races_allowed,omitempty"` // with --allow-races
	Saved      []runtime.Saved      `json:"saved"`
	Checks     []runtime.Check      `json:"checks"`
	Checksums  []runtime.Checksum   `json:"checksums"`
	Loops      []runtime.Loop       `json:"loops,omitempty"`
	Verified   []runtime.Check      `json:"verified,omitempty"`
	Memory     *runtime.MemoryStats `json:"memory,omitempty"`
	Learning   *runs.LearnReport    `json:"learning,omitempty"`
	Sanitize   string               `json:"sanitize,omitempty"`
	Rank       *session.RankReport  `json:"rank,omitempty"`             // with several ranks
	Differs    *runtime.Difference  `json:"first_difference,omitempty"` // with --verify=nodes

	onGPU    int  // streams that a GPU would be given; 0 if that is not known
	eachNode bool // whether --verify=nodes compared each node
	learned  int  // replays that were used to learn, before those that RestUS is about
	place    string
}

// execution is a run of one program.
type execution struct {
	a       *Commands
	p       *runs.Prepared
	own     *session.RunFlags
	program *runtime.Program

	learnedFrom int           // replays that were used to learn, of those that are timed
	warming     time.Duration // how long the warm-up took
	took        time.Duration // all timed replays
	rest        time.Duration // those after learning
	verified    []runtime.Check
	differs     *runtime.Difference
}

func (u *Commands) runOn(ctx context.Context, p *runs.Prepared, options runtime.Options, own *session.RunFlags) (report *RunReport, err error) {
	if own.Verify != "" {
		options.HostReserve = referenceNeed(p.Graph)
	}
	program, err := runtime.New(ctx, p.Graph, p.Plan, p.Platform.Platform, options)
	if err != nil {
		return nil, err
	}
	defer func() { err = u.closingAt("free memory", err, program) }()
	if own.Follow {
		u.Unfinished = program.Unfinished
	}
	u.FollowCommunication(program)
	u.NoteStreams(program, options.Mode)
	u.Log.Info("ready", "replay", program.Mode(), "device_memory", words.Bytes(program.Memory().Reserved))
	for _, w := range program.Warnings() {
		u.Warn("%s", w)
	}
	e := &execution{a: u, p: p, own: own, program: program}
	if err := e.warmUp(ctx); err != nil {
		return nil, err
	}
	if _, err := u.World.Barrier(ctx, "start", ""); err != nil { // all ranks count from here
		return nil, err
	}
	if err := e.replays(ctx); err != nil {
		return nil, err
	}
	predicted, err := e.settle(ctx)
	if err != nil {
		return nil, err
	}
	results, err := e.finish(ctx)
	if err != nil {
		return nil, err
	}
	return e.report(results, predicted), nil
}

// run makes replays, the first of which are done already, up to number n.
func (e *execution) run(ctx context.Context, done, n int) error {
	if e.own.Alone {
		return e.program.RunAlone(ctx, n)
	}
	return e.a.replay(ctx, e.program, done, n)
}

// learn uses the first replays of the warm-up, or of those that are timed, if learning belongs there. It returns how many it took.
func (e *execution) learn(ctx context.Context, warmup bool) (int, error) {
	f := e.a.Flags
	if !e.p.Learning.Within(f.Warmup, f.Iterations, warmup) {
		return 0, nil
	}
	return e.a.Learn(ctx, e.p, e.own, e.program)
}

// warmUp makes the replays of --warmup, and restores the contents after them.
func (e *execution) warmUp(ctx context.Context) error {
	n := e.a.Flags.Warmup
	if n == 0 {
		return nil
	}
	began := time.Now()
	used, err := e.learn(ctx, true)
	if err != nil {
		return err
	}
	if err := e.run(ctx, used, n); err != nil {
		return err
	}
	for least := e.p.Learning.LeastWarmUp(n); time.Since(began) < least; {
		if err := e.run(ctx, 0, n); err != nil {
			return err
		}
	}
	e.warming = time.Since(began)
	return e.program.Restore(ctx)
}

// replays makes the replays that are timed.
func (e *execution) replays(ctx context.Context) (err error) {
	start := time.Now()
	if e.learnedFrom, err = e.learn(ctx, false); err != nil {
		return err
	}
	learned := time.Now()
	if err := e.run(ctx, e.learnedFrom, e.a.Flags.Iterations); err != nil {
		return err
	}
	e.took, e.rest = time.Since(start), time.Since(learned)
	return nil
}

// settle keeps what the replays told for later runs, and the plan that they took. It returns what a replay was predicted to take.
func (e *execution) settle(ctx context.Context) (float64, error) {
	left := e.a.Flags.Iterations - e.learnedFrom
	e.a.NoteQueues(ctx, e.p, e.own, e.program, left, e.rest)
	e.a.Settle(ctx, e.p, e.program, left, e.warming, e.rest)
	if plan := e.program.Plan(); e.own.SavePlan != "" && plan != e.p.Plan { // learning has chosen another one
		if err := e.a.SavePlan(ctx, e.own.SavePlan, plan, e.p.Graph); err != nil {
			return 0, err
		}
	}
	return e.a.Predicted(e.p, e.program)
}

// finish compares and saves the results. The reference must read the same input files as the run, so it runs before any of them is overwritten
// by a save; and nothing is saved unless all ranks got this far.
func (e *execution) finish(ctx context.Context) (*runtime.Results, error) {
	unverified := e.verify(ctx)
	if _, err := e.a.World.Barrier(ctx, "computed", ""); err != nil {
		return nil, err
	}
	e.a.Progress.Report("check and save results", 0, 0)
	results, err := e.program.Finish(ctx)
	if err != nil || unverified != nil {
		return nil, errors.Join(unverified, err)
	}
	e.a.KeepPasses(ctx, e.p.Graph, results.Loops)
	return results, nil
}

// verify compares with a run on the CPU, as --verify asks.
func (e *execution) verify(ctx context.Context) (err error) {
	if e.own.Verify == "" {
		return nil
	}
	if e.verified, err = e.a.verifyOnCPU(ctx, e.p, e.program); err == nil && e.own.Verify == VerifyNodes {
		e.differs, err = e.a.verifyEachNode(ctx, e.p)
	}
	return err
}

func (e *execution) report(results *runtime.Results, predicted float64) *RunReport {
	a, p, program := e.a, e.p, e.program
	plan, us := program.Plan(), float64(e.took.Nanoseconds())/1e3
	report := &RunReport{
		Version: cli.JSONVersion, Command: "run", Name: p.Graph.Name, Backend: p.Platform.Name(), Device: p.Platform.Devices()[0].Name,
		Replay: program.Mode().String(), Strategy: plan.Strategy, Machine: plan.Machine,
		Nodes: p.Graph.Len(), Streams: len(plan.Streams), Waits: plan.Stats.Waits, Learning: p.Learning.Report(),
		Iterations: a.Flags.Iterations, Warmup: a.Flags.Warmup, Inflight: a.Flags.Inflight,
		TookUS: us, EachUS: us / float64(max(1, a.Flags.Iterations)), Predicted: predicted,
		Saved: results.Saved, Checks: results.Checks, Checksums: results.Checksums, Loops: results.Loops, Verified: e.verified,
		Sanitize: a.Sanitize.Name(), place: p.Platform.Place() + a.Sanitize.Says(),
	}
	if left := a.Flags.Iterations - e.learnedFrom; e.learnedFrom > 0 && left > 0 {
		report.RestUS, report.learned = float64(e.rest.Nanoseconds())/1e3/float64(left), e.learnedFrom
	}
	report.Early, _ = program.Overlaps()
	report.Rank = a.RankReport()
	if p.Platform.NoGPU != nil {
		report.NoGPU = p.Platform.NoGPU.Error()
	}
	if e.own.Stats {
		memory := program.Memory()
		report.Memory = &memory
	}
	report.Differs, report.eachNode = e.differs, e.own.Verify == VerifyNodes
	report.OK = len(results.Failed())+len(results.FailedLoops()) == 0 && e.differs == nil
	for _, c := range report.Verified {
		report.OK = report.OK && c.OK
	}
	return report
}

// closingAt is closing as a stage of its own. After a failure the stage stays what it was, for the error's text.
func (u *Commands) closingAt(stage string, err error, c interface{ Close() error }) error {
	if err == nil {
		u.Progress.Report(stage, 0, 0)
	}
	return cli.Closing(err, c)
}

// lead is how far the host may run ahead of the device: short enough to stop soon and to report progress, long enough that waiting
// at its end costs nothing.
const lead = 100 * time.Millisecond

// replay continues from the replays that are done up to replay number n, in batches of about lead each. The first batch is a single
// replay if no replay has been timed yet, by this run or an earlier one, because predictions can be far off.
func (u *Commands) replay(ctx context.Context, program *runtime.Program, done, n int) error {
	stretch := 1
	if u.EachReplay > 0 {
		stretch = int(lead / max(u.EachReplay, time.Microsecond))
	}
	for done < n {
		u.Progress.Report(cli.StageReplay, done, n)
		stretch = max(1, min(stretch, n-done))
		start := time.Now()
		if err := program.Run(ctx, stretch); err != nil {
			return err
		}
		done += stretch
		u.EachReplay = time.Since(start) / time.Duration(stretch)
		stretch = min(8*stretch, int(lead/max(u.EachReplay, 1)))
	}
	u.Progress.Report(cli.StageReplay, n, n)
	return nil
}
