// Tests under launchers: Open MPI's mpirun and MPICH's mpiexec themselves, and processes with the variables that torchrun, srun, mpiexec and Kubernetes set.

package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/runtime/cache"
)

// mpirun finds Open MPI. DAGRUN_MPIRUN names its command and makes it required, as .ci/run does.
func mpirun(t *testing.T) string {
	if name := os.Getenv("DAGRUN_MPIRUN"); name != "" {
		path, err := exec.LookPath(name)
		require.NoError(t, err, "DAGRUN_MPIRUN is set, so Open MPI must be there")
		return path
	}
	path, err := exec.LookPath("mpirun")
	if err != nil {
		t.Skip("NOT TESTED: Open MPI. Install it (Debian: apt-get install openmpi-bin) or set DAGRUN_MPIRUN to its command.")
	}
	return path
}

// launchedFile has exact results that no rank can have without the others.
const launchedFile = `version: 1
name: launched
buffers:
  x: {place: host, dtype: f32, shape: [16], init: {expr: i + rank}}
  d_x: {place: device, dtype: f32, shape: [16]}
  out: {place: host, dtype: f32, shape: [16], save: out.$rank.npy, expect: {expr: ranks*i + ranks*(ranks - 1)/2}}
nodes:
  - {name: up, memcpy: {from: x, to: d_x}}
  - {name: sum, allreduce: {inout: d_x, op: sum}}
  - {name: down, memcpy: {from: d_x, to: out}}
`

// MPICH is tested where DAGRUN_MPICH names its mpiexec, as .ci/long does.
func TestMPI(t *testing.T) {
	t.Run("Open MPI", func(t *testing.T) { underMPI(t, mpirun(t), "--oversubscribe") })
	if name := os.Getenv("DAGRUN_MPICH"); name != "" {
		t.Run("MPICH", func(t *testing.T) {
			launcher, err := exec.LookPath(name)
			require.NoError(t, err, "DAGRUN_MPICH is set, so MPICH must be there")
			underMPI(t, launcher)
		})
	}
}

func underMPI(t *testing.T, launcher string, flags ...string) {
	c := newCrew(t, 4, launchedFile)
	run := func(file string) (string, error) {
		cmd := exec.Command(launcher, append(flags, "-n", "4", c.self, file, "--backend", "cpu", "--arrive", "10m")...)
		cmd.Dir = c.dir
		cmd.Env = append(os.Environ(), "NCCL_NVLS_ENABLE=0", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_oob_tcp_if_include=lo",
			cache.Variable+"="+cache.Off, "GORACE=atexit_sleep_ms=0", "NO_COLOR=1")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := run("ranks.yaml")
	require.NoError(t, err, out)
	for rank := range 4 {
		require.Regexp(t, fmt.Sprintf(`(?m)^launched: .* on rank %d of 4, the CPU device; 3 nodes`, rank), out)
	}
	require.Equal(t, 4, strings.Count(out, "  ok    out  matches expr ranks*i + ranks*(ranks - 1)/2, 16 elements, exactly"), out)
	require.Len(t, c.saved(), 4)

	// A rank that fails ends the others with its status.
	c.write("wrong.yaml", strings.Replace(launchedFile, "ranks*(ranks - 1)/2}", "ranks*(ranks - 1)/2 + (rank == 2)}", 1))
	out, err = run("wrong.yaml")
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, cli.StatusExpectation, exit.ExitCode(), out)
	require.Equal(t, 1, strings.Count(out, "  FAIL  out  "), out)
}

// saved lists the files that the ranks have saved.
func (c *crew) saved() []string {
	entries, err := os.ReadDir(c.dir)
	require.NoError(c.t, err)
	var names []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".npy") {
			names = append(names, e.Name())
		}
	}
	return names
}

// What torchrun, srun, mpiexec and Kubernetes set is enough for processes to find each other.
func TestTheVariablesOfLaunchers(t *testing.T) {
	const ranks = 3
	for name, variables := range map[string]func(rank int, agent, free string) []string{
		"torchrun": func(rank int, agent, free string) []string { // its agent owns the port
			return []string{"RANK=" + strconv.Itoa(rank), "WORLD_SIZE=3", "LOCAL_RANK=" + strconv.Itoa(rank), "LOCAL_WORLD_SIZE=3", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + agent}
		},
		"srun": func(rank int, agent, free string) []string {
			return []string{"SLURM_PROCID=" + strconv.Itoa(rank), "SLURM_LOCALID=" + strconv.Itoa(rank), "SLURM_NTASKS=3", "SLURM_STEP_NUM_TASKS=3", "SLURM_JOB_ID=" + agent,
				"SLURM_STEP_ID=0", "SLURM_STEP_NUM_NODES=1", "SLURM_STEP_NODELIST=gpu-07"}
		},
		"mpiexec of several hosts": func(rank int, agent, free string) []string {
			return []string{"PMI_RANK=" + strconv.Itoa(rank), "PMI_SIZE=3", "MPI_LOCALRANKID=0", "MPI_LOCALNRANKS=1", "DAGRUN_RENDEZVOUS=" + free}
		},
		"Kubernetes": func(rank int, agent, free string) []string {
			return []string{"JOB_COMPLETION_INDEX=" + strconv.Itoa(rank), "DAGRUN_RANKS=3", "DAGRUN_RENDEZVOUS=" + free}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCrew(t, ranks, launchedFile)
			agent, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer agent.Close()
			_, port, err := net.SplitHostPort(agent.Addr().String())
			require.NoError(t, err)
			free := strings.Replace(c.at, "127.0.0.1", "localhost", 1)
			var all []*process
			for rank := range ranks {
				all = append(all, c.startWith(rank, append(variables(rank, port, free), "DAGRUN_SECRET="+c.secret), "ranks.yaml"))
			}
			for _, p := range all {
				<-p.ended
				require.True(t, p.cmd.ProcessState.Success(), "rank %d: %s", p.rank, p.said())
			}
			require.Len(t, c.saved(), ranks)
		})
	}
}
