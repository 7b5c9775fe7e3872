// Tests of the page that takes a file from a laptop to a cluster: its scripts are scripts, its manifest starts ranks that find each other, and no
// script lets NCCL use multicast.

package tests

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/dagrun/dagrun/cudart/world"
)

// manifest is what the test reads of a JobSet.
type manifest struct {
	Spec struct {
		ReplicatedJobs []struct {
			Template struct {
				Spec struct {
					Completions, Parallelism int
					Template                 struct {
						Spec struct {
							Containers []struct {
								Command []string
								Env     []struct{ Name, Value string }
							}
						}
					}
				}
			}
		} `yaml:"replicatedJobs"`
	}
}

func TestScriptsOfTheScalingPage(t *testing.T) {
	for _, script := range fences(page(t, "docs/scaling.md"), "sh") {
		c := exec.Command("bash", "-n")
		c.Stdin = strings.NewReader(script)
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s\n%s", script, out)
		for _, starter := range []string{"srun ", "mpirun ", "torchrun ", "launch "} {
			if strings.Contains(script, starter) {
				require.Contains(t, script, "export NCCL_NVLS_ENABLE=0\n")
			}
		}
	}
}

// The pods of the page's JobSet, as processes of this machine: what Kubernetes gives each is its number and the manifest's variables.
func TestTheJobSetOfTheScalingPageStartsRanks(t *testing.T) {
	var set manifest
	blocks := fences(page(t, "docs/scaling.md"), "yaml")
	require.Len(t, blocks, 2)
	require.NoError(t, yaml.Unmarshal([]byte(blocks[1]), &set))
	job := set.Spec.ReplicatedJobs[0].Template.Spec
	container := job.Template.Spec.Containers[0]
	require.Equal(t, job.Completions, job.Parallelism)
	address, err := world.FreeAddress()
	require.NoError(t, err)
	env := append(os.Environ(), "DAGRUN_SECRET=a secret of this test", "DAGRUN_CACHE=off")
	given := map[string]string{}
	for _, v := range container.Env {
		given[v.Name] = v.Value
		if v.Name != "DAGRUN_SECRET" && v.Name != "DAGRUN_RENDEZVOUS" {
			env = append(env, v.Name+"="+v.Value)
		}
	}
	require.Equal(t, "0", given["NCCL_NVLS_ENABLE"])
	require.Equal(t, fmt.Sprint(job.Completions), given["DAGRUN_RANKS"])
	require.Contains(t, given["DAGRUN_RENDEZVOUS"], ":")
	require.Equal(t, []string{"dagrun", "/pipelines/data-parallel.yaml"}, container.Command[:2])
	args := []string{"../pipelines/data-parallel.yaml", "--backend", "cpu"}
	for _, a := range container.Command[2:] {
		if a == "1000" { // as many replays take a while on a processor
			a = "3"
		}
		args = append(args, a)
	}
	bin := builtDagrun(t)
	outputs, errs := make([]string, job.Completions), make([]error, job.Completions)
	var pods sync.WaitGroup
	for k := range job.Completions {
		pods.Go(func() {
			c := exec.Command(bin+"/dagrun", args...)
			c.Env = append(env[:len(env):len(env)], "DAGRUN_RENDEZVOUS="+address, fmt.Sprintf("JOB_COMPLETION_INDEX=%d", k))
			out, err := c.CombinedOutput()
			outputs[k], errs[k] = string(out), err
		})
	}
	pods.Wait()
	for k := range outputs {
		require.NoError(t, errs[k], outputs[k])
		require.Equal(t, 4, strings.Count(outputs[k], "  ok "), outputs[k])
	}
}
