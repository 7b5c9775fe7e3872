// dagrun devices: the devices of this machine and their main figures.

package catalog

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/runs"
	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/driver"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/cudart/nvml"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/kernels/source/nvrtc"
	"github.com/dagrun/dagrun/runtime"
	"github.com/dagrun/dagrun/runtime/learn"
)

func (u *Commands) DevicesCommand() *cobra.Command {
	var measure bool
	var out string
	c := &cobra.Command{
		Use:   "devices",
		Short: "Show the GPUs and the CPU device",
		Long: `Show every GPU, or the CPU device that replaces it: memory, multiprocessors, capability, copy
engines, which GPUs can access each other's memory, driver, compiler, and, if NVIDIA's management
library is installed, temperature, power and load.

--measure takes a few seconds and prints a machine file for --machine. Later runs on this device
are planned with it, unless --cache-dir is off.`,
		Example: `  dagrun devices
  dagrun devices --backend cpu:2
  dagrun devices --measure -o here.json      for runs from now on, and for --machine`,
		Args: flags.AtMost(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := u.CheckFlags(c); err != nil {
				return err
			}
			u.Progress.Begin()
			ctx, done := u.WithTimeout(c.Context())
			defer done()
			if measure {
				return u.measureDevice(ctx, out)
			}
			if out != "" {
				return errors.New("-o needs --measure")
			}
			return u.listDevices()
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	u.OutputFlags(c)
	u.DeviceFlags(c)
	u.CacheFlag(c)
	c.Flags().BoolVar(&measure, "measure", false, "measure the first device and print its machine file")
	c.Flags().StringVarP(&out, "out", "o", "", "write the machine file to this `file`")
	return c
}

// deviceDocument is a device in JSON. Unknown figures are left out.
type deviceDocument struct {
	Backend         string   `json:"backend"`
	Number          int      `json:"number"`
	Name            string   `json:"name"`
	UUID            string   `json:"uuid"`
	MemoryBytes     int64    `json:"memory_bytes"`
	FreeBytes       *int64   `json:"free_bytes,omitempty"`
	Multiprocessors int      `json:"multiprocessors"`
	Capability      string   `json:"capability,omitempty"`
	ClockMHz        int      `json:"clock_mhz,omitempty"`
	L2Bytes         int      `json:"l2_bytes,omitempty"`
	CopyEngines     int      `json:"copy_engines"`
	MaxThreads      int      `json:"max_threads_per_block"`
	SharedPerBlock  int      `json:"max_shared_bytes_per_block"`
	Driver          string   `json:"driver"`
	Peers           []int    `json:"peers"`
	Temperature     *int     `json:"temperature_c,omitempty"`
	PowerW          *float64 `json:"power_w,omitempty"`
	PowerLimitW     *float64 `json:"power_limit_w,omitempty"`
	LoadPercent     *int     `json:"load_percent,omitempty"`
	UsedBytes       *int64   `json:"used_bytes,omitempty"`
	Processes       *int     `json:"processes,omitempty"`

	reading string
}

// DevicesReport is the JSON document of devices.
type DevicesReport struct {
	Version  int              `json:"version"`
	Command  string           `json:"command"`
	Devices  []deviceDocument `json:"devices"`
	NoGPU    string           `json:"no_gpu,omitempty"`
	Compiler string           `json:"nvrtc,omitempty"` // version
	NoNVRTC  string           `json:"no_nvrtc,omitempty"`
	NoNVML   string           `json:"no_nvml,omitempty"`
	// Libraries are those of NVIDIA that pipelines may call, where there is a GPU.
	Libraries []libraryDocument `json:"libraries,omitempty"`
}

func (u *Commands) listDevices() error {
	report := &DevicesReport{Version: cli.JSONVersion, Command: "devices", Devices: []deviceDocument{}}
	n, err := flags.CPUDevices(u.Flags.Backend, 1)
	if err != nil {
		return err
	}
	if n == 0 {
		if err := u.addGPUs(report); err != nil {
			return err
		}
	}
	if n > 0 || u.Flags.Backend == "auto" {
		cpu, err := host.Open(host.Options{Devices: max(1, n)})
		if err != nil {
			return err
		}
		report.add(cpu, nil)
		if err := cpu.Close(); err != nil {
			return err
		}
	}
	if u.Flags.Output == "json" {
		return u.Answer(report)
	}
	return u.printDevices(report)
}

func (u *Commands) addGPUs(report *DevicesReport) error {
	gpus, err := driver.Open(driver.Options{})
	if err != nil {
		if u.Flags.Backend == "cuda" || !errors.Is(err, cudart.ErrNoDriver) && !errors.Is(err, cudart.ErrNoDevice) {
			return err
		}
		report.NoGPU = err.Error()
		return nil
	}
	management, err := nvml.Open()
	if err != nil {
		report.NoNVML = err.Error()
	}
	report.add(gpus, management)
	if management != nil {
		if err := management.Close(); err != nil {
			return err
		}
	}
	if compiler, err := nvrtc.Open(nvrtc.Options{}); err != nil {
		report.NoNVRTC = err.Error()
	} else {
		major, minor := compiler.Version()
		report.Compiler = fmt.Sprintf("%d.%d", major, minor)
	}
	report.Libraries = foundLibraries()
	return gpus.Close()
}

// add describes a platform's devices. What the management library does not report is left out.
func (r *DevicesReport) add(platform cudart.Platform, management *nvml.Library) {
	for i, info := range platform.Devices() {
		d := deviceDocument{Backend: platform.Name(), Number: i, Name: info.Name, UUID: info.UUID, MemoryBytes: info.Memory,
			Multiprocessors: info.Multiprocessors, ClockMHz: info.ClockKHz / 1000, L2Bytes: info.L2Bytes, CopyEngines: info.CopyEngines,
			MaxThreads: info.MaxThreadsPerBlock, SharedPerBlock: info.SharedPerBlockMax, Driver: info.Driver, Peers: []int{}}
		if info.Capability != [2]int{} {
			d.Capability = fmt.Sprintf("%d.%d", info.Capability[0], info.Capability[1])
		}
		for j, peer := range info.Peers {
			if peer && j != i {
				d.Peers = append(d.Peers, j)
			}
		}
		if platform.Name() == "cpu" {
			if free, _, err := platform.MemoryInfo(int32(i)); err == nil {
				d.FreeBytes = &free
			}
		}
		if management != nil {
			if reading, err := management.Read(info.UUID); err == nil {
				d.Temperature, d.PowerW, d.PowerLimitW, d.LoadPercent, d.UsedBytes = reading.Temperature, reading.Power, reading.PowerLimit,
					reading.Load, reading.MemoryUsed
				if reading.MemoryUsed != nil && reading.MemoryTotal != nil {
					free := *reading.MemoryTotal - *reading.MemoryUsed
					d.FreeBytes = &free
				}
				if reading.Processes != nil {
					n := len(reading.Processes)
					d.Processes = &n
				}
				d.reading = reading.String()
			}
		}
		r.Devices = append(r.Devices, d)
	}
}

func (u *Commands) printDevices(r *DevicesReport) error {
	u.Progress.Clear()
	table := cli.NewTable("device", "name", "memory", "free", "SMs", "capability", "MHz", "copy engines", "driver", "peers")
	table.Keys = 2
	for _, d := range r.Devices {
		free := "-"
		if d.FreeBytes != nil {
			free = words.Bytes(*d.FreeBytes)
		}
		peers := make([]string, len(d.Peers))
		for i, p := range d.Peers {
			peers[i] = strconv.Itoa(p)
		}
		table.Row(fmt.Sprintf("%s:%d", d.Backend, d.Number), d.Name, words.Bytes(d.MemoryBytes), free, strconv.Itoa(d.Multiprocessors), cli.Dash(d.Capability),
			cli.Dash(cli.NonZero(d.ClockMHz)), strconv.Itoa(d.CopyEngines), d.Driver, cli.Dash(strings.Join(peers, " ")))
	}
	if err := table.Write(u.Stdout, u.LineWidth()); err != nil {
		return err
	}
	for _, d := range r.Devices {
		if d.reading != "" {
			fmt.Fprintf(u.Stdout, "%s:%d now: %s\n", d.Backend, d.Number, d.reading)
		}
	}
	if u.Flags.Quiet {
		return nil
	}
	switch {
	case r.Compiler != "":
		fmt.Fprintf(u.Stdout, "CUDA C is compiled by NVRTC %s\n", r.Compiler)
	case r.NoNVRTC != "":
		fmt.Fprintln(u.Stdout, "kernels in CUDA C cannot be compiled here: libnvrtc was not found")
		u.Log.Info(r.NoNVRTC)
	}
	u.printLibraries(r.Libraries)
	if r.NoNVML != "" {
		fmt.Fprintln(u.Stdout, "temperature, power and load are unknown: NVIDIA's management library was not found")
		u.Log.Info(r.NoNVML)
	}
	if r.NoGPU != "" {
		fmt.Fprintln(u.Stdout, "no GPU was found; pipelines run on the CPU device")
		u.Log.Info(r.NoGPU)
	}
	return nil
}

// measureDevice prints the machine file of the first device, and keeps it for later runs.
func (u *Commands) measureDevice(ctx context.Context, out string) (err error) {
	platform, err := u.OpenPlatform(1, runs.MostQueues)
	if err != nil {
		return err
	}
	defer func() { err = cli.Closing(err, platform) }()
	if platform.NoGPU != nil {
		u.Warn("no GPU was found; measuring the CPU device")
	}
	machine, err := runtime.MeasureMachine(ctx, platform.Platform, u.Progress.Report)
	if err != nil {
		return err
	}
	u.Progress.Clear()
	if err := learn.KeepMachine(ctx, platform.Platform, u.OpenCache(), machine); err != nil && ctx.Err() == nil {
		u.Warn("the measurements are not kept for later runs: %v", err)
	}
	if out == "" {
		u.Answered = true
		return machine.Encode(u.Stdout)
	}
	if err := u.Write(ctx, out, machine.Encode); err != nil || u.Flags.Output != "json" {
		return err
	}
	return u.Answer(struct {
		Version int    `json:"version"`
		Command string `json:"command"`
		File    string `json:"file"`
	}{cli.JSONVersion, "devices", out})
}
