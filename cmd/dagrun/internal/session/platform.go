// Platforms: which kind of device a command runs on, and why.

package session

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/driver"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/launch"
	"github.com/dagrun/dagrun/kernels/library"
)

// Compiler is what devices compile CUDA C with.
func (u *Session) Compiler() launch.Compiler {
	if u.Compilers == nil {
		return nil
	}
	return u.Compilers
}

// OpenPlatform opens the platform that --backend names. auto takes a GPU if there is one, otherwise the CPU device. queues are hardware
// queues, as in driver.Options; the environment takes precedence.
func (u *Session) OpenPlatform(devices, queues int) (*Opened, error) {
	u.Progress.Report("open the device", 0, 0)
	n, err := flags.CPUDevices(u.Flags.Backend, devices)
	if err != nil {
		return nil, err
	}
	if n > 0 {
		cpu, err := u.openCPU(n, nil)
		if err != nil {
			return nil, err
		}
		return enough(cpu, devices, u.spreads)
	}
	if os.Getenv(QueuesVariable) != "" {
		queues = 0
	}
	p, err := driver.Open(driver.Options{Queues: queues, Lasting: true, Choose: u.chooseGPU(), Compilers: u.Compiler()})
	switch {
	case err == nil:
		for i := range int32(min(devices, len(p.Devices()))) {
			go p.Prepare(i) // an error comes again at the first use
		}
		found := p.Devices()
		u.MemoryInfo = p.MemoryInfo
		u.Log.Info("chose the GPU", "device", found[0].Name, "devices", len(found), "driver", found[0].Driver, "hardware_queues", p.Queues())
		return enough(&Opened{Platform: p, where: found[0].Name}, devices, u.spreads)
	case u.Flags.Backend == "cuda":
		return nil, fmt.Errorf("--backend cuda: %w", err)
	case errors.Is(err, cudart.ErrNoDriver), errors.Is(err, cudart.ErrNoDevice):
		u.Log.Info("chose the CPU device: " + err.Error())
		return u.openCPU(devices, err)
	}
	return nil, fmt.Errorf("the GPU cannot be used (--backend cpu runs without it): %w", err)
}

// UnpackLibrary unpacks the library's kernels of a graph in the background, because that takes milliseconds and opening a GPU takes longer.
// Loading finds them unpacked.
func UnpackLibrary(g *dag.Graph) {
	var entries []string
	for i := range g.Nodes {
		if l := g.Nodes[i].Launch; l != nil && l.Module < 0 && !slices.Contains(entries, l.Kernel.Entry()) {
			entries = append(entries, l.Kernel.Entry())
		}
	}
	if len(entries) > 0 {
		go library.Module(entries...)
	}
}

func (u *Session) openCPU(devices int, because error) (*Opened, error) {
	p, err := host.Open(host.Options{Devices: devices, Sanitize: u.Sanitize.level, MaxSteps: u.Flags.Steps, Print: u.kernelPrints, Compilers: u.Compiler()})
	if err != nil {
		return nil, err
	}
	where := "the CPU device"
	if devices > 1 {
		where = fmt.Sprintf("%d CPU devices", devices)
	}
	return &Opened{Platform: p, where: where, NoGPU: because}, nil
}

// DefaultSteps is how many instructions a launch may run on the CPU device: about ten minutes' worth.
const DefaultSteps = 100_000_000_000

// kernelPrints prints what a kernel prints. Workers call it at the same time.
func (u *Session) kernelPrints(text string) {
	u.printing.Lock()
	defer u.printing.Unlock()
	out := u.Stdout
	if u.Flags.Output == "json" {
		out = u.Stderr // stdout has only the document
	}
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			_ = out.Printf("\n")
		}
		_ = out.Printf("%s", line)
	}
}

// enough refuses a platform with fewer devices than the pipeline names.
func enough(o *Opened, devices int, spread bool) (*Opened, error) {
	have := len(o.Devices())
	if devices <= have {
		return o, nil
	}
	are := "are"
	if have == 1 {
		are = "is"
	}
	if spread {
		err := fmt.Errorf("the pipeline is to be spread over %s, but there %s only %s; --devices %d spreads it over what there is, --backend cpu:%d runs it on as many CPU devices",
			cli.Counted(devices, "device"), are, cli.Counted(have, "device"), have, devices)
		return nil, errors.Join(err, o.Close())
	}
	err := fmt.Errorf("the pipeline uses device %d, but there %s only %s; --backend cpu:%d runs it on as many CPU devices", devices-1, are,
		cli.Counted(have, "device"), devices)
	return nil, errors.Join(err, o.Close())
}

// Place returns where a pipeline ran.
func (o *Opened) Place() string {
	if o.NoGPU != nil {
		return o.where + " (no GPU was found)"
	}
	return o.where
}

// chooseGPU returns how a rank finds its GPU: the only one that it sees, or else that of its number on this machine. It returns nil without
// other ranks.
func (u *Session) chooseGPU() func(count int) ([]int, error) {
	if u.Place.Ranks <= 1 {
		return nil
	}
	return func(count int) ([]int, error) {
		switch local := u.Place.LocalRank; {
		case count == 1:
			return []int{0}, nil
		case local >= count:
			return nil, fmt.Errorf("rank %d has number %d on this machine, whose %d GPUs have the numbers 0 to %d: every rank needs a GPU of its own, so start at most %d ranks here, or add --backend cpu",
				u.Place.Rank, local, count, count-1, count)
		default:
			return []int{local}, nil
		}
	}
}

// Opened is a platform with its description.
type Opened struct {
	cudart.Platform
	where string // "NVIDIA H200", "the CPU device"
	NoGPU error  // why the CPU device is used instead of a GPU; nil if it was asked for
}

// QueuesVariable sets the hardware queues of a process.
const QueuesVariable = "CUDA_DEVICE_MAX_CONNECTIONS"
