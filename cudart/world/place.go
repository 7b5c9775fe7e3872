// Which rank this process is: from flags, or from the environment of a launcher.

package world

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

// Place is which rank a process is, and where the ranks meet.
type Place struct {
	Rank, Ranks, LocalRank int
	Rendezvous             string // host:port of rank 0's store
	Launcher               string // who says so, for messages
	// Derived says that another process owns the port of Rendezvous: the store takes one of the ports after it.
	Derived bool
	// Job tells the ranks of jobs apart whose ports may overlap; "": the port is this job's own.
	Job string
}

// MaxRanks is how many ranks can run one file.
const MaxRanks = 1024

// Flags are what a command line says by hand. Rank and Ranks are -1 where they are not given.
type Flags struct {
	Rank, Ranks int
	Rendezvous  string
}

// Find returns this process's place among the ranks: that of the flags, or else of the first launcher that getenv knows. Without one, the
// process is alone: {0, 1}.
func Find(flags Flags, getenv func(string) string) (Place, error) {
	if getenv == nil {
		getenv = os.Getenv
	}
	e := environment{getenv: getenv}
	p := Place{Rank: flags.Rank, Ranks: flags.Ranks, LocalRank: e.number("DAGRUN_LOCAL_RANK", e.number("LOCAL_RANK", 0)), Launcher: "--rank and --ranks"}
	switch byHand := flags.Rank >= 0 || flags.Ranks >= 0; {
	case byHand && (flags.Rank < 0 || flags.Ranks < 0):
		return Place{}, errors.New("--rank and --ranks belong together: which rank is this, and how many are there?")
	case !byHand:
		e.err = nil // the variables of a launcher that is not there mean nothing
		p = e.place()
	}
	if e.err != nil {
		return Place{}, e.err
	}
	if at := cmp.Or(flags.Rendezvous, getenv("DAGRUN_RENDEZVOUS")); at != "" {
		p.Rendezvous, p.Derived, p.Job = at, false, ""
	}
	if p.Launcher == "" {
		return alone(flags, getenv)
	}
	return p.checked()
}

// alone is the place of a process that no launcher has started. It refuses what only one of several ranks is told.
func alone(flags Flags, getenv func(string) string) (Place, error) {
	switch {
	case flags.Rendezvous != "":
		return Place{}, errors.New("--rendezvous needs --rank and --ranks, or a launcher that says which rank this is")
	case getenv("DAGRUN_RANK") != "":
		return Place{}, errors.New("DAGRUN_RANK is set and DAGRUN_RANKS is not: set it to how many ranks there are")
	case getenv("DAGRUN_RANKS") != "" && getenv("DAGRUN_RANKS") != "1":
		return Place{}, errors.New("DAGRUN_RANKS is set, but nothing says which of them this is: set DAGRUN_RANK, or make the Kubernetes job indexed (completionMode: Indexed)")
	case getenv("DAGRUN_RENDEZVOUS") != "":
		return Place{}, errors.New("DAGRUN_RENDEZVOUS is set and DAGRUN_RANKS is not: set it to how many ranks there are")
	case getenv("RANK") != "" && getenv("WORLD_SIZE") != "" && getenv("WORLD_SIZE") != "1": // each rank would do the whole work
		return Place{}, fmt.Errorf("RANK=%s and WORLD_SIZE=%s are set and MASTER_ADDR is not: set it to the host of rank 0, as torchrun does, or unset RANK to run alone", getenv("RANK"), getenv("WORLD_SIZE"))
	}
	return Place{Ranks: 1}, nil
}

// checked refuses places that cannot be.
func (p Place) checked() (Place, error) {
	switch {
	case p.Ranks < 1 || p.Ranks > MaxRanks:
		return p, fmt.Errorf("%s: %d ranks; there can be 1 to %d", p.Launcher, p.Ranks, MaxRanks)
	case p.Rank < 0 || p.Rank >= p.Ranks:
		return p, fmt.Errorf("%s: rank %d is not one of 0 to %d", p.Launcher, p.Rank, p.Ranks-1)
	case p.LocalRank < 0 || p.LocalRank >= p.Ranks:
		return p, fmt.Errorf("%s: local rank %d is not one of 0 to %d", p.Launcher, p.LocalRank, p.Ranks-1)
	case p.Ranks > 1 && p.Rendezvous == "":
		return p, fmt.Errorf("%s: %d ranks need a place to meet: add --rendezvous HOST:PORT, with the host of rank 0", p.Launcher, p.Ranks)
	case p.Ranks == 1 || p.Rendezvous == "":
		return p, nil
	}
	at, err := withPort(p.Rendezvous)
	if err != nil {
		return p, fmt.Errorf("%s: %w", p.Launcher, err)
	}
	p.Rendezvous = at
	return p, nil
}

// environment reads the variables of launchers and keeps the first that is no number.
type environment struct {
	getenv func(string) string
	err    error
}

func (e *environment) number(name string, otherwise int) int {
	text := e.getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil && e.err == nil {
		e.err = fmt.Errorf("%s=%q is not a number", name, text)
	}
	return n
}

// place knows dagrun launch, torchrun, Open MPI, MPICH, Slurm and Kubernetes.
func (e *environment) place() Place {
	var p Place
	switch {
	case e.getenv("DAGRUN_RANK") != "" && e.getenv("DAGRUN_RANKS") != "":
		p = Place{Rank: e.number("DAGRUN_RANK", 0), Ranks: e.number("DAGRUN_RANKS", 1), LocalRank: e.number("DAGRUN_LOCAL_RANK", 0),
			Rendezvous: e.getenv("DAGRUN_RENDEZVOUS"), Launcher: "DAGRUN_RANK and DAGRUN_RANKS"}
	case e.getenv("RANK") != "" && e.getenv("WORLD_SIZE") != "" && e.getenv("MASTER_ADDR") != "":
		p = Place{Rank: e.number("RANK", 0), Ranks: e.number("WORLD_SIZE", 1), LocalRank: e.number("LOCAL_RANK", 0), Derived: true, Launcher: "torchrun"}
		p.Rendezvous, p.Job = joined(e.getenv("MASTER_ADDR"), e.getenv("MASTER_PORT")), "torchrun "+e.getenv("MASTER_PORT")
	case e.getenv("OMPI_COMM_WORLD_SIZE") != "":
		p = Place{Rank: e.number("OMPI_COMM_WORLD_RANK", 0), Ranks: e.number("OMPI_COMM_WORLD_SIZE", 1),
			LocalRank: e.number("OMPI_COMM_WORLD_LOCAL_RANK", 0), Launcher: "Open MPI"}
		if e.number("OMPI_COMM_WORLD_LOCAL_SIZE", 0) == p.Ranks {
			p.meetHere("Open MPI " + e.getenv("PMIX_NAMESPACE") + e.getenv("OMPI_MCA_ess_base_jobid"))
		}
	// before Slurm, which may have started a proxy for each host only
	case e.getenv("PMI_RANK") != "" && e.getenv("PMI_SIZE") != "" && e.getenv("MPI_LOCALRANKID") != "":
		p = Place{Rank: e.number("PMI_RANK", 0), Ranks: e.number("PMI_SIZE", 1), LocalRank: e.number("MPI_LOCALRANKID", 0), Launcher: "MPICH"}
		if from := starter(); from != "" && e.number("MPI_LOCALNRANKS", 0) == p.Ranks {
			p.meetHere("MPICH " + from)
		}
	case e.getenv("SLURM_STEP_ID") != "" && e.getenv("SLURM_PROCID") != "":
		p = Place{Rank: e.number("SLURM_PROCID", 0), Ranks: e.number("SLURM_STEP_NUM_TASKS", e.number("SLURM_NTASKS", 1)),
			LocalRank: e.number("SLURM_LOCALID", 0), Launcher: "Slurm"}
		host := firstHost(e.getenv("SLURM_STEP_NODELIST"))
		if e.number("SLURM_STEP_NUM_NODES", 1) == 1 {
			host = "127.0.0.1"
		}
		if host != "" {
			p.Job = "Slurm " + e.getenv("SLURM_JOB_ID") + "." + e.getenv("SLURM_STEP_ID")
			p.Rendezvous, p.Derived = joined(host, jobPort(p.Job)), true
		}
	case e.getenv("JOB_COMPLETION_INDEX") != "" && e.getenv("DAGRUN_RANKS") != "":
		p = Place{Rank: e.number("JOB_COMPLETION_INDEX", 0), Ranks: e.number("DAGRUN_RANKS", 1), Rendezvous: e.getenv("DAGRUN_RENDEZVOUS"), Launcher: "Kubernetes"}
	}
	return p
}

// meetHere lets the ranks of a job that are all on this host meet without being told where.
func (p *Place) meetHere(job string) {
	p.Job = job
	p.Rendezvous, p.Derived = joined("127.0.0.1", jobPort(job)), true
}

// derivedPorts is how many ports after the first are tried where another process may own it.
const derivedPorts = 8

// ports lists the ports that the store may have: the one of the rendezvous, or those after it if another process owns it.
func (p Place) ports() []string {
	_, port, err := net.SplitHostPort(p.Rendezvous)
	if err != nil {
		return nil
	}
	first, err := strconv.Atoi(port)
	if err != nil || !p.Derived {
		return []string{port}
	}
	step := 1
	if first+derivedPorts > mostPort {
		step = -1
	}
	var list []string
	for k := range derivedPorts {
		list = append(list, strconv.Itoa(first+step*(1+k)))
	}
	return list
}

// orJob is why else a process may fail to prove the secret.
func (p Place) orJob() string {
	if p.Job == "" {
		return ""
	}
	return ", or belongs to another job"
}

// firstHost is the first host of a Slurm list such as gpu[07-09,12],login1 or rack[1-2]n[01-16].
func firstHost(list string) string {
	var host strings.Builder
	for list != "" && list[0] != ',' {
		if list[0] != '[' {
			host.WriteByte(list[0])
			list = list[1:]
			continue
		}
		inside, rest, _ := strings.Cut(list[1:], "]")
		host.WriteString(inside[:len(inside)-len(strings.TrimLeft(inside, "0123456789"))])
		list = rest
	}
	return host.String()
}
