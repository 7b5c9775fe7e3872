// Which rank the environments of launchers name.

package world

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func place(t *testing.T, variables map[string]string) Place {
	t.Helper()
	p, err := Find(Flags{Rank: -1, Ranks: -1}, func(name string) string { return variables[name] })
	require.NoError(t, err)
	return p
}

func TestLaunchersNameTheRank(t *testing.T) {
	require.Equal(t, Place{Ranks: 1}, place(t, nil))
	require.Equal(t, Place{Rank: 5, Ranks: 8, LocalRank: 1, Rendezvous: "gpu-01:29500", Derived: true, Job: "torchrun 29500", Launcher: "torchrun"},
		place(t, map[string]string{"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "MASTER_ADDR": "gpu-01", "MASTER_PORT": "29500"}))
	slurm := map[string]string{"SLURM_PROCID": "3", "SLURM_NTASKS": "4", "SLURM_LOCALID": "1", "SLURM_JOB_ID": "77", "SLURM_STEP_NODELIST": "gpu[07-09,12]", "SLURM_STEP_NUM_NODES": "4"}
	require.Equal(t, Place{Ranks: 1}, place(t, slurm), "a script of sbatch is one process")
	slurm["SLURM_STEP_ID"] = "0"
	p := place(t, slurm)
	require.Equal(t, []any{3, 4, 1, "Slurm"}, []any{p.Rank, p.Ranks, p.LocalRank, p.Launcher})
	require.Contains(t, p.Rendezvous, "gpu07:")
	mpi := map[string]string{"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "4"}
	require.Contains(t, place(t, mpi).Rendezvous, "127.0.0.1:")
	mpi["OMPI_COMM_WORLD_LOCAL_SIZE"] = "2"
	_, err := Find(Flags{Rank: -1, Ranks: -1}, func(name string) string { return mpi[name] })
	require.EqualError(t, err, "Open MPI: 4 ranks need a place to meet: add --rendezvous HOST:PORT, with the host of rank 0")
	hydra := map[string]string{"PMI_RANK": "5", "PMI_SIZE": "8", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "4", "SLURM_STEP_ID": "0", "SLURM_PROCID": "1", "DAGRUN_RENDEZVOUS": "gpu-01"}
	require.Equal(t, Place{Rank: 5, Ranks: 8, LocalRank: 1, Rendezvous: "gpu-01:29400", Launcher: "MPICH"}, place(t, hydra), "Slurm has started one process for each host")
	hydra["DAGRUN_RENDEZVOUS"] = ""
	_, err = Find(Flags{Rank: -1, Ranks: -1}, func(name string) string { return hydra[name] })
	require.EqualError(t, err, "MPICH: 8 ranks need a place to meet: add --rendezvous HOST:PORT, with the host of rank 0")
	require.Equal(t, Place{Rank: 1, Ranks: 4, Rendezvous: "train-0:29400", Launcher: "Kubernetes"},
		place(t, map[string]string{"JOB_COMPLETION_INDEX": "1", "DAGRUN_RANKS": "4", "DAGRUN_RENDEZVOUS": "train-0"}))
	mpi["DAGRUN_RENDEZVOUS"] = "gpu-01"
	require.Equal(t, Place{Rank: 2, Ranks: 4, LocalRank: 2, Rendezvous: "gpu-01:29400", Launcher: "Open MPI"}, place(t, mpi))
	p, err = Find(Flags{Rank: 1, Ranks: 2, Rendezvous: "::1"}, func(name string) string { return map[string]string{"DAGRUN_LOCAL_RANK": "1"}[name] })
	require.NoError(t, err)
	require.Equal(t, Place{Rank: 1, Ranks: 2, LocalRank: 1, Rendezvous: "[::1]:29400", Launcher: "--rank and --ranks"}, p)
	p = place(t, map[string]string{"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "fd00::7", "MASTER_PORT": "29500"})
	require.Equal(t, "[fd00::7]:29500", p.Rendezvous)
}

func TestVariablesThatDoNotFitAreRefused(t *testing.T) {
	for _, c := range []struct {
		variables map[string]string
		want      string
	}{
		{map[string]string{"DAGRUN_RANK": "x", "DAGRUN_RANKS": "2"}, `DAGRUN_RANK="x" is not a number`},
		{map[string]string{"DAGRUN_RANK": "1"}, "DAGRUN_RANK is set and DAGRUN_RANKS is not: set it to how many ranks there are"},
		{map[string]string{"DAGRUN_RANKS": "4"}, "DAGRUN_RANKS is set, but nothing says which of them this is: set DAGRUN_RANK, or make the Kubernetes job indexed (completionMode: Indexed)"},
		{map[string]string{"JOB_COMPLETION_INDEX": "1", "DAGRUN_RENDEZVOUS": "train-0"}, "DAGRUN_RENDEZVOUS is set and DAGRUN_RANKS is not: set it to how many ranks there are"},
		{map[string]string{"RANK": "1", "WORLD_SIZE": "2"}, "RANK=1 and WORLD_SIZE=2 are set and MASTER_ADDR is not: set it to the host of rank 0, as torchrun does, or unset RANK to run alone"},
		{map[string]string{"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "gpu-01", "MASTER_PORT": "99999"}, `torchrun: the ranks cannot meet at "gpu-01:99999": want HOST:PORT, with a port from 1 to 65535`},
	} {
		_, err := Find(Flags{Rank: -1, Ranks: -1}, func(name string) string { return c.variables[name] })
		require.EqualError(t, err, c.want)
	}
	require.Equal(t, Place{Ranks: 1}, place(t, map[string]string{"DAGRUN_RANKS": "1"}))
	require.Equal(t, Place{Ranks: 1}, place(t, map[string]string{"RANK": "0", "WORLD_SIZE": "1"}))
	require.Equal(t, Place{Ranks: 1}, place(t, map[string]string{"RANK": "3"}), "other programs have ranks too")
}

func TestARendezvousWithoutAPort(t *testing.T) {
	for text, want := range map[string]string{"gpu-01": "gpu-01:29400", "gpu-01:1": "gpu-01:1", "::1": "[::1]:29400", "[::1]": "[::1]:29400", "[::1]:7": "[::1]:7", "10.0.0.7": "10.0.0.7:29400"} {
		got, err := withPort(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got)
	}
	for _, text := range []string{"", ":29400", "gpu-01:", "gpu-01:0", "gpu-01:65536", "gpu-01:http", "gpu-01:1:2", "[::1", "[::1]x", "[gpu-01]"} {
		_, err := withPort(text)
		require.ErrorContains(t, err, fmt.Sprintf("the ranks cannot meet at %q", text))
	}
}

// The store takes a port after the one that another process owns, or before it where none is left.
func TestDerivedPorts(t *testing.T) {
	require.Equal(t, []string{"7"}, Place{Rendezvous: "a:7"}.ports())
	require.Equal(t, "8", Place{Rendezvous: "a:7", Derived: true}.ports()[0])
	require.Equal(t, "65534", Place{Rendezvous: "a:65535", Derived: true}.ports()[0])
}

func TestFirstHostOfASlurmList(t *testing.T) {
	for list, want := range map[string]string{"gpu07": "gpu07", "a,b": "a", "gpu[07-09,12],login1": "gpu07", "n[3]-ib,n4": "n3-ib", "rack[1-2]n[01-16],x": "rack1n01", "": ""} {
		require.Equal(t, want, firstHost(list), list)
	}
}

func ExampleFind() {
	p, err := Find(Flags{Rank: -1, Ranks: -1}, func(name string) string {
		return map[string]string{"JOB_COMPLETION_INDEX": "1", "DAGRUN_RANKS": "4", "DAGRUN_RENDEZVOUS": "train-0:29400"}[name]
	})
	fmt.Println(p.Rank, p.Ranks, p.Rendezvous, err)
	// Output: 1 4 train-0:29400 <nil>
}
