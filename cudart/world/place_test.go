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
	require.Equal(t, Place{Rank: 5, Ranks: 8, LocalRank: 1, Rendezvous: "gpu-01:29500", Derived: true, Launcher: "torchrun"},
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
	require.Equal(t, Place{Rank: 1, Ranks: 4, Rendezvous: "train-0:29400", Launcher: "Kubernetes"},
		place(t, map[string]string{"JOB_COMPLETION_INDEX": "1", "DAGRUN_RANKS": "4", "DAGRUN_RENDEZVOUS": "train-0"}))
	_, err = Find(Flags{Rank: -1, Ranks: -1}, func(name string) string { return map[string]string{"DAGRUN_RANK": "x", "DAGRUN_RANKS": "2"}[name] })
	require.EqualError(t, err, `DAGRUN_RANK="x" is not a number`)
}

func TestFirstHostOfASlurmList(t *testing.T) {
	for list, want := range map[string]string{"gpu07": "gpu07", "a,b": "a", "gpu[07-09,12],login1": "gpu07", "n[3]-ib,n4": "n3-ib"} {
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
